"""Parameter targets: what each path of the design sets, in which unit, and its value in the model as written."""

from collections.abc import Callable
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError, nearest
from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.sim.fields import Fields
from gapless.sim.reading import free_joint_of

Write = Callable[[Fields, Array], None]


@dataclass(frozen=True)
class Target:
    """What a parameter sets.

    Attributes:
        path: The target's path.
        dimension: The dimension it belongs to, unless the project says otherwise.
        unit: Unit of its values.
        nominal: Value that leaves the model as it was written.
        write: Writes one value per world of `fields.ids`, (num_ids,).
    """

    path: str
    dimension: Dimension
    unit: str
    nominal: float
    write: Write


def resolve(path: str, project: Project, model: mujoco.MjModel) -> Target:
    """Returns the target of a path such as `joint/elbow/damping`.

    Raises:
        InputError: If the path names nothing; the message lists what exists.
    """
    kind, _, rest = path.partition("/")
    if kind not in _KINDS:
        raise InputError(f"parameter {path}: no kind {kind!r}; write one of {', '.join(_KINDS)}")
    if kind == "world":
        return _world(path, rest, model)
    name, _, field = rest.partition("/")
    available = _names(kind, project, model)
    if name != "*" and name not in available:
        raise InputError(f"parameter {path}: no {kind} {name!r}; there are: {nearest(name, available)}")
    names = available if name == "*" else (name,)
    return _KINDS[kind](path, field, names, name == "*", project, model)


def _names(kind: str, project: Project, model: mujoco.MjModel) -> tuple[str, ...]:
    if kind == "measurement":
        return project.measurement_names
    count = {"joint": model.njnt, "actuator": model.nu, "body": model.nbody, "geom": model.ngeom}[kind]
    names = (getattr(model, kind)(k).name for k in range(1 if kind == "body" else 0, count))
    return tuple(name for name in names if name)


def _unknown(path: str, field: str, fields: tuple[str, ...]) -> InputError:
    return InputError(f"parameter {path}: nothing called {field!r} there; write one of {nearest(field, fields)}")


def _setter(name: str, index: tuple[object, ...], base: Array, factor: bool, constants: bool = False) -> Write:
    """Returns a write of `value` (or `value * base` for a shared factor) to columns of a model field."""

    def write(fields: Fields, values: Array) -> None:
        block = fields.of(name, constants=constants)
        spread = values.reshape((-1,) + (1,) * base.ndim)
        block[(fields.ids[:, None], *index)] = spread * base if factor else np.broadcast_to(spread, (len(values), *base.shape))

    return write


_JOINT = ("damping", "frictionloss", "armature", "stiffness", "offset", "backlash")


def _joint(path: str, field: str, names: tuple[str, ...], shared: bool, project: Project, model: mujoco.MjModel) -> Target:
    if field not in _JOINT:
        raise _unknown(path, field, _JOINT)
    joints = [model.joint(name).id for name in names]
    joints = [j for j in joints if has_one_axis(model, j)]
    if not joints:
        raise InputError(f"parameter {path}: only hinge and slide joints have a {field}")
    hinge = model.jnt_type[joints[0]] == mujoco.mjtJoint.mjJNT_HINGE
    if field in ("offset", "backlash"):
        return _joint_path(path, field, joints, "rad" if hinge else "m", project, model)
    unit = {
        "damping": "N·m·s/rad" if hinge else "N·s/m",
        "frictionloss": "N·m" if hinge else "N",
        "armature": "kg·m²" if hinge else "kg",
        "stiffness": "N·m/rad" if hinge else "N/m",
    }[field]
    name = "jnt_stiffness" if field == "stiffness" else f"dof_{field}"
    index = np.array(joints if field == "stiffness" else [model.jnt_dofadr[j] for j in joints])
    base = getattr(model, name)[index].copy()
    if shared and not base.any():
        raise InputError(f"parameter {path}: a factor on {field}, but the model has none; name one joint instead")
    nominal, unit = (1.0, "1") if shared else (float(base[0]), unit)
    write = _setter(name, (index[None, :],), base, shared, constants=field == "armature")
    return Target(path, "actuator", unit, nominal, write)


