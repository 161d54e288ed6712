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

SVG_NAMESPACE = "http://www.w3.org/2000/svg"
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
        svg.drawing(WIDTH, HEIGHT, f"Allan deviation of {name}", *panel, class_="plot allan")
        for name, panel in list(_draw_panels(result).items())[:MAX_CURVES]
    )


def num_more_plots(result: SensorResult) -> int:
    """Returns how many columns have an Allan deviation that the page does not draw."""
    return max(0, len(_draw_panels(result)) - MAX_CURVES)


def _draw_panels(result: SensorResult) -> dict[str, list[Markup]]:
    """Returns the drawings of columns that have an Allan deviation, by their names."""
    return {name: _panel(name, c.unit, c.allan) for name, c in result.columns.items() if c.allan is not None}


def draw_allan(result: SensorResult, path: Path) -> bool:
    """Writes the Allan deviation of every column, with its terms, as an SVG file; returns whether there was one.

    One panel per column, two side by side.
    """
    drawn = _draw_panels(result)
    if not drawn:
        return False
    width, height = WIDTH * min(COLUMNS, len(drawn)), HEIGHT * math.ceil(len(drawn) / COLUMNS)
    panels = [svg.element("style", Markup(STYLE))]
    panels += [svg.element("rect", x=0, y=0, width=width, height=height, class_="page")]
    for place, panel in enumerate(drawn.values()):
        shift = f"translate({svg.coordinate(WIDTH * (place % COLUMNS))} {svg.coordinate(HEIGHT * (place // COLUMNS))})"
        panels.append(svg.element("g", *panel, transform=shift))
    whole = svg.drawing(width, height, f"Allan deviations of {result.sensor}", *panels, xmlns=SVG_NAMESPACE)
    try:
        path.write_text(f"{whole}\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--svg: cannot write: {error.strerror}: {path}") from None
    return True


def _panel(name: str, unit: str, curve: AllanCurve) -> list[Markup]:
    shown = [v for v in (*curve.low, *curve.high, *curve.terms.get("flicker", ())) if n.is_known(v) and v > 0]
    x = _decades(curve.tau_s, LEFT, WIDTH - RIGHT)
    y = _decades(shown, BOTTOM, TOP)
    parts = [svg.text(f"{name}: Allan deviation [{n.unit_text(unit) or 1}]", LEFT, 18, class_="strong")]
    for power in range(math.ceil(x.low), math.floor(x.high) + 1):
        parts.append(svg.line(x(power), TOP, x(power), BOTTOM, "grid"))
        parts.append(svg.text(f"{10.0**power:.3g}", x(power), BOTTOM + 15, "middle"))
    factors = (1, 2, 5) if math.floor(y.high) - math.ceil(y.low) < 2 else (1,)  # more of them where decades are few
    powers = range(math.floor(y.low), math.ceil(y.high) + 1)
    values = [math.log10(factor) + power for power in powers for factor in factors]
    values = [value for value in values if y.low <= value <= y.high]
    parts.append(svg.axis_left(y, values, [f"{10.0**value:.3g}" for value in values], LEFT, WIDTH - RIGHT))
    parts.append(svg.text("averaging time [s]", WIDTH - RIGHT, BOTTOM + 30, "end"))
    ends = list(zip(curve.tau_s, curve.low, curve.high, strict=True))
    there = [(t, low, high) for t, low, high in ends if n.is_known(low) and low > 0 and n.is_known(high)]
    corners = [(t, high) for t, _, high in there] + [(t, low) for t, low, _ in reversed(there)]
    text = " ".join(f"{svg.coordinate(x(math.log10(t)))},{svg.coordinate(y(math.log10(v)))}" for t, v in corners)
    parts.append(svg.element("polygon", points=text, class_="band"))
    lines = {**curve.terms, "measured": curve.deviation, "fitted": curve.fitted}
    parts += [_line(x, y, curve.tau_s, values, f"line {name}") for name, values in lines.items()]
    left = LEFT
    for name in ("measured", "fitted", *curve.terms):
        parts.append(svg.line(left, HEIGHT - 8, left + 16, HEIGHT - 8, f"line {name}"))
        parts.append(svg.text(name, left + 20, HEIGHT - 4))
        left += 30 + svg.CHARACTER_PX * len(name)
    return parts


def _decades(values: Sequence[float], start: float, stop: float) -> svg.Scale:
    return svg.scale_over([math.log10(value) for value in values if value > 0], start, stop, margin=0.03)


def _line(x: svg.Scale, y: svg.Scale, tau_s: Sequence[float], values: Sequence[float], class_: str) -> Markup:
    """Draws a curve where it lies inside the panel."""
    points: list[tuple[float, float]] = []
    for time_s, value in zip(tau_s, values, strict=True):
        inside = n.is_known(value) and value > 0 and y.low <= math.log10(value) <= y.high
        points.append((x(math.log10(time_s)), y(math.log10(value)) if inside else math.nan))
    return svg.path(points, class_)
