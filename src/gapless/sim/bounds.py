"""Default bounds of parameters, in physical units: whatever a careful builder could have got wrong."""

from collections.abc import Sequence

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.signals.track import Track
from gapless.sim.logged_states import joint_efforts
from gapless.sim.realism.layer import Knob
from gapless.sim.targets import drive
from gapless.sim.targets.target import Target, split_target

MAX_OFFSET = 0.25  # of the largest command in the logs
MAX_BIAS = 0.5  # of the largest reading in the logs, where the unit does not say
MAX_CENTRE_SHIFT_M = 0.05
_FACTORS = {  # field -> lowest and highest factor on the nominal value; (0.2, 5) for others
    "gain": (0.1, 10.0),
    "kp": (0.01, 10.0),
    "kd": (0.0, 20.0),
    "limit": (0.05, 5.0),
    "inertia": (0.3, 3.0),
    "length": (0.6, 1.7),
    "spread": (0.5, 2.0),
    "friction": (0.1, 3.0),
    "stiffness": (0.05, 20.0),
    "size": (0.8, 1.25),
}
_UNIT_BIAS = {"rad": 0.2, "m": 0.05, "rad/s": 0.5, "m/s": 0.2}  # unit -> largest bias; `MAX_BIAS` for others


class Scales:
    """How large efforts and speeds are in these logs, per joint; commands, per actuator; readings, per column."""

    def __init__(self, project: Project, model: mujoco.MjModel, tracks: Sequence[Track]) -> None:
        """Measures them; 1 where nothing shows them."""
        self.effort, self.speed, self.command = np.ones(model.njnt), np.ones(model.njnt), np.ones(model.nu)
        self.reading = {item.column: _reading_size(k, tracks) for k, item in enumerate(project.measurements)}
        for joint, (effort, speed) in joint_efforts(project, model, tracks).items():
            self.effort[joint], self.speed[joint] = max(effort, 1e-6), max(speed, 1e-3)
        for column, item in enumerate(project.commands):
            actuator = model.actuator(item.actuator).id
            joint, servo = drive.driven_joint(model, actuator), drive.is_position_servo(model, actuator)
            self.command[actuator] = max(_command_size(column, False, tracks), 1e-6)
            if joint is None:
                continue
            gear = abs(float(model.actuator_gear[actuator, 0])) or 1.0
            size = max(_command_size(column, servo, tracks), 1e-6)
            effort = drive.force_per_command(model, actuator) * size * gear
            if model.actuator_forcelimited[actuator]:
                effort = min(effort, float(model.actuator_forcerange[actuator, 1]) * gear)
            self.effort[joint] = max(effort, 1e-6)


def _command_size(column: int, servo: bool, tracks: Sequence[Track]) -> float:
    """Returns how far commands go: from their mean for servos, from 0 for others."""
    if not tracks:
        return 0.1 if servo else 1.0
    commands = np.concatenate([track.commands[:, column] for track in tracks])
    return float(np.std(commands)) if servo else float(np.max(np.abs(commands)))


def _reading_size(column: int, tracks: Sequence[Track]) -> float:
    """Returns the largest reading of a column in model units; 1 where there is none but 0."""
    return max((float(np.nanmax(np.abs(track.smooth[:, column]))) for track in tracks), default=0.0) or 1.0


