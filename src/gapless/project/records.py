"""What a project folder says, once read and checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gapless.core.dimensions import Dimension
from gapless.core.parameters import Sharing

Element = Literal["joint", "body", "actuator", "sensor"]


@dataclass(frozen=True)
class CommandMap:
    """Which actuator a log column commands: model value = scale * column + offset.

    Attributes:
        unit: Unit of the model value, `1` where the model does not say.
        noise: Standard deviation in model units; None where nobody said.
    """

    column: str
    actuator: str
    scale: float = 1.0
    offset: float = 0.0
    unit: str = "1"
    noise: float | None = None


@dataclass(frozen=True)
class MeasurementMap:
    """What a log column measures: model value = scale * column + offset; for other fields see `CommandMap`.

    Attributes:
        element: Kind of the model's element that is measured.
        name: Name of that element.
        quantity: joint: position, velocity, effort; actuator: force; sensor: value;
            body: x y z qw qx qy qz yaw vx vy vz (world frame) wx wy wz (body frame).
        axis: Component of a sensor; 0 otherwise.
    """

    column: str
    element: Element
    name: str
    quantity: str
    axis: int = 0
    scale: float = 1.0
    offset: float = 0.0
    noise: float | None = None
    unit: str = "1"


@dataclass(frozen=True)
class ParameterEntry:
    """One line of the list `parameters`; None leaves a value to gapless.

    Attributes:
        target: Path of what it sets, such as `joint/elbow/damping`.
        low: Smallest value considered.
        high: Largest value considered.
        dimension: Dimension of the gap it belongs to.
        per: Whether all runs share one value, or each has its own; see `Parameter`.
    """

    target: str
    low: float | None
    high: float | None
    dimension: Dimension | None
    per: Sharing = "robot"


@dataclass(frozen=True)
class Project:
    """A project folder, read and checked.

    Attributes:
        directory: The folder.
        name: What its owner calls it.
        model_path: MJCF or URDF file.
        rate_hz: Control rate; logs are brought to it [Hz].
        commands: May be empty.
        measurements: At least one.
        logs_path: Folder with one log per episode.
        parameters: `auto`, or the owner's list.
        task: `FILE.py:NAME` of the owner's task; None without one.
        reality: `FILE.py:NAME` of what policies are deployed on; None without one.
    """

    directory: Path
    name: str
    model_path: Path
    rate_hz: float
    commands: tuple[CommandMap, ...]
    measurements: tuple[MeasurementMap, ...]
    logs_path: Path
    parameters: Literal["auto"] | tuple[ParameterEntry, ...]
    task: str | None
    reality: str | None

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
