"""How low a motion may go: to the floors of the model, or else to a height that was asked for or is assumed."""

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.targets import driven_joint, is_object

CLEARANCE_M = 0.005  # nearer than this is touching
REST_SLACK_M = 0.002  # what is nearer at rest may come so much nearer still: wheels are polygons, servos sag
MIN_FLOOR_NORMAL_Z = 0.7  # a plane is a floor if its normal is within 45 degrees of upwards, else a wall
UP = np.array([0.0, 0.0, 1.0])

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class GeomExtents:
    """Where the surfaces of geoms are, not only their centres."""

    model: mujoco.MjModel  # the model
    hulls: dict[int, Array]  # geom -> (num_vertices, 3) corners of its mesh's convex hull, in the frame of the geom [m]

    @classmethod
    def of(cls, model: mujoco.MjModel) -> "GeomExtents":
        """Returns the extents of all geoms of a model."""
        has_mesh = np.isin(model.geom_type, (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_SDF))
        meshes = np.flatnonzero(has_mesh & (model.geom_dataid >= 0))
        return cls(model, {int(g): _mesh_corners(model, int(model.geom_dataid[g])) for g in meshes})

    def lowest_point(self, data: mujoco.MjData, geom: int, normal: Array) -> float:
        """Returns the least of `point . normal` over the points of a geom [m]; `data` holds the positions."""
        model = self.model
        along = data.geom_xmat[geom].reshape(3, 3).T @ normal  # the direction in the geom's own frame
        centre, size = float(data.geom_xpos[geom] @ normal), model.geom_size[geom]
        match mujoco.mjtGeom(int(model.geom_type[geom])):
            case mujoco.mjtGeom.mjGEOM_SPHERE:
                reach = size[0]
            case mujoco.mjtGeom.mjGEOM_CAPSULE:
                reach = size[0] + size[1] * abs(along[2])
            case mujoco.mjtGeom.mjGEOM_CYLINDER:
                reach = size[0] * np.hypot(along[0], along[1]) + size[1] * abs(along[2])
            case mujoco.mjtGeom.mjGEOM_ELLIPSOID:
                reach = np.linalg.norm(size * along)
            case mujoco.mjtGeom.mjGEOM_BOX:
                reach = size @ np.abs(along)
            case _ if geom in self.hulls:
                reach = -(self.hulls[geom] @ along).min()
            case _:
                reach = model.geom_rbound[geom]
        return float(centre - reach)


@dataclass(frozen=True)
class Floor:
    """A plane that moving geoms stay above."""

    name: str  # what it is, for messages
    point: Array  # (3,) a point of it [m]
    normal: Array  # (3,) its normal, of length 1
    least_m: Array  # (ngeom,) how near each geom may come to it [m]; minus infinity for those that are not held to it
    by_centre: Mask  # (ngeom,) geoms of which only the centre counts: of what floats, and may roll or lie on the floor

    @classmethod
    def at_rest(
        cls, name: str, extents: GeomExtents, data: mujoco.MjData, plane: tuple[Array, Array], held: Mask, rolls: Mask
    ) -> "Floor":
        """Returns a floor with the room that is there at rest: what is nearer than the clearance may stay as near."""
        point, normal = plane
        least = np.full(extents.model.ngeom, -np.inf)
        for g in np.flatnonzero(held):
            height = extents.lowest_point(data, int(g), normal) - point @ normal
            least[g] = 0.0 if rolls[g] else min(CLEARANCE_M, height - REST_SLACK_M)
        return cls(name, point, normal, least, rolls)

    def find_geom_below(self, extents: GeomExtents, data: mujoco.MjData) -> int | None:
        """Returns a geom that is nearer than it may be; None where there is none."""
        heights = (data.geom_xpos - self.point) @ self.normal
        reach = np.where(self.by_centre, 0.0, extents.model.geom_rbound)
        zero = float(self.point @ self.normal)
        for g in np.flatnonzero(heights - reach < self.least_m):  # spheres around geoms first: they cost little
            if self.by_centre[g] or extents.lowest_point(data, int(g), self.normal) - zero < self.least_m[g]:
                return int(g)
        return None


