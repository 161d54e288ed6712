"""The force that drives exert at their joints, as the engine will compute it: what layers on efforts act on."""

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.targets.actuators.drive import driven_joint, is_filter
from gapless.sim.targets.fields import Fields

_BIASES = (mujoco.mjtBias.mjBIAS_NONE, mujoco.mjtBias.mjBIAS_AFFINE)


class Drives:
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
            _require_plain(model, actuator, wanted_by)
        self.ids = np.array([a for a, _ in found], np.intp)
        self._joint = np.array([k for _, k in found], np.intp)
        self._to_joints = np.zeros((len(found), len(joints)))
        self._to_joints[np.arange(len(found)), self._joint] = model.actuator_gear[self.ids, 0]
        self._gear = model.actuator_gear[self.ids, 0]
        self._lagging = [(k, int(model.actuator_actadr[a])) for k, (a, _) in enumerate(found) if is_filter(model, a)]
        limited = model.actuator_ctrllimited[self.ids].astype(bool)
        self._low = np.where(limited, model.actuator_ctrlrange[self.ids, 0], -np.inf)
        self._high = np.where(limited, model.actuator_ctrlrange[self.ids, 1], np.inf)
        self.set()

    def set(self) -> None:
        """Takes note of the gains and limits in force."""
        fields, ids = self._fields, self.ids
        if "actuator_gaintype" in fields.expanded and np.any(
            fields.of("actuator_gaintype")[:, ids] != mujoco.mjtGain.mjGAIN_FIXED.value
        ):
            raise InputError("a servo with a speed limit (actuator/NAME/speed) has a torque curve: drop the layer's")
        self._gain = fields.now("actuator_gainprm")[:, ids, 0].copy()
        bias = fields.now("actuator_biasprm")[:, ids]
        gear = self._gear
        self._bias, self._spring, self._damper = bias[:, :, 0].copy(), bias[:, :, 1] * gear, bias[:, :, 2] * gear
        limited = fields.now("actuator_forcelimited")[:, ids].astype(bool)
        force = fields.now("actuator_forcerange")[:, ids]
        self._least = np.where(limited, force[:, :, 0], -np.inf)
        self._most = np.where(limited, force[:, :, 1], np.inf)
        self._plain = not (self._bias.any() or self._spring.any() or self._damper.any())

    def torque(self, position: Array, velocity: Array, control: Array) -> Array:
        """Returns what drives exert, (num_worlds, num_joints) [N·m, N].

        Args:
            position: (num_worlds, num_joints) [rad, m].
            velocity: (num_worlds, num_joints) [rad/s, m/s].
            control: (num_worlds, nu) what reaches the actuators.
        """
        sent = np.clip(control[:, self.ids], self._low, self._high)
        for k, address in self._lagging:
            sent[:, k] = self._batch.bind("act")[:, address]
        force = self._gain * sent
        if not self._plain:
            force += self._bias + self._spring * position[:, self._joint] + self._damper * velocity[:, self._joint]
        np.clip(force, self._least, self._most, out=force)
        return force @ self._to_joints


def _require_plain(model: mujoco.MjModel, actuator: int, wanted_by: str) -> None:
    plain = model.actuator_gaintype[actuator] == mujoco.mjtGain.mjGAIN_FIXED
    plain &= mujoco.mjtBias(int(model.actuator_biastype[actuator])) in _BIASES
    still = model.actuator_dyntype[actuator] == mujoco.mjtDyn.mjDYN_NONE or is_filter(model, actuator)
    if not (plain and still):
        name = model.actuator(actuator).name
        text = f"the layer {wanted_by} needs a motor or servo whose force is known; {name} is of another kind"
        raise InputError(f"{text}: use what the engine has for it, such as actuator/{name}/motorconst of a dcmotor")
