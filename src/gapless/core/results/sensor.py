"""What `noise` found: the noise of every column of a log at rest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gapless.core.interval import Interval
from gapless.core.results.fit import Verdict
from gapless.core.results.soundness import Note
from gapless.core.results.stored import StoredResult


@dataclass(frozen=True)
class NoiseTerm(Interval):
    """One number of a noise model; 0 where the log does not call for it.

    Attributes:
        unit: Unit of the values.
        told: Whether the log determines it; else only `high`, or not even that, means something.
    """

    unit: str
    told: bool


@dataclass(frozen=True)
class AllanCurve:
    """The Allan deviation of a column over averaging time, for plots; all of one length.

    Attributes:
        tau_s: Averaging times [s].
        deviation: Overlapping Allan deviation.
        low: Lower ends of its intervals.
        high: Upper ends of its intervals.
        fitted: Of the sum of the fitted terms; NaN for times that were not fitted.
        terms: Name of each fitted term -> its part.
    """

    tau_s: tuple[float, ...]
    deviation: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    fitted: tuple[float, ...]
    terms: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class ColumnNoise:
    """The noise model of one column.

    Attributes:
        unit: Unit of the readings.
        num_samples: Readings that were used.
        verdict: `good`, `poor` (something cannot be told, or is odd) or `refused` (nothing can be told).
        reasons: What cannot be told from this log, and why.
        terms: Name -> number: `bias`, `white`, `density`, `angle_random_walk` or `velocity_random_walk`,
            `bias_instability`, `flicker`, `walk`, `drift`, `quantisation`, `quantum`; empty if refused.
        instability_tau_s: Averaging time of the least Allan deviation [s]; None where it still falls.
        fitted_from_s: Shortest averaging time that was fitted [s]; below it the sensor filters, or something vibrates.
        noise: Standard deviation for `noise` in `gapless.yaml`, in SI units; None where nothing can be said.
        layer: Parameters of the sensor layer of a simulation, in SI units.
        allan: The Allan deviation; None if refused.
    """

    unit: str
    num_samples: int
    verdict: Verdict
    reasons: tuple[str, ...]
    terms: Mapping[str, NoiseTerm]
    instability_tau_s: float | None
    fitted_from_s: float | None
    noise: float | None
    layer: Mapping[str, float]
    allan: AllanCurve | None


@dataclass(frozen=True)
class SensorResult(StoredResult):
    """The noise of every measured column, from one log at rest.

    Attributes:
        inputs: Hash of the log.
        sensor: The log: its name in the project, or its file.
        columns: Column -> its noise.
        verdict: `good`, `poor` or `refused`: the log moves, or no column can be told.
        reasons: Why.
        rate_hz: Rate of the readings [Hz].
        duration_s: Length of the log [s].
        notes: What was odd in the log, and what was left out of it.
    """

    verb: ClassVar[str] = "identify"
    inputs: tuple[str, ...]
    sensor: str
    columns: Mapping[str, ColumnNoise]
    verdict: Verdict
    reasons: tuple[str, ...]
    rate_hz: float
    duration_s: float
    notes: tuple[Note, ...]
