"""What `new` and `check` have to say, how large the gap is, and what causes it: `measure` and `diagnose`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from gapless.core.dimensions import Dimension
from gapless.core.interval import Interval


@dataclass(frozen=True)
class Result:
    """The result of a verb. Each verb has a child of its own."""

    verb: ClassVar[str]
    id: str | None = field(default=None, kw_only=True)  # its id in the catalogue; None where it is not stored there
    inputs: tuple[str, ...]  # ids of what it was made from: episodes, fits, ranges, policies


@dataclass(frozen=True)
class Note:
    """One thing that `check` or `new` has to say."""

    level: Literal["fault", "warning", "info"]  # `fault`: the project cannot be used so; `warning`: look at it
    where: str  # file, column or element it is about
    text: str  # what was found and what to do


@dataclass(frozen=True)
class NewResult(Result):
    """What `new` made: the project folder and what it guessed on the way."""

    verb: ClassVar[str] = "new"
    project: str
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class CheckResult(Result):
    """What `check` found."""

    verb: ClassVar[str] = "check"
    sound: bool  # no fault was found
    notes: tuple[Note, ...]  # what was found, faults first
    # column -> how far halving the time step moves its prediction, as a share of its travel [1]; empty if not simulated
    numerics: Mapping[str, float]


@dataclass(frozen=True)
class QueryResult(Result):
    """What `query` found in the catalogue."""

    verb: ClassVar[str] = "query"
    columns: tuple[str, ...]  # their names
    rows: tuple[tuple[Any, ...], ...]  # a value per column: numbers, text, true or false, lists, mappings, or None


@dataclass(frozen=True)
class ColumnError:
    """Prediction error of one column, in the column's model unit."""

    rmse: float | None  # root of the mean squared error; None where nothing could be compared
    nrmse: float | None  # rmse as a share of the column's standard deviation [1]
    bias: float | None  # mean of prediction minus measurement
    lag_s: float | None  # shift that fits best; positive where reality is later than the prediction [s]
    unit: str  # unit of rmse and bias


@dataclass(frozen=True)
class Trace:
    """A stretch of one column, measured and predicted, for plots."""

    episode: str  # the episode's name
    column: str  # the column's name
    unit: str  # unit of the values
    times_s: tuple[float, ...]  # (num_samples,) [s]
    measured: tuple[float, ...]  # (num_samples,)
    predicted: Mapping[str, tuple[float, ...]]  # label -> (num_samples,), such as `model` and `fitted`


@dataclass(frozen=True)
class ColumnHorizon:
    """Prediction error of one column over windows of one length, in the column's model unit."""

    unit: str  # unit of all its values
    noise: float  # standard deviation of the readings' noise
    motion: float  # root mean square distance of the readings from where their window starts
    before: float | None  # root mean square error of the model as written
    after: float | None  # the same with a fit; None without one


@dataclass(frozen=True)
class HorizonErrors:
    """How far predictions over one horizon are off, before and after a fit."""

    horizon_s: float | None  # length of the predictions [s]; None for whole runs
    num_windows: int  # predictions that were compared
    columns: Mapping[str, ColumnHorizon]  # per measured column
    before: float | None  # root mean square of error / noise over all columns, of the model as written [1]
    after: float | None  # the same with a fit; None without one

    @property
    def worst_share(self) -> float | None:
        """The largest error after a fit, as a share of how much its column moves, of those above noise; None without.

        Above noise is more than three standard deviations.
        """
        errors = [(c.after, c.motion) for c in self.columns.values() if c.after is not None and c.after > 3 * c.noise]
        return max(
            (after / max(motion, 1e-300) for after, motion in errors), default=None if self.after is None else 0.0
        )


@dataclass(frozen=True)
class MeasureResult(Result):
    """How far simulation is from reality."""

    verb: ClassVar[str] = "measure"
    window_s: float  # length of the prediction windows [s]; 0 for whole episodes
    num_windows: int  # how many windows were compared
    columns: Mapping[str, ColumnError]  # error per measured column
    success: Mapping[str, Interval]  # `simulation` and `reality` success where outcomes are known
    traces: tuple[Trace, ...] = ()  # examples for plots
    # with a fit, the error per column of the model as written on the same windows; else empty
    as_written: Mapping[str, ColumnError] = field(default_factory=dict[str, ColumnError])
    notes: tuple[Note, ...] = ()  # what reading the logs had to say
    horizons: tuple[HorizonErrors, ...] = ()  # errors by how long predictions run, the whole runs last


