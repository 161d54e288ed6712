"""How other stacks draw values, as ranges: operation, distribution, mode."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from gapless.core.distribution import Level, Part, Range
from gapless.core.errors import InputError
from gapless.project.schema import smallest_value
from gapless.randomize.foreign.term import Called, Unread, Written, said_as

FAR = 4.0  # standard deviations at which a bell that nobody cuts is cut here
MIN_MASS_KG = 1e-6  # of a bell that is cut: a body without mass does not move
Operation = Literal["abs", "scale", "add"]


@dataclass(frozen=True)
class Draw:
    """What a term draws.

    Attributes:
        ends: Two numbers: ends of a range, or mean and standard deviation of `gaussian`.
        operation: `abs` sets them, `scale` multiplies the model's value, `add` adds to it.
        distribution: Its name, or a call that makes one.
    """

    ends: tuple[float, float]
    operation: Operation
    distribution: Any


def draw_of(term: Written, key: str, operation: str, default: Any = None) -> Draw | None:
    """Returns what a term draws for one of its params; None where it leaves that alone.

    Raises:
        InputError: If the numbers or the operation cannot be read.
    """
    ends = pair_of(term.params.get(key, default), key)
    return None if ends is None else Draw(ends, operation_of(term, operation), distribution_of(term))


def pair_of(said: Any, name: str) -> tuple[float, float] | None:
    """Returns two numbers.

    Raises:
        InputError: If it is something else.
    """
    if said is None:
        return None
    numbers = [x for x in said if isinstance(x, (int, float))] if isinstance(said, (list, tuple)) else []
    if len(numbers) != 2 or len(said) != 2 or not all(map(math.isfinite, numbers)):
        raise InputError(f"{name} is no pair of numbers but {said_as(said)}: write (low, high)")
    return float(numbers[0]), float(numbers[1])


def operation_of(term: Written, default: str) -> Operation:
    """Returns a term's operation.

    Raises:
        InputError: If it is none that is known.
    """
    said = term.params.get("operation", default)
    name = said.text.split(".")[-1] if isinstance(said, Unread) else said
    if name not in ("abs", "scale", "add"):
        raise InputError(f"no operation {name!r}; write abs, scale or add")
    return name  # type: ignore[return-value]


def distribution_of(term: Written) -> Any:
    """Returns the name of a term's distribution, or the call that makes it."""
    said = term.params.get("distribution", "uniform")
    return said.text.split(".")[-1] if isinstance(said, Unread) else said


def level_of(term: Written, interval_s: float) -> tuple[Level, str | None]:
    """Returns how often a term draws, and a note where there is no level like it."""
    if term.mode in ("startup", "prestartup", "usd"):
        return "robot", None
    if term.mode == "step":
        return "step", None
    if term.mode == "interval":
        if term.interval_s is not None and term.interval_s[1] <= 1.5 * interval_s:
            return "step", None
        return "episode", "drawn anew every so often there, per episode here"
    return "episode", None if term.mode == "reset" else f"mode {term.mode!r} is read as per episode"


def range_of(path: str, nominal: float, draw: Draw, per: Level, reason: str) -> Range:
    """Returns the range of a parameter that a term draws.

    Raises:
        InputError: If there is no such range; the message says why.
    """
    slope = nominal if draw.operation == "scale" else 1.0
    shift = nominal if draw.operation == "add" else 0.0
    if draw.operation == "scale" and nominal == 0:
        raise InputError(f"{path}: scales what the model does not have: give the model a value")
    first, second = draw.ends
    name, arguments = (draw.distribution, ()) if isinstance(draw.distribution, str) else _called(draw.distribution)
    if name == "gaussian":
        return _bell(path, "normal", slope * first + shift, abs(slope) * second, None, per, reason)
    low, high = sorted((slope * first + shift, slope * second + shift))
    if first > second:
        raise InputError(f"{path}: {first:g} .. {second:g} goes backwards: write the smaller number first")
    if name == "uniform":
        kind = "fixed" if low == high else "uniform"
        return Range(path, kind, low, high, (low + high) / 2, reason=reason, per=per)
    if name == "log_uniform" and not shift:
        return Range(path, "log-uniform", low, high, (low + high) / 2, reason=reason, per=per)
    if name == "normal" and len(arguments) == 2:
        mean, std = slope * arguments[0] + shift, abs(slope) * arguments[1]
        return _bell(path, "normal", mean, std, (low, high), per, reason)
    if name == "log_normal" and len(arguments) == 2 and not shift:
        return _bell(path, "log-normal", slope * arguments[0], arguments[1], (low, high), per, reason)
    if name == "beta" and len(arguments) == 2:
        a, b = arguments
        std = (high - low) * math.sqrt(a * b / (a + b + 1)) / (a + b)
        return Range(path, "beta", low, high, low + (high - low) * a / (a + b), std, reason, per)
    if name == "mixture" and arguments:
        parts = tuple(Part(weight, slope * mean + shift, abs(slope) * std) for weight, mean, std in arguments)
        return Range(path, "mixture", low, high, (low + high) / 2, 0.0, reason, per, parts)
    raise InputError(f"{path}: a {name} that is {draw.operation} is not known here: write the range by hand")


def _called(said: Any) -> tuple[str, tuple[Any, ...]]:
    if isinstance(said, Called):
        return said.name, said.arguments
    return said.text if isinstance(said, Unread) else str(said), ()


def _bell(
    path: str,
    kind: Literal["normal", "log-normal"],
    mean: float,
    std: float,
    ends: tuple[float, float] | None,
    per: Level,
    reason: str,
) -> Range:
    """Returns a normal range, cut at its ends, or far out and where the field has no sense."""
    low, high = ends or (mean - FAR * std, mean + FAR * std)
    if ends is None:
        low = max(low, MIN_MASS_KG if path.endswith("/mass") else smallest_value(path))
    if not low <= mean <= high:
        raise InputError(f"{path}: its centre {mean:g} is outside what it can be: correct it")
    return Range(path, kind, low, high, mean, std, reason, per)
