"""Explanations with scores by hand."""

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.fit.mechanisms.mechanism import Mechanism
from gapless.fit.mechanisms.search import Explanation

DIMENSIONS: tuple[Dimension, ...] = ("actuator", "latency", "sensor")
MECHANISMS = tuple(Mechanism(dimension, (dimension,), (k,)) for k, dimension in enumerate(DIMENSIONS))


def explanation(dimensions: tuple[Dimension, ...], score: float, left: float = 0.0, lasts: bool = True) -> Explanation:
    """One mechanism of each dimension, with a held-out score above that of what is left.

    `left` is the mean logarithm of what remains above noise.
    """
    mechanisms = tuple(MECHANISMS[DIMENSIONS.index(d)] for d in dimensions)
    squares = np.full((10, 2), 2.0 * np.exp(left - score / 40.0))
    rng = np.random.default_rng(0)
    residual = np.ones((10, 30, 2)) if lasts else rng.standard_normal((10, 30, 2))
    return Explanation(mechanisms, np.zeros(4), squares, residual)


def explanations(actuator: float, latency: float, both: float, left: float = 0.0) -> list[Explanation]:
    """What two dimensions explain, alone and together."""
    return [
        explanation((), 0.0, left),
        explanation(("actuator",), actuator, left),
        explanation(("latency",), latency, left),
        explanation(("actuator", "latency"), both, left),
    ]
