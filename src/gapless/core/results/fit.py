"""What `identify` found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gapless.core.dimensions import Dimension
from gapless.core.results.gap import Trace
from gapless.core.results.soundness import Note
from gapless.core.results.stored import StoredResult

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
    # standard deviation between runs of a per-run parameter, of which `value` is then the mean; 0 where
    # all share one
    spread: float = 0.0
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
class IdentifyResult(StoredResult):
    """Which parameter values make the model match."""

    verb: ClassVar[str] = "identify"
    inputs: tuple[str, ...]  # ids of the episodes used
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
