"""Random processes that several layers share."""

import numpy as np

from gapless.core.signal import Array


def forgetting(value: Array, size: Array, tau_s: Array, step_s: float, noise: Array) -> Array:
    """Returns a first-order Gauss-Markov process one step later: x' = x e^(-h/tau) + size sqrt(1 - e^(-2h/tau)) n.

    Args:
        value: x, of standard deviation `size` in the long run.
        size: That standard deviation.
        tau_s: Time in which it forgets [s].
        step_s: Length of the step h [s].
        noise: n, standard normal.
    """
    fade = -step_s / tau_s
    return value * np.exp(fade) + size * np.sqrt(-np.expm1(2 * fade)) * noise
