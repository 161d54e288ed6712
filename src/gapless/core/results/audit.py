"""What `audit` found: is reality inside the ranges that a policy is trained on?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from gapless.core.dimensions import Dimension
from gapless.core.results.soundness import Note
from gapless.core.results.stored import StoredResult

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
    # by what share the squared error would grow if this parameter had to keep to its range and all others were free
    # [1]; 0 inside
    growth: float
    # width of the range over that of what the logs call for, on the scale that fits step on [1]; None where the logs
    # do not determine it, or training does not vary it
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
class AuditResult(StoredResult):
    """Is reality inside the training distribution?"""

    verb: ClassVar[str] = "randomize"
    inputs: tuple[str, ...]  # ids of the episodes used, and of the ranges where they are in the catalogue
    audited: str  # the file of ranges
    # the gravest that holds: `wrong` before `too narrow` before `too wide` before `fits`; `cannot tell` where the logs
    # determine nothing
    verdict: AuditVerdict
    verdicts: tuple[AuditVerdict, ...]  # all that hold
    reasons: tuple[str, ...]  # why, and what to do
    parameters: tuple[AuditedParameter, ...]  # each parameter that is varied in training, or should be
    columns: Mapping[str, AuditedColumn]  # column -> what predictions leave of it
    # error of the best row anywhere, in units of what noise explains; about 1 where it explains all [1]. None if
    # nothing was predicted, as the next one
    residual_to_noise: float | None
    residual_in_ranges: float | None  # the same of the best row within the ranges [1]
    # share of the worlds drawn for training whose parameters that are too wide all lie in their advised ranges: the
    # product of the parameters' shares; 1 if none is too wide [1]
    share: float
    window_s: float  # length of the prediction windows [s]
    num_windows: int  # how many were predicted
    seed: int  # seed in force
    notes: tuple[Note, ...] = ()  # what was found wrong in the logs
