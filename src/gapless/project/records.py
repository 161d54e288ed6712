"""What a project folder says, once read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gapless.core.dimensions import Dimension
from gapless.core.parameters import Sharing

Element = Literal["joint", "body", "actuator", "sensor"]


@dataclass(frozen=True)
class CommandMap:
    """Which actuator a log column commands: model value = scale * column + offset."""

    column: str
    actuator: str
    scale: float = 1.0
    offset: float = 0.0
    unit: str = "1"  # of the model value; `1` where the model does not say
    noise: float | None = None  # standard deviation in model units; None where nobody said

    @property
    def what(self) -> str:
        """What it maps, in words."""
        return f"actuator {self.actuator} command"


@dataclass(frozen=True)
class MeasurementMap:
    """What a log column measures: model value = scale * column + offset."""

    column: str
    element: Element  # kind of the model's element that is measured
    name: str  # name of that element
    # joint: position, velocity, effort; actuator: force; sensor: value;
    # body: x y z qw qx qy qz yaw vx vy vz (world frame) wx wy wz (body frame)
    quantity: str
    axis: int = 0  # component of a sensor; 0 otherwise
    scale: float = 1.0
    offset: float = 0.0
    noise: float | None = None  # standard deviation in model units; None where nobody said
    unit: str = "1"  # of the model value; `1` where the model does not say

    @property
    def what(self) -> str:
        """What it maps, in words."""
        return f"{self.element} {self.name} {self.quantity}" + (f" axis {self.axis}" if self.axis else "")

    @property
    def is_effort(self) -> bool:
        """Whether it is the generalised force at a joint."""
        return self.element == "joint" and self.quantity == "effort"


@dataclass(frozen=True)
class ParameterEntry:
    """One line of the list `parameters`; None leaves a value to gapless."""

    target: str  # path of what it sets, such as `joint/elbow/damping`
    low: float | None = None  # smallest value considered
    high: float | None = None  # largest value considered
    dimension: Dimension | None = None  # dimension of the gap it belongs to
    per: Sharing = "robot"  # whether all runs share one value, or each has its own; see `Parameter`


@dataclass(frozen=True)
class Project:
    """A project folder, read and checked."""

    directory: Path  # the folder
    name: str  # what its owner calls it
    model_path: Path  # MJCF or URDF file
    rate_hz: float  # control rate; logs are brought to it [Hz]
    horizon_s: float  # how far ahead predictions must hold [s]
    commands: tuple[CommandMap, ...]  # may be empty
    measurements: tuple[MeasurementMap, ...]  # at least one
    logs_path: Path  # folder with one log per episode
    parameters: Literal["auto"] | tuple[ParameterEntry, ...]  # `auto`, or the owner's list
    task: str | None  # `FILE.py:NAME` of the owner's task; None without one
    reality: str | None  # `FILE.py:NAME` of what policies are deployed on; None without one
    # recorded column -> the project's column that `import` makes of it; None where it leaves it out
    columns: Mapping[str, str | None] = field(default_factory=dict[str, str | None])

    @property
    def command_names(self) -> tuple[str, ...]:
        """Columns of the commands, in order."""
        return tuple(item.column for item in self.commands)

    @property
    def measurement_names(self) -> tuple[str, ...]:
        """Columns of the measurements, in order."""
        return tuple(item.column for item in self.measurements)

    @property
    def command_units(self) -> tuple[str, ...]:
        """Units of the commands, in order."""
        return tuple(item.unit for item in self.commands)

    @property
    def measurement_units(self) -> tuple[str, ...]:
        """Units of the measurements, in order."""
        return tuple(item.unit for item in self.measurements)
