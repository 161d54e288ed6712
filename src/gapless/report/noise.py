"""The noise of sensors: the numbers as people read them, and the Allan deviations as drawings."""

import math
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from gapless.core.errors import InputError
from gapless.core.results import AllanCurve, ColumnNoise, NoiseTerm, SensorResult
from gapless.report import numbers as n
from gapless.report import svg
from gapless.report.headline import Badge

WIDTH, HEIGHT, COLUMNS = 420.0, 300.0, 2
LEFT, RIGHT, TOP, BOTTOM = 58.0, 10.0, 30.0, 250.0
MAX_CURVES = 6  # that the page draws
TERM_NAMES = {
    "bias": "bias",
    "white": "white noise, per reading",
    "density": "white noise, density",
    "angle_random_walk": "angle random walk",
    "velocity_random_walk": "velocity random walk",
    "bias_instability": "bias instability (Allan floor)",
    "flicker": "flicker coefficient",
    "walk": "random walk of the bias",
    "drift": "drift",
    "quantisation": "quantisation noise",
    "quantum": "step of the readings",
}
SHORT_TERMS = ("white", "bias_instability", "quantum")  # all in the unit of the readings
_SENTENCES = {
    "good": ("good", "White noise and bias instability of every column are identified, and nothing is odd"),
    "poor": ("open", "This log does not identify everything, or something in it is odd"),
    "refused": ("bad", "This log does not identify the noise of its sensors"),
}
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #59616b; } text.strong { font-weight: 650; fill: #1d2126; }
.page { fill: #ffffff; } .grid { stroke: #d9dde2; } .axis { stroke: #59616b; }
.band { fill: #9aa1aa; opacity: 0.3; stroke: none; } .line { stroke-width: 1.75; }
.measured { stroke: #59616b; } .fitted { stroke: #d55e00; }
.quantisation { stroke: #cc79a7; stroke-dasharray: 2 3; } .white { stroke: #0072b2; stroke-dasharray: 6 3; }
.flicker { stroke: #009e73; stroke-dasharray: 8 3 2 3; } .walk { stroke: #e69f00; stroke-dasharray: 3 3; }
.drift { stroke: #7b5ea7; stroke-dasharray: 1 3; }
"""


def badge(result: SensorResult) -> Badge:
    """Returns the verdict in a sentence."""
    kind, sentence = _SENTENCES[result.verdict]
    return Badge(kind, f"Verdict: {result.verdict}. {sentence}")


def term_remark(column: ColumnNoise, key: str) -> str:
    """Returns a remark on one of a column's terms, such as that this log does not identify it; mostly empty."""
    if key == "bias_instability" and column.instability_tau_s:
        return f"averaging over {column.instability_tau_s:.3g} s"
    if column.terms[key].told:
        return ""
    return "not seen" if key in ("quantisation", "drift") else "not identifiable"


def shown_value(term: NoiseTerm) -> float | None:
    """Returns a term's value where it means something; else None: only its interval does."""
    return term.value if term.told or term.value else None


def allan_plots(result: SensorResult) -> tuple[Markup, ...]:
    """Returns a drawing for the page of each column that has an Allan deviation, `MAX_CURVES` at most."""
    return tuple(
        svg.drawing(
            WIDTH, HEIGHT, f"Allan deviation of {name}", *_panel(name, column.unit, column.allan), class_="plot allan"
        )
        for name, column in list(_with_curves(result).items())[:MAX_CURVES]
        if column.allan is not None
    )


def num_more_plots(result: SensorResult) -> int:
    """Returns how many columns have an Allan deviation that the page does not draw."""
    return max(0, len(_with_curves(result)) - MAX_CURVES)


def _with_curves(result: SensorResult) -> dict[str, ColumnNoise]:
    return {name: column for name, column in result.columns.items() if column.allan is not None}


def draw_allan(result: SensorResult, path: Path) -> bool:
    """Writes the Allan deviation of every column, with its terms, as an SVG file; returns whether there was one."""
    shown = _with_curves(result)
    if not shown:
        return False
    try:
        path.write_text(allan_svg(result.sensor, shown), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--svg: cannot write: {error.strerror}: {path}") from None
    return True


def allan_svg(title: str, columns: dict[str, ColumnNoise]) -> str:
    """Returns the drawing: one panel per column, two side by side."""
    rows = math.ceil(len(columns) / COLUMNS)
    width, height = WIDTH * min(COLUMNS, len(columns)), HEIGHT * rows
    panels = [svg.element("rect", x=0, y=0, width=width, height=height, class_="page")]
    for place, (name, column) in enumerate(columns.items()):
        assert column.allan is not None
        shift = f"translate({svg.coordinate(WIDTH * (place % COLUMNS))} {svg.coordinate(HEIGHT * (place // COLUMNS))})"
        panels.append(svg.element("g", *_panel(name, column.unit, column.allan), transform=shift))
    box = f"0 0 {svg.coordinate(width)} {svg.coordinate(height)}"
    label = f"Allan deviations of {title}"
    whole = svg.element(
        "svg", svg.element("title", label), svg.element("style", Markup(STYLE)), *panels, viewBox=box, role="img",
        xmlns="http://www.w3.org/2000/svg", width=width, height=height,
    )  # fmt: skip
    return f"{whole}\n"


def _panel(name: str, unit: str, curve: AllanCurve) -> list[Markup]:
    shown = [v for v in (*curve.low, *curve.high, *curve.terms.get("flicker", ())) if n.is_known(v) and v > 0]
    x = _decades(curve.tau_s, LEFT, WIDTH - RIGHT)
    y = _decades(shown, BOTTOM, TOP)
    parts = [svg.text(f"{name}: Allan deviation [{n.unit_text(unit) or 1}]", LEFT, 18, class_="strong")]
    parts += [_grid_x(x, power) for power in _powers(x)]
    parts += [_grid_y(y, value) for value in _round_values(y)]
    parts.append(svg.text("averaging time [s]", WIDTH - RIGHT, BOTTOM + 30, "end"))
    parts.append(_band(x, y, curve))
    for term, values in curve.terms.items():
        parts.append(_line(x, y, curve.tau_s, values, f"line {term}"))
    parts.append(_line(x, y, curve.tau_s, curve.deviation, "line measured"))
    parts.append(_line(x, y, curve.tau_s, curve.fitted, "line fitted"))
    return [*parts, *_legend(["measured", "fitted", *curve.terms])]


def _decades(values: Sequence[float], start: float, stop: float) -> svg.Scale:
    return svg.scale_over([math.log10(value) for value in values if value > 0], start, stop, margin=0.03)


def _powers(scale: svg.Scale) -> list[int]:
    return list(range(math.ceil(scale.low), math.floor(scale.high) + 1))


def _round_values(scale: svg.Scale) -> list[float]:
    """Returns the powers of ten on a scale; with their 2 and 5 fold where they are few."""
    powers = range(math.floor(scale.low), math.ceil(scale.high) + 1)
    steps = (1, 2, 5) if len(_powers(scale)) < 3 else (1,)
    values = [math.log10(step) + power for power in powers for step in steps]
    return [value for value in values if scale.low <= value <= scale.high]


def _power_text(power: float) -> str:
    return f"{10.0**power:.3g}"


def _grid_x(x: svg.Scale, power: int) -> Markup:
    return svg.line(x(power), TOP, x(power), BOTTOM, "grid") + svg.text(
        _power_text(power), x(power), BOTTOM + 15, "middle"
    )


def _grid_y(y: svg.Scale, power: float) -> Markup:
    return svg.line(LEFT, y(power), WIDTH - RIGHT, y(power), "grid") + svg.text(
        _power_text(power), LEFT - 6, y(power) + 4, "end"
    )


def _line(x: svg.Scale, y: svg.Scale, tau_s: Sequence[float], values: Sequence[float], class_: str) -> Markup:
    """Draws a curve where it lies inside the panel."""
    points: list[tuple[float, float]] = []
    for time_s, value in zip(tau_s, values, strict=True):
        inside = n.is_known(value) and value > 0 and y.low <= math.log10(value) <= y.high
        points.append((x(math.log10(time_s)), y(math.log10(value)) if inside else math.nan))
    return svg.path(points, class_)


def _band(x: svg.Scale, y: svg.Scale, curve: AllanCurve) -> Markup:
    ends = list(zip(curve.tau_s, curve.low, curve.high, strict=True))
    there = [(t, low, high) for t, low, high in ends if n.is_known(low) and low > 0 and n.is_known(high)]
    corners = [(t, high) for t, _, high in there] + [(t, low) for t, low, _ in reversed(there)]
    text = " ".join(f"{svg.coordinate(x(math.log10(t)))},{svg.coordinate(y(math.log10(v)))}" for t, v in corners)
    return svg.element("polygon", points=text, class_="band")


def _legend(names: Sequence[str]) -> list[Markup]:
    parts: list[Markup] = []
    left = LEFT
    for name in names:
        parts.append(svg.line(left, HEIGHT - 8, left + 16, HEIGHT - 8, f"line {name}"))
        parts.append(svg.text(name, left + 20, HEIGHT - 4))
        left += 30 + svg.CHARACTER_PX * len(name)
    return parts
