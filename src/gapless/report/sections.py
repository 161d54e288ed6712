"""The middle of the page: predictions beside measurements, and training."""

from collections.abc import Iterable
from dataclasses import replace

from gapless.core.results import IdentifyResult, Trace, TrainResult
from gapless.report import numbers as n
from gapless.report.parts import Parts


def levels(identify: IdentifyResult) -> str:
    """Returns the level of the parameters' intervals, such as `95 %`."""
    return n.join_words(sorted({n.percent(p.level) for p in identify.parameters}))


def collect_traces(parts: Parts) -> tuple[Trace, ...]:
    """Returns the stretches to plot: those of the fit, which were held out, or else those of the measures."""
    if parts.identify and parts.identify.traces:
        return parts.identify.traces
    before = parts.measure.traces if parts.measure else ()
    after = tuple(map(_as_fitted, parts.measure_fitted.traces)) if parts.measure_fitted else ()
    fitted = {_stretch(trace): trace for trace in after}
    merged: list[Trace] = []
    for trace in before:
        match = fitted.pop(_stretch(trace), None)
        merged.append(replace(trace, predicted={**trace.predicted, **(match.predicted if match else {})}))
    return (*merged, *fitted.values())


def _stretch(trace: Trace) -> tuple[object, ...]:
    """Returns what two traces of the same stretch share; NaN in the times, a break, equals itself here."""
    return (trace.episode, trace.column, *(time if n.is_known(time) else None for time in trace.times_s))


def _as_fitted(trace: Trace) -> Trace:
    """Calls what a measure with a fit predicts `fitted`, whatever the measure called it."""
    if "fitted" in trace.predicted or len(trace.predicted) != 1:
        return trace
    return replace(trace, predicted={"fitted": next(iter(trace.predicted.values()))})


def choose_one_per_column(found: Iterable[Trace]) -> tuple[Trace, ...]:
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


def error_rows(parts: Parts) -> list[tuple[str, str, tuple[str, ...]]]:
    """Returns name, unit and the cells of `error_groups` of each column that was compared."""
    return [(name, unit, tuple(_error_cells(parts, name))) for name, unit in _units(parts).items()]


def _units(parts: Parts) -> dict[str, str]:
    units: dict[str, str] = {}
    for measure in (parts.measure, parts.measure_fitted):
        units |= {name: error.unit for name, error in (measure.columns if measure else {}).items()}
    plotted = {trace.column: trace.unit for trace in collect_traces(parts)}
    for name in parts.identify.held_out.columns if parts.identify else ():
        units.setdefault(name, plotted.get(name, ""))
    return units


def _error_cells(parts: Parts, column: str) -> Iterable[str]:
    groups = error_groups(parts)
    before = parts.measure.columns.get(column) if parts.measure else None
    after = parts.measure_fitted.columns.get(column) if parts.measure_fitted else None
    if "All episodes" in groups:
        yield from _error_change(before.rmse if before else None, after.rmse if after else None)
        for error in (before, after):
            lag_s = error.lag_s if error else None
            yield n.number(1000 * lag_s) if lag_s is not None else n.DASH
    if "Held-out episodes" in groups and parts.identify:
        held_out = parts.identify.held_out.columns.get(column, {})
        yield from _error_change(held_out.get("before"), held_out.get("after"))


def _error_change(before: float | None, after: float | None) -> tuple[str, str, str]:
    change = n.DASH
    if before is not None and after is not None and n.is_known(before) and n.is_known(after) and before > 0:
        share = 100 * (after - before) / before
        change = f"{share:+.0f} %".replace("-", "\u2212").replace("+0 %", "0 %").replace("\u22120 %", "0 %")
    return n.number(before), n.number(after), change


def policies(parts: Parts) -> dict[str, TrainResult]:
    """Returns the policies by the name of their curve: `first` and `last` of a loop, or `trained`."""
    if parts.first and parts.train:
        return {"first": parts.first, "last": parts.train}
    return {"trained": parts.train} if parts.train else {}