def find_floors(extents: GeomExtents, data: mujoco.MjData, lowest_m: float | None) -> tuple[tuple[Floor, ...], str]:
    """Returns what a motion must stay above, and what was assumed for it, as a sentence.

    These are the planes that never move, and the height that was asked for. Where neither is a floor, it is the lowest
    point of the robot's base. Links on the base may then be as low as they are at rest, where `data` has positions.
    """
    model = extents.model
    is_plane = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE
    moving = _is_moving(model) & ~is_plane
    floating = np.array([is_object(model, int(model.body_rootid[b])) for b in model.geom_bodyid], dtype=bool)
    floors, names = [], []
    for g in np.flatnonzero(is_plane & ~_is_moving(model)):
        plane = data.geom_xpos[g].copy(), data.geom_xmat[g].reshape(3, 3)[:, 2].copy()
        name = model.geom(g).name or "the floor"
        above = moving & ((data.geom_xpos - plane[0]) @ plane[1] > 0)
        floors.append(Floor.at_rest(name, extents, data, plane, above, floating))
        names += [name] if plane[1][2] > MIN_FLOOR_NORMAL_Z else []
    if names and lowest_m is None:
        return tuple(floors), f"nothing below what the model has as a floor: {', '.join(names)}"
    held = moving & ~floating
    height, text = _find_height(extents, data, lowest_m, held)
    plane = np.array([0.0, 0.0, height]), UP
    shown = f"z = {round(height, 2) + 0.0:.2f} m"  # never -0.00
    floors.append(Floor.at_rest(f"{shown} (--lowest sets it)", extents, data, plane, held, floating))
    also = f", nor below {', '.join(names)}" if names else "" if lowest_m is None else " (no floor in the model)"
    loose = sorted({body_name(model, int(model.body_rootid[model.geom_bodyid[g]])) for g in np.flatnonzero(floating)})
    free = f"; {', '.join(loose)} floats freely and is not held to it" if loose else ""
    return tuple(floors), f"nothing below {shown}, {text}{also}{free}"


def _find_height(extents: GeomExtents, data: mujoco.MjData, lowest_m: float | None, held: Mask) -> tuple[float, str]:
    """Returns the height that was asked for, or that of the base, if the robot is above it at rest.

    Links on the base may be below it: they cannot be anywhere else. Where a height was asked for, these are only those
    that are no lower than the base.
    """
    base, first = base_height(extents, data), _is_first_link(extents.model)
    if lowest_m is None:
        height, body = _find_lowest(extents, data, held & ~first)
        if height < base - REST_SLACK_M:
            raise InputError(
                f"the model has no floor, and at rest {body} ({height:.2f} m) is lower than the base ({base:.2f} m): "
                "give the height that nothing may go below: --lowest METRES, the height z in the world of the model"
            )
        return base, "the lowest point of its base (no floor in the model; --lowest sets it)"
    if not np.isfinite(lowest_m):
        raise InputError(f"--lowest {lowest_m}: write a height in metres, such as 0")
    on_base = np.array([is_first and extents.lowest_point(data, g, UP) >= base for g, is_first in enumerate(first)])
    height, body = _find_lowest(extents, data, held & ~on_base)
    if height < lowest_m - REST_SLACK_M:
        text = f"at rest {body} is at {height:.2f} m, lower than that: give a lower height, or begin elsewhere"
        raise InputError(f"--lowest {lowest_m:g}: {text}")
    return float(lowest_m), "as asked for"


def base_height(extents: GeomExtents, data: mujoco.MjData) -> float:
    """Returns how high the base of the robot is: its origin, or the lowest point of what is fixed there [m].

    The base is what carries the driven joints and never moves: bodies of the same tree, and, as compilers of URDF put
    the geoms of a fixed base into the world, geoms of the world around the first body that moves.
    """
    model = extents.model
    driven = [joint for a in range(model.nu) if (joint := driven_joint(model, a)) is not None]
    joints = driven or list(range(model.njnt))
    roots = {int(model.body_rootid[model.jnt_bodyid[joint]]) for joint in joints}
    heights = [float(data.xpos[root, 2]) for root in roots]
    for g in np.flatnonzero(~_is_moving(model) & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)):
        body = int(model.geom_bodyid[g])
        away = [float(np.linalg.norm(data.geom_xpos[g] - data.xpos[root])) for root in roots]
        around = body == 0 and min(away, default=np.inf) <= model.geom_rbound[g]
        if around or int(model.body_rootid[body]) in roots:
            heights.append(extents.lowest_point(data, int(g), UP))
    return round(min(heights, default=0.0), 6) + 0.0


def _find_lowest(extents: GeomExtents, data: mujoco.MjData, some: Mask) -> tuple[float, str]:
    """Returns the lowest point of some geoms [m] and the name of its body; infinity where there are none."""
    found = [(extents.lowest_point(data, int(g), UP), int(g)) for g in np.flatnonzero(some)]
    height, geom = min(found, default=(np.inf, 0))
    return height, body_name(extents.model, int(extents.model.geom_bodyid[geom])) if found else ""


def _is_first_link(model: mujoco.MjModel) -> Mask:
    """Tells which geoms belong to links on the base: the first that move."""
    return model.body_weldid[model.body_parentid[model.body_weldid[model.geom_bodyid]]] == 0


def _is_moving(model: mujoco.MjModel) -> Mask:
    """Tells which geoms belong to a body that moves."""
    return model.body_weldid[model.geom_bodyid] != 0


def body_name(model: mujoco.MjModel, body: int) -> str:
    """Returns the name of a body, or its number."""
    return model.body(body).name or f"body {body}"


def _mesh_corners(model: mujoco.MjModel, mesh: int) -> Array:
    """Returns the corners of a mesh's convex hull, which hold all its lowest points; all corners of a flat one."""
    begin = int(model.mesh_vertadr[mesh])
    corners = np.array(model.mesh_vert[begin : begin + int(model.mesh_vertnum[mesh])], dtype=np.float64)
    try:
        return corners[ConvexHull(corners).vertices]
    except (QhullError, ValueError):
        return corners