@dataclass(frozen=True)
class CauseMechanism:
    """One value that is wrong, with what it is instead."""

    target: str  # which value
    value: float  # fitted to the logs with all that the likeliest explanation frees
    low: float  # lower end of its 95 % interval
    high: float  # upper end of its 95 % interval
    unit: str  # unit of the three
    probability: float  # that it takes part
    nominal: float  # what the model has


@dataclass(frozen=True)
class Cause:
    """A dimension that may take part in the gap."""

    dimension: Dimension  # which
    probability: float  # that it takes part
    share: float  # its share of the explained gap [1]
    low: float  # lower end of the share's interval
    high: float  # upper end of the share's interval
    mechanisms: tuple[CauseMechanism, ...] = ()  # which of its values are wrong, most probable first

    @property
    def is_shared(self) -> bool:
        """Whether signals give it a share; a cause seen in outcomes alone, or improbable, has none."""
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
    """A stretch of a log that is strong evidence for a cause."""

    log: str  # name of the log
    time_s: float  # where the stretch begins, from the log's first sample [s]
    duration_s: float  # how long it is [s]
    column: str  # the column that changes most
    dimension: Dimension  # the cause
    without: float  # error of the prediction with the other causes alone, in units of the column's noise [1]
    with_it: float  # the same with this cause as well [1]


RemainderVariable = Literal["position", "velocity", "sign of velocity", "load", "time", "temperature", "history", "run"]
"""What a remaining error may be a function of; `time` is since the start of a run."""


@dataclass(frozen=True)
class RemainderForm:
    """What an error that remains after a fit is a function of."""

    kind: Literal["joint", "body"]  # where: the kind of element
    name: str  # its name in the model
    variable: RemainderVariable  # the variable that explains most of it
    shape: str  # how the force there depends on the variable, in words
    phase: str  # when it shows most: `in contact`, `near standstill`, `at high effort`, or `throughout`
    share: Interval  # of the remaining error above noise that it explains on held-out windows [1]
    target: str | None  # parameter to fit that has this form; None where nothing of gapless has it
    sentence: str  # all of it for a person


@dataclass(frozen=True)
class ScatterCause:
    """Something that acts by chance and may take part in the gap."""

    dimension: Dimension  # to which it belongs
    target: str  # parameter that has it
    value: Interval  # of that parameter
    probability: float  # that it takes part
    sentence: str  # what was seen


@dataclass(frozen=True)
class ConditionRate:
    """How often runs failed under one condition."""

    condition: str  # its name, such as `light`, or `time of day`
    value: str  # its value, such as `dim`
    runs: int  # runs with it
    failures: int  # those that failed
    rate: float  # probability of failure with it [1]
    low: float  # lower end of its 95 % interval
    high: float  # upper end of its 95 % interval
    matters: float  # probability that this condition changes how often runs fail [1]


@dataclass(frozen=True)
class DiagnoseResult(Result):
    """Which dimension causes the gap."""

    verb: ClassVar[str] = "diagnose"
    causes: tuple[Cause, ...]  # most probable first
    no_gap: Probability  # that there is no detectable gap
    unmodelled: Probability  # that something takes part which no parameter of the project can express
    evidence: tuple[str, ...]  # sentences a person can check
    ambiguous: tuple[tuple[Dimension, ...], ...]  # groups of dimensions that these logs do not distinguish
    advice: tuple[Advice, ...]  # what to do next
    seed: int  # seed in force
    unexplained: float = 0.0  # error that the best explanation leaves, in logarithms of squares; 0 for noise alone [1]
    moments: tuple[TellingMoment, ...] = ()  # the stretches of the logs with the strongest evidence
    conditions: tuple[ConditionRate, ...] = ()  # how often runs failed under each condition, where outcomes are known
    remainder: tuple[RemainderForm, ...] = ()  # what the unmodelled part is a function of, the largest share first
