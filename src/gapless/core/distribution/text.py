"""Ranges as text that people read, edit and compare, a line per parameter.

    actuator/*/delay        uniform 0.02 .. 0.06 per robot    # measured on three robots
    geom/puck/friction      normal 0.25 +- 0.03 within 0.1 .. 1
    body/puck/mass          log-normal 0.25 +- 20 % within 0.1 .. 1
    joint/tip_x/damping     fixed 0.3
    measurement/x/bias      mixture 0.7: -0.01 +- 0.002, 0.3: 0.01 +- 0.002 within -0.02 .. 0.02
    correlation geom/puck/friction body/puck/mass -0.8

Values are in the units of the project's parameters; `beta` is written as `normal` is. `20 %` is the standard
deviation of the logarithm, 0.2. Numbers are written with six digits: more than any range is known to, and still easy
to compare.
"""

import re
from collections.abc import Sequence
from typing import cast

from gapless.core.distribution.ranges import KINDS, Correlation, Level, Part, Range, check_ranges
from gapless.core.errors import InputError

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WITHIN = rf"(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})"
_BELL_WITHIN = rf"(?P<mean>{_NUMBER})\s*\+-\s*(?P<std>{_NUMBER})(?P<percent>\s*%)?\s+within\s+{_WITHIN}"
_FORMS = {  # kind -> pattern of what follows it, and an example
    "fixed": (rf"(?P<mean>{_NUMBER})", "fixed 0.3"),
    "uniform": (_WITHIN, "uniform 0.1 .. 0.5"),
    "log-uniform": (_WITHIN, "log-uniform 0.1 .. 0.5"),
    "normal": (_BELL_WITHIN, "normal 0.3 +- 0.1 within 0 .. 1"),
    "log-normal": (_BELL_WITHIN, "log-normal 0.3 +- 20 % within 0.1 .. 1"),
    "beta": (_BELL_WITHIN, "beta 0.3 +- 0.1 within 0 .. 1"),
    "mixture": (
        rf"(?P<parts>.+?)\s+within\s+{_WITHIN}",
        "mixture 0.5: 0.1 +- 0.02, 0.5: 0.3 +- 0.02 within 0 .. 1",
    ),
}
_PART = re.compile(rf"({_NUMBER})\s*:\s*({_NUMBER})\s*\+-\s*({_NUMBER})")


def ranges_to_text(ranges: Sequence[Range], correlations: Sequence[Correlation] = ()) -> str:
    """Returns ranges as text; `ranges_from_text` reads it back."""
    widest = max((len(item.target) for item in ranges), default=0)
    lines: list[str] = []
    for item in ranges:
        per = "" if item.per == "episode" else f" per {item.per}"
        reason = f"    # {item.reason}" if item.reason else ""
        lines.append(f"{item.target:{widest}}  {item.kind} {_write_values(item)}{per}{reason}")
    lines += [f"correlation {pair.first} {pair.second} {_number(pair.value)}" for pair in correlations]
    return "".join(f"{line}\n" for line in lines)


def ranges_from_text(text: str) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    """Returns the ranges and correlations that a text holds; empty lines and lines of `#` are passed over.

    Of a line that cannot be read, an `InputError` gives the number and an example.
    """
    ranges, correlations = list[Range](), list[Correlation]()
    for number, line in enumerate(text.splitlines(), 1):
        said, _, reason = line.partition("#")
        words = said.split(maxsplit=2)
        if not words:
            continue
        try:
            if words[0] == "correlation":
                correlations.append(_read_correlation(said.split()))
            else:
                ranges.append(_read_range(words, reason.strip()))
        except InputError as error:
            raise InputError(f"line {number}: {error}") from None
    check_ranges(tuple(ranges), tuple(correlations))
    return tuple(ranges), tuple(correlations)


def _write_values(item: Range) -> str:
    within = f"{_number(item.low)} .. {_number(item.high)}"
    if item.kind == "fixed":
        return _number(item.mean)
    if item.kind in ("uniform", "log-uniform"):
        return within
    if item.kind == "mixture":
        parts = (f"{_number(p.weight)}: {_number(p.mean)} +- {_number(p.std)}" for p in item.parts)
        return f"{', '.join(parts)} within {within}"
    deviation = f"{_number(100 * item.std)} %" if item.kind == "log-normal" else _number(item.std)
    return f"{_number(item.mean)} +- {deviation} within {within}"


def _number(value: float) -> str:
    return f"{float(value):.6g}"


def _read_range(words: list[str], reason: str) -> Range:
    target, kind, rest = (*words, "", "")[:3]
    if kind not in KINDS:
        raise InputError(f"{target}: no kind {kind!r}; choose from: {', '.join(KINDS)}")
    rest, _, per = " ".join(rest.split()).partition(" per ")
    form, example = _FORMS[kind]
    found = re.fullmatch(form, rest)
    if found is None:
        raise InputError(f"{target}: cannot read {rest!r}; write it like `{example}`")
    said = found.groupdict()
    numbers = {name: float(said[name]) for name in ("mean", "std", "low", "high") if said.get(name)}
    low, high = (numbers.get(name, numbers.get("mean", 0.0)) for name in ("low", "high"))
    if low > high:
        raise InputError(f"{target}: {low:g} .. {high:g} goes backwards: write the smaller number first")
    if said.get("percent") and kind != "log-normal":
        raise InputError(f"{target}: % is for log-normal; give the standard deviation in the parameter's unit")
    mean = numbers.get("mean", (low + high) / 2)
    std = numbers.get("std", 0.0) / (100 if said.get("percent") else 1)
    parts: list[Part] = []
    for piece in said["parts"].split(",") if said.get("parts") else ():
        bell = _PART.fullmatch(piece.strip())
        if bell is None:
            raise InputError(f"{target}: cannot read {piece.strip()!r}; write it like `{example}`")
        parts.append(Part(*map(float, bell.groups())))
    return Range(target, kind, low, high, mean, std, reason, cast(Level, per or "episode"), tuple(parts))


def _read_correlation(words: list[str]) -> Correlation:
    try:
        _, first, second, value = words
        return Correlation(first, second, float(value))
    except ValueError:
        raise InputError("write a correlation like `correlation FIRST SECOND 0.5`") from None
