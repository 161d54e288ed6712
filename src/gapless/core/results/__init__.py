"""The result records of the verbs. `to_json` writes any of them in the form of the design; `from_json` reads it."""

# pyright: reportUnusedImport=false

from gapless.core.results.as_json import FORMAT, Result, from_json, plain, to_json
from gapless.core.results.audit import AuditedColumn, AuditedParameter, AuditResult, AuditVerdict
from gapless.core.results.closing import (
    Decision,
    EvaluateResult,
    Export,
    LoopResult,
    RandomizeResult,
    ReportResult,
    TrainResult,
)
from gapless.core.results.excite import Curve, ExciteResult, KeptLimit, LimitSource, Outlook, PredictedParameter
from gapless.core.results.fit import (
    Drift,
    FitErrors,
    FittedParameter,
    IdentifyResult,
    NeuralPosterior,
    SampledParameter,
    Since,
    TriedTerm,
    Verdict,
)
from gapless.core.results.gap import (
    Advice,
    Cause,
    ColumnError,
    ConditionRate,
    DiagnoseResult,
    MeasureResult,
    Probability,
    TellingMoment,
    Trace,
)
from gapless.core.results.sensor import AllanCurve, ColumnNoise, NoiseTerm, SensorResult
from gapless.core.results.soundness import CheckResult, NewResult, Note
