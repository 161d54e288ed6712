"""Proposes what could be wrong in a model and could be seen in its logs.

`parameter_space` is what is always fitted; `candidate_terms` may be wrong or lacking besides, and enter `identify` only
if the logs call for them.
"""

from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.project.records import Project
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.bounds import Scales, default_bounds
from gapless.sim.targets import drive, resolve

MAX_GEOMS_WITH_OWN_FRICTION = 3  # colliding geoms of an object; more share one factor


def parameter_space(blueprint: CompiledProject, tracks: Sequence[Track]) -> ParameterSpace:
    """Returns the parameters of a project: its owner's list, or what `auto` proposes.

    Raises:
        InputError: If a listed target names nothing, or bounds are outside of what the knob of a layer can be.
    """
    project, model = blueprint.project, blueprint.model
    if project.parameters == "auto":
        return ParameterSpace(parameters_of(blueprint, tracks, _propose(project, model)))
    found: list[Parameter] = []
    proposed = parameters_of(blueprint, tracks, [entry.target for entry in project.parameters])
    for entry, parameter in zip(project.parameters, proposed, strict=True):
        low = entry.low if entry.low is not None else parameter.low
        high = entry.high if entry.high is not None else parameter.high
        on_knob = resolve(entry.target, project, model).knob
        if on_knob and not (on_knob.knob.low <= low and high <= on_knob.knob.high):
            text = f"from {low:g} to {high:g} goes beyond what {on_knob.knob.name} can be"
            can_be = f"write bounds from {on_knob.knob.low:g} to {on_knob.knob.high:g}"
            raise InputError(f"parameter {entry.target}: {text}: {can_be}")
        dimension = entry.dimension or parameter.dimension
        found.append(replace(parameter, dimension=dimension, low=low, high=high, per=entry.per))
    return ParameterSpace(tuple(found))


def parameters_of(blueprint: CompiledProject, tracks: Sequence[Track], paths: Sequence[str]) -> tuple[Parameter, ...]:
    """Returns the parameters of some targets, with bounds that follow from the model and its episodes."""
    project, model = blueprint.project, blueprint.model
    scales = Scales(project, model, tracks)
    targets = [resolve(path, project, model) for path in paths]
    return tuple(target.make_parameter(*default_bounds(target, project, model, scales)) for target in targets)


def candidate_terms(blueprint: CompiledProject, tracks: Sequence[Track]) -> tuple[ParameterSpace, ...]:
    """Returns terms that could be wrong or lacking, besides what is always fitted; each enters as a whole."""
    project, model = blueprint.project, blueprint.model
    if project.parameters != "auto":
        return ()  # its owner has listed what may be wrong
    makers = (_drive_terms, _servo_terms, _link_terms, _object_terms)
    groups = [group for make_groups in makers for group in make_groups(project, model)]
    every = iter(parameters_of(blueprint, tracks, [path for group in groups for path in group]))
    return tuple(ParameterSpace(tuple(next(every) for _ in group)) for group in groups)


def _propose(project: Project, model: mujoco.MjModel) -> list[str]:
    driven = [model.actuator(item.actuator) for item in project.commands]
    servos = [a.name for a in driven if drive.is_position_servo(model, a.id)]
    damped = find_damping_servos(project, model)
    paths: list[str] = []
    for joint in moving_joints(project, model):
        fields = ("frictionloss",) if joint in damped else ("damping", "frictionloss")
        paths += [f"joint/{joint}/{field}" for field in fields]
    paths += [f"actuator/{name}/kd" for name in damped.values()]
    for actuator in driven:
        constants = ("motorconst", "resistance") if drive.is_dc_motor(model, actuator.id) else ("gain",)
        paths += [f"actuator/{actuator.name}/{c}" for c in (("kp",) if actuator.name in servos else constants)]
    paths += ["actuator/*/delay"] if driven else []
    paths += ["joint/*/creep"] if servos else []
    for body in range(1, model.nbody):
        if drive.is_object(model, body) and model.body(body).name:
            paths += _object_paths(project, model, body)
    paths += _bias_paths(project, model, servos)
    paths += ["world/tilt/x", "world/tilt/y"] if np.linalg.norm(model.opt.gravity) > 0 else []
    return paths


def find_damping_servos(project: Project, model: mujoco.MjModel) -> dict[str, str]:
    """Returns joint -> position servo that damps it: only the sum of both dampings shows."""
    found = dict[str, str]()
    for item in project.commands:
        actuator = model.actuator(item.actuator)
        joint = drive.driven_joint(model, actuator.id)
        damps = drive.is_position_servo(model, actuator.id) and model.actuator_biasprm[actuator.id, 2] < 0
        if joint is not None and damps:
            found[model.joint(joint).name] = actuator.name
    return found


def _object_paths(project: Project, model: mujoco.MjModel, body: int) -> list[str]:
    """Returns what is always fitted of an object: a thing of its own, thrown, dropped or pushed.

    That is how it slides; its mass where something is driven; and where nothing is, how it bounces, and its centre if
    it is seen turning. What falls, bounces and slides does so alike whatever it weighs.
    """
    geoms = [g for g in range(model.ngeom) if model.geom_bodyid[g] == body and model.geom(g).name]
    colliding = [model.geom(g).name for g in geoms if model.geom_contype[g] or model.geom_conaffinity[g]]
    name, few = model.body(body).name, MAX_GEOMS_WITH_OWN_FRICTION
    paths = [f"body/{name}/mass"] if project.commands else []
    paths += [f"geom/{geom}/friction" for geom in colliding] if len(colliding) <= few else ["geom/*/friction"]
    if not project.commands:
        paths += [f"geom/{geom}/{field}" for geom in colliding[:few] for field in ("restitution", "stiffness")]
        paths += [f"body/{name}/com/{axis}" for axis in "xyz" if _orientation_is_measured(project, name)]
    return paths


