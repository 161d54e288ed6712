"""The result records of the verbs. `to_json` writes any of them in the form of the design; `from_json` reads it."""

# pyright: reportUnusedImport=false
# ruff: noqa: I001
# fmt: off
from gapless.core.results.data import (
    Agreement, Consent, ConsentResult, Disagreement, LabelResult, MadeFrom, Purpose, Split, SplitResult,
)
from gapless.core.results.as_json import FORMAT, from_json, plain, to_json
from gapless.core.results.closing import (
    AuditedColumn, AuditedParameter, AuditResult, AuditVerdict, Decision, EvaluateResult, Export, LoopResult,
    RandomizeResult, ReportResult, TrainResult,
)
from gapless.core.results.fit import (
    AllanCurve, ColumnNoise, Curve, Drift, ExciteResult, FitErrors, FittedParameter, IdentifyResult, KeptLimit,
    LimitSource, NeuralPosterior, NoiseTerm, Outlook, PredictedParameter, SampledParameter, SensorResult, Since,
    TriedTerm, Verdict,
)
from gapless.core.results.gap import (
    Advice, Cause, CauseMechanism, CheckResult, ColumnError, ColumnHorizon, ConditionRate, DiagnoseResult,
    HorizonErrors, MeasureResult, NewResult, Note, Probability, QueryResult, RemainderForm, RemainderVariable, Result,
    ScatterCause, TellingMoment, Trace,
)
