"""What a motion must not touch, and how low it may go.

It may touch what it touches, or nearly touches, at rest. It stays above the planes of the model, or else above a height
that was asked for or is assumed.
"""

from dataclasses import dataclass
from itertools import combinations

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array, Flags
from gapless.excite.knowledge import PriorKnowledge
from gapless.sim.blueprint import editable_spec
from gapless.sim.targets import driven_joint, is_object

CLEARANCE_M = 0.005  # nearer than this is touching
REST_SLACK_M = 0.002  # what is nearer at rest may come so much nearer still: wheels are polygons, servos sag
MIN_FLOOR_NORMAL_Z = 0.7  # a plane is a floor if its normal is within 45 degrees of upwards, else a wall
FAR_M = 1e6  # distances beyond count as this
GROUND = "gapless: z = 0"  # name of the plane that heights are measured from
MAX_PAIRS_NAMED = 4  # of bodies that pass through each other
SEARCH_FRAMES = 250  # of a motion that is looked at while many are compared

Pair = tuple[int, int]


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


@dataclass(frozen=True)
class Workspace:
    """Tells what bodies touch in given positions. Bodies that are fixed to each other count as one.

    Things (bodies with a free joint) may touch each other and what never moves.
    """

    model: mujoco.MjModel  # the model with a plane at z = 0, and a margin around every geom
    allowed: frozenset[Pair]  # pairs of bodies that may touch
    free: frozenset[int]  # things that may touch anything: those that the wanted parameters are about
    floors: tuple[Floor, ...]  # what moving geoms stay above
    assumed: tuple[str, ...]  # what was assumed of floors and collisions, as sentences; that of floors first

    @classmethod
    def of(cls, known: PriorKnowledge, rest: Array, lowest_m: float | None = None) -> "Workspace":
        """Returns the workspace of a project whose positions at rest are `rest`, (nq,).

        `lowest_m` is the height that nothing may go below [m]; None for the model's floor, or else that of the base.
        """
        spec = editable_spec(known.project)
        plane = {"type": mujoco.mjtGeom.mjGEOM_PLANE, "size": [1.0, 1.0, 1.0], "contype": 0, "conaffinity": 0}
        spec.worldbody.add_geom(name=GROUND, **plane)
        model = spec.compile()
        model.geom_margin[:] = np.maximum(model.geom_margin, CLEARANCE_M)
        data = mujoco.MjData(model)
        pairs = _find_touching(model, data, rest)
        free: set[int] = set()
        for body in range(1, model.nbody):
            geoms = [model.geom(g).name for g in np.flatnonzero(model.geom_bodyid == body)]
            names = (f"body/{model.body(body).name}/", *(f"geom/{name}/" for name in geoms if name))
            if is_object(model, body) and any(t.startswith((*names, "body/*/", "geom/*/")) for t in known.wanted):
                free.add(body)
        floors, assumed = _find_floors(model, data, lowest_m)
        through = _describe_uncollided(known.blueprint.model)
        return cls(model, frozenset(pairs), frozenset(free), floors, (assumed, *through))

    @property
    def may_touch(self) -> tuple[str, ...]:
        """Names of the things that the motion may touch."""
        return tuple(_name_bodies(self.model, body) for body in sorted(self.free))

    def find_fault(self, qpos: Array, max_frames: int | None = None) -> str | None:
        """Returns what is touched that must not be, in positions (num_steps, nq); None where nothing is.

        `max_frames` limits how many are looked at, evenly spread; None for all.
        """
        every = 1 if max_frames is None else max(1, len(qpos) // max_frames)
        model, data = self.model, mujoco.MjData(self.model)
        for row in qpos[::every]:
            for pair in _find_touching(model, data, row):
                others = [body for body in pair if not is_object(model, body)]
                things_alone = len(others) < len(pair) and not any(others)
                if not (pair in self.allowed or things_alone or self.free.intersection(pair)):
                    return f"{_name_bodies(model, *pair)} would touch"
            for floor in self.floors:
                geom = floor.find_geom_below(model, data)
                if geom is not None:
                    return f"{_name_bodies(model, int(model.geom_bodyid[geom]))} would go below {floor.name}"
        return None


def _name_bodies(model: mujoco.MjModel, *bodies: int) -> str:
    names = ["what is fixed" if body == 0 else model.body(body).name or f"body {body}" for body in bodies]
    return " and ".join(names)


def _find_touching(model: mujoco.MjModel, data: mujoco.MjData, qpos: Array) -> set[Pair]:
    """Returns the pairs of bodies that touch; `data` is left with the positions of everything."""
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)
    if not data.ncon:
        return set()
    bodies = model.body_weldid[model.geom_bodyid[data.contact.geom]]
    near = data.contact.dist < CLEARANCE_M
    return {(int(min(a, b)), int(max(a, b))) for a, b in bodies[near]}


