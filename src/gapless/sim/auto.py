"""Proposes what could be wrong in a model and could be seen in its logs, with bounds in physical units."""

from collections.abc import Sequence

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.project.records import Project
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.efforts import joint_efforts
from gapless.sim.targets import (
    Target,
    driven_joint,
    force_per_command,
    has_one_axis,
    is_dc_motor,
    is_object,
    is_position_servo,
    resolve,
    takes_force,
)
from gapless.sim.targets.layers import bounds_of
from gapless.sim.targets.objects import half_extent, object_paths
from gapless.sim.targets.path import split_target

OFFSET = 0.25  # of the largest command in the logs


def parameter_space(blueprint: CompiledProject, tracks: Sequence[Track]) -> ParameterSpace:
    """Returns the parameters of a project: its owner's list, or what `auto` proposes.

    Args:
        blueprint: The compiled project.
        tracks: Its episodes; bounds follow from the commands and speeds in them.

    Raises:
        InputError: If a listed target names nothing.
    """
    project, model = blueprint.project, blueprint.model
    scales = _Scales(project, model, tracks)
    if project.parameters == "auto":
        return ParameterSpace(parameters_of(blueprint, tracks, _propose(project, model)))
    found: list[Parameter] = []
    for entry in project.parameters:
        target = resolve(entry.target, project, model)
        low, high = default_bounds(target, project, model, scales)
        low = entry.low if entry.low is not None else low
        high = entry.high if entry.high is not None else high
        _refuse_outside_knob(target, low, high)
        dimension = entry.dimension or target.dimension
        found.append(Parameter(target.path, dimension, target.unit, target.nominal, low, high, entry.per))
    return ParameterSpace(tuple(found))


def _refuse_outside_knob(target: Target, low: float, high: float) -> None:
    """Refuses bounds at which a layer makes no sense.

    Raises:
        InputError: If they are outside of what its knob can be.
    """
    knob = target.knob.knob if target.knob else None
    if knob and not (knob.low <= low and high <= knob.high):
        text = f"from {low:g} to {high:g} goes beyond what {knob.name} can be"
        raise InputError(f"parameter {target.path}: {text}: write bounds from {knob.low:g} to {knob.high:g}")


def parameters_of(blueprint: CompiledProject, tracks: Sequence[Track], paths: Sequence[str]) -> tuple[Parameter, ...]:
    """Returns the parameters of some targets, with bounds that follow from the model and its episodes.

    Raises:
        InputError: If a path names nothing.
    """
    project, model = blueprint.project, blueprint.model
    scales = _Scales(project, model, tracks)
    targets = [resolve(path, project, model) for path in paths]
    bounds = [default_bounds(target, project, model, scales) for target in targets]
    return tuple(
        Parameter(target.path, target.dimension, target.unit, target.nominal, low, high)
        for target, (low, high) in zip(targets, bounds, strict=True)
    )


class _Scales:
    """How large efforts and speeds are in these logs, per joint."""

    def __init__(self, project: Project, model: mujoco.MjModel, tracks: Sequence[Track]) -> None:
        self.effort = np.full(model.njnt, 1.0)
        self.speed = np.full(model.njnt, 1.0)
        self.command = np.full(model.nu, 1.0)
        moves = joint_efforts(project, model, tracks)
        for joint, (effort, speed) in moves.items():
            self.effort[joint], self.speed[joint] = max(effort, 1e-6), max(speed, 1e-3)
        for column, item in enumerate(project.commands):
            actuator = model.actuator(item.actuator).id
            joint, servo = driven_joint(model, actuator), is_position_servo(model, actuator)
            self.command[actuator] = max(self._command_size(column, False, tracks), 1e-6)
            if joint is None:
                continue
            size = self._command_size(column, servo, tracks)
            gear = abs(float(model.actuator_gear[actuator, 0])) or 1.0
            effort = force_per_command(model, actuator) * max(size, 1e-6) * gear
            if model.actuator_forcelimited[actuator]:
                effort = min(effort, float(model.actuator_forcerange[actuator, 1]) * gear)
            self.effort[joint] = max(effort, 1e-6)

    @staticmethod
    def _command_size(column: int, servo: bool, tracks: Sequence[Track]) -> float:
        """Returns how far commands go: from their mean for servos, from 0 for others."""
        if not tracks:
            return 0.1 if servo else 1.0
        commands = np.concatenate([track.commands[:, column] for track in tracks])
        return float(np.std(commands)) if servo else float(np.max(np.abs(commands)))


