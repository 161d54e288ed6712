"""The result records of the verbs. `to_json` writes any of them in the form of the design."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.distribution import Range
from gapless.core.interval import Interval

FORMAT = 1
Verdict = Literal["good", "poor", "refused"]


@dataclass(frozen=True)
class Note:
    """One thing that `check` or `new` has to say.

    Attributes:
        level: `fault` (the project cannot be used so), `warning` (look at it) or `info`.
        where: File, column or element it is about.
        text: What was found and what to do.
    """

    level: Literal["fault", "warning", "info"]
    where: str
    text: str


@dataclass(frozen=True)
class NewResult:
    """What `new` made: the project folder and what it guessed on the way."""

    verb: ClassVar[str] = "new"
    inputs: tuple[str, ...]
    project: str
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class CheckResult:
    """What `check` found.

    Attributes:
        inputs: Ids of the episodes that were read.
        sound: No fault was found.
        notes: What was found, faults first.
        numerics: Per column, how far the prediction moves when the time step is halved, as a share of the
            column's standard deviation [1]; empty where nothing could be simulated.
    """

    verb: ClassVar[str] = "check"
    inputs: tuple[str, ...]
    sound: bool
    notes: tuple[Note, ...]
    numerics: Mapping[str, float]


@dataclass(frozen=True)
class ColumnError:
    """Prediction error of one column, in the column's model unit.

    Attributes:
        rmse: Root of the mean squared error; None where nothing could be compared.
        nrmse: rmse as a share of the column's standard deviation [1].
        bias: Mean of prediction minus measurement.
        lag_s: Shift that fits best; positive where reality is later than the prediction [s].
        unit: Unit of rmse and bias.
    """

    rmse: float | None
    nrmse: float | None
    bias: float | None
    lag_s: float | None
    unit: str


@dataclass(frozen=True)
class Trace:
    """A stretch of one column, measured and predicted, for plots.

    Attributes:
        episode: The episode's name.
        column: The column's name.
        unit: Unit of the values.
        times_s: (num_samples,) [s].
        measured: (num_samples,).
        predicted: Label -> (num_samples,), such as `model` and `fitted`.
    """

    episode: str
    column: str
    unit: str
    times_s: tuple[float, ...]
    measured: tuple[float, ...]
    predicted: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class MeasureResult:
    """How far simulation is from reality.

    Attributes:
        inputs: Ids of the episodes compared.
        window_s: Length of the prediction windows [s]; 0 for whole episodes.
        num_windows: How many windows were compared.
        columns: Error per measured column.
        success: `simulation` and `reality` success where outcomes are known.
        traces: Examples for plots.
    """

    verb: ClassVar[str] = "measure"
    inputs: tuple[str, ...]
    window_s: float
    num_windows: int
    columns: Mapping[str, ColumnError]
    success: Mapping[str, Interval]
    traces: tuple[Trace, ...] = ()


@dataclass(frozen=True)
class FittedParameter:
    """One fitted parameter.

    Attributes:
        target: What it sets.
        dimension: Dimension of the gap.
        unit: Unit of the values.
        nominal: Value in the model as written.
        value: Fitted value.
        low: Lower end of its interval.
        high: Upper end of its interval.
        level: Level of the interval.
        identifiable: Whether these logs determine it on its own.
        at_bound: Whether the fit ended at a bound, so that the true value may lie beyond.
        prior_low: Smallest value that was considered.
        prior_high: Largest value that was considered.
    """

    target: str
    dimension: Dimension
    unit: str
    nominal: float
    value: float
    low: float
    high: float
    level: float
    identifiable: bool
    at_bound: bool
    prior_low: float
    prior_high: float


@dataclass(frozen=True)
class FitErrors:
    """Prediction error of a set of episodes before and after a fit.

    Attributes:
        episodes: Names of the episodes.
        columns: Column -> `before` and `after` rmse in the column's unit.
        before: Noise-weighted root mean square of the residuals with the model as written [1].
        after: The same with the fit [1].
        residual_to_noise: Like `after`, but without start-state error, about 1 where it explains all [1].
    """

    episodes: tuple[str, ...]
    columns: Mapping[str, Mapping[str, float]]
    before: float | None
    after: float | None
    residual_to_noise: float | None


@dataclass(frozen=True)
class IdentifyResult:
    """Which parameter values make the model match.

    Attributes:
        inputs: Ids of the episodes used.
        parameters: The fitted parameters.
        combinations: Directions that are determined where single values are not, as readable text.
        train: Errors on the episodes that were fitted.
        held_out: Errors on the episodes that were not.
        verdict: `good`, `poor` or `refused`.
        reasons: Why.
        model: Path of the corrected model; None if refused.
        window_s: Length of the prediction windows [s].
        seed: Seed in force.
        traces: Held-out examples for plots.
    """

    verb: ClassVar[str] = "identify"
    inputs: tuple[str, ...]
    parameters: tuple[FittedParameter, ...]
    combinations: tuple[str, ...]
    train: FitErrors
    held_out: FitErrors
    verdict: Verdict
    reasons: tuple[str, ...]
    model: str | None
    window_s: float
    seed: int
    traces: tuple[Trace, ...] = ()


@dataclass(frozen=True)
class Cause:
    """A dimension that may take part in the gap.

    Attributes:
        dimension: Which.
        probability: That it takes part.
        share: Its share of the explained gap [1].
        low: Lower end of the share's interval.
        high: Upper end of the share's interval.
    """

    dimension: Dimension
    probability: float
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Probability:
    """A probability on its own."""

    probability: float


@dataclass(frozen=True)
class Advice:
    """What to do next: a verb, and why."""

    verb: str
    text: str


@dataclass(frozen=True)
class DiagnoseResult:
    """Which dimension causes the gap.

    Attributes:
        inputs: Ids of the episodes used.
        causes: Most probable first.
        no_gap: That there is no detectable gap.
        unmodelled: That something takes part which no parameter of the project can express.
        evidence: Sentences a person can check.
        ambiguous: Groups of dimensions that these logs cannot tell apart.
        advice: What to do next.
        seed: Seed in force.
    """

    verb: ClassVar[str] = "diagnose"
    inputs: tuple[str, ...]
    causes: tuple[Cause, ...]
    no_gap: Probability
    unmodelled: Probability
    evidence: tuple[str, ...]
    ambiguous: tuple[tuple[Dimension, ...], ...]
    advice: tuple[Advice, ...]
    seed: int


@dataclass(frozen=True)
class RandomizeResult:
    """Which ranges to train on.

    Attributes:
        inputs: Id of the fit they come from.
        ranges: One per parameter.
        path: File they were written to.
        seed: Seed in force.
    """

    verb: ClassVar[str] = "randomize"
    inputs: tuple[str, ...]
    ranges: tuple[Range, ...]
    path: str
    seed: int


@dataclass(frozen=True)
class TrainResult:
    """A trained policy.

    Attributes:
        inputs: Ids of what it was trained from.
        policy: Path of the policy.
        policy_id: Its id in the catalogue.
        num_steps: Control steps of training, over all worlds.
        success: Success in the simulation it was trained in, on fresh draws.
        curve: (control steps, success rate) while training.
        seed: Seed in force.
    """

    verb: ClassVar[str] = "train"
    inputs: tuple[str, ...]
    policy: str
    policy_id: str
    num_steps: int
    success: Interval
    curve: tuple[tuple[int, float], ...]
    seed: int


@dataclass(frozen=True)
class EvaluateResult:
    """How often a policy succeeds.

    Attributes:
        inputs: Ids of the policy and of the episodes recorded.
        where: `reality` or `simulation`.
        success: Success rate.
        failed_in: Phase -> number of failures.
        seed: Seed in force.
    """

    verb: ClassVar[str] = "evaluate"
    inputs: tuple[str, ...]
    where: Literal["reality", "simulation"]
    success: Interval
    failed_in: Mapping[str, int]
    seed: int


@dataclass(frozen=True)
class LoopResult:
    """The whole loop: the gap before and after, and what lay between.

    Attributes:
        inputs: Ids of all that went in.
        simulation: Success of the first policy in simulation.
        before: Success of the first policy in reality.
        after: Success of the last policy in reality.
        real_episodes: Real episodes used to close the gap (trials that only score are not counted).
        target: Success asked for.
        reached: Whether `after` met the target.
        rounds: How many rounds were run.
        measure: The gap in signals before.
        measure_fitted: The gap in signals with the fit.
        identify: The fit.
        diagnose: The causes.
        randomize: The ranges.
        first: The training of the first policy; None where it was given.
        last: The last policy.
        seed: Seed in force.
    """

    verb: ClassVar[str] = "loop"
    inputs: tuple[str, ...]
    simulation: Interval
    before: Interval
    after: Interval
    real_episodes: int
    target: float
    reached: bool
    rounds: int
    measure: MeasureResult
    measure_fitted: MeasureResult
    identify: IdentifyResult
    diagnose: DiagnoseResult
    randomize: RandomizeResult
    first: TrainResult | None
    last: TrainResult
    seed: int


@dataclass(frozen=True)
class ReportResult:
    """A page to share: its path, and the ids of what it shows."""

    verb: ClassVar[str] = "report"
    inputs: tuple[str, ...]
    path: str


Result = (
    NewResult
    | CheckResult
    | MeasureResult
    | IdentifyResult
    | DiagnoseResult
    | RandomizeResult
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
