"""The pictures of the page, each from records to one SVG drawing."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from gapless.core.distribution import Range
from gapless.core.interval import Interval
from gapless.core.results import AuditedParameter, Cause, FittedParameter, Trace
from gapless.report import numbers as n
from gapless.report import svg

GLYPH_WIDTH, GLYPH_HEIGHT = 150.0, 22.0
MAX_POINTS = 600
LABELS = {"model": "model as written", "fitted": "fitted model"}
_SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def success_bar(label: str, interval: Interval, kind: str, target: float | None = None) -> Markup:
    """Returns a success rate as a bar with its interval as whiskers, and the success asked for as a dashed line.

    `kind` is the CSS class of the colour: `model`, `measured` or `fitted`.
    """
    height, middle = 46.0, 23.0
    parts = [svg.line(svg.share_x(share), 0, svg.share_x(share), height, "grid") for share in _SHARES]
    if n.is_known(interval.value):
        parts.append(_bar(interval.value, middle - 11, 22, f"bar {kind}"))
    if interval.n > 0 and n.is_known(interval.low) and n.is_known(interval.high):
        parts.append(_whisker(interval.low, interval.high, middle, 6))
    if target is not None and n.is_known(target):
        parts.append(svg.line(svg.share_x(target), 0, svg.share_x(target), height, "target"))
    return svg.fluid(height, f"{label}: {n.success(interval)}, {n.plural(interval.n, 'trial')}", *parts)


def percent_axis(target: float | None = None) -> Markup:
    """Returns the axis under success bars, with the target where there is one."""
    parts = _percents(12)
    label = "Axis from 0 to 100 % success"
    if target is not None and n.is_known(target):
        anchor = "end" if target > 0.8 else "start" if target < 0.2 else "middle"
        parts.append(svg.text(f"target {n.percent(target)}", svg.share_x(target), 28, anchor, "strong"))
        label += f", target {n.percent(target)}"
    return svg.fluid(32, label, *parts)


def probability_bar(label: str, probability: float, kind: str = "cause") -> Markup:
    """Returns a probability as a bar on the track from 0 to 1."""
    parts = [svg.element("rect", x=0, y=6, width="100%", height=10, rx=2, class_="track")]
    if n.is_known(probability):
        parts.append(_bar(probability, 6, 10, f"bar {kind}"))
    return svg.fluid(GLYPH_HEIGHT, f"{label}: probability {n.probability(probability)}", *parts)


def share_glyph(label: str, share: float, low: float, high: float) -> Markup:
    """Returns a share of the gap as a dot with its interval on the line from 0 to 1."""
    middle = GLYPH_HEIGHT / 2
    parts = [svg.line("0%", middle, "100%", middle, "grid")]
    if n.is_known(low) and n.is_known(high):
        parts.append(_whisker(low, high, middle, 4))
    if n.is_known(share):
        parts.append(svg.element("circle", cx=svg.share_x(share), cy=middle, r=4.5, class_="dot cause"))
    return svg.fluid(GLYPH_HEIGHT, f"{label}: share {n.percent_span(share, low, high)}", *parts)


def waterfall(causes: Sequence[Cause]) -> Markup:
    """Returns the explained gap, what each cause takes from it, and what other causes are left with.

    The whisker at the end of a step is where it may end: the interval of its share, from where the step begins.
    """
    row, bottom = 42.0, 42.0 * (len(causes) + 2)
    parts = [svg.line(svg.share_x(share), 0, svg.share_x(share), bottom, "grid") for share in _SHARES]
    parts += [_bar(1.0, 20, 16, "bar measured"), svg.text("the explained gap 100 %", 0, 14, class_="strong")]
    left, words = 1.0, list[str]()
    for index, cause in enumerate(causes, start=1):
        words.append(f"{cause.dimension} {n.percent_span(cause.share, cause.low, cause.high)}")
        after = max(0.0, left - cause.share) if n.is_known(cause.share) else left
        parts += _draw_step(cause, left, after, row * index, words[-1])
        left = after
    rest = left if all(n.is_known(cause.share) for cause in causes) else math.nan
    words.append(f"left to other causes {n.percent(rest)}")
    top = bottom - row
    parts.append(svg.line(svg.share_x(left), top - 6, svg.share_x(left), top + 36, "link"))
    if n.is_known(rest) and rest > 0:
        parts.append(_bar(rest, top + 20, 16, "bar other"))
    parts += [svg.text(words[-1], 0, top + 14, class_="strong"), *_percents(bottom + 13)]
    label = f"The explained gap by cause, 100 % in all: {n.join_words(words)}"
    return svg.fluid(bottom + 18, label, *parts, class_="fluid waterfall")


def interval_glyph(p: FittedParameter) -> Markup:
    """Returns the fitted value (dot) and its interval beside the value as written (diamond).

    The line is dashed where the logs do not determine the value, and has no end where it is unbounded.
    """
    fitted = f"fitted {n.number(p.value)} {n.span(p.low, p.high)}"
    label = f"{p.target}: as written {n.number(p.nominal)}, {fitted}"
    return _draw_glyph(label, p.value, p.nominal, interval=(p.low, p.high), loose=not p.identifiable)


def range_glyph(item: Range, nominal: float | None) -> Markup:
    """Returns a training range as a band with its centre (dot), beside the value as written (diamond).

    A bell is darker within one standard deviation of its centre.
    """
    label = f"{item.target}: {item.kind} {n.span(item.low, item.high)}, as written {n.number(nominal)}"
    band = None if item.kind == "fixed" else (item.low, item.high)
    return _draw_glyph(label, item.mean, nominal, band=band, inner=item.one_deviation)


def audit_glyph(p: AuditedParameter) -> Markup:
    """Returns a training range as a band beside what reality needs: the best value (dot) and the range about it (line).

    A diamond stands for the model's value where training does not vary it. The line is dashed where the logs do not
    determine the value.
    """
    trained = n.span(p.low, p.high) if p.varied else f"{n.number(p.low)} only"
    label = f"{p.target}: trained on {trained}, the logs call for {n.span(p.needed_low, p.needed_high)}"
    needed, band = (p.needed_low, p.needed_high), (p.low, p.high) if p.varied else None
    return _draw_glyph(label, p.value, None if p.varied else p.low, interval=needed, loose=not p.told, band=band)


Ends = tuple[float, float]


def _draw_glyph(
    label: str,
    value: float,
    nominal: float | None,
    *,
    interval: Ends | None = None,
    loose: bool = False,
    band: Ends | None = None,
    inner: Ends | None = None,
) -> Markup:
    """Draws a parameter on a scale of its own: bands, an interval, a value (dot), the model's value (diamond)."""
    scale = svg.scale_over([value, nominal, *(interval or ()), *(band or ())], 8, GLYPH_WIDTH - 8, margin=0.04)
    parts = [svg.line(2, 11, GLYPH_WIDTH - 2, 11, "grid")]
    for ends, class_ in ((band, "band"), (inner, "band inner")):
        if ends and band and all(map(n.is_known, (*ends, *band))):
            left, right = map(scale, ends)
            width = max(1.0, right - left)
            parts.append(svg.element("rect", x=left, y=5, width=width, height=12, rx=2, class_=class_))
    if interval and n.DASH not in map(n.number, interval):
        low, high = interval
        left = scale(low) if math.isfinite(low) else 2.0
        right = scale(high) if math.isfinite(high) else GLYPH_WIDTH - 2
        parts.append(svg.line(left, 11, right, 11, "whisker loose" if loose else "whisker"))
        parts += [svg.line(scale(end), 6, scale(end), 16, "whisker") for end in interval if math.isfinite(end)]
    if nominal is not None and math.isfinite(nominal):
        x = scale(nominal)
        corners = f"{x - 5:.2f},11 {x:.2f},6 {x + 5:.2f},11 {x:.2f},16"
        parts.append(svg.element("polygon", points=corners, class_="diamond"))
    if n.is_known(value):
        parts.append(svg.element("circle", cx=scale(value), cy=11, r=4, class_="dot fitted"))
    return svg.drawing(GLYPH_WIDTH, GLYPH_HEIGHT, label, *parts, class_="glyph")


