"""Columns of known noise."""

import numpy as np
from scipy.signal import fftconvolve

from gapless.core.signal import Array

PLATEAU = np.sqrt(2 * np.log(2) / np.pi)  # Allan deviation of flicker noise over its coefficient


def column(
    rng: np.random.Generator,
    num_samples: int,
    *,
    white: float = 1.0,
    flicker: float = 0.0,
    walk: float = 0.0,
    slope: float = 0.0,
) -> Array:
    """Returns readings with these sizes, per sample.

    Args:
        rng: Source of the noise.
        num_samples: How many.
        white: Standard deviation.
        flicker: Coefficient B of a spectrum B^2 / (2 sin(pi f)): white noise through the filter (1 - 1/z)^-1/2
            (N. J. Kasdin, 1995).
        walk: Standard deviation of a step.
        slope: Of a ramp.
    """
    values = white * rng.standard_normal(num_samples) + slope * np.arange(num_samples)
    if flicker:
        k = np.arange(1, num_samples)
        answer = np.concatenate([[1.0], np.cumprod((k - 0.5) / k)])
        values += flicker * fftconvolve(rng.standard_normal(num_samples), answer)[:num_samples]
    return values + walk * np.cumsum(rng.standard_normal(num_samples))