def _joint_path(
    path: str, field: str, joints: list[int], unit: str, project: Project, model: mujoco.MjModel
) -> Target:
    servos = [a for a in range(model.nu) if model.actuator_trnid[a, 0] in joints and is_position_servo(model, a)]
    if field == "backlash":
        if not servos:
            raise InputError(f"parameter {path}: backlash needs a position actuator on the joint, it has none")

        def write_backlash(fields: Fields, values: Array) -> None:
            fields.backlash[np.ix_(fields.ids, servos)] = values[:, None]

        return Target(path, "actuator", unit, 0.0, write_backlash)
    names = {model.joint(j).name for j in joints}
    columns = [
        k
        for k, item in enumerate(project.measurements)
        if item.element == "joint" and item.quantity == "position" and item.name in names
    ]

    def write_offset(fields: Fields, values: Array) -> None:
        fields.bias[np.ix_(fields.ids, columns)] += values[:, None]
        fields.target_offset[np.ix_(fields.ids, servos)] -= values[:, None]

    return Target(path, "sensor", unit, 0.0, write_offset)


def is_position_servo(model: mujoco.MjModel, actuator: int) -> bool:
    """Tells whether an actuator is a position servo: force = kp (u - q) - kd v."""
    gain, bias = model.actuator_gainprm[actuator, 0], model.actuator_biasprm[actuator]
    affine = model.actuator_biastype[actuator] == mujoco.mjtBias.mjBIAS_AFFINE
    return bool(affine and bias[1] != 0 and np.isclose(gain, -bias[1]))


_ACTUATOR = ("gain", "kp", "kd", "delay", "limit")


def _actuator(
    path: str, field: str, names: tuple[str, ...], shared: bool, project: Project, model: mujoco.MjModel
) -> Target:
    del project
    if field not in _ACTUATOR:
        raise _unknown(path, field, _ACTUATOR)
    ids = np.array([model.actuator(name).id for name in names])
    if field == "delay":

        def write_delay(fields: Fields, values: Array) -> None:
            fields.delay_s[np.ix_(fields.ids, ids)] += values[:, None]

        return Target(path, "latency", "s", 0.0, write_delay)
    if field == "gain":

        def write_gain(fields: Fields, values: Array) -> None:
            here = np.ix_(fields.ids, ids)
            fields.of("actuator_gainprm", constants=True)[here] *= values[:, None, None]
            fields.of("actuator_biasprm")[here] *= values[:, None, None]

        return Target(path, "actuator", "1", 1.0, write_gain)
    if field == "limit":
        return _limit(path, ids, shared, model)
    return _servo_gain(path, field, ids, shared, model)


def _limit(path: str, ids: np.ndarray, shared: bool, model: mujoco.MjModel) -> Target:
    limited = model.actuator_forcelimited[ids].astype(bool)
    base = np.where(limited, model.actuator_forcerange[ids, 1], 1e6)

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, ids)
        limit = values[:, None] * base if shared else np.broadcast_to(values[:, None], (len(values), len(ids)))
        fields.of("actuator_forcelimited")[here] = 1
        fields.of("actuator_forcerange")[here] = np.stack([-limit, limit], axis=-1)

    return Target(path, "actuator", "1" if shared else "N·m or N", 1.0 if shared else float(base[0]), write)


