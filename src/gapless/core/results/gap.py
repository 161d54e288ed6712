"""How large the gap is, and what causes it: `measure` and `diagnose`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gapless.core.dimensions import Dimension
from gapless.core.interval import Interval
from gapless.core.results.soundness import Note
from gapless.core.results.stored import StoredResult


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
class MeasureResult(StoredResult):
    """How far simulation is from reality.

    Attributes:
        inputs: Ids of the episodes compared.
        window_s: Length of the prediction windows [s]; 0 for whole episodes.
        num_windows: How many windows were compared.
        columns: Error per measured column.
        success: `simulation` and `reality` success where outcomes are known.
        traces: Examples for plots.
        as_written: With a fit, the error per column of the model as written on the same windows; else empty.
        notes: What reading the logs had to say.
    """

    verb: ClassVar[str] = "measure"
    inputs: tuple[str, ...]
    window_s: float
    num_windows: int
    columns: Mapping[str, ColumnError]
    success: Mapping[str, Interval]
    traces: tuple[Trace, ...] = ()
    as_written: Mapping[str, ColumnError] = field(default_factory=dict[str, ColumnError])
    notes: tuple[Note, ...] = ()


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

    @property
    def is_shared(self) -> bool:
        """Whether signals give it a share; what outcomes alone speak for, and what is improbable, has none."""
        return self.high != 0.0


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
class TellingMoment:
    """A stretch of a log that speaks for a cause.

    Attributes:
        log: Name of the log.
        time_s: Where the stretch begins, from the log's first sample [s].
        duration_s: How long it is [s].
        column: The column that speaks most in it.
        dimension: For which it speaks.
        without: Error of the prediction with the other causes alone, in units of the column's noise [1].
        with_it: The same with this cause as well [1].
    """

    log: str
    time_s: float
    duration_s: float
    column: str
    dimension: Dimension
    without: float
    with_it: float


@dataclass(frozen=True)
class ConditionRate:
    """How often runs failed under one condition.

    Attributes:
        condition: Its name, such as `light`, or `time of day`.
        value: Its value, such as `dim`.
        runs: Runs with it.
        failures: Those that failed.
        rate: Probability of failure with it [1].
        low: Lower end of its 95 % interval.
        high: Upper end of its 95 % interval.
        matters: Probability that this condition changes how often runs fail [1].
    """

    condition: str
    value: str
    runs: int
    failures: int
    rate: float
    low: float
    high: float
    matters: float


@dataclass(frozen=True)
class DiagnoseResult(StoredResult):
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
        unexplained: What the best explanation leaves of the error, in logarithms of squares; 0 for noise alone [1].
        moments: The stretches of the logs that speak most.
        conditions: How often runs failed under each condition, where outcomes are known.
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
    unexplained: float = 0.0
    moments: tuple[TellingMoment, ...] = ()
    conditions: tuple[ConditionRate, ...] = ()
