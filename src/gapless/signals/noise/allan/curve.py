"""The Allan deviation as a record for plots."""

import numpy as np
from scipy.stats import chi2

from gapless.core.results import AllanCurve
from gapless.core.signal import Array
from gapless.signals.noise.allan.terms import LEVEL, Fit
from gapless.signals.noise.allan.variance import TERMS, Allan, shapes


def allan_curve(allan: Allan, first: int, fit: Fit | None) -> AllanCurve:
    """Returns the Allan deviation with its intervals, and its fitted terms.

    Args:
        allan: All Allan variances.
        first: How many of the shortest averaging times were not fitted.
        fit: The fit to the others; None without one.
    """
    freedom = 2 * allan.windows / (3 * allan.sizes)  # about that of white noise
    fitted = np.full(len(allan.sizes), np.nan)
    terms: dict[str, tuple[float, ...]] = {}
    if fit is not None:
        freedom[first:] = fit.freedom
        fitted[first:] = fit.fitted
        parts = {name: shapes(allan.sizes)[:, k] * fit.value[k] for k, name in enumerate(TERMS)}
        if fit.ramps:
            parts["drift"] = allan.slope**2 * allan.sizes**2 / 2
        terms = {name: _roots(part) for name, part in parts.items() if part.any()}
    freedom = np.maximum(freedom, 1.0)
    tail = (1 - LEVEL) / 2
    low, high = (allan.variance * freedom / chi2.ppf(p, freedom) for p in (1 - tail, tail))
    tau_s = tuple(map(float, allan.tau_s))
    return AllanCurve(tau_s, _roots(allan.variance), _roots(low), _roots(high), _roots(fitted), terms)


def _roots(squares: Array) -> tuple[float, ...]:
    return tuple(map(float, np.sqrt(squares)))
