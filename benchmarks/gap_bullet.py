"""Reality by PyBullet, for `foreign` in `diagnose.py`: another engine moves the body of a compiled MuJoCo model.

Bullet has the rigid bodies: masses, inertias, joints, gravity. What it lacks acts as explicit torques, computed before
each of its steps: drives with their limits, damping, dry friction (as soft as the model states it), and rotors. The
inertia A of rotors adds to the mass matrix M of joints alone, so that with all other torques t the joints accelerate by
a = (M + A)^-1 (t - c), c being what gravity and motion exert; Bullet is given M a + c. M and c are its own. Bullet
takes the time step of the model that it plays: so both have the same error of first order. Only trees of hinges and
slides, nothing that touches.
"""

import tempfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

import mujoco
import numpy as np
import pybullet
from gap_world import Step
from scipy.spatial.transform import Rotation

from gapless.core.signal import Array

TYPES = {mujoco.mjtJoint.mjJNT_HINGE: "continuous", mujoco.mjtJoint.mjJNT_SLIDE: "prismatic"}
NUM_SWEEPS = 20  # at most, over joints that rub, until their frictions agree

_clients: list[int] = []


def make_step(model: mujoco.MjModel) -> Step:
    """Returns what moves a model's state by Bullet; one at a time, since all share one world of Bullet."""
    return _Bullet(model).step


def urdf_of(model: mujoco.MjModel) -> str:
    """Returns the bodies of a model as URDF, a link for each, with inertias in their principal frames."""
    parts = ['<robot name="robot"><link name="world"/>']
    for number in range(1, model.nbody):
        body = model.body(number)
        if model.body_jntnum[number] > 1 or (model.body_jntnum[number] and np.any(model.jnt_pos[body.jntadr[0]])):
            raise ValueError(f"{body.name}: only bodies with one joint, at their origin")
        inertias = zip(("ixx", "iyy", "izz"), body.inertia, strict=True)
        inertia = " ".join(f'{name}="{value:.17g}"' for name, value in inertias) + ' ixy="0" ixz="0" iyz="0"'
        parts.append(
            f"<link name={quoteattr(body.name)}><inertial>{_origin(body.ipos, body.iquat)}"
            f'<mass value="{body.mass[0]:.17g}"/><inertia {inertia}/></inertial></link>'
        )
        kind, axis = "fixed", np.array([1.0, 0, 0])
        if model.body_jntnum[number]:
            joint = model.joint(int(body.jntadr[0]))
            kind, axis = TYPES[mujoco.mjtJoint(int(joint.type[0]))], joint.axis
        limits = '<limit lower="-100" upper="100" effort="1e9" velocity="1e9"/>'
        parts.append(
            f'<joint name="to_{number}" type="{kind}">{_origin(body.pos, body.quat)}'
            f"<parent link={quoteattr(model.body(int(body.parentid[0])).name)}/><child link={quoteattr(body.name)}/>"
            f'<axis xyz="{_numbers(axis)}"/>{limits}</joint>'
        )
    return "".join([*parts, "</robot>"])


def _origin(place: Array, quat: Array) -> str:
    x, y, z = Rotation.from_quat(quat, scalar_first=True).as_matrix()
    pitch = np.arcsin(np.clip(-z[0], -1, 1))
    turned = abs(z[0]) > 1 - 1e-12  # roll and yaw are about one axis then: all of it is yaw
    roll, yaw = (0.0, np.arctan2(-x[1], y[1])) if turned else (np.arctan2(z[1], z[2]), np.arctan2(y[0], x[0]))
    angles = np.array([roll, pitch, yaw])
    return f'<origin xyz="{_numbers(place)}" rpy="{_numbers(angles)}"/>'


def _numbers(values: Array) -> str:
    return " ".join(f"{value:.17g}" for value in values)