def trace_plot(trace: Trace) -> Markup:
    """Returns one column over time: measured as a broad grey line, predictions as thin lines over it."""
    width, height, top, bottom = 300.0, 190.0, 10.0, 150.0
    series = [trace.measured, *trace.predicted.values()]
    y = svg.scale_over((v for values in series for v in values), bottom, top)
    marks = svg.ticks(y.low, y.high)
    labels = svg.tick_labels(marks)
    left = max(30.0, svg.CHARACTER_PX * max((len(label) for label in labels), default=1) + 8)
    x = svg.scale_over(trace.times_s, left, width - 8, margin=0)
    times = svg.ticks(x.low, x.high)
    parts = [
        svg.axis_left(y, marks, labels, left, width - 8),
        svg.axis_bottom(x, times, svg.tick_labels(times), bottom, "time [s]"),
        _curve(x, y, trace.times_s, trace.measured, "line measured"),
    ]
    for label, values in trace.predicted.items():
        parts.append(_curve(x, y, trace.times_s, values, f"line {line_class(label)}"))
    names = n.join_words(["measured", *(LABELS.get(label, label) for label in trace.predicted)])
    return svg.drawing(width, height, f"{trace.column} over time: {names}", *parts, class_="plot")


def curve_plot(curves: Mapping[str, Sequence[tuple[int, float]]]) -> Markup:
    """Returns success while training against control steps, one line per label (`first`, `last`)."""
    width, height, top, bottom, left = 460.0, 230.0, 10.0, 190.0, 44.0
    steps = [float(step) for curve in curves.values() for step, _ in curve]
    x = svg.scale_over([0.0, *steps], left, width - 16, margin=0)
    y = svg.Scale(0.0, 1.0, bottom, top)
    marks = svg.ticks(x.low, x.high)
    parts = [
        svg.axis_left(y, _SHARES, [n.percent(share) for share in _SHARES], left, width - 16),
        svg.axis_bottom(x, marks, [n.compact(mark) for mark in marks], bottom, "control steps"),
    ]
    for label, curve in curves.items():
        times, rates = [float(step) for step, _ in curve], [rate for _, rate in curve]
        parts.append(_curve(x, y, times, rates, "line model" if label == "first" else "line fitted"))
    names = n.join_words(f"{label} policy" for label in curves)
    return svg.drawing(width, height, f"Success while training: {names}", *parts, class_="plot")


