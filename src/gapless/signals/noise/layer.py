"""A noise model as the parameters of a simulated sensor, in SI units."""

from collections.abc import Mapping

import numpy as np

from gapless.core.results import NoiseTerm
from gapless.signals.noise.numbers import PLATEAU
from gapless.signals.noise.units import in_si

# A first-order Gauss-Markov bias of standard deviation 1 and correlation time 1 s has its largest Allan deviation,
# 0.618, at 1.89 s (IEEE Std 952-1997, C.1.7, where it is 0.437 q sqrt(T), with q^2 T = 2 s^2).
PEAK = 0.618
PEAK_TAU = 1.89
IDEAL_TAU_S = 100.0  # of layer `inertial sensor`; a test compares


def layer_parameters(
    terms: Mapping[str, NoiseTerm], tau_s: float | None, interval_s: float, unit: str
) -> dict[str, float]:
    """Returns a simulated sensor's knobs, by the names of layer `inertial sensor`; ideal where none is called for.

    `density` is without what rounding to `quantum` adds, step^2 / 12 per sample, since a layer rounds as well.
    `instability` and `tau_s` are of the Gauss-Markov bias whose Allan deviation is highest where that of the log is
    least, and as high as the flicker there: right about that time, too low far from it. `scale` cannot be told at rest.
    `bias` and `quantum` are for the layers `scale and bias` and `quantisation`.

    Args:
        terms: The numbers.
        tau_s: Averaging time of the least Allan deviation [s]; None where it still falls.
        interval_s: Time between samples [s].
        unit: Unit of the values.
    """
    factor = in_si(unit)[1]
    quantum = terms["quantum"].value if "quantum" in terms else 0.0
    density = terms["density"].value if "density" in terms else 0.0
    floor = PLATEAU * terms["flicker"].value if "flicker" in terms else 0.0
    return {
        "density": factor * float(np.sqrt(max(0.0, density**2 - quantum**2 / 12 * interval_s))),
        "bias": factor * terms["bias"].value,
        "instability": factor * float(floor) / PEAK if tau_s else 0.0,
        "tau_s": tau_s / PEAK_TAU if tau_s and floor else IDEAL_TAU_S,
        "walk": factor * float(terms["walk"].value if "walk" in terms else 0.0),
        "quantum": factor * quantum,
        "scale": 1.0,
    }