def _bias_paths(project: Project, model: mujoco.MjModel, servos: list[str]) -> list[str]:
    """Returns bias targets that can show: where a servo, gravity or a contact refers to the true position."""
    joints = [drive.driven_joint(model, model.actuator(name).id) for name in servos]
    held = {model.joint(joint).name for joint in joints if joint is not None}
    paths: list[str] = []
    for item in project.measurements:
        of_joint = item.element == "joint" and item.quantity == "position"
        shows = of_joint and (item.name in held or _gravity_turns(model, model.joint(item.name).id))
        if shows or (item.element == "body" and item.quantity in ("x", "y") and project.commands):
            paths.append(f"measurement/{item.column}/bias")
    return paths


def known_forces(project: Project, model: mujoco.MjModel) -> list[str]:
    """Returns the actuators whose commands are forces as they were measured, if all commands are: else none.

    Then masses show, and gains are more likely right than masses. With one force that is not known only ratios show.
    """
    known = [item.actuator for item in project.commands if drive.takes_force(model, model.actuator(item.actuator).id)]
    return known if len(known) == len(project.commands) and all(c.scale == 1.0 for c in project.commands) else []


def moving_joints(project: Project, model: mujoco.MjModel) -> list[str]:
    """Returns the names of the hinge and slide joints that are measured or driven."""
    names = [item.name for item in project.measurements if item.element == "joint"]
    driven = [drive.driven_joint(model, model.actuator(item.actuator).id) for item in project.commands]
    names += [model.joint(joint).name for joint in driven if joint is not None]
    return [name for name in dict.fromkeys(names) if name and drive.has_one_axis(model, model.joint(name).id)]


def _gravity_turns(model: mujoco.MjModel, joint: int) -> bool:
    """Tells whether gravity can turn a hinge: not if it stands upright on what does not move."""
    if model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_HINGE:
        return False
    data, gravity = mujoco.MjData(model), model.opt.gravity
    mujoco.mj_kinematics(model, data)
    upright = abs(float(data.xaxis[joint] @ gravity)) > 0.999 * float(np.linalg.norm(gravity))
    return not (upright and model.body_weldid[model.body_parentid[model.jnt_bodyid[joint]]] == 0)


def _orientation_is_measured(project: Project, body: str) -> bool:
    """Tells whether the orientation of a body, or its rate, is measured."""
    items = [item for item in project.measurements if item.element == "body" and item.name == body]
    return any(item.quantity in ("qw", "wx") for item in items)


def _drive_terms(project: Project, model: mujoco.MjModel) -> list[list[str]]:
    """Returns what drives may have: a wrong gain where forces are said to be known, a lag that all share, inertia.

    And springs, where there is a drive whose cable may be one, or one in the model.
    """
    motors = [model.actuator(item.actuator).id for item in project.commands]
    groups = [[f"actuator/{name}/gain"] for name in known_forces(project, model)]
    if any(model.actuator_dyntype[a] == mujoco.mjtDyn.mjDYN_NONE or drive.is_filter(model, a) for a in motors):
        groups.append(["actuator/*/lag"])
    driven, names = {drive.driven_joint(model, a) for a in motors}, moving_joints(project, model)
    drives = [name for name in names if model.joint(name).id in driven]
    sprung = [name for name in names if name in drives or model.joint(name).stiffness[0] > 0]
    springs = [[f"joint/{name}/stiffness", f"joint/{name}/load"] for name in sprung]
    return [*groups, *([f"joint/{name}/armature"] for name in drives), *springs]


def _servo_terms(project: Project, model: mujoco.MjModel) -> list[list[str]]:
    """Returns what position servos have besides their stiffness."""
    groups: list[list[str]] = []
    for item in project.commands:
        actuator = model.actuator(item.actuator)
        joint = drive.driven_joint(model, actuator.id)
        if not drive.is_position_servo(model, actuator.id) or joint is None:
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
    groups = [[f"body/{body.name}/mass"] for body in links.values() if known or body.id != heaviest.id]
    for number, body in links.items():
        joint = int(model.body_jntadr[number])
        along = np.abs(model.body_ipos[number] - model.jnt_pos[joint])
        if known:  # the centre along the link, which its inertia about the joint follows, and that about the centre
            groups.append([f"body/{body.name}/com/{'xyz'[int(np.argmax(along))]}", f"body/{body.name}/inertia"])
        elif number != heaviest.id or _gravity_turns(model, joint):
            groups.append([f"body/{body.name}/{'length' if along.max() > 1e-6 else 'inertia'}"])
    return groups


def _object_terms(project: Project, model: mujoco.MjModel) -> list[list[str]]:
    """Returns the centre of each driven object that is seen turning, and how far its mass spreads.

    How it tumbles depends on the ratios of its inertias; in contact they show against its mass, too.
    """
    groups: list[list[str]] = []
    for name in (model.body(k).name for k in range(1, model.nbody) if drive.is_object(model, k)):
        if _orientation_is_measured(project, name):
            fields = ("com", "spread") if project.commands else ("spread",)
            groups += [[f"body/{name}/{field}/{axis}" for axis in "xyz"] for field in fields]
    return groups
