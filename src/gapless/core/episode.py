"""Episodes: what worlds produce and everything else reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gapless.core.signal import TimeSeries

Source = Literal["real", "twin", "sim", "augmented"]
Outcome = Literal["success", "failure"]


@dataclass(frozen=True)
class Episode:
    """One run, real or simulated, of commands and measurements over time."""

    name: str  # the log's file name without ending, or what the run was called
    # `real` (a robot), `twin` (a stand-in for a robot), `sim` (the model) or `augmented` (made from others)
    source: Source
    commands: TimeSeries  # what was asked of the actuators, in model units; may have no columns
    measurements: TimeSeries  # what was read, in model units
    outcome: Outcome | None = None  # whether the task succeeded; None where nobody said
    failed_in: str | None = None  # the phase in which it failed; None where unknown or not failed
    # circumstances such as `{"object": "mug", "light": "dim"}`
    conditions: Mapping[str, str] = field(default_factory=dict[str, str])
    recorded_at: str | None = None  # ISO 8601 time; None where unknown

    @property
    def duration_s(self) -> float:
        """Time from the first to the last measurement [s]."""
        return self.measurements.duration_s
