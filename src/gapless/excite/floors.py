"""How low a motion may go: to the floors of the model, or else to a height that was asked for or is assumed."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array, Flags
from gapless.project.records import Project
from gapless.sim.blueprint import editable_spec
from gapless.sim.targets import driven_joint, is_object

CLEARANCE_M = 0.005  # nearer than this is touching
REST_SLACK_M = 0.002  # what is nearer at rest may come so much nearer still: wheels are polygons, servos sag
MIN_FLOOR_NORMAL_Z = 0.7  # a plane is a floor if its normal is within 45 degrees of upwards, else a wall
FAR_M = 1e6  # distances beyond count as this
GROUND = "gapless: z = 0"  # name of the plane that heights are measured from


@dataclass(frozen=True)
class Floor:
    """A plane that moving geoms stay above."""

    name: str  # what it is, for messages
    plane: int  # its geom
    least_m: Array  # (ngeom,) how near each geom may come to it [m]; minus infinity for those that are not held to it

    def find_geom_below(self, model: mujoco.MjModel, data: mujoco.MjData) -> int | None:
        """Returns a geom that is nearer than it may be; None where there is none."""
        normal = data.geom_xmat[self.plane].reshape(3, 3)[:, 2]
        centres = (data.geom_xpos - data.geom_xpos[self.plane]) @ normal
        for g in np.flatnonzero(centres - model.geom_rbound < self.least_m):  # spheres first: they cost little
            if measure_distance(model, data, int(g), self.plane) < self.least_m[g]:
                return int(g)
        return None


def compile_with_ground(project: Project) -> mujoco.MjModel:
    """Returns a project's model with one more plane, `GROUND`, at z = 0, that collides with nothing."""
    spec = editable_spec(project)
    size = [1.0, 1.0, 1.0]
    spec.worldbody.add_geom(name=GROUND, type=mujoco.mjtGeom.mjGEOM_PLANE, size=size, contype=0, conaffinity=0)
    return spec.compile()


def measure_distance(model: mujoco.MjModel, data: mujoco.MjData, geom: int, plane: int) -> float:
    """Returns how far the lowest point of a geom is above a plane [m]; `data` holds the positions."""
    return mujoco.mj_geomDistance(model, data, geom, plane, FAR_M, None)


def find_floors(model: mujoco.MjModel, data: mujoco.MjData, lowest_m: float | None) -> tuple[tuple[Floor, ...], str]:
    """Returns what a motion must stay above, and what was assumed for it, as a sentence.

    These are the planes that never move, and the height that was asked for. Where neither is a floor, it is the lowest
    point of the robot's base. Links on the base may then be as low as they are at rest, where `data` has positions.
    What floats freely may lie or roll on the planes of the model.

    Args:
        model: From `compile_with_ground`.
        data: Holds the positions at rest.
        lowest_m: The height that was asked for [m]; None for none.
    """
    ground = model.geom(GROUND).id
    is_plane, is_moving = model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE, model.body_weldid[model.geom_bodyid] != 0
    floating = np.array([is_object(model, int(model.body_rootid[b])) for b in model.geom_bodyid], dtype=bool)

    def make_floor(name: str, plane: int, held: Flags, height: float = 0.0) -> Floor:
        """Returns a floor with the room that is there at rest: what is nearer than the clearance may stay as near."""
        least = np.full(model.ngeom, -np.inf)
        for g in np.flatnonzero(held):
            at_rest = measure_distance(model, data, int(g), plane) - REST_SLACK_M
            least[g] = -model.geom_rbound[g] if floating[g] else min(height + CLEARANCE_M, at_rest)
        return Floor(name, plane, least)

    floors, names = list[Floor](), list[str]()
    for g in np.flatnonzero(is_plane & ~is_moving & (np.arange(model.ngeom) != ground)):
        normal, name = data.geom_xmat[g].reshape(3, 3)[:, 2], model.geom(g).name or "the floor"
        above = (data.geom_xpos - data.geom_xpos[g]) @ normal > 0
        floors.append(make_floor(name, int(g), is_moving & ~is_plane & above))
        names += [name] if normal[2] > MIN_FLOOR_NORMAL_Z else []
    if names and lowest_m is None:
        return tuple(floors), f"nothing below what the model has as a floor: {', '.join(names)}"
    held = is_moving & ~is_plane & ~floating
    height, text = _find_height(model, data, lowest_m, held)
    shown = f"z = {round(height, 2) + 0.0:.2f} m"  # never -0.00
    floors.append(make_floor(f"{shown} (--lowest sets it)", ground, held, height))
    also = f", nor below {', '.join(names)}" if names else "" if lowest_m is None else " (no floor in the model)"
    loose = sorted({body_name(model, int(model.body_rootid[model.geom_bodyid[g]])) for g in np.flatnonzero(floating)})
    free = f"; {', '.join(loose)} floats freely and is not held to it" if loose else ""
    return tuple(floors), f"nothing below {shown}, {text}{also}{free}"