def _servo_gain(path: str, field: str, ids: np.ndarray, shared: bool, model: mujoco.MjModel) -> Target:
    wrong = [model.actuator(int(a)).name for a in ids if not is_position_servo(model, int(a))]
    if wrong:
        raise InputError(f"parameter {path}: {wrong[0]} is no position actuator; write actuator/{wrong[0]}/gain")
    column = 1 if field == "kp" else 2
    base = -model.actuator_biasprm[ids, column]
    if shared and not base.any():
        raise InputError(f"parameter {path}: a factor on {field}, but the model has none; name one actuator instead")

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, ids)
        value = values[:, None] * base if shared else np.broadcast_to(values[:, None], (len(values), len(ids)))
        fields.of("actuator_biasprm")[(*here, column)] = -value
        if field == "kp":
            fields.of("actuator_gainprm", constants=True)[(*here, 0)] = value

    unit = "1" if shared else {"kp": "N·m/rad or N/m", "kd": "N·m·s/rad or N·s/m"}[field]
    return Target(path, "actuator", unit, 1.0 if shared else float(base[0]), write)


_BODY = ("mass", "com/x", "com/y", "com/z", "inertia")


def _body(path: str, field: str, names: tuple[str, ...], shared: bool, project: Project, model: mujoco.MjModel) -> Target:
    del project
    if field not in _BODY:
        raise _unknown(path, field, _BODY)
    ids = np.array([model.body(name).id for name in names])
    if field == "mass":
        base = model.body_mass[ids].copy()

        def write_mass(fields: Fields, values: Array) -> None:
            here = np.ix_(fields.ids, ids)
            factor = np.broadcast_to(values[:, None] if shared else values[:, None] / base, (len(values), len(ids)))
            fields.of("body_mass", constants=True)[here] = base * factor
            fields.of("body_inertia", constants=True)[here] *= factor[:, :, None]

        return Target(path, "object", "1" if shared else "kg", 1.0 if shared else float(base[0]), write_mass)
    if field == "inertia":

        def write_inertia(fields: Fields, values: Array) -> None:
            fields.of("body_inertia", constants=True)[np.ix_(fields.ids, ids)] *= values[:, None, None]

        return Target(path, "object", "1", 1.0, write_inertia)
    axis = "xyz".index(field[-1])
    if shared:
        raise InputError(f"parameter {path}: a centre belongs to one body; name it")

    def write_centre(fields: Fields, values: Array) -> None:
        fields.of("body_ipos", constants=True)[fields.ids, ids[0], axis] = values

    return Target(path, "object", "m", float(model.body_ipos[ids[0], axis]), write_centre)


_GEOM = ("friction", "stiffness", "size/x", "size/y", "size/z")


def _geom(path: str, field: str, names: tuple[str, ...], shared: bool, project: Project, model: mujoco.MjModel) -> Target:
    del project
    if field not in _GEOM:
        raise _unknown(path, field, _GEOM)
    ids = np.array([model.geom(name).id for name in names])
    if field == "friction":
        return _friction(path, ids, shared, model)
    if field == "stiffness":
        return _stiffness(path, ids, shared, model)
    axis = "xyz".index(field[-1])
    base = model.geom_size[ids, axis].copy()

    def write_size(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, ids)
        size = values[:, None] * base if shared else np.broadcast_to(values[:, None], (len(values), len(ids)))
        fields.of("geom_size")[(*here, axis)] = size
        grown = np.maximum(size / base, 1.0)  # a bound that is too large only costs time
        fields.of("geom_rbound")[here] *= grown
        fields.of("geom_aabb")[(*here, slice(3, 6))] *= grown[:, :, None]

    return Target(path, "object", "1" if shared else "m", 1.0 if shared else float(base[0]), write_size)


def effective_friction(model: mujoco.MjModel, geom: int) -> float:
    """Returns the sliding friction of a geom's contacts: MuJoCo takes the larger of the two geoms'."""
    partners = [
        other
        for other in range(model.ngeom)
        if model.geom_bodyid[other] != model.geom_bodyid[geom]
        and (
            model.geom_contype[other] & model.geom_conaffinity[geom]
            or model.geom_contype[geom] & model.geom_conaffinity[other]
        )
        and model.geom_priority[other] <= model.geom_priority[geom]
    ]
    return float(max(model.geom_friction[g, 0] for g in [geom, *partners]))


