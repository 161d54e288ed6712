"""What can be wrong in a joint, in a body, and in what hangs on it."""

from dataclasses import replace

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from gapless.core.signal import Array
from gapless.sim.targets.drive import driven_joint, has_one_axis, is_position_servo
from gapless.sim.targets.target import Fields, Index, NamedElements, Target, field_target, size_target

LOAD_STIFFNESS = 1e-4  # stiffness that a load needs, as a share of it per rad or m: too soft to matter
MIN_LEVER_M = 0.005  # of a body's centre from its joint: nearer than this it has no far end
_UNITS = {  # field -> units of a hinge and of a slide
    "damping": "N·m·s/rad, N·s/m",
    "frictionloss": "N·m, N",
    "armature": "kg·m², kg",
    "stiffness": "N·m/rad, N/m",
    "load": "N·m, N",
    "offset": "rad, m",
    "backlash": "rad, m",
    "creep": "1",
}


def joint_target(named: NamedElements) -> Target:
    """Returns a target of hinge and slide joints."""
    model, field, joints = named.model, named.field, named.select(has_one_axis)
    if not len(joints):
        raise named.error(f"only hinge and slide joints have a {field}: name one of these")
    on_joints = replace(named, ids=joints)
    unit = on_joints.choose_unit(_UNITS[field])
    on_dofs = replace(named, ids=model.jnt_dofadr[joints].astype(np.intp))
    if field in ("offset", "backlash"):
        return _servo_target(on_joints, unit)
    if field == "creep":
        return _creep_target(on_dofs)
    if field in ("stiffness", "load"):
        return _spring_target(on_joints, unit)
    return field_target(on_dofs, unit, f"dof_{field}", constants=field == "armature")


def _creep_target(named: NamedElements) -> Target:
    """Returns the target of how much joints creep that friction should hold, as a factor of what the engine lets them.

    The engine's friction is soft: below its limit it lets a joint move at a speed of load * (1 - d) / d times a
    constant, d = solimpfriction[0]. The factor is on (1 - d) / d; a real joint that sticks is near 0.
    """
    impedance = named.model.dof_solimp[named.ids, :2].copy()
    softness = (1 - impedance) / impedance

    def write(fields: Fields, values: Array) -> None:
        here = np.ix_(fields.ids, named.ids)
        fields.of("dof_solimp")[(*here, slice(0, 2))] = 1 / (1 + values[:, None, None] * softness)

    return Target(named.path, "actuator", "1", 1.0, write)


def _spring_target(named: NamedElements, unit: str) -> Target:
    """Returns the target of a spring's stiffness, or of a constant load: a cable, a spring that was left out.

    The engine has springs, force = k (rest - q), and a load is one that is far stretched: rest = load / k. A joint
    without stiffness gets one of `LOAD_STIFFNESS`.
    """
    model, is_load = named.model, named.field == "load"
    base = model.jnt_stiffness[named.ids].copy()
    rest = model.qpos_spring[model.jnt_qposadr[named.ids]].copy()

    def write_sizes(fields: Fields, here: Index, sizes: Array) -> None:
        stiffness, middle = fields.of("jnt_stiffness"), fields.of("qpos_spring")
        there = (here[0], model.jnt_qposadr[here[1]])
        load = stiffness[here] * (middle[there] - rest)
        load, hardness = (sizes, stiffness[here]) if is_load else (load, sizes)
        hardness = np.maximum(hardness, LOAD_STIFFNESS * np.abs(load))
        stiffness[here] = hardness
        middle[there] = rest + np.divide(load, hardness, out=np.zeros(load.shape), where=hardness > 0)

    if is_load:
        return size_target(named, "environment", unit, np.zeros(len(base)), write_sizes)
    return size_target(named, "actuator", unit, base, write_sizes)


