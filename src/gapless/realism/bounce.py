"""How fast things leave what they hit."""

import numpy as np

from gapless.core.signal import Array

_RATIOS = np.concatenate([np.linspace(0.0, 2.0, 401), np.geomspace(2.01, 20.0, 100)])  # of damping


def restitution(ratio: Array | float) -> Array:
    """Returns how fast a body leaves a spring with damping, as a share of how fast it came.

    x'' = -2 r w x' - w^2 x from x = 0 until the force is gone, which is before x = 0: contacts do not pull.
    With s = sqrt(|1 - r^2|) the time is t w = (pi - 2 asin(r)) / s below r = 1 and 2 acosh(r) / s above it, and the
    speed has fallen to exp(-r t w) (Schwager and Poeschel, 2007). Gravity during the impact is left out.
    """
    ratio = np.asarray(ratio, dtype=np.float64)
    root = np.sqrt(np.abs(1 - ratio**2))
    close = root < 1e-6
    below = np.pi - 2 * np.arcsin(np.minimum(ratio, 1.0))
    above = 2 * np.arccosh(np.maximum(ratio, 1.0))
    time = np.where(close, 2.0, np.where(ratio < 1, below, above) / np.where(close, 1.0, root))
    return np.exp(-ratio * time)


def damping_ratio(share: Array) -> Array:
    """Returns the damping ratio that gives a restitution; the inverse of `restitution`, between 0 and 20."""
    return np.interp(-np.asarray(share), -restitution(_RATIOS), _RATIOS)
