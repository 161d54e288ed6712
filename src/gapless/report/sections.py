"""What sections of the page say: the gap first, then causes and conditions, verdicts, and what to do next."""

import math
import shlex
from collections.abc import Iterable, Sequence
from statistics import median
from typing import NamedTuple

from markupsafe import Markup

from gapless.core.interval import Interval
from gapless.core.results import (
    Advice,
    AuditResult,
    Cause,
    CauseMechanism,
    ConditionRate,
    DiagnoseResult,
    LoopResult,
    MeasureResult,
    SensorResult,
)
from gapless.report import numbers as n
from gapless.report import plots
from gapless.report.parts import Parts

LIKELY = 0.5  # above this probability a cause takes part more probably than not
MAX_MOMENTS = 9  # stretches of logs that the page lists
MIN_ERROR_TO_NOISE = 1.1  # an error below this multiple of the noise is called noise
# part of the page, what it would show, and the command after `gapless` that fills it
_FILLS = (
    ("check", "Whether the project is sound", "check ."),
    ("measure", "How far predictions are from reality", "measure ."),
    ("diagnose", "The causes of the gap", "diagnose ."),
    ("identify", "The parameter values that make the model match", "identify . --json fit.json"),
    ("measure_fitted", "How far the fitted model is from reality", "measure . --fit fit.json"),
    ("randomize", "The training ranges", "randomize ."),
    ("train", "A trained policy", "train ."),
    ("evaluate", "How often the policy succeeds", "evaluate ."),
    ("loop", "The gap before and after closing it", "loop ."),
)
_VERDICT_KINDS = {"good": "good", "fits": "good", "refused": "bad", "wrong": "bad", "too narrow": "bad"}  # else open
_AUDIT_SENTENCES = {
    "wrong": "No values explain the logs, within the ranges or beyond: the model lacks something",
    "too narrow": "Reality is outside the ranges",
    "too wide": "Reality is inside the ranges, but they are far wider than these logs call for",
    "fits": "Reality is inside the ranges, and they are no wider than they need be",
    "cannot tell": "These logs do not show whether reality is inside the ranges",
}
_NOISE_SENTENCES = {
    "good": "White noise and bias instability of every column are identified, and nothing is odd",
    "poor": "This log does not identify everything, or something in it is odd",
    "refused": "This log does not identify the noise of its sensors",
}


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


def intervals_overlap(one: Interval, other: Interval) -> bool | None:
    """Returns whether two intervals share a value; None where one of them has no trials or no ends."""
    ends = (one.low, one.high, other.low, other.high)
    if one.n == 0 or other.n == 0 or not all(map(n.is_known, ends)):
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


def list_rates(parts: Parts) -> Iterable[Rate]:
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


def describe_gap(parts: Parts, rates: Sequence[Rate]) -> str:
    """Returns how large the gap was and is, as far as it is known, in a sentence."""
    if parts.loop:
        return _describe_loop(parts.loop)
    if rates:
        clauses = [f"{n.percent(r.success.value)} in {r.label.lower()} ({r.detail})" for r in rates]
        return f"Success is {n.join_words(clauses)}."
    return _describe_errors(parts) or "No success rate is known yet, and no prediction was compared."


def _describe_loop(loop: LoopResult) -> str:
    work = f"{n.plural(loop.rounds, 'round')} and {n.plural(loop.real_episodes, 'real episode')}"
    rates = (loop.simulation, loop.before, loop.after)
    if not all(n.is_known(rate.value) for rate in rates):
        return f"After {work}, the gap before and after is not known: a success rate is missing."
    if not loop.last and loop.decision:
        return f"The loop trained no further policy: {loop.decision.reason}."
    gaps = [100 * (rates[0].value - rate.value) for rate in rates[1:]]
    sizes = [f"{gap:.0f}".replace("-0", "0").replace("-", "\u2212") for gap in gaps]
    return f"The gap between simulation and reality was {sizes[0]} percentage points; after {work} it is {sizes[1]}."


def _describe_errors(parts: Parts) -> str:
    """Returns the gap in signals as a sentence; empty if nothing was compared."""
    errors = {"the model as written": parts.measure, "the fitted model": parts.measure_fitted}
    known = {name: error for name, measure in errors.items() if (error := _find_median_error(measure)) is not None}
    if not known:
        return ""
    clauses = [f"{n.small_percent(error)} with {name}" for name, error in known.items()]
    missing = "" if "the model as written" in known else "; run `gapless measure` for that of the model as written"
    return f"Prediction error in the median column, relative to how much it varies: {n.join_words(clauses)}{missing}."


def _find_median_error(measure: MeasureResult | None) -> float | None:
    errors = [error.nrmse for error in measure.columns.values() if n.is_known(error.nrmse)] if measure else []
    return median(errors) if errors else None


