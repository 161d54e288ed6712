"""The force that drives exert at their joints, as the engine will compute it: what layers on efforts act on."""

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.targets.drive import driven_joint, is_filter
from gapless.sim.targets.target import Fields


class DriveForce:
    """The drives of some joints: force = gain u + bias0 + bias1 length + bias2 speed, within the limits."""

    def __init__(self, fields: Fields, batch: Batch, joints: NDArray[np.intp], wanted_by: str) -> None:
        """Finds the actuators of joints.

        Raises:
            InputError: If a joint has a drive of another kind; a DC motor has torque curves of its own.
        """
        model = fields.model
        self._fields, self._batch = fields, batch
        found = [(a, list(joints).index(j)) for a in range(model.nu) if (j := driven_joint(model, a)) in joints]
        for actuator, _ in found:
            _require_known_force(model, actuator, wanted_by)
        self.ids = np.array([a for a, _ in found], np.intp)
        self._joint = np.array([k for _, k in found], np.intp)
        self._gear = model.actuator_gear[self.ids, 0]
        self._to_joints = np.zeros((len(found), len(joints)))
        self._to_joints[np.arange(len(found)), self._joint] = self._gear
        self._lagging = [(k, int(model.actuator_actadr[a])) for k, (a, _) in enumerate(found) if is_filter(model, a)]
        limited = model.actuator_ctrllimited[self.ids].astype(bool)
        self._least_command = np.where(limited, model.actuator_ctrlrange[self.ids, 0], -np.inf)
        self._most_command = np.where(limited, model.actuator_ctrlrange[self.ids, 1], np.inf)
        self.update()

    def update(self) -> None:
        """Reads the gains and limits in force."""
        fields, ids, gear = self._fields, self.ids, self._gear
        if "actuator_gaintype" in fields.expanded and np.any(
            fields.of("actuator_gaintype")[:, ids] != mujoco.mjtGain.mjGAIN_FIXED.value
        ):
            raise InputError("a servo with a speed limit (actuator/NAME/speed) has a torque curve: drop the layer's")
        self._gain = fields.current("actuator_gainprm")[:, ids, 0].copy()
        bias = fields.current("actuator_biasprm")[:, ids]
        self._bias, self._spring, self._damper = bias[:, :, 0].copy(), bias[:, :, 1] * gear, bias[:, :, 2] * gear
        limited = fields.current("actuator_forcelimited")[:, ids].astype(bool)
        force = fields.current("actuator_forcerange")[:, ids]
        self._least_force = np.where(limited, force[:, :, 0], -np.inf)
        self._most_force = np.where(limited, force[:, :, 1], np.inf)
        self._has_bias = bool(self._bias.any() or self._spring.any() or self._damper.any())

    def compute(self, position: Array, velocity: Array, control: Array) -> Array:
        """Returns what drives exert, (num_worlds, num_joints) [N·m, N].

        Args:
            position: (num_worlds, num_joints) [rad, m].
            velocity: (num_worlds, num_joints) [rad/s, m/s].
            control: (num_worlds, nu) what reaches the actuators.
        """
        sent = np.clip(control[:, self.ids], self._least_command, self._most_command)
        for k, address in self._lagging:
            sent[:, k] = self._batch.bind("act")[:, address]
        force = self._gain * sent
        if self._has_bias:
            force += self._bias + self._spring * position[:, self._joint] + self._damper * velocity[:, self._joint]
        np.clip(force, self._least_force, self._most_force, out=force)
        return force @ self._to_joints


def _require_known_force(model: mujoco.MjModel, actuator: int, wanted_by: str) -> None:
    biases = (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE)
    known = model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_FIXED
    known &= mujoco.mjtBias(int(model.actuator_biastype[actuator])) in biases
    known &= model.actuator_dyntype[actuator] == mujoco.mjtDyn.mjDYN_NONE or is_filter(model, actuator)
    if not known:
        name = model.actuator(actuator).name
        text = f"the layer {wanted_by} needs a motor or servo whose force is known; {name} is of another kind"
        raise InputError(f"{text}: use what the engine has for it, such as actuator/{name}/motorconst of a dcmotor")
