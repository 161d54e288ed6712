"""What `excite` proposes: a motion, and what a recording of it would identify."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from gapless.core.dimensions import Dimension
from gapless.core.results.stored import StoredResult

Outlook = Literal["can be told", "too little motion", "no motion tells"]
LimitSource = Literal["model", "logs", "assumed", "asked for"]


@dataclass(frozen=True)
class PredictedParameter:
    """One parameter as `identify` would find it from a recording of the motion."""

    target: str  # what it sets
    dimension: Dimension  # dimension of the gap
    unit: str  # unit of the values
    value: float  # value assumed: that of the fit, or of the model as written
    low: float  # lower end of the predicted interval
    high: float  # upper end of the predicted interval
    level: float  # level of the interval
    wanted: bool  # whether the motion was chosen for it; the others are fitted along with it
    identifiable: bool  # whether the recording would determine it on its own
    outlook: Outlook  # `can be told`; `too little motion`: a longer one would; or `no motion tells`: of those tried
    prior_low: float  # smallest value that would be considered
    prior_high: float  # largest value that would be considered


@dataclass(frozen=True)
class KeptLimit:
    """A limit, and how much of it the simulated motion uses."""

    name: str  # what is limited, such as `joint/elbow position`
    unit: str  # unit of the values
    low: float  # smallest value allowed
    high: float  # largest value allowed
    reached_low: float  # smallest value reached
    reached_high: float  # largest value reached
    source: LimitSource  # where the limit comes from
    active: bool  # whether the motion comes near it


@dataclass(frozen=True)
class Curve:
    """One column of the motion over time, in the units of the log, for plots."""

    column: str  # the column's name
    kind: Literal["command", "expected"]  # `command`, or `expected` for what the model says will be measured
    times_s: tuple[float, ...]  # (num_samples,) [s]
    values: tuple[float, ...]  # (num_samples,)


@dataclass(frozen=True)
class ExciteResult(StoredResult):
    """Which motion to record so that the wanted parameters are identifiable."""

    verb: ClassVar[str] = "excite"
    inputs: tuple[str, ...]  # ids of the logs and of the fit that it started from
    parameters: tuple[PredictedParameter, ...]  # what a recording would identify, parameter by parameter
    # groups of parameters that no tried motion separates; a group of one shows in none
    inseparable: tuple[tuple[str, ...], ...]
    # the limits kept, how much of each is used by the robot as believed and by some that differ
    limits: tuple[KeptLimit, ...]
    # things that the motion may touch; apart from them nothing touches that does not touch at rest
    may_touch: tuple[str, ...]
    start: Mapping[str, float]  # column -> reading at the start, in the units of the log: where everything has to be
    noise: Mapping[str, float]  # column -> standard deviation of its readings that was assumed, in model units
    advice: tuple[str, ...]  # what to do next, and what stands in the way, as sentences
    # the motion: `time_s` and the command columns in the units of the log; None if none keeps the limits
    path: str | None
    duration_s: float  # length of the motion [s]
    window_s: float  # length of the prediction windows that the intervals are for [s]
    num_tried: int  # how many motions were simulated
    seed: int  # seed in force
    curves: tuple[Curve, ...] = ()  # the motion and what the model says will be measured, thinned out
    assumed: tuple[str, ...] = ()  # what was assumed of what is around the robot, as sentences: first how low it may go