def _propose(project: Project, model: mujoco.MjModel) -> list[str]:
    driven = [model.actuator(item.actuator) for item in project.commands]
    servos = [a.name for a in driven if is_position_servo(model, a.id)]
    paths: list[str] = []
    damped = damping_servos(project, model)
    for joint in moving_joints(project, model):
        paths += (
            [f"joint/{joint}/frictionloss"]
            if joint in damped
            else [f"joint/{joint}/damping", f"joint/{joint}/frictionloss"]
        )
    paths += [f"actuator/{name}/kd" for name in damped.values()]
    for actuator in driven:
        constants = ("motorconst", "resistance") if is_dc_motor(model, actuator.id) else ("gain",)
        paths += [f"actuator/{actuator.name}/{c}" for c in (("kp",) if actuator.name in servos else constants)]
    if driven:
        paths.append("actuator/*/delay")
    if servos:
        paths.append("joint/*/creep")
    for body in range(1, model.nbody):
        if not is_object(model, body) or not model.body(body).name:
            continue
        paths += object_paths(project, model, body)
    paths += _biases(project, model, servos, bool(driven))
    if np.linalg.norm(model.opt.gravity) > 0:
        paths += ["world/tilt/x", "world/tilt/y"]
    return paths


def known_forces(project: Project, model: mujoco.MjModel) -> list[str]:
    """Returns the actuators whose commands are forces as they were measured, if all commands are: else none.

    Then masses show, and gains are more likely right than masses. With one force that is not known only ratios show.
    """
    known = [item.actuator for item in project.commands if takes_force(model, model.actuator(item.actuator).id)]
    return known if len(known) == len(project.commands) and all(c.scale == 1.0 for c in project.commands) else []


def damping_servos(project: Project, model: mujoco.MjModel) -> dict[str, str]:
    """Returns joint -> position servo that damps it: only the sum of its damping and the joint's shows."""
    found: dict[str, str] = {}
    for item in project.commands:
        actuator = model.actuator(item.actuator)
        joint = driven_joint(model, actuator.id)
        if joint is not None and is_position_servo(model, actuator.id) and model.actuator_biasprm[actuator.id, 2] < 0:
            found[model.joint(joint).name] = actuator.name
    return found


def moving_joints(project: Project, model: mujoco.MjModel) -> list[str]:
    """Returns the names of the hinge and slide joints that are measured or driven."""
    names = [item.name for item in project.measurements if item.element == "joint"]
    driven = [driven_joint(model, model.actuator(item.actuator).id) for item in project.commands]
    names += [model.joint(joint).name for joint in driven if joint is not None]
    return [name for name in dict.fromkeys(names) if name and has_one_axis(model, model.joint(name).id)]


def _biases(project: Project, model: mujoco.MjModel, servos: list[str], driven: bool) -> list[str]:
    """Returns bias targets that can show: where a servo, gravity or a contact refers to the true position."""
    joints = [driven_joint(model, model.actuator(name).id) for name in servos]
    held = {model.joint(joint).name for joint in joints if joint is not None}
    paths: list[str] = []
    for item in project.measurements:
        joint_seen = item.element == "joint" and item.quantity == "position"
        if joint_seen and (item.name in held or is_pulled(model, model.joint(item.name).id)):
            paths.append(f"measurement/{item.column}/bias")
        if item.element == "body" and item.quantity in ("x", "y") and driven:
            paths.append(f"measurement/{item.column}/bias")
    return paths


def is_pulled(model: mujoco.MjModel, joint: int) -> bool:
    """Tells whether gravity can turn a hinge: not if it stands upright on what does not move."""
    if model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_HINGE:
        return False
    data, gravity = mujoco.MjData(model), model.opt.gravity
    mujoco.mj_kinematics(model, data)
    upright = abs(float(data.xaxis[joint] @ gravity)) > 0.999 * float(np.linalg.norm(gravity))
    return not (upright and model.body_weldid[model.body_parentid[model.jnt_bodyid[joint]]] == 0)


