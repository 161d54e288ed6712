"""The result records of the verbs. `to_json` writes any of them in the form of the design; `from_json` reads it."""

from gapless.core.results.closing import EvaluateResult, LoopResult, RandomizeResult, ReportResult, TrainResult
from gapless.core.results.decode import from_json
from gapless.core.results.encode import FORMAT, Result, plain, to_json
from gapless.core.results.fit import FitErrors, FittedParameter, IdentifyResult, Verdict
from gapless.core.results.gap import Advice, Cause, ColumnError, DiagnoseResult, MeasureResult, Probability, Trace
from gapless.core.results.soundness import CheckResult, NewResult, Note

__all__ = [
    "FORMAT",
    "Advice",
    "Cause",
    "CheckResult",
    "ColumnError",
    "DiagnoseResult",
    "EvaluateResult",
    "FitErrors",
    "FittedParameter",
    "IdentifyResult",
    "LoopResult",
    "MeasureResult",
    "NewResult",
    "Note",
    "Probability",
    "RandomizeResult",
    "ReportResult",
    "Result",
    "Trace",
    "TrainResult",
    "Verdict",
    "from_json",
    "plain",
    "to_json",
]
