"""What `excite` proposes: a motion, and what it would tell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from gapless.core.dimensions import Dimension
from gapless.core.results.stored import StoredResult

Outlook = Literal["can be told", "too little motion", "no motion tells"]
LimitSource = Literal["model", "logs", "assumed", "asked for"]


@dataclass(frozen=True)
class PredictedParameter:
    """One parameter as `identify` would find it from a recording of the motion.

    Attributes:
        target: What it sets.
        dimension: Dimension of the gap.
        unit: Unit of the values.
        value: Value assumed: that of the fit, or of the model as written.
        low: Lower end of the predicted interval.
        high: Upper end of the predicted interval.
        level: Level of the interval.
        wanted: Whether the motion was chosen for it; the others are fitted along with it.
        identifiable: Whether the recording would determine it on its own.
        outlook: `can be told`; `too little motion`: a longer one would; or `no motion tells`: of those tried.
        prior_low: Smallest value that would be considered.
        prior_high: Largest value that would be considered.
    """

    target: str
    dimension: Dimension
    unit: str
    value: float
    low: float
    high: float
    level: float
    wanted: bool
    identifiable: bool
    outlook: Outlook
    prior_low: float
    prior_high: float


@dataclass(frozen=True)
class KeptLimit:
    """A limit, and how much of it the simulated motion uses.

    Attributes:
        name: What is limited, such as `joint/elbow position`.
        unit: Unit of the values.
        low: Smallest value allowed.
        high: Largest value allowed.
        reached_low: Smallest value reached.
        reached_high: Largest value reached.
        source: Where the limit comes from.
        active: Whether the motion comes near it.
    """

    name: str
    unit: str
    low: float
    high: float
    reached_low: float
    reached_high: float
    source: LimitSource
    active: bool


@dataclass(frozen=True)
class Curve:
    """One column of the motion over time, in the units of the log, for plots.

    Attributes:
        column: The column's name.
        kind: `command`, or `expected` for what the model says will be measured.
        times_s: (num_samples,) [s].
        values: (num_samples,).
    """

    column: str
    kind: Literal["command", "expected"]
    times_s: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class ExciteResult(StoredResult):
    """Which motion to record so that the wanted parameters can be told.

    Attributes:
        inputs: Ids of the logs and of the fit that it started from.
        parameters: What a recording would tell, parameter by parameter.
        inseparable: Groups of parameters that no motion tried tells apart; a group of one shows in none.
        limits: The limits kept, how much of each is used by the robot as believed and by some that differ.
        may_touch: Things that the motion may touch; apart from them nothing touches that does not touch at rest.
        start: Column -> reading at the start, in the units of the log: where everything has to be.
        noise: Column -> standard deviation of its readings that was assumed, in model units.
        advice: What to do next, and what stands in the way, as sentences.
        path: The motion: `time_s` and the command columns in the units of the log; None if none keeps the limits.
        duration_s: Length of the motion [s].
        window_s: Length of the prediction windows that the intervals are for [s].
        num_tried: How many motions were simulated.
        seed: Seed in force.
        curves: The motion and what the model says will be measured, thinned out.
        assumed: What was assumed of what is around the robot, as sentences: first how low it may go.
    """

    verb: ClassVar[str] = "excite"
    inputs: tuple[str, ...]
    parameters: tuple[PredictedParameter, ...]
    inseparable: tuple[tuple[str, ...], ...]
    limits: tuple[KeptLimit, ...]
    may_touch: tuple[str, ...]
    start: Mapping[str, float]
    noise: Mapping[str, float]
    advice: tuple[str, ...]
    path: str | None
    duration_s: float
    window_s: float
    num_tried: int
    seed: int
    curves: tuple[Curve, ...] = ()
    assumed: tuple[str, ...] = ()
