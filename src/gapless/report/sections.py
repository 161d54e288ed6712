"""The middle of the page: fitted parameters, predictions and training, ready to print."""

from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from gapless.core.distribution import Range
from gapless.core.results import Drift, FittedParameter, IdentifyResult, Trace, TrainResult
from gapless.report import numbers as n
from gapless.report import plots
from gapless.report.parts import Parts


@dataclass(frozen=True)
class ParameterRow:
    """One fitted parameter in words, with its glyph."""

    target: str
    name: str
    dimension: str
    unit: str
    nominal: str
    value: str
    between: str
    interval: str
    glyph: Markup
    states: tuple[str, ...]


@dataclass(frozen=True)
class DriftRow:
    """One parameter that changed since an earlier fit, in words."""

    target: str
    name: str
    unit: str
    before: str
    after: str
    change: str


@dataclass(frozen=True)
class TermRow:
    """One term that was tried, in words."""

    targets: str
    saved: str
    score: str
    kept: str


@dataclass(frozen=True)
class ErrorRow:
    """Errors of one column: one cell per column of the table."""

    column: str
    unit: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class RangeRow:
    """One training range in words, with its glyph."""

    target: str
    name: str
    kind: str
    unit: str
    nominal: str
    interval: str
    centre: str
    glyph: Markup
    reason: str


def parameter_rows(identify: IdentifyResult) -> tuple[ParameterRow, ...]:
    """Returns the fitted parameters in the order of the record."""
    return tuple(
        ParameterRow(
            target=p.target,
            name=n.readable_target(p.target),
            dimension=p.dimension,
            unit=n.unit_cell(p.unit),
            nominal=n.number(p.nominal),
            value=n.number(p.value),
            between=f"± {n.number(p.spread)} between runs" if p.by_run else "",
            interval=n.span(p.low, p.high),
            glyph=plots.interval_glyph(p),
            states=_states(p),
        )
        for p in identify.parameters
    )


def _states(parameter: FittedParameter) -> tuple[str, ...]:
    first = "identifiable" if parameter.identifiable else "not identifiable"
    return (first, "at bound") if parameter.at_bound else (first,)


def drift_rows(identify: IdentifyResult) -> tuple[DriftRow, ...]:
    """Returns what changed since the earlier fit."""
    return tuple(
        DriftRow(
            target=d.target,
            name=n.readable_target(d.target),
            unit=n.unit_cell(d.unit),
            before=n.number(d.before),
            after=n.number(d.after),
            change=_drift_words(d),
        )
        for d in identify.drift
    )


def term_rows(identify: IdentifyResult) -> tuple[TermRow, ...]:
    """Returns the terms that were tried: those that were kept first, then by what they saved."""
    return tuple(
        TermRow(", ".join(t.targets), n.percent(t.saving), n.number(t.score), "kept" if t.kept else "left out")
        for t in sorted(identify.tried, key=lambda t: (not t.kept, -t.saving))
    )


def _drift_words(drift: Drift) -> str:
    sign = "+" if drift.change > 0 else ""
    if drift.relative:
        return sign + n.percent_span(drift.change, drift.low, drift.high)
    return f"{sign}{n.number(drift.change)} {n.span(drift.low, drift.high)}"


def levels(identify: IdentifyResult) -> str:
    """Returns the level of the parameters' intervals, such as `95 %`."""
    return n.listed(sorted({n.percent(p.level) for p in identify.parameters}))


def traces(parts: Parts) -> tuple[Trace, ...]:
    """Returns the stretches to plot: those of the fit, which were held out, or else those of the measures."""
    if parts.identify and parts.identify.traces:
        return parts.identify.traces
    before = parts.measure.traces if parts.measure else ()
    after = tuple(map(_as_fitted, parts.measure_fitted.traces)) if parts.measure_fitted else ()
    fitted = {_stretch(trace): trace for trace in after}
    merged: list[Trace] = []
    for trace in before:
        match = fitted.pop(_stretch(trace), None)
        predicted = {**trace.predicted, **(match.predicted if match else {})}
        merged.append(_with_predicted(trace, predicted))
    return (*merged, *fitted.values())


def _stretch(trace: Trace) -> tuple[object, ...]:
    """Returns what two traces of the same stretch share; NaN in the times, a break, equals itself here."""
    return (trace.episode, trace.column, *(time if n.known(time) else None for time in trace.times_s))