def _servo_target(named: NamedElements, unit: str) -> Target:
    """Returns the target of play before a joint, or of an encoder's zero, with which reading and servo both shift."""
    model = named.model
    on_joints = [driven_joint(model, a) in named.ids and is_position_servo(model, a) for a in range(model.nu)]
    servos = np.flatnonzero(on_joints)
    gear = model.actuator_gear[servos, 0].copy()  # the actuator's travel per joint travel
    encoders = {("joint", model.joint(int(j)).name, "position") for j in named.ids}
    measured = [(item.element, item.name, item.quantity) for item in named.project.measurements]
    columns = np.flatnonzero([item in encoders for item in measured])

    def write_backlash(fields: Fields, values: Array) -> None:
        fields.backlash[np.ix_(fields.ids, servos)] = values[:, None] * np.abs(gear)

    def write_offset(fields: Fields, values: Array) -> None:
        fields.bias[np.ix_(fields.ids, columns)] += values[:, None]
        fields.target_offset[np.ix_(fields.ids, servos)] -= values[:, None] * gear

    if named.field == "offset":
        return Target(named.path, "sensor", unit, 0.0, write_offset)
    if not len(servos):
        raise named.error("backlash needs a position actuator on the joint, it has none: add one, or leave this out")
    return Target(named.path, "actuator", unit, 0.0, write_backlash)


def body_target(named: NamedElements) -> Target:
    """Returns a target of bodies, or of sites: what hangs there."""
    model, first, field = named.model, int(named.ids[0]), named.field
    if named.kind == "site":
        return _payload_target(named, int(model.site_bodyid[first]), model.site_pos[first].copy())
    if field == "payload":
        return _payload_target(named, first, model.body_ipos[first].copy())
    if field == "tip_payload":
        tip = find_tip(model, first)
        if tip is None:
            raise named.error("its centre is at its joint, or it has no geoms: use `payload`, a mass at the centre")
        return _payload_target(named, first, tip)
    if field == "mass":
        return _mass_target(named)
    if field == "length":
        return _length_target(named)
    if field.startswith("spread/"):
        return _spread_target(named, first, "xyz".index(field[-1]))
    if field.startswith("com/"):
        named.require_one("a centre")
        return field_target(named, "m", "body_ipos", "xyz".index(field[-1]), constants=True)

    def write_inertia(fields: Fields, values: Array) -> None:
        fields.multiply(fields.ids, named.ids, values[:, None], "body_inertia", constants=True)

    return Target(named.path, "object", "1", 1.0, write_inertia)


def _spread_target(named: NamedElements, body: int, axis: int) -> Target:
    """Returns the target of a factor on how far mass reaches from the centre along an axis of the body's frame.

    With S = trace(I) / 2 - I the second moments of mass, an axis stretched by D = diag(f, 1, 1) has D S D: whatever
    the factors, some distribution of mass has these inertias.
    """
    named.require_one("a spread")

    def write(fields: Fields, values: Array) -> None:
        here = (fields.ids[values != 1.0], body)
        frame, inertia = (fields.of(name, constants=True) for name in ("body_iquat", "body_inertia"))
        tensor = inertia_tensor(frame[here], inertia[here])
        moments = 0.5 * np.trace(tensor, axis1=1, axis2=2)[:, None, None] * np.eye(3) - tensor
        moments[:, axis, :] *= values[values != 1.0, None]
        moments[:, :, axis] *= values[values != 1.0, None]
        tensor = np.trace(moments, axis1=1, axis2=2)[:, None, None] * np.eye(3) - moments
        frame[here], inertia[here] = principal_inertia(tensor)

    return Target(named.path, "object", "1", 1.0, write, turn=1)


def _mass_target(named: NamedElements) -> Target:
    """Returns the target of a mass; the inertia scales along, as if the density were wrong."""
    base = named.model.body_mass[named.ids].copy()
    if not named.shared and base[0] == 0:
        raise named.error("this body has no mass; name one that has")

    def write_sizes(fields: Fields, here: Index, sizes: Array) -> None:
        mass = fields.of("body_mass", constants=True)
        factor = np.divide(sizes, mass[here], out=np.ones(sizes.shape), where=mass[here] > 0)
        mass[here] = sizes
        fields.multiply(fields.ids, named.ids, factor, "body_inertia", constants=True)

    return size_target(named, "object", "kg", base, write_sizes)


def _length_target(named: NamedElements) -> Target:
    """Returns the target of how long a body is, its mass kept: the centre moves, and the inertia with its square."""
    joints = [int(named.model.body_jntadr[body]) for body in named.ids]
    pivot = np.stack([named.model.jnt_pos[j] if j >= 0 else np.zeros(3) for j in joints])

    def write(fields: Fields, values: Array) -> None:
        here, factor = np.ix_(fields.ids, named.ids), values[:, None, None]
        centre, inertia = (fields.of(name, constants=True) for name in ("body_ipos", "body_inertia"))
        centre[here] = pivot + factor * (centre[here] - pivot)
        inertia[here] *= factor**2

    return Target(named.path, "object", "1", 1.0, write, turn=1)