def default_bounds(target: Target, project: Project, model: mujoco.MjModel, scales: Scales) -> tuple[float, float]:
    """Returns bounds in the target's unit."""
    if target.knob is not None:
        return _knob_bounds(target.knob.knob)
    parts = split_target(target.path)
    kind, name, field, nominal = parts.kind, parts.name, parts.field, target.nominal
    if kind == "world":
        return (0.9 * nominal, 1.1 * nominal) if field == "gravity" else (-0.1, 0.1)
    if kind == "joint" and field != "creep" and (name != "*" or field in ("offset", "backlash", "load")):
        joints = [j for j in range(model.njnt) if drive.has_one_axis(model, j)]
        return _joint_bounds(field, nominal, joints[0] if name == "*" else model.joint(name).id, model, scales)
    if kind == "measurement":
        unit = next((item.unit for item in project.measurements if item.column == name), "1")
        size = _UNIT_BIAS.get(unit, MAX_BIAS * scales.reading.get(name, 1.0))
        return {"scale": (0.6, 1.7), "delay": (0.0, 0.1)}.get(field, (-size, size))
    if field.startswith("com/"):
        size = MAX_CENTRE_SHIFT_M
        if drive.is_object(model, model.body(name).id):  # no centre is outside of its body
            size = min(size, float(half_extent(model, model.body(name).id)["xyz".index(field[-1])]) or size)
        return nominal - size, nominal + size
    if field == "creep":
        return 0.001, 1.0
    if field == "offset":
        sizes: list[float] = []  # of a servo as its joint's zero may be off, of others a share of their commands
        for a in (model.actuator(item.actuator).id for item in project.commands if name in ("*", item.actuator)):
            joint = drive.driven_joint(model, a) if drive.is_position_servo(model, a) else None
            gear = abs(float(model.actuator_gear[a, 0])) or 1.0
            share = MAX_OFFSET * float(scales.command[a])
            sizes.append(share if joint is None else gear * _joint_bounds("offset", 0.0, joint, model, scales)[1])
        return -min(sizes), min(sizes)
    if field in ("delay", "lag"):
        return 0.0, max(0.15 if field == "delay" else 0.2, 5 * nominal)
    if field in ("payload", "tip_payload"):  # at most the mass of everything that moves with its carrier
        body = model.body(name).id if kind == "body" else int(model.site_bodyid[model.site(name).id])
        return 0.0, float(model.body_subtreemass[model.body_rootid[body]])
    if field == "restitution":
        return min(0.01, nominal), 0.99
    if field == "speed":  # from half the typical speed in the logs of its joint; the lowest of all for `*`
        actuators = range(model.nu) if name == "*" else [model.actuator(name).id]
        joints = [drive.driven_joint(model, a) for a in actuators]
        return 0.5 * min((float(scales.speed[j]) for j in joints if j is not None), default=1.0), nominal
    low, high = _FACTORS.get(field.partition("/")[0], (0.2, 5.0))
    base = nominal if nominal > 0 else 1.0
    return min(low * base, nominal), high * base


def _knob_bounds(knob: Knob) -> tuple[float, float]:
    """Returns bounds for a knob whose owner stated none: ten times as far from ideal as is typical, within its range.

    Of a knob that is typically ideal, or whose ideal is no limit at all: from a tenth to ten times the typical value.
    """
    typical, ideal = knob.typical, knob.ideal
    if np.isfinite(ideal) and typical != ideal:
        reach = 10 * abs(typical - ideal)
        return max(knob.low, ideal - reach), min(knob.high, ideal + reach)
    if typical > 0:
        return max(knob.low, typical / 10), min(knob.high, 10 * typical)
    return knob.low, knob.high


def _joint_bounds(field: str, nominal: float, joint: int, model: mujoco.MjModel, scales: Scales) -> tuple[float, float]:
    hinge = drive.is_hinge(model, joint)
    effort, speed = float(scales.effort[joint]), float(scales.speed[joint])
    if field == "offset":
        return (-0.3, 0.3) if hinge else (-0.05, 0.05)
    if field == "backlash":
        return (0.0, 0.15) if hinge else (0.0, 0.02)
    if field == "load":
        return -0.5 * effort, 0.5 * effort
    return 0.0, max(5 * nominal, effort / speed if field in ("damping", "armature") else effort)


def half_extent(model: mujoco.MjModel, body: int) -> Array:
    """Returns how far the geoms of a body reach from its frame, at most along any axis, (3,) [m]; 0 without geoms."""
    reach, frame = np.zeros(3), np.zeros(9)
    for geom in range(model.ngeom):
        if model.geom_bodyid[geom] == body and np.isfinite(model.geom_rbound[geom]):
            mujoco.mju_quat2Mat(frame, model.geom_quat[geom])
            turned, (centre, half) = frame.reshape(3, 3), model.geom_aabb[geom].reshape(2, 3)
            middle = model.geom_pos[geom] + turned @ centre
            reach = np.maximum(reach, np.abs(middle) + np.abs(turned) @ half)
    return reach
