"""Sorts the records that were given into the parts that the page shows."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TypeVar

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
    TrainResult,
)

R = TypeVar("R")


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

    def shown(self) -> dict[str, Result]:
        """Returns the records on the page by name, in the order of the page."""
        found = {item.name: getattr(self, item.name) for item in fields(self) if item.name != "not_shown"}
        return {name: record for name, record in found.items() if record is not None}


def collect(results: Mapping[str, Result]) -> Parts:
    """Returns the parts of the page; where a loop was given, its parts come before single ones."""
    loop = _get(results, "loop", LoopResult)

    def part(name: str, record_type: type[R]) -> R | None:
        of_loop = getattr(loop, name, None)
        return of_loop if isinstance(of_loop, record_type) else _get(results, name, record_type)

    train = _get(results, "train", TrainResult)
    fitted = part("measure_fitted", MeasureResult)
    shown = {item.name for item in fields(Parts)} - {"first", "not_shown"}
    return Parts(
        check=_get(results, "check", CheckResult),
        measure=_measure_as_written(part("measure", MeasureResult), fitted),
        measure_fitted=fitted,
        identify=part("identify", IdentifyResult),
        diagnose=part("diagnose", DiagnoseResult),
        noise=_get(results, "noise", SensorResult),
        randomize=part("randomize", RandomizeResult),
        audit=_get(results, "audit", AuditResult),
        first=loop.first if loop and loop.last else None,
        train=(loop.last or loop.first) if loop else train,
        evaluate=_get(results, "evaluate", EvaluateResult),
        loop=loop,
        not_shown=tuple(name for name in results if name not in shown),
    )


def _measure_as_written(measure: MeasureResult | None, fitted: MeasureResult | None) -> MeasureResult | None:
    """Returns the measure of the model as written; on the windows of that with the fit, where it knows both."""
    if fitted is None or not fitted.as_written:
        return measure
    if measure is not None and (measure.inputs, measure.window_s) == (fitted.inputs, fitted.window_s):
        return measure
    return replace(fitted, columns=fitted.as_written, traces=measure.traces if measure else (), as_written={})


def _get(results: Mapping[str, Result], name: str, record_type: type[R]) -> R | None:
    record = results.get(name)
    if record is None or isinstance(record, record_type):
        return record
    found = type(record).__name__
    raise InputError(f"the report asked for {record_type.__name__} under '{name}', found {found}: run the verb again")
