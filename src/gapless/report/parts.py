"""The records that were given, sorted into the parts that the page shows, and its tables and traces."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

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


def collect(results: Mapping[str, Result]) -> Parts:
    """Returns the parts of the page; where a loop was given, its parts come before single ones."""
    found: dict[str, Any] = {item.name: results.get(item.name) for item in fields(Parts)}
    loop = found["loop"]
    if loop is not None:
        in_loop = ("measure", "measure_fitted", "identify", "diagnose", "randomize")
        found |= {name: getattr(loop, name) for name in in_loop if getattr(loop, name) is not None}
        found |= {"first": loop.first if loop.last else None, "train": loop.last or loop.first}
    found["measure"] = _measure_as_written(found["measure"], found["measure_fitted"])
    return Parts(**found)


def _measure_as_written(measure: MeasureResult | None, fitted: MeasureResult | None) -> MeasureResult | None:
    """Returns the measure of the model as written; on the windows of that with the fit, where it knows both."""
    if fitted is None or not fitted.as_written:
        return measure
    if measure is not None and (measure.inputs, measure.window_s) == (fitted.inputs, fitted.window_s):
        return measure
    return replace(fitted, columns=fitted.as_written, traces=measure.traces if measure else (), as_written={})


def collect_traces(parts: Parts) -> tuple[Trace, ...]:
    """Returns a stretch of each column to plot: of the fit, where it was held out, or else of the measures.

    Both measures share a plot if they show the same stretch; else that with the fit is taken.
    """
    if parts.identify and parts.identify.traces:
        return parts.identify.traces
    found: dict[str, Trace] = {}
    for measure in (parts.measure, parts.measure_fitted):
        for trace in measure.traces if measure else ():
            other = found.get(trace.column)
            times = (np.array(some.times_s, dtype=np.float64) for some in (other or trace, trace))  # None is a break
            if other and other.episode == trace.episode and np.array_equal(*times, equal_nan=True):
                trace = replace(other, predicted={**other.predicted, **trace.predicted})
            found[trace.column] = trace
    return tuple(found.values())


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
    if n.is_known(before) and n.is_known(after) and before > 0:
        share = 100 * (after - before) / before
        change = f"{share:+.0f} %".replace("-", "\u2212").replace("+0 %", "0 %").replace("\u22120 %", "0 %")
    return n.number(before), n.number(after), change


def policies(parts: Parts) -> dict[str, TrainResult]:
    """Returns the policies by the name of their curve: `first` and `last` of a loop, or `trained`."""
    if parts.first and parts.train:
        return {"first": parts.first, "last": parts.train}
    return {"trained": parts.train} if parts.train else {}
