"""What a motion must not touch: anything that it does not touch, or nearly touch, at rest, and what is below it."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.excite.floors import CLEARANCE_M, Floor, body_name, compile_with_ground, find_floors
from gapless.excite.knowledge import PriorKnowledge
from gapless.sim.targets import is_object

MAX_PAIRS_NAMED = 4  # of bodies that pass through each other
SEARCH_FRAMES = 250  # of a motion that is looked at while many are compared

Pair = tuple[int, int]


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
        model = compile_with_ground(known.project)
        model.geom_margin[:] = np.maximum(model.geom_margin, CLEARANCE_M)
        data = mujoco.MjData(model)
        pairs = _find_touching(model, data, rest)
        free: set[int] = set()
        for body in range(1, model.nbody):
            geoms = [model.geom(g).name for g in range(model.ngeom) if model.geom_bodyid[g] == body]
            names = (f"body/{model.body(body).name}/", *(f"geom/{name}/" for name in geoms if name))
            if is_object(model, body) and any(t.startswith((*names, "body/*/", "geom/*/")) for t in known.wanted):
                free.add(body)
        floors, assumed = find_floors(model, data, lowest_m)
        through = _describe_uncollided(known.blueprint.model)
        return cls(model, frozenset(pairs), frozenset(free), floors, (assumed, *through))

    @property
    def may_touch(self) -> tuple[str, ...]:
        """Names of the things that the motion may touch."""
        return tuple(_name(self.model, body) for body in sorted(self.free))

    def find_fault(self, qpos: Array, max_frames: int | None = None) -> str | None:
        """Returns what is touched that must not be, in positions (num_steps, nq); None where nothing is.

        `max_frames` limits how many are looked at, evenly spread; None for all.
        """
        every = 1 if max_frames is None else max(1, len(qpos) // max_frames)
        data = mujoco.MjData(self.model)
        for row in qpos[::every]:
            for pair in _find_touching(self.model, data, row):
                if not self._may_touch(pair):
                    return _pair_name(self.model, pair) + " would touch"
            for floor in self.floors:
                geom = floor.find_geom_below(self.model, data)
                if geom is not None:
                    return f"{_name(self.model, int(self.model.geom_bodyid[geom]))} would go below {floor.name}"
        return None

    def _may_touch(self, pair: Pair) -> bool:
        things = [body for body in pair if is_object(self.model, body)]
        rest = [body for body in pair if body not in things]
        alone = bool(things) and all(body == 0 for body in rest)
        return pair in self.allowed or alone or any(body in self.free for body in pair)


def _name(model: mujoco.MjModel, body: int) -> str:
    return "what is fixed" if body == 0 else body_name(model, body)


def _pair_name(model: mujoco.MjModel, pair: Pair) -> str:
    return " and ".join(_name(model, body) for body in pair)


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
    geoms: dict[int, list[int]] = {}
    for g in range(model.ngeom):
        geoms.setdefault(int(model.body_weldid[model.geom_bodyid[g]]), []).append(g)
    parent = {body: int(model.body_weldid[model.body_parentid[body]]) for body in geoms}
    excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in model.exclude_signature}
    pairs = [
        (a, b)
        for a in sorted(geoms)
        for b in sorted(geoms)
        if a < b and parent[b] != a and not {(a, b), (b, a)} & excluded
    ]
    types, affinities = model.geom_contype, model.geom_conaffinity
    listed = {frozenset(pair) for pair in zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)}

    def collide(one: int, other: int) -> bool:
        masks = (types[one] & affinities[other]) | (types[other] & affinities[one])
        return bool(masks) or frozenset((one, other)) in listed

    through = [(a, b) for a, b in pairs if not any(collide(i, j) for i in geoms[a] for j in geoms[b])]
    if not through:
        return ()
    if len(through) == len(pairs):
        kept = "nothing keeps the robot clear of itself and of what is around it"
        return (f"no two parts collide in the model, so {kept}",)
    more = f" and {len(through) - MAX_PAIRS_NAMED} more" if len(through) > MAX_PAIRS_NAMED else ""
    names = ", ".join(_pair_name(model, pair) for pair in through[:MAX_PAIRS_NAMED])
    return (f"the model lets these pass through each other, so nothing keeps them apart: {names}{more}",)
