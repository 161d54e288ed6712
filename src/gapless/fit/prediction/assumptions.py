"""What predictions assume of states that no column shows: stated where it may hold, refused where it cannot."""

from collections.abc import Iterator, Sequence
from functools import partial

import mujoco
import numpy as np

from gapless.core.errors import ProjectError
from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.project.yaml_file import FILE_NAME
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint, has_one_axis, is_position_servo

QUATERNION = ("qw", "qx", "qy", "qz")
MAX_NORM_ERROR = 0.005  # by which mapped components may miss norm 1: rest within 2 acos(0.995) = 0.2 rad
NORM_PERCENTILE = 99.0  # of the samples that must have this norm: a few may be spikes
MAX_UNSEEN_TURN_RAD = 1.0  # that rates may add up to where no column shows the orientation: more than a gyro drifts
MIN_FORCE_CHANGE = 1e-3  # share by which forces and inertias must change with a position for it to matter


def find_assumptions(blueprint: CompiledProject, tracks: Sequence[Track]) -> tuple[Note, ...]:
    """Returns a warning per joint and free body whose state at the start of predictions is partly assumed.

    Raises:
        ProjectError: If no assumption can hold, or the logs contradict it; says what to map.
    """
    _require_servo_positions(blueprint)
    return (*_describe_joints(blueprint), *_describe_bodies(blueprint, tracks))


def _columns_of(project: Project, element: str, name: str) -> dict[str, int]:
    """Returns quantity -> column of what is mapped of a joint or a body."""
    items = enumerate(project.measurements)
    return {item.quantity: k for k, item in items if (item.element, item.name) == (element, name)}


def _require_servo_positions(blueprint: CompiledProject) -> None:
    """Refuses velocities alone of joints that position servos drive: what a servo answers to is not known."""
    project, model = blueprint.project, blueprint.model
    found: dict[str, str] = {}  # joint -> the columns of its command and its velocity
    for command, actuator in zip(project.commands, blueprint.actuator_ids, strict=True):
        joint = driven_joint(model, actuator)
        if joint is None or not is_position_servo(model, actuator):
            continue
        columns = _columns_of(project, "joint", name := model.joint(joint).name)
        if "velocity" in columns and "position" not in columns:
            velocity = project.measurements[columns["velocity"]].column
            found[name] = f"({command.column}), but only its velocity is mapped ({velocity})"
    if found:
        first, *others = found
        more = f" (and likewise {', '.join(others)})" if others else ""
        raise ProjectError(
            f"joint {first} is driven by a position servo {found[first]}{more}: its distance to the target is not "
            f"known, so nothing can be predicted; map a column with its position ({{joint: {first}, quantity: "
            f"position}}), or write one into the logs: the velocity integrated from a known start: "
            f"{project.directory / FILE_NAME}"
        )


def _describe_joints(blueprint: CompiledProject) -> list[Note]:
    """Returns what is assumed of joints that are driven, carry a mapped body or have a mapped velocity, unless seen."""
    project, model = blueprint.project, blueprint.model
    driven = {driven_joint(model, actuator) for actuator in blueprint.actuator_ids}
    bodies = [item.name for item in project.measurements if item.element == "body"]
    carriers = {joint for name in bodies for joint in _carriers(model, name)}
    assumed: dict[str, str] = {}
    for joint in filter(partial(has_one_axis, model), range(model.njnt)):
        name, unit = model.joint(joint).name, "m" if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE else "rad"
        columns = _columns_of(project, "joint", name)
        acts = joint in carriers or (("velocity" in columns or joint in driven) and _position_matters(model, joint))
        if "position" not in columns and acts:
            at_rest = "" if "velocity" in columns else " and at rest"
            assumed[name] = f"{name} at {model.qpos0[model.jnt_qposadr[joint]]:.4g} {unit}{at_rest}"
    if not assumed:
        return []
    text = f"no column shows the position of joint {', '.join(assumed)}: predictions assume that each begins with "
    text += f"{', '.join(assumed.values())}, as in the model; map it (quantity: position) if that differs"
    return [Note("warning", FILE_NAME, text)]