class _Bullet:
    """A body in Bullet beside its MuJoCo model, whose drives, damping, friction and rotors it is given."""

    def __init__(self, model: mujoco.MjModel) -> None:
        if not _clients:
            _clients.append(pybullet.connect(pybullet.DIRECT))
        self.client = _clients[0]
        pybullet.resetSimulation(physicsClientId=self.client)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "robot.urdf"
            path.write_text(urdf_of(model), encoding="utf-8")
            self.body = pybullet.loadURDF(
                str(path), useFixedBase=True, flags=pybullet.URDF_USE_INERTIA_FROM_FILE, physicsClientId=self.client
            )
        count = pybullet.getNumJoints(self.body, physicsClientId=self.client)
        kinds = [pybullet.getJointInfo(self.body, k, physicsClientId=self.client)[2] for k in range(count)]
        self.joints = [k for k, kind in enumerate(kinds) if kind != pybullet.JOINT_FIXED]
        for k in range(-1, count):
            pybullet.changeDynamics(
                self.body, k, linearDamping=0, angularDamping=0, jointDamping=0, physicsClientId=self.client
            )
        pybullet.setJointMotorControlArray(
            self.body, self.joints, pybullet.VELOCITY_CONTROL, forces=[0.0] * model.nv, physicsClientId=self.client
        )
        self.step_s = float(model.opt.timestep)
        pybullet.setTimeStep(self.step_s, physicsClientId=self.client)
        self.dofs = model.actuator_trnid[:, 0]

    def step(self, model: mujoco.MjModel, data: mujoco.MjData, num_steps: int) -> None:
        """Moves the state of `data` on by some time steps of the model."""
        client, q, v = self.client, data.qpos.copy(), data.qvel.copy()
        pybullet.setGravity(*model.opt.gravity, physicsClientId=client)
        for number, place, speed in zip(self.joints, q, v, strict=True):
            pybullet.resetJointState(self.body, number, place, speed, physicsClientId=client)
        for _ in range(num_steps):
            mass = np.array(pybullet.calculateMassMatrix(self.body, q.tolist(), physicsClientId=client))
            still = [0.0] * model.nv
            bias = np.array(
                pybullet.calculateInverseDynamics(self.body, q.tolist(), v.tolist(), still, physicsClientId=client)
            )
            accelerations = self._accelerate(model, data, q, v, mass, bias)
            pybullet.setJointMotorControlArray(
                self.body,
                self.joints,
                pybullet.TORQUE_CONTROL,
                forces=(mass @ accelerations + bias).tolist(),
                physicsClientId=client,
            )
            pybullet.stepSimulation(physicsClientId=client)
            states = pybullet.getJointStates(self.body, self.joints, physicsClientId=client)
            q, v = np.array([state[0] for state in states]), np.array([state[1] for state in states])
        data.qpos[:], data.qvel[:] = q, v
        data.time += num_steps * self.step_s

    def _accelerate(
        self, model: mujoco.MjModel, data: mujoco.MjData, q: Array, v: Array, mass: Array, bias: Array
    ) -> Array:
        """Returns the joints' accelerations, (nv,); damping is that of the end of the step, which keeps it stable."""
        gear, limits = model.actuator_gear[:, 0], model.actuator_forcerange
        length, speed = gear * q[self.dofs], gear * v[self.dofs]
        wanted = model.actuator_gainprm[:, 0] * data.ctrl + model.actuator_biasprm[:, 0]
        wanted += model.actuator_biasprm[:, 1] * length + model.actuator_biasprm[:, 2] * speed
        force = np.where(model.actuator_forcelimited, np.clip(wanted, limits[:, 0], limits[:, 1]), wanted)
        data.actuator_force[:] = force
        torque = data.qfrc_applied - model.dof_damping * v - bias
        np.add.at(torque, self.dofs, gear * force)
        damping = model.dof_damping.copy()
        np.add.at(damping, self.dofs, np.where(force == wanted, -model.actuator_biasprm[:, 2] * gear**2, 0.0))
        inverse = np.linalg.inv(mass + np.diag(model.dof_armature + self.step_s * damping))
        return inverse @ (torque + _rub(model, torque, inverse, v))


def _rub(model: mujoco.MjModel, torque: Array, inverse: Array, v: Array) -> Array:
    """Returns dry friction, (nv,): what slows each joint down at the rate that the model states, up to its limit.

    MuJoCo's manual, Solver parameters: a_k + R_k f_k = -b v_k with b = 2 / (d_max time constant) and R_k =
    (1 - d) / d times the inverse of the inertia. Joints take turns until all agree; one that slides is settled at once.
    """
    rub, most = np.zeros(model.nv), model.dof_frictionloss
    time_s, ease = model.dof_solref[:, 0], model.dof_solimp
    soft = (1 - ease[:, 0]) / ease[:, 0] * model.dof_invweight0 + np.diag(inverse)
    free = (2 / (ease[:, 1] * time_s) * v + inverse @ torque).tolist()
    rubbing = np.flatnonzero(most).tolist()
    for _ in range(NUM_SWEEPS):
        moved = 0.0
        for k in rubbing:
            ahead = free[k] + float(inverse[k] @ rub) - inverse[k, k] * rub[k]
            new = min(max(-ahead / soft[k], -most[k]), most[k])
            moved, rub[k] = max(moved, abs(new - rub[k])), new
        if moved < 1e-9:
            break
    return rub