def line_class(label: str) -> str:
    """Returns the CSS class of a prediction: `model`, `fitted`, or `other` for any other label."""
    return label if label in LABELS else "other"


def _percents(y: float) -> list[Markup]:
    """Draws the labels of an axis from 0 to 100 %; those at its ends stay inside."""
    anchors = {0.0: "start", 1.0: "end"}
    return [svg.text(n.percent(share), svg.share_x(share), y, anchors.get(share, "middle")) for share in _SHARES]


def _bar(share: float, y: float, height: float, class_: str, start: float = 0.0) -> Markup:
    return svg.element(
        "rect", x=svg.share_x(start) if start else 0, y=y, width=svg.share_x(share), height=height, rx=2, class_=class_
    )


def _whisker(low: float, high: float, middle: float, half: float, class_: str = "whisker") -> Markup:
    """Draws an interval on [0, 1], with caps of that half height; without one where it goes on beyond an end."""
    lines = [(low, high, 0.0), *((end, end, half) for end in (low, high) if 0.0 <= end <= 1.0)]
    return Markup("").join(
        svg.line(svg.share_x(start), middle - cap, svg.share_x(stop), middle + cap, class_)
        for start, stop, cap in lines
    )


def _draw_step(cause: Cause, before: float, after: float, top: float, words: str) -> list[Markup]:
    """Draws one step of a waterfall from `before` down to `after`, under its words."""
    parts = [svg.line(svg.share_x(before), top - 6, svg.share_x(before), top + 36, "link")]
    anchor, place = ("end", before) if after > 0.5 else ("start", after)
    parts.append(svg.text(words, svg.share_x(place), top + 14, anchor, "strong"))
    if n.is_known(cause.share):
        parts.append(_bar(before - after, top + 20, 16, "bar cause", after))
    if n.is_known(cause.low) and n.is_known(cause.high):
        ends = before - cause.high, before - cause.low  # seen on bars too, by a halo
        parts += [_whisker(*ends, top + 28, 5.0, class_) for class_ in ("halo", "whisker thin")]
    return parts


def _curve(x: svg.Scale, y: svg.Scale, times_s: Sequence[float], values: Sequence[float], class_: str) -> Markup:
    """Draws a series; long ones by the least and greatest of each stretch, so that no spike is lost."""
    times = np.asarray(times_s, dtype=np.float64)
    data = np.where(np.isfinite(times), np.asarray(values, dtype=np.float64), np.nan)
    keep = np.arange(len(data))
    if len(data) > MAX_POINTS:
        chosen: set[int] = {0, len(data) - 1}
        for part in np.array_split(keep, MAX_POINTS // 3):
            gaps = part[~np.isfinite(data[part])]
            least = np.where(np.isfinite(data[part]), data[part], np.inf).argmin()
            greatest = np.where(np.isfinite(data[part]), data[part], -np.inf).argmax()
            chosen |= {int(part[least]), int(part[greatest]), *gaps.tolist()}
        keep = np.array(sorted(chosen))
    return svg.path(((x(times[i]), y(data[i])) for i in keep.tolist()), class_)
