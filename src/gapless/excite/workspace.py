"""What a motion must not touch: anything that it does not touch, or nearly touch, at rest."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.excite.prospect import Prospect
from gapless.targets import is_object

CLEARANCE_M = 0.005  # nearer than this is touching
SOME_FRAMES = 250  # of a motion that is looked at while many are compared

Pair = tuple[int, int]


@dataclass(frozen=True)
class Workspace:
    """Tells what bodies touch in given positions. Bodies that are fixed to each other count as one.

    Attributes:
        model: The model, with a margin around every geom.
        allowed: Pairs of bodies that may touch.
        free: Bodies that may touch anything: things that the wanted parameters are about. All things may touch each
            other and what never moves.
        floors: (num_floors, 6) a point of each floor and its normal.
        above: (num_floors, ngeom) bool: moving geoms whose centre is above each floor at rest.
    """

    model: mujoco.MjModel
    allowed: frozenset[Pair]
    free: frozenset[int]
    floors: Array
    above: np.ndarray

    @classmethod
    def of(cls, prospect: Prospect, rest: Array) -> "Workspace":
        """Returns the workspace of a project whose positions at rest are `rest`, (nq,)."""
        model = copy.copy(prospect.blueprint.model)
        model.geom_margin[:] = np.maximum(model.geom_margin, CLEARANCE_M)
        data = mujoco.MjData(model)
        pairs = _touching(model, data, rest)
        things = frozenset(body for body in range(1, model.nbody) if is_object(model, body))
        free = frozenset(body for body in things if _is_wanted(model, body, prospect.wanted))
        planes = [g for g in range(model.ngeom) if _is_floor(model, g)]
        floors = np.array([[*data.geom_xpos[g], *data.geom_xmat[g].reshape(3, 3)[:, 2]] for g in planes])
        floors = floors.reshape(-1, 6)
        moving = model.body_weldid[model.geom_bodyid] != 0
        above = np.array([moving & (_heights(data, floor) > 0) for floor in floors]).reshape(-1, model.ngeom)
        return cls(model, frozenset(pairs), free, floors, above)

    @property
    def may_touch(self) -> tuple[str, ...]:
        """Names of the things that the motion may touch."""
        return tuple(self._name(body) for body in sorted(self.free))

    def fault(self, qpos: Array, most_frames: int | None = None) -> str | None:
        """Returns what is touched that must not be, in positions (num_steps, nq); None where nothing is.

        Args:
            qpos: The positions.
            most_frames: Look at no more than so many, evenly spread; None for all.
        """
        every = 1 if most_frames is None else max(1, len(qpos) // most_frames)
        data = mujoco.MjData(self.model)
        for row in qpos[::every]:
            for pair in _touching(self.model, data, row):
                if not self._may(pair):
                    return " and ".join(self._name(body) for body in pair) + " would touch"
            for floor, above in zip(self.floors, self.above, strict=True):
                if np.any(_heights(data, floor)[above] < 0):
                    return "something would go through the floor"
        return None

    def _may(self, pair: Pair) -> bool:
        things = [body for body in pair if is_object(self.model, body)]
        rest = [body for body in pair if body not in things]
        alone = bool(things) and all(body == 0 for body in rest)
        return pair in self.allowed or alone or any(body in self.free for body in pair)

    def _name(self, body: int) -> str:
        return "what is fixed" if body == 0 else self.model.body(body).name or f"body {body}"


def _touching(model: mujoco.MjModel, data: mujoco.MjData, qpos: Array) -> set[Pair]:
    """Returns the pairs of bodies that touch; `data` is left with the positions of everything."""
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    mujoco.mj_collision(model, data)
    if not data.ncon:
        return set()
    bodies = model.body_weldid[model.geom_bodyid[data.contact.geom]]
    near = data.contact.dist < CLEARANCE_M
    return {(int(min(a, b)), int(max(a, b))) for a, b in bodies[near]}


def _is_wanted(model: mujoco.MjModel, body: int, wanted: Iterable[str]) -> bool:
    """Tells whether a wanted parameter is about a thing, or about one of its surfaces."""
    geoms = [model.geom(g).name for g in range(model.ngeom) if model.geom_bodyid[g] == body]
    names = {f"body/{model.body(body).name}/"} | {f"geom/{name}/" for name in geoms if name}
    return any(target.startswith((*names, "body/*/", "geom/*/")) for target in wanted)


def _is_floor(model: mujoco.MjModel, geom: int) -> bool:
    plane = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE
    return bool(plane and model.body_weldid[model.geom_bodyid[geom]] == 0)


def _heights(data: mujoco.MjData, floor: Array) -> Array:
    """Returns how far the centres of all geoms are above a floor, (ngeom,) [m]."""
    return (data.geom_xpos - floor[:3]) @ floor[3:]
