"""What `identify` found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gapless.core.dimensions import Dimension
from gapless.core.results.drift import Drift, Since
from gapless.core.results.gap import Trace
from gapless.core.results.posterior import NeuralPosterior
from gapless.core.results.soundness import Note
from gapless.core.results.stored import StoredResult

Verdict = Literal["good", "poor", "refused"]


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
        spread: Standard deviation between runs of a value that each has its own of, of which `value` is then the mean;
            0 where all share one.
        by_run: Run -> its own value, of runs that were fitted; empty where all share one.
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
    spread: float = 0.0
    by_run: Mapping[str, float] = field(default_factory=dict[str, float])


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
class TriedTerm:
    """A term that the model as written does not fit, and whether the logs call for it.

    Attributes:
        targets: The parameters that enter with it, together.
        kept: Whether it stayed.
        saving: Share of the cost that it saves on windows that it was not fitted to [1].
        score: The same in standard errors [1]; below 3 it may be chance.
    """

    targets: tuple[str, ...]
    kept: bool
    saving: float
    score: float


@dataclass(frozen=True)
class IdentifyResult(StoredResult):
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
        tried: Terms beyond those that are always fitted: which stayed, which went, and why.
        posterior: Path of samples of the fitted parameters; None if refused.
        neural: Samples by neural posterior estimation, where they were asked for.
        recorded_from: When the first of the logs was recorded, ISO 8601; None unless all of them say.
        recorded_to: When the last of them was.
        since: The earlier fit that this one was compared with; None without one.
        drift: What changed since then by more than chance.
        notes: What was found wrong in the logs, and what was left out of them.
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
    tried: tuple[TriedTerm, ...] = ()
    posterior: str | None = None
    neural: NeuralPosterior | None = None
    recorded_from: str | None = None
    recorded_to: str | None = None
    since: Since | None = None
    drift: tuple[Drift, ...] = ()
    notes: tuple[Note, ...] = ()