def _payload_target(named: NamedElements, body: int, spot: Array) -> Target:
    """Returns the target of a point mass that is carried at a spot of a body's frame, (3,) [m]."""
    named.require_one("a payload")
    if named.model.body_mass[body] == 0:
        raise named.error("this body has no mass of its own; name one that has")

    def write(fields: Fields, values: Array) -> None:
        here = (fields.ids[values != 0], body)
        names = ("body_mass", "body_ipos", "body_iquat", "body_inertia")
        mass, centre, frame, inertia = (fields.of(name, constants=True) for name in names)
        both = add_point_mass(mass[here], centre[here], frame[here], inertia[here], values[values != 0], spot)
        mass[here], centre[here], frame[here], inertia[here] = both

    return Target(named.path, "object", "kg", 0.0, write, turn=2)


def find_tip(model: mujoco.MjModel, body: int) -> Array | None:
    """Returns the far end of a body in its frame, (3,) [m]: where what it carries hangs; None where it has none.

    It lies on the line from the body's joint, or its origin, through its centre of mass, as far as its geoms reach
    along it; round ends do not count.
    """
    joint = int(model.body_jntadr[body])
    anchor = model.jnt_pos[joint] if joint >= 0 else np.zeros(3)
    line = model.body_ipos[body] - anchor
    length = float(np.linalg.norm(line))
    geoms = [g for g in range(model.ngeom) if model.geom_bodyid[g] == body]
    if length < MIN_LEVER_M or not geoms:
        return None
    line = line / length
    return anchor + line * max(float((model.geom_pos[g] - anchor) @ line) + _reach_along(model, g, line) for g in geoms)


def _reach_along(model: mujoco.MjModel, geom: int, line: Array) -> float:
    """Returns how far a geom reaches from its centre along a line of its body's frame [m], without round ends."""
    frame = np.zeros(9)
    mujoco.mju_quat2Mat(frame, model.geom_quat[geom])
    along = np.abs(frame.reshape(3, 3).T @ line)
    if model.geom_type[geom] in (int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_CYLINDER)):
        return float(along[2] * model.geom_size[geom, 1])
    half = model.geom_aabb[geom, 3:]
    return float(half[int(np.argmax(along))] * along.max())


def inertia_tensor(frame: Array, inertia: Array) -> Array:
    """Returns inertia tensors (num_worlds, 3, 3) of inertial frames (num_worlds, 4) and principal inertias."""
    axes = Rotation.from_quat(frame, scalar_first=True).as_matrix()
    return np.einsum("nij,nj,nkj->nik", axes, inertia, axes)


def principal_inertia(tensor: Array) -> tuple[Array, Array]:
    """Returns inertial frames (num_worlds, 4), wxyz, and principal inertias (num_worlds, 3) of inertia tensors."""
    values, vectors = np.linalg.eigh(tensor)
    vectors[:, :, 2] *= np.linalg.det(vectors)[:, None]  # right-handed
    return Rotation.from_matrix(vectors).as_quat(scalar_first=True), values


def add_point_mass(
    mass: Array, centre: Array, frame: Array, inertia: Array, extra: Array, spot: Array
) -> tuple[Array, Array, Array, Array]:
    """Returns mass, centre, inertial frame and principal inertias of bodies with a point mass added.

    Both parts are moved to the common centre by the parallel axis theorem; what they then add up to is as possible,
    physically, as the body was. Shapes are (num_worlds,) [kg] of `mass` and `extra`, (num_worlds, 3) of `centre` [m]
    and principal `inertia` [kg·m²], (num_worlds, 4) of `frame`, wxyz; `spot` is (3,) [m]; all in the body's frame.
    """
    total = mass + extra
    common = (mass[:, None] * centre + extra[:, None] * spot) / total[:, None]
    tensor = inertia_tensor(frame, inertia)
    for weight, place in ((mass, centre), (extra, np.broadcast_to(spot, centre.shape))):
        arm = place - common
        square = np.sum(arm**2, axis=1)[:, None, None] * np.eye(3)
        tensor += weight[:, None, None] * (square - arm[:, :, None] * arm[:, None, :])
    return total, common, *principal_inertia(tensor)
