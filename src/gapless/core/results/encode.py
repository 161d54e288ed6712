"""Results as plain JSON values."""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.results.audit import AuditResult
from gapless.core.results.closing import EvaluateResult, LoopResult, RandomizeResult, ReportResult, TrainResult
from gapless.core.results.excite import ExciteResult
from gapless.core.results.fit import IdentifyResult
from gapless.core.results.gap import DiagnoseResult, MeasureResult
from gapless.core.results.sensor import SensorResult
from gapless.core.results.soundness import CheckResult, NewResult

FORMAT = 1


Result = (
    NewResult
    | CheckResult
    | MeasureResult
    | IdentifyResult
    | SensorResult
    | ExciteResult
    | DiagnoseResult
    | RandomizeResult
    | AuditResult
    | TrainResult
    | EvaluateResult
    | LoopResult
    | ReportResult
)


def to_json(result: Result) -> dict[str, Any]:
    """Returns a result as plain JSON values: `format`, `verb`, then the fields. NaN becomes null."""
    return {"format": FORMAT, "verb": result.verb, **plain(result)}


def plain(value: Any) -> Any:
    """Returns records, mappings, sequences, arrays and paths as plain JSON values. NaN becomes null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}  # type: ignore[reportUnknownVariableType]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]  # type: ignore[reportUnknownVariableType]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value
