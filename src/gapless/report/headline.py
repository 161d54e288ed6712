"""The first thing on the page: how large the gap was, how large it is, and how sure that is."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from gapless.core.interval import Interval
from gapless.core.results import LoopResult, MeasureResult
from gapless.report import numbers as n
from gapless.report.parts import Parts


class Badge(NamedTuple):
    """A judgement in words with a sign in front."""

    kind: str  # good, open or bad
    words: str


class Rate(NamedTuple):
    """One success rate: whose, and the colour of its bar."""

    label: str
    detail: str
    success: Interval
    kind: str  # model, measured or fitted


class Headline(NamedTuple):
    """The headline of whatever is known."""

    sentence: str
    badges: list[Badge]
    rates: list[Rate]
    remarks: list[str]


def build_headline(parts: Parts) -> Headline:
    """Returns the headline of whatever is known."""
    rates = list(_collect_rates(parts))
    return Headline(_write_sentence(parts, rates), list(_badges(parts)), rates, list(_write_remarks(parts, rates)))


def intervals_overlap(one: Interval, other: Interval) -> bool | None:
    """Returns whether two intervals share a value; None where one of them has no trials or no ends."""
    ends = (one.low, one.high, other.low, other.high)
    if one.n == 0 or other.n == 0 or not all(n.is_known(end) for end in ends):
        return None
    return one.low <= other.high and other.low <= one.high


def judge_improvement(before: Interval, after: Interval) -> Badge:
    """Returns whether `after` is shown to be better than `before`: only where their intervals are apart."""
    both = intervals_overlap(before, after)
    if both is None:
        return Badge("open", "No improvement shown: too little is known of reality before or after")
    if both:
        ends = " and ".join(f"[{100 * i.low:.0f}, {100 * i.high:.0f}]" for i in (before, after))
        return Badge("open", f"No improvement shown: the intervals before and after, {ends} %, overlap")
    if after.low > before.high:
        return Badge("good", "Improvement shown: the intervals before and after do not overlap")
    return Badge("bad", "Worse than before: the intervals before and after do not overlap")


def _collect_rates(parts: Parts) -> Iterable[Rate]:
    """Yields every success rate that is known."""
    loop, evaluate = parts.loop, parts.evaluate
    if loop:
        yield Rate("Simulation", "first policy", loop.simulation, "model")
        yield Rate("Reality, before", "first policy", loop.before, "measured")
        if loop.last:
            yield Rate("Reality, after", "last policy", loop.after, "fitted")
    else:
        measured = parts.measure.success if parts.measure else {}
        if "simulation" in measured:
            yield Rate("Simulation", "with the logs' policy", measured["simulation"], "model")
        elif parts.train:
            yield Rate("Simulation", "trained policy", parts.train.success, "model")
        if "reality" in measured:
            yield Rate("Reality", "in the logs", measured["reality"], "measured")
    if evaluate:
        kind = "fitted" if evaluate.where == "reality" else "model"
        yield Rate(evaluate.where.capitalize(), "evaluated policy", evaluate.success, kind)


def _write_sentence(parts: Parts, rates: Sequence[Rate]) -> str:
    if parts.loop:
        return _loop_sentence(parts.loop)
    if rates:
        clauses = [f"{n.percent(r.success.value)} in {r.label.lower()} ({r.detail})" for r in rates]
        return f"Success is {n.join_words(clauses)}."
    return _signals(parts) or "No success rate is known yet, and no prediction was compared."


def _loop_sentence(loop: LoopResult) -> str:
    work = f"{n.plural(loop.rounds, 'round')} and {n.plural(loop.real_episodes, 'real episode')}"
    rates = (loop.simulation, loop.before, loop.after)
    if not all(n.is_known(rate.value) for rate in rates):
        return f"After {work}, the gap before and after is not known: a success rate is missing."
    if not loop.last and loop.decision:
        return f"The loop trained no further policy: {loop.decision.reason}."
    gaps = [100 * (rates[0].value - rate.value) for rate in rates[1:]]
    sizes = [f"{gap:.0f}".replace("-0", "0").replace("-", "\u2212") for gap in gaps]
    return f"The gap between simulation and reality was {sizes[0]} percentage points; after {work} it is {sizes[1]}."


def _badges(parts: Parts) -> Iterable[Badge]:
    loop = parts.loop
    if loop:
        reached = "reached" if loop.reached else "not reached"
        yield Badge("good" if loop.reached else "bad", f"Target of {n.percent(loop.target)} {reached}")
        if loop.last:
            yield judge_improvement(loop.before, loop.after)
    if parts.check and not parts.check.sound:
        faults = sum(note.level == "fault" for note in parts.check.notes)
        yield Badge("bad", f"The project is not sound: {n.plural(faults, 'fault')}, listed below")


def _write_remarks(parts: Parts, rates: Sequence[Rate]) -> Iterable[str]:
    loop, measured = parts.loop, parts.measure.success if parts.measure else {}
    if loop:
        if loop.reached and n.is_known(loop.after.low) and loop.after.low < loop.target:
            yield (
                f"The interval of the last policy reaches down to {n.percent(loop.after.low)}: more trials "
                "would show whether the target is met for certain."
            )
        if intervals_overlap(loop.simulation, loop.before):
            yield "Simulation and reality before overlap too: no gap in success was shown to begin with."
        if loop.last and loop.decision:
            yield f"What the loop decided: {loop.decision.reason}."
        yield "Trials that only score a policy are not counted as real episodes used."
    elif len(measured) == 2 and intervals_overlap(measured["simulation"], measured["reality"]):
        yield "The intervals of simulation and reality overlap: no gap in success is shown."
    if parts.evaluate and parts.evaluate.failed_in:
        phases = n.join_words(f"{phase} {count}" for phase, count in parts.evaluate.failed_in.items())
        yield f"Failures of the evaluated policy by phase: {phases}."
    if rates and (signals := _signals(parts)):
        yield signals


def _signals(parts: Parts) -> str:
    """Returns the gap in signals as a sentence; empty if nothing was compared."""
    errors = {"the model as written": parts.measure, "the fitted model": parts.measure_fitted}
    known = {name: error for name, measure in errors.items() if (error := _median_error(measure)) is not None}
    if not known:
        return ""
    clauses = [f"{n.small_percent(error)} with {name}" for name, error in known.items()]
    missing = "" if "the model as written" in known else "; run `gapless measure` for that of the model as written"
    return f"Prediction error in the median column, relative to how much it varies: {n.join_words(clauses)}{missing}."


def _median_error(measure: MeasureResult | None) -> float | None:
    columns = measure.columns.values() if measure else ()
    errors = [error.nrmse for error in columns if error.nrmse is not None and n.is_known(error.nrmse)]
    return median(errors) if errors else None