def default_bounds(target: Target, project: Project, model: mujoco.MjModel, scales: "_Scales") -> tuple[float, float]:
    """Returns bounds in the target's unit that hold whatever a careful builder could have got wrong."""
    if target.knob is not None:
        return bounds_of(target.knob.knob)
    parts = split_target(target.path)
    kind, name, field, nominal = parts.kind, parts.name, parts.field, target.nominal
    if kind == "world":
        return (0.9 * nominal, 1.1 * nominal) if field == "gravity" else (-0.1, 0.1)
    if kind == "joint" and field != "creep" and (name != "*" or field in ("offset", "backlash", "load")):
        joints = [j for j in range(model.njnt) if has_one_axis(model, j)]
        joint = joints[0] if name == "*" else model.joint(name).id
        return _joint_bounds(field, nominal, joint, model, scales)
    if kind == "measurement":
        return _measurement_bounds(field, name, project)
    if field.startswith("com/"):
        size = 0.05
        if is_object(model, model.body(name).id):  # no centre is outside of its body
            size = min(size, float(half_extent(model, model.body(name).id)["xyz".index(field[-1])]) or size)
        return nominal - size, nominal + size
    factors = {
        "gain": (0.1, 10.0),
        "kp": (0.01, 10.0),
        "kd": (0.0, 20.0),
        "limit": (0.05, 5.0),
        "mass": (0.2, 5.0),
        "inertia": (0.3, 3.0),
        "length": (0.6, 1.7),
        "spread/x": (0.5, 2.0),
        "spread/y": (0.5, 2.0),
        "spread/z": (0.5, 2.0),
        "friction": (0.1, 3.0),
        "stiffness": (0.05, 20.0),
    }
    if field == "creep":
        return 0.001, 1.0
    if field == "offset":
        size = min(_largest_offset(a, model, scales) for a in _commanded(name, project, model))
        return -size, size
    if field in ("delay", "lag"):
        return 0.0, max(0.15 if field == "delay" else 0.2, 5 * nominal)
    if field == "payload":
        return 0.0, _carrying_mass(kind, name, model)
    if field == "restitution":
        return min(0.01, nominal), 0.99
    if field == "speed":
        return 0.5 * _least_speed(name, model, scales), nominal
    low, high = factors.get(field, (0.8, 1.25) if field.startswith("size/") else (0.2, 5.0))
    base = nominal if nominal > 0 else 1.0
    return min(low * base, nominal), high * base


def _commanded(name: str, project: Project, model: mujoco.MjModel) -> list[int]:
    """Returns the commanded actuators of a name, or all for `*`."""
    return [model.actuator(item.actuator).id for item in project.commands if name in ("*", item.actuator)]


def _largest_offset(actuator: int, model: mujoco.MjModel, scales: "_Scales") -> float:
    """Returns how far commands may be shifted: a servo as its joint's zero may be, others by a share of their size."""
    joint = driven_joint(model, actuator)
    if joint is None or not is_position_servo(model, actuator):
        return OFFSET * float(scales.command[actuator])
    gear = abs(float(model.actuator_gear[actuator, 0])) or 1.0
    return gear * _joint_bounds("offset", 0.0, joint, model, scales)[1]


def _carrying_mass(kind: str, name: str, model: mujoco.MjModel) -> float:
    """Returns the mass of everything that moves with the carrier of a payload [kg]."""
    body = model.body(name).id if kind == "body" else int(model.site_bodyid[model.site(name).id])
    return float(model.body_subtreemass[model.body_rootid[body]])


def _least_speed(name: str, model: mujoco.MjModel, scales: "_Scales") -> float:
    """Returns the typical speed in the logs of the joint that an actuator drives; the lowest of all for `*`."""
    actuators = range(model.nu) if name == "*" else [model.actuator(name).id]
    joints = [driven_joint(model, a) for a in actuators]
    return min((float(scales.speed[j]) for j in joints if j is not None), default=1.0)


def _joint_bounds(
    field: str, nominal: float, joint: int, model: mujoco.MjModel, scales: "_Scales"
) -> tuple[float, float]:
    hinge = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
    effort, speed = float(scales.effort[joint]), float(scales.speed[joint])
    if field == "offset":
        return (-0.3, 0.3) if hinge else (-0.05, 0.05)
    if field == "backlash":
        return (0.0, 0.15) if hinge else (0.0, 0.02)
    ceiling = {
        "damping": effort / speed,
        "frictionloss": effort,
        "armature": effort / speed,
        "stiffness": effort,
        "load": 0.5 * effort,
    }
    if field == "load":
        return -ceiling[field], ceiling[field]
    return 0.0, max(5 * nominal, ceiling[field])


def _measurement_bounds(field: str, column: str, project: Project) -> tuple[float, float]:
    if field == "scale":
        return 0.8, 1.25
    if field == "delay":
        return 0.0, 0.1
    unit = next((item.unit for item in project.measurements if item.column == column), "1")
    size = {"rad": 0.2, "m": 0.03, "rad/s": 0.5, "m/s": 0.2}.get(unit, 1.0)
    return -size, size