def _friction(path: str, ids: np.ndarray, shared: bool, model: mujoco.MjModel) -> Target:
    base = np.array([effective_friction(model, int(g)) for g in ids])

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, ids)
        friction = values[:, None] * base if shared else np.broadcast_to(values[:, None], (len(values), len(ids)))
        fields.of("geom_friction")[(*here, 0)] = friction
        fields.of("geom_priority")[here] = 10  # else the other geom's larger friction would win

    return Target(path, "contact", "1", 1.0 if shared else float(base[0]), write)


def _stiffness(path: str, ids: np.ndarray, shared: bool, model: mujoco.MjModel) -> Target:
    time_s, ratio = model.geom_solref[ids, 0], np.maximum(model.geom_solref[ids, 1], 1e-3)
    width = model.geom_solimp[ids, 1]
    base = np.where(time_s > 0, 1.0 / (width * np.maximum(time_s, 1e-6) * ratio) ** 2, -time_s)

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, ids)
        stiff = values[:, None] * base if shared else np.broadcast_to(values[:, None], (len(values), len(ids)))
        fields.of("geom_solref")[here] = np.stack([-stiff, -2 * ratio * np.sqrt(stiff)], axis=-1)
        fields.of("geom_priority")[here] = 10

    return Target(path, "contact", "1" if shared else "1/s²", 1.0 if shared else float(base[0]), write)


def _world(path: str, field: str, model: mujoco.MjModel) -> Target:
    if field == "gravity":

        def write_gravity(fields: Fields, values: Array) -> None:
            gravity = fields.of("opt.gravity")
            size = np.linalg.norm(gravity[fields.ids], axis=1)
            gravity[fields.ids] *= (values / np.where(size > 0, size, 1.0))[:, None]

        return Target(path, "environment", "m/s²", float(np.linalg.norm(model.opt.gravity)), write_gravity)
    if field not in ("tilt/x", "tilt/y"):
        raise _unknown(path, field, ("tilt/x", "tilt/y", "gravity"))
    about_x = field == "tilt/x"

    def write_tilt(fields: Fields, values: Array) -> None:
        gravity = fields.of("opt.gravity")
        x, y, z = gravity[fields.ids].T
        cos, sin = np.cos(values), np.sin(values)
        # The floor turned by +angle about the axis: gravity, seen from it, turns by -angle.
        turned = [x, cos * y + sin * z, cos * z - sin * y] if about_x else [cos * x - sin * z, y, cos * z + sin * x]
        gravity[fields.ids] = np.stack(turned, axis=1)

    return Target(path, "environment", "rad", 0.0, write_tilt)


_MEASUREMENT = ("bias", "scale", "delay")


def _measurement(
    path: str, field: str, names: tuple[str, ...], shared: bool, project: Project, model: mujoco.MjModel
) -> Target:
    del model, shared
    if field not in _MEASUREMENT:
        raise _unknown(path, field, _MEASUREMENT)
    columns = [project.measurement_names.index(name) for name in names]

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, columns)
        if field == "bias":
            fields.bias[here] += values[:, None]
        elif field == "scale":
            fields.scale[here] *= values[:, None]
        else:
            fields.reading_delay_s[here] += values[:, None]

    unit = {"bias": project.measurement_units[columns[0]], "scale": "1", "delay": "s"}[field]
    return Target(path, "latency" if field == "delay" else "sensor", unit, 1.0 if field == "scale" else 0.0, write)


_KINDS: dict[str, Callable[..., Target]] = {
    "joint": _joint,
    "actuator": _actuator,
    "body": _body,
    "geom": _geom,
    "world": _world,
    "measurement": _measurement,
}


def is_object(model: mujoco.MjModel, body: int) -> bool:
    """Tells whether a body is a thing of its own: carried by a free joint."""
    return free_joint_of(model, body) is not None


def has_one_axis(model: mujoco.MjModel, joint: int) -> bool:
    """Tells whether a joint is a hinge or a slide."""
    return mujoco.mjtJoint(int(model.jnt_type[joint])) in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
