"""Terms that a model may lack: proposed to `identify`, which keeps those that the logs call for."""

from collections.abc import Sequence

import mujoco
import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.project.records import Project
from gapless.signals.track import Track
from gapless.sim.auto import is_pulled, known_forces, moving_joints, parameters_of
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint, is_filter, is_position_servo
from gapless.sim.targets.objects import object_terms


def candidate_terms(blueprint: CompiledProject, tracks: Sequence[Track]) -> tuple[ParameterSpace, ...]:
    """Returns terms that could be wrong or lacking, besides what is always fitted; each enters as a whole.

    Args:
        blueprint: The compiled project.
        tracks: Its episodes; bounds follow from the commands and speeds in them.
    """
    project, model = blueprint.project, blueprint.model
    if project.parameters != "auto":
        return ()  # its owner has listed what may be wrong
    groups = [*_drive_terms(project, model), *_joint_terms(project, model)]
    groups += [*_servo_terms(project, model), *_link_terms(project, model), *object_terms(project, model)]
    every = iter(parameters_of(blueprint, tracks, [path for group in groups for path in group]))
    return tuple(ParameterSpace(tuple(next(every) for _ in group)) for group in groups)


def _drive_terms(project: Project, model: mujoco.MjModel) -> list[list[str]]:
    """Returns gains of motors whose forces are said to be known, and the lag that motors share besides their delay."""
    driven = [model.actuator(item.actuator).id for item in project.commands]
    gains = [[f"actuator/{name}/gain"] for name in known_forces(project, model)]
    bare = [a for a in driven if model.actuator_dyntype[a] == mujoco.mjtDyn.mjDYN_NONE]
    lag = [["actuator/*/lag"]] if bare or any(is_filter(model, a) for a in driven) else []
    return gains + lag


def _joint_terms(project: Project, model: mujoco.MjModel) -> list[list[str]]:
    """Returns inertia of the drive, and springs, where there is a drive whose cable may be one, or one in the model."""
    driven = {driven_joint(model, model.actuator(item.actuator).id) for item in project.commands}
    names = moving_joints(project, model)
    drives = [name for name in names if model.joint(name).id in driven]
    sprung = [name for name in names if name in drives or model.joint(name).stiffness[0] > 0]
    springs = [[f"joint/{name}/stiffness", f"joint/{name}/load"] for name in sprung]
    return [[f"joint/{name}/armature"] for name in drives] + springs


def _servo_terms(project: Project, model: mujoco.MjModel) -> list[list[str]]:
    """Returns what position servos have besides their stiffness."""
    groups: list[list[str]] = []
    for item in project.commands:
        actuator = model.actuator(item.actuator)
        joint = driven_joint(model, actuator.id)
        if not is_position_servo(model, actuator.id) or joint is None:
            continue
        if model.actuator_biasprm[actuator.id, 2] == 0:
            groups.append([f"actuator/{actuator.name}/kd"])
        if model.joint(joint).name:
            groups.append([f"joint/{model.joint(joint).name}/backlash"])
        if model.actuator_forcelimited[actuator.id]:
            groups.append([f"actuator/{actuator.name}/limit"])
    return groups


def _link_terms(project: Project, model: mujoco.MjModel) -> list[list[str]]:
    """Returns mass and length of each named link that a measured joint carries, the inertia where it has no length.

    The heaviest link keeps its mass, unless the forces are known: else only ratios of forces and masses show; and its
    length too, where gravity does not turn it, since its inertia is then all that shows. Against known forces centre
    and inertia show apart.
    """
    bodies = [model.body(int(model.jnt_bodyid[model.joint(name).id])) for name in moving_joints(project, model)]
    links = {body.id: body for body in bodies if body.name and body.mass[0] > 0}
    if not links:
        return []
    heaviest = max(links.values(), key=lambda body: float(body.mass[0]))
    known = bool(known_forces(project, model))
    masses = [[f"body/{body.name}/mass"] for body in links.values() if known or body.id != heaviest.id]
    if known:
        return masses + [_centre(model, number) for number in links]
    told = [number for number in links if number != heaviest.id or is_pulled(model, int(model.body_jntadr[number]))]
    return masses + [[_extent(model, number)] for number in told]


def _extent(model: mujoco.MjModel, body: int) -> str:
    """Returns what tells how far a link reaches: its length, or the inertia if its centre is at its joint."""
    along = model.body_ipos[body] - model.jnt_pos[model.body_jntadr[body]]
    return f"body/{model.body(body).name}/{'length' if np.abs(along).max() > 1e-6 else 'inertia'}"


def _centre(model: mujoco.MjModel, body: int) -> list[str]:
    """Returns the centre along a link, which its inertia about the joint follows, and its inertia about the centre."""
    along, name = model.body_ipos[body] - model.jnt_pos[model.body_jntadr[body]], model.body(body).name
    axis = "xyz"[int(np.argmax(np.abs(along)))]
    return [f"body/{name}/com/{axis}", f"body/{name}/inertia"]
