"""A small SVG writer: escaped elements, linear scales, ticks and axes. Pure functions that return markup.

Colours come from CSS classes, so that one drawing serves light, dark and print.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from gapless.report.numbers import number

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
CHARACTER_PX = 6.2  # width of an average character at the 11 px of `text` in style.css


def replace_illegal_characters(text: str) -> str:
    """Returns the text with the characters that XML forbids replaced by U+FFFD."""
    return _ILLEGAL.sub("\ufffd", text)


def element(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """Returns one element with everything escaped that is not markup already.

    Underscores in attribute names become hyphens, one at the end is dropped (`class_`); None leaves out.
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is not None:
            text = coordinate(value) if isinstance(value, (int, float)) else escape(replace_illegal_characters(value))
            parts.append(f' {key.rstrip("_").replace("_", "-")}="{text}"')
    inner = "".join(c if isinstance(c, Markup) else escape(replace_illegal_characters(c)) for c in children)
    parts.append(f">{inner}</{name}>" if children else "/>")
    return Markup("".join(parts))


def coordinate(value: float) -> str:
    """Returns a coordinate with at most 2 decimals."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def share_x(share: float) -> str:
    """Returns a share of the drawing's width, limited to [0, 1], as the `x` of a fluid drawing."""
    return f"{coordinate(100 * min(1.0, max(0.0, share)))}%"


def drawing(width: float, height: float, label: str, *children: str, **attributes: str) -> Markup:
    """Returns a drawing in its own coordinates that scales with the page."""
    box, title = f"0 0 {coordinate(width)} {coordinate(height)}", element("title", label)
    about = {"role": "img", "aria_label": label, "viewBox": box, "width": width, "height": height}
    return element("svg", title, *children, **attributes, **about)


def fluid(height: float, label: str, *children: str, class_: str = "fluid") -> Markup:
    """Returns a drawing as wide as its place, for children placed by `share_x`; text keeps its size."""
    title = element("title", label)
    return element("svg", title, *children, class_=class_, role="img", aria_label=label, width="100%", height=height)


def line(x1: float | str, y1: float, x2: float | str, y2: float, class_: str) -> Markup:
    """Returns a straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def text(content: str, x: float | str, y: float, anchor: str = "start", class_: str = "") -> Markup:
    """Returns a line of text; `anchor` is start, middle or end."""
    return element("text", content, x=x, y=y, text_anchor=anchor, class_=class_ or None)


def path(points: Iterable[tuple[float, float]], class_: str) -> Markup:
    """Returns a line through points, broken wherever a coordinate is not finite."""
    steps: list[str] = []
    pen_down = False
    for x, y in points:
        if math.isfinite(x) and math.isfinite(y):
            steps.append(f"{'L' if pen_down else 'M'}{coordinate(x)} {coordinate(y)}")
            pen_down = True
        else:
            pen_down = False
    return element("path", d="".join(steps), class_=class_, fill="none") if steps else Markup("")


@dataclass(frozen=True)
class Scale:
    """A linear map from values in [low, high] to places in [start, stop].

    place = start + (value - low) / (high - low) * (stop - start).
    """

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Returns the place of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)


def scale_over(values: Iterable[float | None], start: float, stop: float, margin: float = 0.06) -> Scale:
    """Returns the scale that shows all finite values, with a margin on both sides as a share of their span.

    Equal values stand in the middle; without any, the scale is that of [0, 1].
    """
    finite = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not finite:
        return Scale(0.0, 1.0, start, stop)
    low, high = min(finite), max(finite)
    room = (high - low) * margin
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        room = abs(low) / 2 or 1.0
    return Scale(low - room, high + room, start, stop)


def ticks(low: float, high: float, count: int = 4) -> tuple[float, ...]:
    """Returns round values in [low, high], about `count` of them: steps of 1, 2 or 5 times a power of ten."""
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return ()
    rough = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple(index * step for index in range(first, last + 1))


def tick_labels(values: Sequence[float]) -> tuple[str, ...]:
    """Returns the labels of ticks, all with as many decimals as their step needs."""
    step = abs(values[1] - values[0]) if len(values) > 1 else 0.0
    if step < 1e-4 or max(map(abs, values)) >= 1e5:
        return tuple(number(value) for value in values)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return tuple(f"{value + 0.0:.{decimals}f}".replace("-", "\u2212") for value in values)


def axis_bottom(scale: Scale, values: Sequence[float], labels: Sequence[str], y: float, title: str) -> Markup:
    """Returns a horizontal axis at height y: line, ticks, labels, and its title at the right end below."""
    parts = [line(scale.start, y, scale.stop, y, "axis")]
    for value, label in zip(values, labels, strict=True):
        parts.append(line(scale(value), y, scale(value), y + 4, "axis"))
        parts.append(text(label, scale(value), y + 15, "middle"))
    parts.append(text(title, scale.stop, y + 29, "end"))
    return Markup("").join(parts)


def axis_left(scale: Scale, values: Sequence[float], labels: Sequence[str], x: float, right: float) -> Markup:
    """Returns a vertical axis at x: labels, and grid lines up to `right`."""
    parts: list[Markup] = []
    for value, label in zip(values, labels, strict=True):
        parts.append(line(x, scale(value), right, scale(value), "grid"))
        parts.append(text(label, x - 6, scale(value) + 4, "end"))
    return Markup("").join(parts)
