"""What to do next: the advice of the records, and the verbs that would fill what is missing."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from gapless.core.results import Advice
from gapless.report import numbers as n
from gapless.report.headline import overlap
from gapless.report.parts import Parts


@dataclass(frozen=True)
class Step:
    """One thing to do: why, and the command to run in the project's folder."""

    text: str
    verb: str
    command: str


def next_steps(parts: Parts) -> tuple[Step, ...]:
    """Returns what to do: the advice of `diagnose` first, then ours where it names no such verb."""
    advice = list(parts.diagnose.advice) if parts.diagnose else []
    for item in _from_numbers(parts):
        if item.verb not in {other.verb for other in advice}:
            advice.append(item)
    return tuple(Step(item.text, item.verb, _command(item.verb)) for item in advice)


def missing(parts: Parts) -> tuple[Step, ...]:
    """Returns the parts that the page lacks, each with the verb that would fill it."""
    return tuple(Step(text, command.split()[0], f"gapless {command}") for text, command in _missing(parts))


def _command(verb: str) -> str:
    return f"gapless {shlex.quote(verb)} ."


def _from_numbers(parts: Parts) -> Iterable[Advice]:
    loop, identify = parts.loop, parts.identify
    if parts.check and not parts.check.sound:
        yield Advice("check", "Mend the faults listed below, then check again.")
    if loop and loop.last and overlap(loop.before, loop.after):
        yield Advice("evaluate", "Run more real trials: the intervals before and after still overlap.")
    if loop and loop.decision and loop.decision.action == "stop":
        yield Advice("loop", f"The loop stopped: {loop.decision.reason}.")
    elif loop and not loop.reached:
        yield Advice("loop", f"The target of {n.percent(loop.target)} is not reached: run further rounds.")
    if identify and identify.verdict == "refused":
        yield Advice("check", "The fit was refused: look at the model, the mapping and the units.")


def _missing(parts: Parts) -> Iterable[tuple[str, str]]:
    """Yields what the page lacks, and the command after `gapless`."""
    if not parts.check and not parts.loop:
        yield "Whether the project is sound", "check ."
    if not parts.measure:
        yield "How far predictions are from reality", "measure ."
    if not parts.diagnose:
        yield "The causes of the gap", "diagnose ."
    if not parts.identify:
        yield "The parameter values that make the model match", "identify . --json fit.json"
    if not parts.measure_fitted:
        yield "How far the fitted model is from reality", "measure . --fit fit.json"
    if not parts.randomize:
        yield "The training ranges", "randomize ."
    if not parts.train:
        yield "A trained policy", "train ."
    if not parts.evaluate and not parts.loop:
        yield "How often the policy succeeds", "evaluate ."
    if not parts.loop:
        yield "The gap before and after closing it", "loop ."
