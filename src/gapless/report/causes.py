"""The causes of the gap, and the conditions under which runs fail, ready to print."""

import math

from markupsafe import Markup

from gapless.core.results import Cause, ConditionRate, DiagnoseResult
from gapless.report import numbers as n
from gapless.report import plots

LIKELY = 0.5  # above this probability a cause takes part more probably than not
MAX_MOMENTS = 9  # stretches of logs that the page lists
MIN_ERROR_TO_NOISE = 1.1  # an error below this multiple of the noise is called noise


def share_span(cause: Cause) -> tuple[float, float, float]:
    """Returns a cause's share of the gap and the ends of its interval; NaN where signals give it none."""
    return (cause.share, cause.low, cause.high) if cause.is_shared else (math.nan, math.nan, math.nan)


def draw_waterfall(diagnose: DiagnoseResult) -> Markup | None:
    """Returns the explained gap by cause; None where no cause is likely, or where signals give no shares."""
    likely = [cause for cause in diagnose.causes if is_likely(cause.probability)]
    if not likely or not any(n.is_known(cause.share) and cause.share > 0 for cause in diagnose.causes):
        return None
    return plots.waterfall(likely)


def is_likely(probability: float | None) -> bool:
    """Returns whether something is more probable than not; what is unknown is not."""
    return probability is not None and n.is_known(probability) and probability > LIKELY


def describe_left_over(diagnose: DiagnoseResult) -> str:
    """Returns in a sentence what even the best explanation leaves; shares do not count it.

    The record holds u = mean of log((1 + r^2) / 2) with r the error in multiples of the noise, so that r = 1 gives 0.
    Here r = sqrt(2 exp(u) - 1).
    """
    if not n.is_known(diagnose.unexplained):
        return ""
    times = math.sqrt(max(0.0, 2.0 * math.exp(min(diagnose.unexplained, 600.0)) - 1.0))
    if times < MIN_ERROR_TO_NOISE:
        return "The best explanation leaves no more than noise."
    about = n.number(float(f"{times:.2g}"))
    return f"Not counted here: even the best explanation leaves errors of about {about} times the noise."


def group_conditions(diagnose: DiagnoseResult) -> list[tuple[str, float | None, list[ConditionRate]]]:
    """Returns the conditions: name, probability that it matters, rates per value; those that matter most first."""
    groups: dict[str, list[ConditionRate]] = {}
    for rate in diagnose.conditions:
        groups.setdefault(rate.condition, []).append(rate)
    found = [
        (name, max((rate.matters for rate in rates if n.is_known(rate.matters)), default=None), rates)
        for name, rates in groups.items()
    ]
    return sorted(found, key=lambda group: -(group[1] or 0.0))