def judge_gap(parts: Parts) -> Iterable[Badge]:
    """Yields what the loop reached, whether that is an improvement, and whether the project is sound."""
    loop = parts.loop
    if loop:
        reached = "reached" if loop.reached else "not reached"
        yield Badge("good" if loop.reached else "bad", f"Target of {n.percent(loop.target)} {reached}")
        if loop.last:
            yield judge_improvement(loop.before, loop.after)
    if parts.check and not parts.check.sound:
        faults = sum(note.level == "fault" for note in parts.check.notes)
        yield Badge("bad", f"The project is not sound: {n.plural(faults, 'fault')}, listed below")


def remark_on_gap(parts: Parts, rates: Sequence[Rate]) -> Iterable[str]:
    """Yields what else to know of success rates, and the gap in signals where the headline does not say it."""
    loop, measured = parts.loop, parts.measure.success if parts.measure else {}
    if loop:
        if loop.reached and n.is_known(loop.after.low) and loop.after.low < loop.target:
            down_to = f"The interval of the last policy reaches down to {n.percent(loop.after.low)}"
            yield f"{down_to}: more trials would show whether the target is met for certain."
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
    if rates and (errors := _describe_errors(parts)):
        yield errors


def share_span(cause: Cause) -> tuple[float, float, float]:
    """Returns a cause's share of the gap and the ends of its interval; NaN where signals give it none."""
    return (cause.share, cause.low, cause.high) if cause.is_shared else (math.nan, math.nan, math.nan)


def list_mechanisms(diagnose: DiagnoseResult) -> list[tuple[str, CauseMechanism]]:
    """Returns the dimension and the mechanism of everything that is wrong in the likely causes."""
    likely = [cause for cause in diagnose.causes if n.is_known(cause.probability) and cause.probability > LIKELY]
    named = [(cause.dimension, mechanism) for cause in likely for mechanism in cause.mechanisms]
    return [(dimension, mechanism) for dimension, mechanism in named if mechanism.probability > LIKELY]


def draw_waterfall(diagnose: DiagnoseResult) -> Markup | None:
    """Returns the explained gap by cause; None where no cause is likely, or where signals give no shares."""
    likely = [cause for cause in diagnose.causes if n.is_known(cause.probability) and cause.probability > LIKELY]
    if not likely or not any(n.is_known(cause.share) and cause.share > 0 for cause in diagnose.causes):
        return None
    return plots.waterfall(likely)


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


def judge_verdict(verdict: str, sentence: str = "") -> Badge:
    """Returns a verdict as a badge, with a sentence that says what it means."""
    return Badge(_VERDICT_KINDS.get(verdict, "open"), f"Verdict: {verdict}" + (f". {sentence}" if sentence else ""))


def judge_noise(noise: SensorResult) -> Badge:
    """Returns the verdict on a log at rest in a sentence."""
    return judge_verdict(noise.verdict, _NOISE_SENTENCES[noise.verdict])


def judge_audit(audit: AuditResult) -> Badge:
    """Returns the verdict on ranges in a sentence, with whatever else holds."""
    others = [verdict for verdict in audit.verdicts if verdict != audit.verdict]
    also = f"; some ranges are {n.join_words(others)} besides" if others else ""
    return judge_verdict(audit.verdict, _AUDIT_SENTENCES[audit.verdict] + also)


def collect_next_steps(parts: Parts) -> list[tuple[str, str]]:
    """Returns what to do and its command: the advice of `diagnose` first, then ours where it names no such verb."""
    advice = list(parts.diagnose.advice) if parts.diagnose else []
    for item in _advise_from_numbers(parts):
        if item.verb not in {other.verb for other in advice}:
            advice.append(item)
    return [(item.text, f"gapless {shlex.quote(item.verb)} .") for item in advice]


def list_missing_parts(parts: Parts) -> list[tuple[str, str]]:
    """Returns what the page lacks, each with the command that would fill it."""
    in_loop = ("check", "evaluate") if parts.loop else ()
    missing = [fill for fill in _FILLS if getattr(parts, fill[0]) is None and fill[0] not in in_loop]
    return [(text, f"gapless {command}") for _, text, command in missing]


def _advise_from_numbers(parts: Parts) -> Iterable[Advice]:
    loop, identify = parts.loop, parts.identify
    if parts.check and not parts.check.sound:
        yield Advice("check", "Correct the faults listed below, then check again.")
    if loop and loop.last and intervals_overlap(loop.before, loop.after):
        yield Advice("evaluate", "Run more real trials: the intervals before and after still overlap.")
    if loop and loop.decision and loop.decision.action == "stop":
        yield Advice("loop", f"The loop stopped: {loop.decision.reason}.")
    elif loop and not loop.reached:
        yield Advice("loop", f"The target of {n.percent(loop.target)} is not reached: run further rounds.")
    if identify and identify.verdict == "refused":
        yield Advice("check", "The fit was refused: look at the model, the mapping and the units.")