def _describe_uncollided(model: mujoco.MjModel) -> tuple[str, ...]:
    """Returns, as a sentence, which bodies pass through each other in the model; nothing where all collide.

    Neighbours in the tree are left out, and pairs that the model excludes by name: they are meant to.
    """
    bodies = model.body_weldid[model.geom_bodyid]
    parents = model.body_weldid[model.body_parentid]
    excluded = {frozenset((int(s) >> 16, int(s) & 0xFFFF)) for s in model.exclude_signature}
    masks = model.geom_contype[:, None] & model.geom_conaffinity
    collide = (masks | masks.T) != 0
    collide[model.pair_geom1, model.pair_geom2] = collide[model.pair_geom2, model.pair_geom1] = True
    pairs = [
        (int(a), int(b))
        for a, b in combinations(np.unique(bodies), 2)
        if parents[b] != a and frozenset((int(a), int(b))) not in excluded
    ]
    through = [(a, b) for a, b in pairs if not collide[np.ix_(bodies == a, bodies == b)].any()]
    if not through:
        return ()
    if len(through) == len(pairs):
        kept = "nothing keeps the robot clear of itself and of what is around it"
        return (f"no two parts collide in the model, so {kept}",)
    more = f" and {len(through) - MAX_PAIRS_NAMED} more" if len(through) > MAX_PAIRS_NAMED else ""
    names = ", ".join(_name_bodies(model, *pair) for pair in through[:MAX_PAIRS_NAMED])
    return (f"the model lets these pass through each other, so nothing keeps them apart: {names}{more}",)


def measure_distance(model: mujoco.MjModel, data: mujoco.MjData, geom: int, plane: int) -> float:
    """Returns how far the lowest point of a geom is above a plane [m]; `data` holds the positions."""
    return mujoco.mj_geomDistance(model, data, geom, plane, FAR_M, None)


def _find_floors(model: mujoco.MjModel, data: mujoco.MjData, lowest_m: float | None) -> tuple[tuple[Floor, ...], str]:
    """Returns what a motion must stay above, and what was assumed for it, as a sentence.

    These are the planes that never move, and the height that was asked for, `lowest_m`. Where neither is a floor, it is
    the lowest point of the robot's base. Links on the base may then be as low as they are at rest, where `data` has
    positions. What floats freely may lie or roll on the planes of the model.
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
    loose = {_name_bodies(model, int(root)) for root in model.body_rootid[model.geom_bodyid[floating]]}
    free = f"; {', '.join(sorted(loose))} floats freely and is not held to it" if loose else ""
    return tuple(floors), f"nothing below {shown}, {text}{also}{free}"


def _find_height(model: mujoco.MjModel, data: mujoco.MjData, lowest_m: float | None, held: Flags) -> tuple[float, str]:
    """Returns the height that was asked for, or that of the base, if the robot is above it at rest; and which it is.

    Links on the base may be below it: they cannot be anywhere else. Where a height was asked for, these are only those
    that are no lower than the base.
    """
    if lowest_m is not None and not np.isfinite(lowest_m):
        raise InputError(f"--lowest {lowest_m}: write a height in metres, such as 0")
    base, ground = _find_base_height(model, data), model.geom(GROUND).id
    height = base if lowest_m is None else float(lowest_m)
    first = model.body_weldid[model.body_parentid[model.body_weldid[model.geom_bodyid]]] == 0  # the first that move
    heights = [(measure_distance(model, data, int(g), ground), int(g)) for g in np.flatnonzero(held)]
    others = [(z, g) for z, g in heights if not (first[g] and (lowest_m is None or z >= base))]
    lowest, geom = min(others, default=(np.inf, -1))
    if lowest < height - REST_SLACK_M:
        body, low = _name_bodies(model, int(model.geom_bodyid[geom])), f"{lowest:.2f} m"
        if lowest_m is None:
            raise InputError(
                f"the model has no floor, and at rest {body} ({low}) is lower than the base ({base:.2f} m): "
                "give the height that nothing may go below: --lowest METRES, the height z in the world of the model"
            )
        text = f"at rest {body} is at {low}, lower than that: give a lower height, or begin elsewhere"
        raise InputError(f"--lowest {lowest_m:g}: {text}")
    assumed = "the lowest point of its base (no floor in the model; --lowest sets it)"
    return height, assumed if lowest_m is None else "as asked for"


def _find_base_height(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Returns how high the base of the robot is: its origin, or the lowest point of what is fixed there [m].

    The base is what carries the driven joints and never moves: bodies of the same tree, and, as compilers of URDF put
    the geoms of a fixed base into the world, geoms of the world around the first body that moves.
    """
    driven = [joint for a in range(model.nu) if (joint := driven_joint(model, a)) is not None]
    joints = driven or list(range(model.njnt))
    roots = np.unique(model.body_rootid[model.jnt_bodyid[joints]])
    heights = [float(z) for z in data.xpos[roots, 2]]
    is_fixed = model.body_weldid[model.geom_bodyid] == 0
    for g in np.flatnonzero(is_fixed & (model.geom_type != mujoco.mjtGeom.mjGEOM_PLANE)):
        body, away = model.geom_bodyid[g], np.linalg.norm(data.geom_xpos[g] - data.xpos[roots], axis=1)
        around = body == 0 and (away <= model.geom_rbound[g]).any()
        if around or model.body_rootid[body] in roots:
            heights.append(measure_distance(model, data, int(g), model.geom(GROUND).id))
    return round(min(heights, default=0.0), 6) + 0.0