def _carriers(model: mujoco.MjModel, name: str) -> Iterator[int]:
    """Yields the joints between the world and a body."""
    body = model.body(name).id
    while body > 0:
        yield from range(model.body_jntadr[body], model.body_jntadr[body] + model.body_jntnum[body])
        body = int(model.body_parentid[body])


def _position_matters(model: mujoco.MjModel, joint: int) -> bool:
    """Tells whether limits, forces or inertias depend on a joint's position: not of a wheel that is round."""
    if model.jnt_limited[joint]:
        return True
    seen: list[Array] = []
    for shift in (0.0, 1.0):
        data = mujoco.MjData(model)
        data.qpos[model.jnt_qposadr[joint]] += shift
        mujoco.mj_forward(model, data)
        seen.append(np.concatenate([data.qfrc_smooth, data.M]))
    return bool(np.abs(seen[1] - seen[0]).max() > MIN_FORCE_CHANGE * np.abs(seen[0]).max())


def _describe_bodies(blueprint: CompiledProject, tracks: Sequence[Track]) -> list[Note]:
    """Returns what is assumed of free bodies of which a part of the pose is mapped, or nothing."""
    project, model = blueprint.project, blueprint.model
    notes: list[Note] = []
    for joint in np.flatnonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
        name, first = model.body(model.jnt_bodyid[joint]).name, model.jnt_qposadr[joint]
        columns = _columns_of(project, "body", name)
        place = dict(zip("xyz", model.qpos0[first : first + 3], strict=True))
        unseen = [axis for axis in place if axis not in columns]
        at_place = ", ".join(f"{axis} = {place[axis]:.4g} m" for axis in unseen)
        missing, turned = _describe_orientation(project, name, columns, tracks)
        if unseen or missing:
            assumed = [f"{at_place} as in the model"] * bool(unseen) + [turned] * bool(missing)
            text = f"no column shows {', '.join(unseen + missing)} of body {name}: predictions assume that each begins "
            text += f"with {' and '.join(assumed)}; map what differs"
            mapped = ", ".join(project.measurements[k].column for k in columns.values())
            notes.append(Note("warning", mapped or FILE_NAME, text))
    return notes


def _describe_orientation(
    project: Project, body: str, columns: dict[str, int], tracks: Sequence[Track]
) -> tuple[list[str], str]:
    """Returns what of a free body's orientation no column shows, and what is assumed of it.

    Raises:
        ProjectError: If readings show that the assumption does not hold.
    """
    path = project.directory / FILE_NAME
    mapped, missing = ([q for q in QUATERNION if (q in columns) == here] for here in (True, False))
    if mapped and missing:
        parts = [track.smooth[track.known][:, [columns[q] for q in mapped]] for track in tracks]
        norms = np.linalg.norm(np.concatenate([np.zeros((0, len(mapped))), *parts]), axis=1)
        error = float(np.percentile(np.abs(norms - 1), NORM_PERCENTILE)) if len(norms) else 0.0
        if error > MAX_NORM_ERROR:
            raise ProjectError(
                f"body {body}: of its orientation only {', '.join(mapped)} is mapped, which is no rotation without the "
                f"rest: its norm is up to {error:.2g} off 1; map {', '.join(missing)} too, or only its yaw if it stays "
                f"level: {path}"
            )
        left_rad = 2 * np.arccos(1 - error)
        return missing, f"{' = '.join(missing)} = 0 ({', '.join(mapped)} has norm 1, but for {left_rad:.2g} rad)"
    if "yaw" in columns or not missing:
        return (["roll", "pitch"], "roll and pitch as in the model") if missing else ([], "")
    rates = [columns[rate] for rate in ("wx", "wy", "wz") if rate in columns]
    turns_rad = [float(np.ptp(np.cumsum(track.smooth[:, k]))) / project.rate_hz for track in tracks for k in rates]
    if max(turns_rad, default=0.0) > MAX_UNSEEN_TURN_RAD:
        raise ProjectError(
            f"body {body} turns by {max(turns_rad):.2g} rad, as its rates say, and no column shows its orientation: "
            f"map qw, qx, qy, qz, or yaw if it stays level: {path}"
        )
    return ["orientation"], "its orientation as in the model" + ("" if rates else ", not turning")
