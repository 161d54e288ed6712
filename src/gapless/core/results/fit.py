"""What `identify`, `noise` and `excite` found: values, the noise of sensors, a motion to record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gapless.core.dimensions import Dimension
from gapless.core.interval import Interval
from gapless.core.results.gap import HorizonErrors, Note, Result, Trace

Verdict = Literal["good", "poor", "refused"]


@dataclass(frozen=True)
class FittedParameter:
    """One fitted parameter."""

    target: str  # what it sets
    dimension: Dimension  # dimension of the gap
    unit: str  # unit of the values
    nominal: float  # value in the model as written
    value: float  # fitted value
    low: float  # lower end of its interval
    high: float  # upper end of its interval
    level: float  # level of the interval
    identifiable: bool  # whether these logs determine it on its own
    at_bound: bool  # whether the fit ended at a bound, so that the true value may lie beyond
    prior_low: float  # smallest value that was considered
    prior_high: float  # largest value that was considered
    spread: float = 0.0  # standard deviation between runs of a per-run parameter, `value` is their mean; else 0
    # run -> its own value, of runs that were fitted; empty where all share one
    by_run: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class FitErrors:
    """Prediction error of a set of episodes before and after a fit."""

    episodes: tuple[str, ...]  # names of the episodes
    columns: Mapping[str, Mapping[str, float]]  # column -> `before` and `after` rmse in the column's unit
    before: float | None  # noise-weighted root mean square of the residuals with the model as written [1]
    after: float | None  # the same with the fit [1]
    residual_to_noise: float | None  # like `after`, but without start-state error, about 1 where it explains all [1]


@dataclass(frozen=True)
class TriedTerm:
    """A term that the model as written does not fit, and whether the logs call for it."""

    targets: tuple[str, ...]  # the parameters that enter with it, together
    kept: bool  # whether it stayed
    saving: float  # share of the cost that it saves on windows that it was not fitted to [1]
    score: float  # the same in standard errors [1]; below 3 it may be chance


@dataclass(frozen=True)
class Drift:
    """A parameter that changed by more than its two intervals allow."""

    target: str  # which parameter
    unit: str  # unit of `before` and `after`
    before: float  # value in the earlier fit
    after: float  # value in this fit
    change: float  # how much it changed: a share of `before` if `relative`, else in `unit`
    low: float  # lower end of the interval of `change`
    high: float  # upper end of the interval of `change`
    level: float  # level at which the intervals of all compared parameters hold together
    relative: bool  # whether `change`, `low` and `high` are shares of `before`
    since: str | None  # when the last log of the earlier fit was recorded, ISO 8601; None where unknown

    def text(self) -> str:
        """Returns the change as people read it: `+40 % [28, 53]`, or with its unit `+0.02 [0.01, 0.03] rad`."""
        if self.relative:
            return f"{100 * self.change:+.0f} % [{100 * self.low:.0f}, {100 * self.high:.0f}]"
        return f"{self.change:+.3g} [{self.low:.3g}, {self.high:.3g}] {self.unit}"


@dataclass(frozen=True)
class Since:
    """The earlier fit that a fit was compared with."""

    fit: str  # its id in the catalogue, or the path of its JSON
    recorded_to: str | None  # when its last log was recorded, ISO 8601; None where unknown
    compared: tuple[str, ...]  # the parameters that were compared: determined in both fits, neither at a bound
    level: float  # level at which the intervals of their changes hold together
    refitted: bool  # whether these logs were fitted again with the terms of the earlier fit, because theirs differ

    def when(self) -> str:
        """Returns since when, as people read it: a date, or `the earlier fit`."""
        return self.recorded_to[:10] if self.recorded_to else "the earlier fit"


@dataclass(frozen=True)
class SampledParameter:
    """One parameter as the samples of a neural posterior have it."""

    target: str  # which parameter
    median: float  # median of the samples, in the parameter's unit
    low: float  # lower end of the central interval of the samples
    high: float  # upper end of the central interval of the samples
    level: float  # level of the interval
    # p-value of the test that ranks of the truth are uniform in simulated cases; None where these logs do not show the
    # parameter at all and its samples are those of its range
    rank_p: float | None


@dataclass(frozen=True)
class NeuralPosterior:
    """Samples of the posterior by neural estimation, and whether to trust them."""

    path: str | None  # file of the samples; None before they are kept
    num_simulations: int  # simulated cases that the network learned from
    num_checks: int  # simulated cases that it was checked with
    num_effective: int  # how many independent samples those given the logs are worth
    calibrated: bool  # whether the ranks of the truth were uniform in those, for every parameter
    parameters: tuple[SampledParameter, ...]  # each parameter's median and interval
    disagrees: tuple[str, ...]  # parameters for which it differs strongly from the intervals of the fit


@dataclass(frozen=True)
class IdentifyResult(Result):
    """Which parameter values make the model match."""

    verb: ClassVar[str] = "identify"
    parameters: tuple[FittedParameter, ...]  # the fitted parameters
    combinations: tuple[str, ...]  # directions that are determined where single values are not, as readable text
    train: FitErrors  # errors on the episodes that were fitted
    held_out: FitErrors  # errors on the episodes that were not
    verdict: Verdict  # `good`, `poor` or `refused`
    reasons: tuple[str, ...]  # why
    model: str | None  # path of the corrected model; None if refused
    window_s: float  # length of the prediction windows [s]
    seed: int  # seed in force
    traces: tuple[Trace, ...] = ()  # held-out examples for plots
    tried: tuple[TriedTerm, ...] = ()  # terms beyond those that are always fitted: which stayed, which went, and why
    posterior: str | None = None  # path of samples of the fitted parameters; None if refused
    neural: NeuralPosterior | None = None  # samples by neural posterior estimation, where they were asked for
    recorded_from: str | None = None  # when the first of the logs was recorded, ISO 8601; None unless all of them say
    recorded_to: str | None = None  # when the last of them was
    since: Since | None = None  # the earlier fit that this one was compared with; None without one
    drift: tuple[Drift, ...] = ()  # what changed since then by more than chance
    notes: tuple[Note, ...] = ()  # what was found wrong in the logs, and what was left out of them
    horizons: tuple[HorizonErrors, ...] = ()  # errors by how long predictions run, as far as possible of held-out logs


@dataclass(frozen=True)
class NoiseTerm(Interval):
    """One number of a noise model; 0 where the log does not call for it."""

    unit: str  # unit of the values
    told: bool  # whether the log determines it; else only `high`, or not even that, means something


@dataclass(frozen=True)
class AllanCurve:
    """The Allan deviation of a column over averaging time, for plots; all of one length."""

    tau_s: tuple[float, ...]  # averaging times [s]
    deviation: tuple[float, ...]  # overlapping Allan deviation
    low: tuple[float, ...]  # lower ends of its intervals
    high: tuple[float, ...]  # upper ends of its intervals
    fitted: tuple[float, ...]  # of the sum of the fitted terms; NaN for times that were not fitted
    terms: Mapping[str, tuple[float, ...]]  # name of each fitted term -> its part


@dataclass(frozen=True)
class ColumnNoise:
    """The noise model of one column."""

    unit: str  # unit of the readings
    num_samples: int  # readings that were used
    verdict: Verdict  # `good`, `poor` (something is not identifiable, or odd) or `refused` (nothing is identifiable)
    reasons: tuple[str, ...]  # what this log does not identify, and why
    # name -> number: `bias`, `white`, `density`, `angle_random_walk` or `velocity_random_walk`, `bias_instability`,
    # `flicker`, `walk`, `drift`, `quantisation`, `quantum`; empty if refused
    terms: Mapping[str, NoiseTerm]
    instability_tau_s: float | None  # averaging time of the least Allan deviation [s]; None where it still falls
    fitted_from_s: float | None  # shortest averaging time fitted [s]; below, the sensor filters or something vibrates
    noise: float | None  # standard deviation for `noise` in `gapless.yaml`, in SI units; None where nothing can be said
    layer: Mapping[str, float]  # parameters of the sensor layer of a simulation, in SI units
    allan: AllanCurve | None  # the Allan deviation; None if refused


@dataclass(frozen=True)
class SensorResult(Result):
    """The noise of every measured column, from one log at rest."""

    verb: ClassVar[str] = "identify"
    sensor: str  # the log: its name in the project, or its file
    columns: Mapping[str, ColumnNoise]  # column -> its noise
    verdict: Verdict  # `good`, `poor` or `refused`: the log moves, or no column is identifiable
    reasons: tuple[str, ...]  # why
    rate_hz: float  # rate of the readings [Hz]
    duration_s: float  # length of the log [s]
    notes: tuple[Note, ...]  # what was odd in the log, and what was left out of it


Outlook = Literal["can be told", "not always fitted", "too little motion", "no motion tells"]
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
    identifiable: bool  # whether `identify` would report it as determined on its own
    # `can be told`; `not always fitted`: it would be determined, but `identify` fits it only if it is listed, or where
    # logs show that the model has it wrong; `too little motion`: a longer one would; `no motion tells`: of those tried
    outlook: Outlook
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
class ExciteResult(Result):
    """Which motion to record so that the wanted parameters are identifiable."""

    verb: ClassVar[str] = "excite"
    parameters: tuple[PredictedParameter, ...]  # what a recording would identify, parameter by parameter
    inseparable: tuple[tuple[str, ...], ...]  # parameters that no tried motion separates; a group of one shows in none
    limits: tuple[KeptLimit, ...]  # what was kept, and what the robot as believed and some that differ use of it
    may_touch: tuple[str, ...]  # what the motion may touch; nothing else touches that does not touch at rest
    start: Mapping[str, float]  # column -> reading at the start, in the units of the log: where everything has to be
    noise: Mapping[str, float]  # column -> standard deviation of its readings that was assumed, in model units
    advice: tuple[str, ...]  # what to do next, and what stands in the way, as sentences
    path: str | None  # the motion: `time_s` and the commands in units of the log; None if none keeps the limits
    duration_s: float  # length of the motion [s]
    window_s: float  # length of the prediction windows that the intervals are for [s]
    num_tried: int  # how many motions were simulated
    seed: int  # seed in force
    curves: tuple[Curve, ...] = ()  # the motion and what the model says will be measured, thinned out
    assumed: tuple[str, ...] = ()  # what was assumed of what is around the robot, as sentences: first how low it may go
