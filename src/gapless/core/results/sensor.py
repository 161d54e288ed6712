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
    # shortest averaging time that was fitted [s]; below it the sensor filters, or something vibrates
    fitted_from_s: float | None
    noise: float | None  # standard deviation for `noise` in `gapless.yaml`, in SI units; None where nothing can be said
    layer: Mapping[str, float]  # parameters of the sensor layer of a simulation, in SI units
    allan: AllanCurve | None  # the Allan deviation; None if refused


@dataclass(frozen=True)
class SensorResult(StoredResult):
    """The noise of every measured column, from one log at rest."""

    verb: ClassVar[str] = "identify"
    inputs: tuple[str, ...]  # hash of the log
    sensor: str  # the log: its name in the project, or its file
    columns: Mapping[str, ColumnNoise]  # column -> its noise
    verdict: Verdict  # `good`, `poor` or `refused`: the log moves, or no column is identifiable
    reasons: tuple[str, ...]  # why
    rate_hz: float  # rate of the readings [Hz]
    duration_s: float  # length of the log [s]
    notes: tuple[Note, ...]  # what was odd in the log, and what was left out of it