def _as_fitted(trace: Trace) -> Trace:
    """Calls what a measure with a fit predicts `fitted`, whatever the measure called it."""
    if "fitted" in trace.predicted or len(trace.predicted) != 1:
        return trace
    return _with_predicted(trace, {"fitted": next(iter(trace.predicted.values()))})


def _with_predicted(trace: Trace, predicted: dict[str, tuple[float, ...]]) -> Trace:
    return Trace(trace.episode, trace.column, trace.unit, trace.times_s, trace.measured, predicted)


def one_per_column(found: Iterable[Trace]) -> tuple[Trace, ...]:
    """Returns the first stretch of each column that shows the most predictions."""
    best: dict[str, Trace] = {}
    for trace in found:
        if trace.column not in best or len(trace.predicted) > len(best[trace.column].predicted):
            best[trace.column] = trace
    return tuple(best.values())


def error_groups(parts: Parts) -> tuple[str, ...]:
    """Returns the groups of the table of errors that can be filled, in order."""
    groups: list[str] = []
    if parts.measure or parts.measure_fitted:
        groups += ["All episodes", "Lag"]
    if parts.identify and parts.identify.held_out.columns:
        groups.append("Held-out episodes")
    return tuple(groups)


def error_rows(parts: Parts) -> tuple[ErrorRow, ...]:
    """Returns one row per column that was compared, with the cells of `error_groups`."""
    units = _units(parts)
    return tuple(ErrorRow(name, n.unit_cell(units.get(name, "")), tuple(_error_cells(parts, name))) for name in units)


def _units(parts: Parts) -> dict[str, str]:
    units: dict[str, str] = {}
    for measure in (parts.measure, parts.measure_fitted):
        units |= {name: error.unit for name, error in (measure.columns if measure else {}).items()}
    plotted = {trace.column: trace.unit for trace in traces(parts)}
    for name in parts.identify.held_out.columns if parts.identify else ():
        units.setdefault(name, plotted.get(name, ""))
    return units


def _error_cells(parts: Parts, column: str) -> Iterable[str]:
    groups = error_groups(parts)
    before = parts.measure.columns.get(column) if parts.measure else None
    after = parts.measure_fitted.columns.get(column) if parts.measure_fitted else None
    if "All episodes" in groups:
        yield from _change(before.rmse if before else None, after.rmse if after else None)
        for error in (before, after):
            lag_s = error.lag_s if error else None
            yield n.number(1000 * lag_s) if lag_s is not None else n.DASH
    if "Held-out episodes" in groups and parts.identify:
        held_out = parts.identify.held_out.columns.get(column, {})
        yield from _change(held_out.get("before"), held_out.get("after"))


def _change(before: float | None, after: float | None) -> tuple[str, str, str]:
    change = n.DASH
    if before is not None and after is not None and n.known(before) and n.known(after) and before > 0:
        share = 100 * (after - before) / before
        change = f"{share:+.0f} %".replace("-", "\u2212").replace("+0 %", "0 %").replace("\u22120 %", "0 %")
    return n.number(before), n.number(after), change


def range_rows(parts: Parts) -> tuple[RangeRow, ...]:
    """Returns the training ranges; units and values as written come from the fit, where there is one."""
    fitted = {p.target: p for p in parts.identify.parameters} if parts.identify else {}
    ranges = parts.randomize.ranges if parts.randomize else ()
    return tuple(_range_row(item, fitted.get(item.target)) for item in ranges)


def _range_row(item: Range, fitted: FittedParameter | None) -> RangeRow:
    nominal = fitted.nominal if fitted else None
    spread = f" \u00b1 {n.number(item.std)}" if item.kind in ("normal", "beta") else ""
    if item.kind == "log-normal":
        spread = f" \u00b1 {100 * item.std:.0f} %"
    return RangeRow(
        target=item.target,
        name=n.readable_target(item.target),
        kind=item.kind,
        unit=n.unit_cell(fitted.unit if fitted else ""),
        nominal=n.number(nominal),
        interval="one value" if item.kind == "fixed" else n.span(item.low, item.high),
        centre=n.number(item.mean) + spread,
        glyph=plots.range_glyph(item, nominal),
        reason=item.reason,
    )


def policies(parts: Parts) -> dict[str, TrainResult]:
    """Returns the policies by the name of their curve: `first` and `last` of a loop, or `trained`."""
    if parts.first and parts.train:
        return {"first": parts.first, "last": parts.train}
    return {"trained": parts.train} if parts.train else {}
