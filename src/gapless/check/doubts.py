"""What a careful builder may have got wrong: granted to the data as mapped before any mistake is claimed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.signals.track import Track
from gapless.sim.auto import moving_joints, parameters_of
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint

GAINS = (0.3, 1.0, 3.0)  # factors on the strength of all actuators
DELAYS_S = (0.0, 0.04, 0.08, 0.12)
OFF = 1e-3  # gain of a drive that does as good as nothing
HEAVY = 0.3  # share of the largest damping that efforts and speeds allow
_POWER = {"gain": 0.0, "delay": 1.0}  # 0: steps are factors; others: value = low + range * unit^power
_DRAG_POWER = 3.0  # drag may be next to nothing or much


@dataclass(frozen=True)
class Doubts:
    """The parameters in doubt.

    Attributes:
        space: Shared delay and strength of each actuator, damping and friction of each joint.
        shows_in: Per parameter, the measured columns of the joint that it belongs to; empty for all.
    """

    space: ParameterSpace
    shows_in: tuple[tuple[int, ...], ...]

    def grid(self, gains: Sequence[float] = GAINS, delays_s: Sequence[float] = DELAYS_S) -> Array:
        """Returns rows for all gains and delays, with damping as written and heavy; the last has the drives off."""
        heavy = self.space.nominal
        damping = self._places("/damping")
        heavy[damping] = np.maximum(HEAVY * self.space.high, heavy)[damping]
        pairs = [(gain, delay_s) for gain in gains for delay_s in delays_s]
        rows = [self.driven(row, *pair) for row in (self.space.nominal, heavy) for pair in pairs]
        return np.stack([*rows, self.driven(self.space.nominal, OFF, 0.0)])

    def driven(self, row: Array, gain: float, delay_s: float) -> Array:
        """Returns a row with another gain of all actuators and another delay."""
        row = row.copy()
        row[self._places("/gain")], row[self._places("/delay")] = gain, delay_s
        return row

    def delays_s(self, rows: Array) -> Array:
        """Returns the delay of each row, (num_rows,) [s]; 0 where nothing is commanded."""
        return rows[:, self._places("/delay")].sum(axis=-1)

    def values(self, unit: Array) -> Array:
        """Returns rows for numbers in [0, 1], (num_rows, num_parameters)."""
        low, high, rows = self.space.low, self.space.high, np.empty_like(unit)
        for k, parameter in enumerate(self.space.parameters):
            power = _POWER.get(parameter.target.rpartition("/")[2], _DRAG_POWER)
            linear = low[k] + (high[k] - low[k]) * unit[:, k] ** max(power, 1.0)
            rows[:, k] = linear if power else low[k] * (high[k] / low[k]) ** unit[:, k]
        return rows

    def _places(self, ending: str) -> list[int]:
        return [k for k, parameter in enumerate(self.space.parameters) if parameter.target.endswith(ending)]


def find_doubts(blueprint: CompiledProject, tracks: Sequence[Track]) -> Doubts:
    """Returns the parameters in doubt of a project."""
    project, model = blueprint.project, blueprint.model
    actuators = zip(project.commands, blueprint.actuator_ids, strict=True)
    joints = {f"actuator/{item.actuator}/gain": driven_joint(model, number) for item, number in actuators}
    names = {path: model.joint(joint).name if joint is not None else "" for path, joint in joints.items()}
    for name in moving_joints(project, model):
        names |= {f"joint/{name}/damping": name, f"joint/{name}/frictionloss": name}
    names |= {"actuator/*/delay": ""} if project.commands else {}
    seen = {
        name: tuple(k for k, item in enumerate(project.measurements) if item.element == "joint" and item.name == name)
        for name in names.values()
    }
    space = ParameterSpace(parameters_of(blueprint, tracks, list(names)))
    return Doubts(space, tuple(seen[name] for name in names.values()))
