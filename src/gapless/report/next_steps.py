"""What to do next: the advice of the records, and the verbs that would fill what is missing."""

import shlex
from collections.abc import Iterable

from gapless.core.results import Advice
from gapless.report import numbers as n
from gapless.report.headline import intervals_overlap
from gapless.report.parts import Parts

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
