"""The first thing on the page: how large the gap was, how large it is, and how sure that is."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from markupsafe import Markup

from gapless.core.interval import Interval
from gapless.core.results import CheckResult, LoopResult, MeasureResult
from gapless.report import numbers as n
from gapless.report import plots
from gapless.report.parts import Parts


@dataclass(frozen=True)
class Badge:
    """A judgement in words with a sign in front: `kind` is good, open or bad."""

    kind: str
    words: str


@dataclass(frozen=True)
class Bar:
    """One success rate: whose, the bar, the rate in words, and how many trials."""

    label: str
    detail: str
    drawing: Markup
    rate: str
    trials: str


@dataclass(frozen=True)
class Headline:
    """The headline: one sentence, judgements, bars with their axis, and remarks."""

    sentence: str
    badges: tuple[Badge, ...]
    bars: tuple[Bar, ...]
    axis: Markup
    whiskers: str
    remarks: tuple[str, ...]


def headline(parts: Parts) -> Headline:
    """Returns the headline of whatever is known."""
    target = parts.loop.target if parts.loop else None
    rates = list(_rates(parts))
    bars = tuple(
        Bar(label, detail, plots.success_bar(label, rate, kind, target), n.success(rate), _trials(rate))
        for label, detail, rate, kind in rates
    )
    return Headline(
        sentence=_sentence(parts),
        badges=tuple(_badges(parts)),
        bars=bars,
        axis=plots.percent_axis(target),
        whiskers=_whiskers([rate for _, _, rate, _ in rates]),
        remarks=tuple(_remarks(parts)),
    )


def overlap(one: Interval, other: Interval) -> bool | None:
    """Returns whether two intervals share a value; None where one of them has no trials or no ends."""
    ends = (one.low, one.high, other.low, other.high)
    if one.n == 0 or other.n == 0 or not all(n.known(end) for end in ends):
        return None
    return one.low <= other.high and other.low <= one.high


def improvement(before: Interval, after: Interval) -> Badge:
    """Returns whether `after` is shown to be better than `before`: only where their intervals are apart."""
    together = overlap(before, after)
    if together is None:
        return Badge("open", "No improvement shown: too little is known of reality before or after")
    if together:
        ends = f"[{_ends(before)}] and [{_ends(after)}]"
        return Badge("open", f"No improvement shown: the intervals before and after, {ends} %, overlap")
    if after.low > before.high:
        return Badge("good", "Improvement shown: the intervals before and after do not overlap")
    return Badge("bad", "Worse than before: the intervals before and after do not overlap")


def _ends(interval: Interval) -> str:
    return f"{100 * interval.low:.0f}, {100 * interval.high:.0f}"


def _trials(rate: Interval) -> str:
    return n.plural(rate.n, "trial")


def _rates(parts: Parts) -> Iterable[tuple[str, str, Interval, str]]:
    """Yields label, detail, rate and colour of every success rate that is known."""
    loop, evaluate = parts.loop, parts.evaluate
    if loop:
        yield "Simulation", "first policy", loop.simulation, "model"
        yield "Reality, before", "first policy", loop.before, "measured"
        if loop.last:
            yield "Reality, after", "last policy", loop.after, "fitted"
    else:
        measured = parts.measure.success if parts.measure else {}
        if "simulation" in measured:
            yield "Simulation", "with the logs' policy", measured["simulation"], "model"
        elif parts.train:
            yield "Simulation", "trained policy", parts.train.success, "model"
        if "reality" in measured:
            yield "Reality", "in the logs", measured["reality"], "measured"
    if evaluate:
        kind = "fitted" if evaluate.where == "reality" else "model"
        yield evaluate.where.capitalize(), "evaluated policy", evaluate.success, kind


def _sentence(parts: Parts) -> str:
    if parts.loop:
        return _loop_sentence(parts.loop)
    rates = list(_rates(parts))
    if rates:
        clauses = [f"{n.percent(rate.value)} in {where.lower()} ({detail})" for where, detail, rate, _ in rates]
        return f"Success is {n.listed(clauses)}."
    return _signals(parts) or "No success rate is known yet, and no prediction was compared."


def _loop_sentence(loop: LoopResult) -> str:
    work = f"{n.plural(loop.rounds, 'round')} and {n.plural(loop.real_episodes, 'real episode')}"
    rates = (loop.simulation, loop.before, loop.after)
    if not all(n.known(rate.value) for rate in rates):
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
            yield improvement(loop.before, loop.after)
    if parts.check and not parts.check.sound:
        faults = sum(note.level == "fault" for note in parts.check.notes)
        yield Badge("bad", f"The project is not sound: {n.plural(faults, 'fault')}, listed below")


def _remarks(parts: Parts) -> Iterable[str]:
    loop = parts.loop
    if loop:
        if loop.reached and n.known(loop.after.low) and loop.after.low < loop.target:
            yield (
                f"The interval of the last policy reaches down to {n.percent(loop.after.low)}: more trials "
                "would show whether the target is met for certain."
            )
        if overlap(loop.simulation, loop.before):
            yield "Simulation and reality before overlap too: no gap in success was shown to begin with."
        if loop.last and loop.decision:
            yield f"What the loop decided: {loop.decision.reason}."
        yield "Trials that only score a policy are not counted as real episodes used."
    elif _no_gap_shown(parts.measure):
        yield "The intervals of simulation and reality overlap: no gap in success is shown."
    if parts.evaluate and parts.evaluate.failed_in:
        phases = n.listed(f"{phase} {count}" for phase, count in parts.evaluate.failed_in.items())
        yield f"Failures of the evaluated policy by phase: {phases}."
    rates = any(True for _ in _rates(parts))
    if rates and (signals := _signals(parts)):
        yield signals


def _no_gap_shown(measure: MeasureResult | None) -> bool:
    success = measure.success if measure else {}
    both = "simulation" in success and "reality" in success
    return both and bool(overlap(success["simulation"], success["reality"]))


def _signals(parts: Parts) -> str:
    """Returns the gap in signals as a sentence; empty if nothing was compared."""
    before, after = _median_error(parts.measure), _median_error(parts.measure_fitted)
    if before is None and after is None:
        return ""
    clauses: list[str] = []
    if before is not None:
        clauses.append(f"{n.small_percent(before)} with the model as written")
    if after is not None:
        clauses.append(f"{n.small_percent(after)} with the fitted model")
    missing = "; run `gapless measure` for that of the model as written" if before is None else ""
    return f"Prediction error in the median column, relative to how much it varies: {n.listed(clauses)}{missing}."


def _median_error(measure: MeasureResult | None) -> float | None:
    columns = measure.columns.values() if measure else ()
    errors = [error.nrmse for error in columns if error.nrmse is not None and n.known(error.nrmse)]
    return median(errors) if errors else None


def _whiskers(rates: list[Interval]) -> str:
    if not rates:
        return ""
    levels = n.listed(sorted({n.percent(rate.level) for rate in rates}))
    methods = n.listed(sorted({rate.method for rate in rates}))
    return f"Whiskers are {levels} intervals ({methods})."


def check_words(check: CheckResult) -> str:
    """Returns the outcome of `check` in one sentence."""
    if check.sound:
        return "The project is sound: no fault was found."
    return "The project is not sound: mend its faults before trusting the numbers on this page."
