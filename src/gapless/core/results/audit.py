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
    """One parameter: its training range beside what the logs say.

    Attributes:
        target: What it sets.
        dimension: Dimension of the gap.
        unit: Unit of the values.
        verdict: `too narrow`, `too wide`, `fits`, or `cannot tell`.
        varied: Whether the ranges have it; else training keeps it at the model's value, which is `low` and `high`.
        low: Smallest value that training draws; of bells without their tails, from 0.5 % to 99.5 %.
        high: Largest value that training draws.
        value: Value that predicts the logs best.
        value_low: Lower end of its 95 % interval.
        value_high: Upper end of its 95 % interval.
        told: Whether the logs determine it on its own.
        needed_low: Lower end of the range that the logs call for: as wide as they leave the value open, times what is
            left unexplained, and at least 20 % of the value and 2 % of the prior range to each side.
        needed_high: Upper end of that range.
        advised_low: Lower end of the range to train on: as it is where it fits or nothing can be told, `needed_low`
            where it is too wide, widened to hold what is needed where it is too narrow.
        advised_high: Upper end of the range to train on.
        outside: How far `value` lies beyond the nearer end of the range, in `unit`; 0 inside.
        growth: By what share the squared error would grow if this parameter had to keep to its range and all others
            were free [1]; 0 inside.
        factor: Width of the range over that of what the logs call for, on the scale that fits step on [1]; None where
            the logs cannot tell, or training does not vary it.
        share: Share of the values that training draws that lie in the advised range [1].
    """

    target: str
    dimension: Dimension
    unit: str
    verdict: AuditVerdict
    varied: bool
    low: float
    high: float
    value: float
    value_low: float
    value_high: float
    told: bool
    needed_low: float
    needed_high: float
    advised_low: float
    advised_high: float
    outside: float
    growth: float
    factor: float | None
    share: float


@dataclass(frozen=True)
class AuditedColumn:
    """One measured column: what predictions leave of it, and the band of predictions that training sees.

    Attributes:
        residual_to_noise: Error of the best row anywhere, in units of what noise explains [1].
        residual_in_ranges: The same of the best row within the ranges [1].
        coverage: Share of the readings within the 90 % band of predictions with rows drawn from the ranges [1].
        band_to_noise: Half the width of that band over that of the noise alone [1].
        advised_band_to_noise: The same with rows drawn from the advised ranges [1].
    """

    residual_to_noise: float
    residual_in_ranges: float
    coverage: float
    band_to_noise: float
    advised_band_to_noise: float


@dataclass(frozen=True)
class AuditResult(StoredResult):
    """Is reality inside the training distribution?

    Attributes:
        inputs: Ids of the episodes used, and of the ranges where they are in the catalogue.
        audited: The file of ranges.
        verdict: The gravest that holds: `wrong` before `too narrow` before `too wide` before `fits`; `cannot tell`
            where the logs determine nothing.
        verdicts: All that hold.
        reasons: Why, and what to do.
        parameters: Each parameter that is varied in training, or should be.
        columns: Column -> what predictions leave of it.
        residual_to_noise: Error of the best row anywhere, in units of what noise explains; about 1 where it explains
            all [1]. None if nothing was predicted, as the next one.
        residual_in_ranges: The same of the best row within the ranges [1].
        share: Share of the worlds drawn for training whose parameters that are too wide all lie in their advised
            ranges: the product of the parameters' shares; 1 if none is too wide [1].
        window_s: Length of the prediction windows [s].
        num_windows: How many were predicted.
        seed: Seed in force.
        notes: What was found wrong in the logs.
    """

    verb: ClassVar[str] = "randomize"
    inputs: tuple[str, ...]
    audited: str
    verdict: AuditVerdict
    verdicts: tuple[AuditVerdict, ...]
    reasons: tuple[str, ...]
    parameters: tuple[AuditedParameter, ...]
    columns: Mapping[str, AuditedColumn]
    residual_to_noise: float | None
    residual_in_ranges: float | None
    share: float
    window_s: float
    num_windows: int
    seed: int
    notes: tuple[Note, ...] = ()
