"""The noise of sensors: the numbers as people read them, and the Allan deviations as drawings."""

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from markupsafe import Markup

from gapless.core.errors import InputError
from gapless.core.results import AllanCurve, ColumnNoise, NoiseTerm, SensorResult
from gapless.core.signal import Array
from gapless.report import numbers as n
from gapless.report import svg

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
STYLE = """
text { font: 11px system-ui, sans-serif; fill: #59616b; } text.strong { font-weight: 650; fill: #1d2126; }
.page { fill: #ffffff; } .grid { stroke: #d9dde2; } .axis { stroke: #59616b; }
.band { fill: #9aa1aa; opacity: 0.3; stroke: none; } .line { stroke-width: 1.75; }
.measured { stroke: #59616b; } .fitted { stroke: #d55e00; }
.quantisation { stroke: #cc79a7; stroke-dasharray: 2 3; } .white { stroke: #0072b2; stroke-dasharray: 6 3; }
.flicker { stroke: #009e73; stroke-dasharray: 8 3 2 3; } .walk { stroke: #e69f00; stroke-dasharray: 3 3; }
.drift { stroke: #7b5ea7; stroke-dasharray: 1 3; }
"""


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


def allan_plots(result: SensorResult) -> list[Markup]:
    """Returns a drawing for the page of each column that has an Allan deviation."""
    drawn = _draw_panels(result).items()
    return [svg.drawing(WIDTH, HEIGHT, f"Allan deviation of {k}", *panel, class_="plot allan") for k, panel in drawn]


def _draw_panels(result: SensorResult) -> dict[str, list[Markup]]:
    """Returns the drawings of columns that have an Allan deviation, by their names."""
    return {name: _draw_panel(name, c.unit, c.allan) for name, c in result.columns.items() if c.allan is not None}


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


def _draw_panel(name: str, unit: str, curve: AllanCurve) -> list[Markup]:
    """Draws the Allan deviation of a column and its terms, both axes by powers of ten."""
    tau, low, high = _log10(curve.tau_s), _log10(curve.low), _log10(curve.high)
    x = svg.scale_over(tau, LEFT, WIDTH - RIGHT, margin=0.03)
    y = svg.scale_over((*low, *high, *_log10(curve.terms.get("flicker", ()))), BOTTOM, TOP, margin=0.03)
    decades = list(range(math.ceil(x.low), math.floor(x.high) + 1))
    factors = (1, 2, 5) if math.floor(y.high) - math.ceil(y.low) < 2 else (1,)  # more of them where decades are few
    powers = range(math.floor(y.low), math.ceil(y.high) + 1)
    values = [math.log10(factor) + power for power in powers for factor in factors]
    values = [value for value in values if y.low <= value <= y.high]
    parts = [svg.text(f"{name}: Allan deviation [{n.unit_text(unit) or 1}]", LEFT, 18, class_="strong")]
    parts += [svg.line(x(power), TOP, x(power), BOTTOM, "grid") for power in decades]
    parts.append(svg.axis_bottom(x, decades, [f"{10.0**power:.3g}" for power in decades], BOTTOM, "averaging time [s]"))
    parts.append(svg.axis_left(y, values, [f"{10.0**value:.3g}" for value in values], LEFT, WIDTH - RIGHT))
    known = np.isfinite(low) & np.isfinite(high)
    outline = [*zip(tau[known], high[known], strict=True), *zip(tau[known][::-1], low[known][::-1], strict=True)]
    corners = " ".join(f"{svg.coordinate(x(t))},{svg.coordinate(y(v))}" for t, v in outline)
    parts.append(svg.element("polygon", points=corners, class_="band"))
    left = LEFT
    for kind, line in {**curve.terms, "measured": curve.deviation, "fitted": curve.fitted}.items():
        inside = ((t, v if y.low <= v <= y.high else math.nan) for t, v in zip(tau, _log10(line), strict=True))
        parts.append(svg.path(((x(t), y(v)) for t, v in inside), f"line {kind}"))
        parts.append(svg.line(left, HEIGHT - 8, left + 16, HEIGHT - 8, f"line {kind}"))
        parts.append(svg.text(kind, left + 20, HEIGHT - 4))
        left += 30 + svg.CHARACTER_PX * len(kind)
    return parts


def _log10(values: Sequence[float]) -> Array:
    """Returns logarithms; NaN where there is none, or no number."""
    numbers = np.array(values, dtype=np.float64)
    return np.log10(np.where(numbers > 0, numbers, np.nan))
