"""The records that were given, sorted into the parts that the page shows, and its tables and traces."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_args, get_type_hints

from gapless.core.errors import InputError
from gapless.core.results import (
    AuditResult,
    CheckResult,
    DiagnoseResult,
    EvaluateResult,
    IdentifyResult,
    LoopResult,
    MeasureResult,
    RandomizeResult,
    Result,
    SensorResult,
    Trace,
    TrainResult,
)
from gapless.report import numbers as n


@dataclass(frozen=True)
class Parts:
    """What the page can show; None for what was not given."""

    check: CheckResult | None  # whether the project is sound
    measure: MeasureResult | None  # the gap in signals with the model as written
    measure_fitted: MeasureResult | None  # the gap in signals with the fit
    identify: IdentifyResult | None  # the fit
    diagnose: DiagnoseResult | None  # the causes
    noise: SensorResult | None  # the noise of sensors
    randomize: RandomizeResult | None  # the training ranges
    audit: AuditResult | None  # ranges beside what reality needs
    first: TrainResult | None  # the first policy of a loop
    train: TrainResult | None  # the last policy of a loop, or the only one
    evaluate: EvaluateResult | None  # success of a policy, beside that of the loop
    loop: LoopResult | None  # the whole loop
    not_shown: tuple[str, ...]  # names of results that have no place on the page

    def list_results(self) -> dict[str, Result]:
        """Returns the records on the page by name, in the order of the page."""
        found = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "not_shown"}
        return {name: record for name, record in found.items() if record is not None}


def collect(results: Mapping[str, Result]) -> Parts:
    """Returns the parts of the page; where a loop was given, its parts come before single ones."""
    hints = {name: hint for name, hint in get_type_hints(Parts).items() if name not in ("first", "not_shown")}
    found: dict[str, Any] = {name: results.get(name) for name in hints}
    for name, record in found.items():
        wanted = get_args(hints[name])[0]
        if record is not None and not isinstance(record, wanted):
            text = f"{wanted.__name__} under '{name}', found {type(record).__name__}"
            raise InputError(f"the report asked for {text}: run the verb again")
    loop = results.get("loop")
    if isinstance(loop, LoopResult):
        in_loop = ("measure", "measure_fitted", "identify", "diagnose", "randomize")
        found |= {name: getattr(loop, name) for name in in_loop if getattr(loop, name) is not None}
        found |= {"first": loop.first if loop.last else None, "train": loop.last or loop.first}
    found["measure"] = _measure_as_written(found["measure"], found["measure_fitted"])
    return Parts(**{"first": None, **found}, not_shown=tuple(name for name in results if name not in hints))


def _measure_as_written(measure: MeasureResult | None, fitted: MeasureResult | None) -> MeasureResult | None:
    """Returns the measure of the model as written; on the windows of that with the fit, where it knows both."""
    if fitted is None or not fitted.as_written:
        return measure
    if measure is not None and (measure.inputs, measure.window_s) == (fitted.inputs, fitted.window_s):
        return measure
    return replace(fitted, columns=fitted.as_written, traces=measure.traces if measure else (), as_written={})


def collect_traces(parts: Parts) -> tuple[Trace, ...]:
    """Returns the stretches to plot: those of the fit, which were held out, or else those of the measures."""
    if parts.identify and parts.identify.traces:
        return parts.identify.traces
    before = parts.measure.traces if parts.measure else ()
    fitted: dict[tuple[object, ...], Trace] = {}
    for trace in parts.measure_fitted.traces if parts.measure_fitted else ():
        if "fitted" not in trace.predicted and len(trace.predicted) == 1:  # whatever the measure called it
            trace = replace(trace, predicted={"fitted": next(iter(trace.predicted.values()))})
        fitted[_stretch(trace)] = trace
    merged: list[Trace] = []
    for trace in before:
        match = fitted.pop(_stretch(trace), None)
        merged.append(replace(trace, predicted={**trace.predicted, **(match.predicted if match else {})}))
    return (*merged, *fitted.values())


def _stretch(trace: Trace) -> tuple[object, ...]:
    """Returns what two traces of the same stretch share; NaN in the times, a break, equals itself here."""
    return (trace.episode, trace.column, *(time if n.is_known(time) else None for time in trace.times_s))


def choose_one_per_column(found: Iterable[Trace]) -> tuple[Trace, ...]:
    """Returns the first stretch of each column that shows the most predictions."""
    best: dict[str, Trace] = {}
    for trace in found:
        if trace.column not in best or len(trace.predicted) > len(best[trace.column].predicted):
            best[trace.column] = trace
    return tuple(best.values())


def error_table(parts: Parts) -> tuple[tuple[str, ...], list[tuple[str, str, tuple[str, ...]]]]:
    """Returns the groups of the table of errors that can be filled, and name, unit and cells of each column."""
    held_out = parts.identify.held_out.columns if parts.identify else {}
    before, after = (measure.columns if measure else {} for measure in (parts.measure, parts.measure_fitted))
    groups = ("All episodes", "Lag") if parts.measure or parts.measure_fitted else ()
    units = {name: error.unit for name, error in (*before.items(), *after.items())}
    plotted = {trace.column: trace.unit for trace in collect_traces(parts)}
    units |= {name: plotted.get(name, "") for name in held_out if name not in units}
    rows: list[tuple[str, str, tuple[str, ...]]] = []
    for name, unit in units.items():
        cells: list[str] = []
        if groups:
            both = before.get(name), after.get(name)
            cells += _error_change(*(error.rmse if error else None for error in both))
            lags = [error.lag_s if error else None for error in both]
            cells += [n.DASH if lag_s is None else n.number(1000 * lag_s) for lag_s in lags]
        if held_out:
            error = held_out.get(name, {})
            cells += _error_change(error.get("before"), error.get("after"))
        rows.append((name, unit, tuple(cells)))
    return (*groups, *(["Held-out episodes"] if held_out else [])), rows


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
