"""The causes of the gap, where in the logs they show, and the conditions under which runs fail, ready to print."""

import math
from dataclasses import dataclass

from markupsafe import Markup

from gapless.core.results import Cause, ConditionRate, DiagnoseResult, TellingMoment
from gapless.report import numbers as n
from gapless.report import plots

LIKELY = 0.5  # above this probability a cause takes part more probably than not
MOST_MOMENTS = 9
NOTICED = 1.1  # times the noise; an error below is called noise


@dataclass(frozen=True)
class CauseRow:
    """One row of the causes: its name, how probable it is, and its share of the gap."""

    name: str
    bar: Markup
    probability: str
    glyph: Markup | None
    share: str


@dataclass(frozen=True)
class MomentRow:
    """One stretch of a log that speaks for a cause, in words."""

    log: str
    stretch: str
    column: str
    cause: str
    without: str
    with_it: str


@dataclass(frozen=True)
class ConditionRow:
    """One value of a condition, and how often runs failed with it."""

    value: str
    runs: str
    failures: str
    rate: str


@dataclass(frozen=True)
class ConditionGroup:
    """The values of one condition, and the probability that it matters."""

    name: str
    matters: str
    likely: bool
    rows: tuple[ConditionRow, ...]


def cause_rows(diagnose: DiagnoseResult) -> tuple[CauseRow, ...]:
    """Returns the dimensions, most probable first."""
    found: list[CauseRow] = []
    for cause in diagnose.causes:
        share = (cause.share, cause.low, cause.high) if cause.is_shared else (math.nan, math.nan, math.nan)
        found.append(
            CauseRow(
                cause.dimension,
                plots.probability_bar(cause.dimension, cause.probability),
                n.probability(cause.probability),
                plots.share_glyph(cause.dimension, *share),
                n.percent_span(*share),
            )
        )
    return tuple(found)


def other_rows(diagnose: DiagnoseResult) -> tuple[CauseRow, ...]:
    """Returns the two explanations that are no dimension: something unmodelled, and no gap at all."""
    others = {"unmodelled": diagnose.unmodelled.probability, "no gap": diagnose.no_gap.probability}
    return tuple(
        CauseRow(name, plots.probability_bar(name, value, "other"), n.probability(value), None, n.DASH)
        for name, value in others.items()
    )


def ambiguities(diagnose: DiagnoseResult) -> tuple[str, ...]:
    """Returns what the logs cannot tell apart, as sentences."""
    return tuple(f"These logs cannot tell {n.listed(group)} apart." for group in diagnose.ambiguous)


def waterfall(diagnose: DiagnoseResult) -> Markup | None:
    """Returns the explained gap by cause; None where no cause is likely, or where signals tell no shares."""
    likely = [cause for cause in diagnose.causes if is_likely(cause.probability)]
    if not likely or not any(n.known(cause.share) and cause.share > 0 for cause in diagnose.causes):
        return None
    return plots.waterfall([_step(cause) for cause in likely])


def _step(cause: Cause) -> plots.Step:
    return plots.Step(cause.dimension, cause.share, cause.low, cause.high)


def is_likely(probability: float | None) -> bool:
    """Returns whether something is more probable than not; what is unknown is not."""
    return probability is not None and n.known(probability) and probability > LIKELY


def left_over(diagnose: DiagnoseResult) -> str:
    """Returns in a sentence what even the best explanation leaves; shares do not count it.

    The record holds u = mean of log((1 + r^2) / 2) with r the error in multiples of the noise, so that r = 1 gives 0.
    Here r = sqrt(2 exp(u) - 1).
    """
    if not n.known(diagnose.unexplained):
        return ""
    times = math.sqrt(max(0.0, 2.0 * math.exp(min(diagnose.unexplained, 600.0)) - 1.0))
    if times < NOTICED:
        return "The best explanation leaves no more than noise."
    about = n.number(float(f"{times:.2g}"))
    return f"Not counted here: even the best explanation leaves errors of about {about} times the noise."


def moment_rows(diagnose: DiagnoseResult) -> tuple[MomentRow, ...]:
    """Returns the stretches that speak most, in the order of the record."""
    return tuple(map(_moment_row, diagnose.moments[:MOST_MOMENTS]))


def _moment_row(moment: TellingMoment) -> MomentRow:
    return MomentRow(
        log=moment.log,
        stretch=n.stretch(moment.time_s, moment.duration_s),
        column=moment.column,
        cause=moment.dimension,
        without=n.number(moment.without),
        with_it=n.number(moment.with_it),
    )


def condition_groups(diagnose: DiagnoseResult) -> tuple[ConditionGroup, ...]:
    """Returns the conditions, those that matter most first; values in the order of the record."""
    groups: dict[str, list[ConditionRate]] = {}
    for rate in diagnose.conditions:
        groups.setdefault(rate.condition, []).append(rate)
    matters = {name: _matters(rates) for name, rates in groups.items()}
    return tuple(
        ConditionGroup(name, n.probability(matters[name]), is_likely(matters[name]), tuple(map(_row, groups[name])))
        for name in sorted(groups, key=lambda name: -(matters[name] or 0.0))
    )


def _matters(rates: list[ConditionRate]) -> float | None:
    return max((rate.matters for rate in rates if n.known(rate.matters)), default=None)


def _row(rate: ConditionRate) -> ConditionRow:
    return ConditionRow(rate.value, str(rate.runs), str(rate.failures), n.percent_span(rate.rate, rate.low, rate.high))
