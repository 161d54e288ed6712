"""Draws panels of curves and dots as one SVG file, with the writer and the colours of the report."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from markupsafe import Markup

from gapless.report import svg

WIDTH, HEIGHT = 300.0, 250.0  # of a panel [px]
STYLE = """
:root { --page: #ffffff; --ink: #1d2126; --soft: #59616b; --rule: #d9dde2;
 --gray: #8a929c; --blue: #0072b2; --orange: #d55e00; --violet: #7b5ea7; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --ink: #e7eaee; --soft: #a3abb5; --rule: #343a41;
 --gray: #9098a2; --blue: #56b4e9; --orange: #f0913a; --violet: #b79de0; } }
text { font: 11px system-ui, sans-serif; fill: var(--soft); } text.strong { font-size: 12px; fill: var(--ink); }
.page { fill: var(--page); } .grid { stroke: var(--rule); } .axis { stroke: var(--soft); }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.line.gray { stroke: var(--gray); stroke-width: 3; opacity: .6; }
.line.blue { stroke: var(--blue); stroke-dasharray: 6 3; }
.line.orange { stroke: var(--orange); } .line.violet { stroke: var(--violet); stroke-dasharray: 2 3; }
.dot.gray { fill: var(--gray); } .dot.blue { fill: var(--blue); } .dot.orange { fill: var(--orange); }
.dot.violet { fill: var(--violet); }
"""


@dataclass(frozen=True)
class Curve:
    """A line, or dots, with its name in the legend (empty: not listed) and a colour of `STYLE`."""

    name: str
    x: np.ndarray
    y: np.ndarray
    colour: str
    dots: bool = False


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes:
        title: Above the panel.
        x_title: Quantity and unit of the horizontal axis.
        y_title: Of the vertical axis.
        curves: What is drawn, the first at the back.
        logarithmic: Both axes by powers of ten.
    """

    title: str
    x_title: str
    y_title: str
    curves: Sequence[Curve] = field(default_factory=tuple)
    logarithmic: bool = False


def write(path: Path, label: str, panels: Sequence[Panel]) -> None:
    """Writes panels beside each other, two to a row."""
    rows = (len(panels) + 1) // 2
    width = WIDTH * min(2, len(panels))
    parts = [svg.element("style", Markup(STYLE)), svg.element("rect", width=width, height=HEIGHT * rows, class_="page")]
    for k, panel in enumerate(panels):
        place = f"translate({WIDTH * (k % 2):.0f} {HEIGHT * (k // 2):.0f})"
        parts.append(svg.element("g", *_panel(panel), transform=place))
    drawn = str(svg.drawing(width, HEIGHT * rows, label, *parts))
    path.write_text(drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n", encoding="utf-8")


def _panel(panel: Panel) -> list[Markup]:
    def shown(values: np.ndarray) -> np.ndarray:
        return np.log10(values) if panel.logarithmic else np.asarray(values, dtype=np.float64)

    listed = [curve for curve in panel.curves if curve.name]
    top, bottom = 40.0 + 14 * len(listed), HEIGHT - 40
    y = svg.scale_over(np.concatenate([shown(c.y) for c in panel.curves]).tolist(), bottom, top)
    y_ticks = _ticks(y, panel.logarithmic)
    x = svg.scale_over(np.concatenate([shown(c.x) for c in panel.curves]).tolist(), 52.0, WIDTH - 16, 0.02)
    x_ticks = _ticks(x, panel.logarithmic)
    parts = [svg.text(panel.title, 10, 18, class_="strong"), svg.text(panel.y_title, 10, 33)]
    parts += [svg.axis_left(y, y_ticks, _labels(y_ticks, panel.logarithmic), x.start, x.stop)]
    parts += [svg.axis_bottom(x, x_ticks, _labels(x_ticks, panel.logarithmic), bottom, panel.x_title)]
    for k, curve in enumerate(listed):
        parts += _key(curve, 40.0 + 14 * k)
    for curve in panel.curves:
        places = [(x(a), y(b)) for a, b in zip(shown(curve.x).tolist(), shown(curve.y).tolist(), strict=True)]
        if curve.dots:
            dot = f"dot {curve.colour}"
            parts += [svg.element("circle", cx=a, cy=b, r=1.8, class_=dot) for a, b in places]
        else:
            parts.append(svg.path(places, f"line {curve.colour}"))
    return parts


def _key(curve: Curve, y: float) -> list[Markup]:
    if curve.dots:
        mark = svg.element("circle", cx=WIDTH / 2 + 11, cy=y, r=2.5, class_=f"dot {curve.colour}")
    else:
        mark = svg.path([(WIDTH / 2, y), (WIDTH / 2 + 22, y)], f"line {curve.colour}")
    return [mark, svg.text(curve.name, WIDTH / 2 + 28, y + 4)]


def _ticks(scale: svg.Scale, logarithmic: bool) -> tuple[float, ...]:
    if logarithmic:
        return tuple(float(k) for k in range(int(np.ceil(scale.low)), int(np.floor(scale.high)) + 1))
    return svg.ticks(scale.low, scale.high)


def _labels(ticks: Sequence[float], logarithmic: bool) -> Sequence[str]:
    return [f"{10.0**tick:g}" for tick in ticks] if logarithmic else svg.tick_labels(ticks)
