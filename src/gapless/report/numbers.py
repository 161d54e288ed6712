"""Numbers, units, ids and lists as people read them."""

import math
from collections.abc import Iterable
from typing import TypeGuard

from gapless.core.interval import Interval
from gapless.core.target_path import split_path

DASH = "\u2013"
_MINUS = "\u2212"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def is_known(value: float | None) -> TypeGuard[float]:
    """Returns whether there is a finite number to show."""
    return value is not None and math.isfinite(value)


def number(value: float | None) -> str:
    """Returns a number with 3 significant digits: `0.123`, `12300`, `1.2x10^-5` in typeset form.

    None and NaN become an en dash, infinities their sign.
    """
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "\u221e" if value > 0 else f"{_MINUS}\u221e"
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    if not 1e-3 <= abs(rounded) < 1e6:
        mantissa, exponent = f"{rounded:.2e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{mantissa}\u00d710{str(int(exponent)).translate(_SUPERSCRIPTS)}".replace("-", _MINUS)
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:.{decimals}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", _MINUS)


def unit_text(unit: str) -> str:
    """Returns a unit as printed: `N*m` as `N·m`, `m/s^2` as `m/s²`, and nothing for a plain factor."""
    if unit in ("", "1"):
        return ""
    return unit.replace("*", "\u00b7").replace("^2", "\u00b2").replace("^3", "\u00b3")


def unit_cell(unit: str) -> str:
    """Returns a unit for a column of units: `1` for a plain factor, a dash where it is not known."""
    return "1" if unit == "1" else unit_text(unit) or DASH


def span(low: float | None, high: float | None) -> str:
    """Returns an interval of numbers: `[0.1, 0.3]`; a dash if neither end is known."""
    low_text, high_text = number(low), number(high)
    return DASH if low_text == high_text == DASH else f"[{low_text}, {high_text}]"


def stretch(start_s: float | None, duration_s: float | None) -> str:
    """Returns a stretch of time in seconds, from and to, by hundredths: `12.50 \u2013 13.00`."""
    if is_known(start_s) and is_known(duration_s):
        return f"{start_s:.2f} {DASH} {start_s + duration_s:.2f}"
    return DASH


def percent(share: float | None) -> str:
    """Returns a share as whole percent: `41 %`."""
    return f"{100 * share:.0f} %".replace("-", _MINUS) if is_known(share) else DASH


def small_percent(share: float) -> str:
    """Returns a share as percent that never rounds to nothing: `41 %`, `0.4 %`, `0.001 %`."""
    return f"{float(f'{100 * share:.1g}'):g} %" if 0 < share < 0.01 else percent(share)


def probability(value: float | None) -> str:
    """Returns a probability as percent that never rounds to certainty: `> 99 %`, `< 1 %`."""
    if is_known(value) and 0.995 <= value < 1:
        return "> 99 %"
    return "< 1 %" if is_known(value) and 0 < value < 0.005 else percent(value)


def percent_span(value: float | None, low: float | None, high: float | None) -> str:
    """Returns a share with its interval: `41 % [28, 56]`; without one where its ends are unknown."""
    if not is_known(value):
        return DASH
    ends = (percent(low).removesuffix(" %"), percent(high).removesuffix(" %"))
    return percent(value) if DASH in ends else f"{percent(value)} [{ends[0]}, {ends[1]}]"


def success(interval: Interval) -> str:
    """Returns a success rate with its interval, or a dash with the reason."""
    if interval.n == 0:
        return f"{DASH} (no trials)"
    return percent_span(interval.value, interval.low, interval.high)


def compact(count: float) -> str:
    """Returns a large count in short: `950`, `20 k`, `1.5 M`."""
    for size, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(count) >= size:
            return f"{number(count / size)}{suffix}"
    return number(count)


def plural(count: int, noun: str) -> str:
    """Returns a count with its noun: `1 trial`, `2 trials`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def join_words(names: Iterable[str], last: str = "and") -> str:
    """Returns names as a readable list: `a, b and c`."""
    items = list(names)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def short_id(full: str) -> str:
    """Returns the first 8 characters of an id; short ones stay whole."""
    return full if len(full) <= 12 else f"{full[:8]}\u2026"


def readable_target(target: str) -> str:
    """Returns a parameter's path in words: `joint/elbow/damping` is `elbow joint damping`."""
    parts = split_path(target)
    if not parts.name or not parts.field:
        return target.replace("/", " ")
    where = f"all {parts.kind}s:" if parts.name == "*" else f"{parts.name} {parts.kind}"
    return f"{where} {parts.field.replace('/', ' ')}"
