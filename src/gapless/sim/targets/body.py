"""What can be wrong in a body, and what hangs on it."""

import numpy as np
from scipy.spatial.transform import Rotation

from gapless.core.signal import Array
from gapless.sim.targets.target import Fields, Index, NamedElements, Target, size_target


def body_target(named: NamedElements) -> Target:
    """Returns a target of bodies, or of sites: what hangs there."""
    model, first, field = named.model, int(named.ids[0]), named.field
    if named.kind == "site":
        return _payload_target(named, int(model.site_bodyid[first]), model.site_pos[first].copy())
    if field == "payload":
        return _payload_target(named, first, model.body_ipos[first].copy())
    if field == "mass":
        return _mass_target(named)
    if field == "length":
        return _length_target(named)
    if field.startswith("spread/"):
        return _spread_target(named, first, "xyz".index(field[-1]))

    def write_inertia(fields: Fields, values: Array) -> None:
        fields.multiply(fields.ids, named.ids, values[:, None], "body_inertia", constants=True)

    if field == "inertia":
        return Target(named.path, "object", "1", 1.0, write_inertia)
    named.require_one("a centre")
    axis = "xyz".index(field[-1])

    def write_centre(fields: Fields, values: Array) -> None:
        fields.of("body_ipos", constants=True)[fields.ids, first, axis] = values

    return Target(named.path, "object", "m", float(model.body_ipos[first, axis]), write_centre)


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
