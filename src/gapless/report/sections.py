"""What sections of the page say: causes and conditions, the audit of ranges, and what to do next."""

import math
import shlex
from collections.abc import Iterable

from markupsafe import Markup

from gapless.core.results import (
    Advice,
    AuditedParameter,
    AuditResult,
    AuditVerdict,
    Cause,
    ConditionRate,
    DiagnoseResult,
)
from gapless.report import numbers as n
from gapless.report import plots
from gapless.report.headline import Badge, intervals_overlap
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
_AUDIT_SENTENCES: dict[AuditVerdict, tuple[str, str]] = {
    "wrong": ("bad", "No values explain the logs, within the ranges or beyond: the model lacks something"),
    "too narrow": ("bad", "Reality is outside the ranges"),
    "too wide": ("open", "Reality is inside the ranges, but they are far wider than these logs call for"),
    "fits": ("good", "Reality is inside the ranges, and they are no wider than they need be"),
    "cannot tell": ("open", "These logs do not show whether reality is inside the ranges"),
}


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


def audit_badge(audit: AuditResult) -> Badge:
    """Returns the verdict in a sentence, with whatever else holds."""
    kind, sentence = _AUDIT_SENTENCES[audit.verdict]
    others = [verdict for verdict in audit.verdicts if verdict != audit.verdict]
    also = f"; some ranges are {n.join_words(others)} besides" if others else ""
    return Badge(kind, f"Verdict: {audit.verdict}. {sentence}{also}")


def sort_audited(audit: AuditResult) -> list[AuditedParameter]:
    """Returns the ranges, those that disagree with the logs first, else in the order of the record."""
    return sorted(audit.parameters, key=lambda p: not disagrees(p))


def disagrees(p: AuditedParameter) -> bool:
    """Returns whether a range is not what the logs call for."""
    return p.verdict in ("too narrow", "too wide")


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
    return [
        (text, f"gapless {command}")
        for name, text, command in _FILLS
        if getattr(parts, name) is None and name not in in_loop
    ]


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