def _find_height(model: mujoco.MjModel, data: mujoco.MjData, lowest_m: float | None, held: Flags) -> tuple[float, str]:
    """Returns the height that was asked for, or that of the base, if the robot is above it at rest.

    Links on the base may be below it: they cannot be anywhere else. Where a height was asked for, these are only those
    that are no lower than the base.
    """
    if lowest_m is not None and not np.isfinite(lowest_m):
        raise InputError(f"--lowest {lowest_m}: write a height in metres, such as 0")
    base, ground = find_base_height(model, data), model.geom(GROUND).id
    heights = {int(g): measure_distance(model, data, int(g), ground) for g in np.flatnonzero(held)}
    first = model.body_weldid[model.body_parentid[model.body_weldid[model.geom_bodyid]]] == 0  # the first that move
    others = {g: z for g, z in heights.items() if not (first[g] and (lowest_m is None or z >= base))}
    lowest = min(others, key=lambda g: others[g], default=None)
    height = base if lowest_m is None else float(lowest_m)
    if lowest is not None and others[lowest] < height - REST_SLACK_M:
        body, low = body_name(model, int(model.geom_bodyid[lowest])), f"{others[lowest]:.2f} m"
        if lowest_m is None:
            raise InputError(
                f"the model has no floor, and at rest {body} ({low}) is lower than the base ({base:.2f} m): "
                "give the height that nothing may go below: --lowest METRES, the height z in the world of the model"
            )
        text = f"at rest {body} is at {low}, lower than that: give a lower height, or begin elsewhere"
        raise InputError(f"--lowest {lowest_m:g}: {text}")
    assumed = "the lowest point of its base (no floor in the model; --lowest sets it)"
    return height, assumed if lowest_m is None else "as asked for"


def find_base_height(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Returns how high the base of the robot is: its origin, or the lowest point of what is fixed there [m].

    The base is what carries the driven joints and never moves: bodies of the same tree, and, as compilers of URDF put
    the geoms of a fixed base into the world, geoms of the world around the first body that moves.
    """
    driven = [joint for a in range(model.nu) if (joint := driven_joint(model, a)) is not None]
    joints = driven or list(range(model.njnt))
    roots = {int(model.body_rootid[model.jnt_bodyid[joint]]) for joint in joints}
    heights = [float(data.xpos[root, 2]) for root in roots]
    is_fixed = model.body_weldid[model.geom_bodyid] == 0
    for g in np.flatnonzero(is_fixed & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)):
        body = int(model.geom_bodyid[g])
        away = [float(np.linalg.norm(data.geom_xpos[g] - data.xpos[root])) for root in roots]
        around = body == 0 and min(away, default=np.inf) <= model.geom_rbound[g]
        if around or int(model.body_rootid[body]) in roots:
            heights.append(measure_distance(model, data, int(g), model.geom(GROUND).id))
    return round(min(heights, default=0.0), 6) + 0.0


def body_name(model: mujoco.MjModel, body: int) -> str:
    """Returns the name of a body, or its number."""
    return model.body(body).name or f"body {body}"
