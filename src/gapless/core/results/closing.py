"""How the gap was closed: `randomize`, `audit`, `train`, `evaluate`, `loop`, and the page about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from gapless.core.dimensions import Dimension
from gapless.core.distribution import Correlation, Range
from gapless.core.interval import Interval
from gapless.core.results.fit import IdentifyResult
from gapless.core.results.gap import DiagnoseResult, MeasureResult, Note, Result


@dataclass(frozen=True)
class Export:
    """Ranges written for another training stack."""

    format: str  # name of the format
    path: str  # the file
    notes: tuple[str, ...]  # what it could not carry, or not as it is: a line per parameter


@dataclass(frozen=True)
class RandomizeResult(Result):
    """Which ranges to train on."""

    verb: ClassVar[str] = "randomize"
    ranges: tuple[Range, ...]  # one per parameter
    path: str  # file they were written to
    seed: int  # seed in force
    method: str = "evidence"  # how they were found
    correlations: tuple[Correlation, ...] = ()  # which of them go together; pairs that are not listed do not
    exports: tuple[Export, ...] = ()  # what was written of them for other training stacks


@dataclass(frozen=True)
class TrainResult(Result):
    """A trained policy."""

    verb: ClassVar[str] = "train"
    policy: str  # path of the policy
    policy_id: str  # its id in the catalogue
    num_steps: int  # control steps of training, over all worlds
    success: Interval  # success in the simulation it was trained in, on fresh draws
    curve: tuple[tuple[int, float], ...]  # (control steps, success rate) while training
    seed: int  # seed in force
    grown: tuple[Range, ...] = ()  # the ranges that a curriculum reached; empty without one


@dataclass(frozen=True)
class EvaluateResult(Result):
    """How often a policy succeeds."""

    verb: ClassVar[str] = "evaluate"
    where: Literal["reality", "simulation"]  # `reality` or `simulation`
    success: Interval  # success rate
    failed_in: Mapping[str, int]  # phase -> number of failures
    seed: int  # seed in force


@dataclass(frozen=True)
class Decision:
    """What a loop does about a gap, and why."""

    action: Literal["train", "done", "stop"]  # `done`: the target is met; `stop`: training does not close this
    dimensions: tuple[Dimension, ...]  # dimensions that are randomised; parameters of others stay as fitted
    reason: str  # why, as a sentence for people


@dataclass(frozen=True)
class LoopResult(Result):
    """The whole loop: the gap before and after, and what lay between."""

    verb: ClassVar[str] = "loop"
    simulation: Interval  # success of the first policy in simulation
    before: Interval  # success of the first policy in reality
    after: Interval  # success of the last policy in reality; `before` where none was trained on
    real_episodes: int  # real episodes used to close the gap (trials that only score are not counted)
    target: float  # success asked for
    reached: bool  # whether `after` met the target
    rounds: int  # how many rounds were begun
    measure: MeasureResult | None  # the gap in signals before; None where the loop ended earlier, as those below
    measure_fitted: MeasureResult | None  # the gap in signals with the fit
    identify: IdentifyResult | None  # the fit
    diagnose: DiagnoseResult | None  # the causes
    randomize: RandomizeResult | None  # the ranges
    first: TrainResult | None  # the training of the first policy; None where it was given
    last: TrainResult | None  # the last training in the ranges found
    seed: int  # seed in force
    decision: Decision | None = None  # what was decided last, and why; None in older results


@dataclass(frozen=True)
class ReportResult(Result):
    """A page to share: its path, and the ids of what it shows."""

    verb: ClassVar[str] = "report"
    path: str


AuditVerdict = Literal["wrong", "too narrow", "too wide", "fits", "cannot tell"]


@dataclass(frozen=True)
class AuditedParameter:
    """One parameter: its training range beside what the logs say."""

    target: str  # what it sets
    dimension: Dimension  # dimension of the gap
    unit: str  # unit of the values
    verdict: AuditVerdict  # `too narrow`, `too wide`, `fits`, or `cannot tell`
    varied: bool  # whether the ranges have it; else training keeps it at the model's value, which is `low` and `high`
    low: float  # smallest value that training draws; of bells without their tails, from 0.5 % to 99.5 %
    high: float  # largest value that training draws
    value: float  # value that predicts the logs best
    value_low: float  # lower end of its 95 % interval
    value_high: float  # upper end of its 95 % interval
    told: bool  # whether the logs determine it on its own
    # lower end of the range that the logs call for: as wide as they leave the value open, times what is left
    # unexplained, and at least 20 % of the value and 2 % of the prior range to each side
    needed_low: float
    needed_high: float  # upper end of that range
    # lower end of the range to train on: as it is where it fits or the logs determine nothing, `needed_low` where it
    # is too wide, widened to hold what is needed where it is too narrow
    advised_low: float
    advised_high: float  # upper end of the range to train on
    outside: float  # how far `value` lies beyond the nearer end of the range, in `unit`; 0 inside
    growth: float  # share by which the squared error grows if this alone keeps to its range [1]; 0 inside
    # width of the range over what is needed, as fits step [1]; None where logs do not determine it, or it is not varied
    factor: float | None
    share: float  # share of the values that training draws that lie in the advised range [1]


@dataclass(frozen=True)
class AuditedColumn:
    """One measured column: what predictions leave of it, and the band of predictions that training sees."""

    residual_to_noise: float  # error of the best row anywhere, in units of what noise explains [1]
    residual_in_ranges: float  # the same of the best row within the ranges [1]
    coverage: float  # share of the readings within the 90 % band of predictions with rows drawn from the ranges [1]
    band_to_noise: float  # half the width of that band over that of the noise alone [1]
    advised_band_to_noise: float  # the same with rows drawn from the advised ranges [1]


@dataclass(frozen=True)
class AuditResult(Result):
    """Is reality inside the training distribution?"""

    verb: ClassVar[str] = "randomize"
    audited: str  # the file of ranges
    # the gravest that holds, in the order of `AuditVerdict`; `cannot tell` where the logs determine nothing
    verdict: AuditVerdict
    verdicts: tuple[AuditVerdict, ...]  # all that hold
    reasons: tuple[str, ...]  # why, and what to do
    parameters: tuple[AuditedParameter, ...]  # each parameter that is varied in training, or should be
    columns: Mapping[str, AuditedColumn]  # column -> what predictions leave of it
    residual_to_noise: float | None  # error of the best row anywhere over the noise, about 1 where it explains all [1]
    residual_in_ranges: float | None  # the same of the best row within the ranges [1]
    share: float  # share of the training worlds that lie in all advised ranges of what is too wide; 1 if nothing is [1]
    window_s: float  # length of the prediction windows [s]
    num_windows: int  # how many were predicted
    seed: int  # seed in force
    notes: tuple[Note, ...] = ()  # what was found wrong in the logs
