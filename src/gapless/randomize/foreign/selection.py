"""Which elements of the project's model a term of another stack is about."""

import re
from dataclasses import dataclass

import mujoco

from gapless.randomize.export.entries import ROBOT, driven_joint, is_position_servo, owner_of
from gapless.randomize.foreign.term import Asset, Unread


@dataclass(frozen=True)
class Selection:
    """Elements of the model by their names, and why some were not found.

    Attributes:
        names: Names that were found, in the model's order.
        whole: Whether these are all of their kind in the model.
        notes: What was asked for and is not there.
    """

    names: tuple[str, ...]
    whole: bool
    notes: tuple[str, ...]


def select(model: mujoco.MjModel, kind: str, asset: Asset) -> Selection:
    """Returns the elements that an asset's patterns name; all of the asset where it has none for this kind.

    A thing carried by a free joint that nothing drives is an asset of its name, everything else is `robot`. An asset
    of another name is looked for in the whole model, if it says some names and not just all.
    """
    every = _elements(model, kind)
    assets = {owner for _, owner in _elements(model, "body")}
    pool = [name for name, owner in every if owner == asset.name or asset.name not in assets]
    patterns = asset.patterns.get(kind)
    if isinstance(patterns, Unread):
        return Selection((), False, (f"left out: its names were not read: {patterns.text}",))
    everything = patterns is None or any(all(_matches(p, name) for name in pool) for p in patterns)
    if asset.name not in assets and everything:
        return Selection((), False, (f"the model has no {asset.name!r}: it has {', '.join(sorted(assets))}",))
    if patterns is None:
        return Selection(tuple(pool), len(pool) == len(every), ())
    found: list[str] = []
    notes: list[str] = []
    for pattern in patterns:
        matching = [name for name in pool if _matches(pattern, name)]
        found += matching
        if not matching:
            notes.append(f"no {kind} is called {pattern!r}")
    chosen = tuple(name for name in pool if name in found)
    return Selection(chosen, len(chosen) == len(every), tuple(notes))


def _matches(pattern: str, name: str) -> bool:
    try:
        return any(re.fullmatch(pattern, part) for part in (name, name.split("/")[-1]))
    except re.error:
        return pattern == name


def _elements(model: mujoco.MjModel, kind: str) -> list[tuple[str, str]]:
    """Returns name and asset of every element that can have parameters: joints with one axis, bodies with mass."""
    if kind == "joint":
        single = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
        ids = [j for j in range(model.njnt) if mujoco.mjtJoint(int(model.jnt_type[j])) in single]
        return [(model.joint(j).name, owner_of(model, int(model.jnt_bodyid[j]))) for j in ids if model.joint(j).name]
    if kind == "body":
        ids = [b for b in range(1, model.nbody) if model.body_mass[b] > 0 and model.body(b).name]
        return [(model.body(b).name, owner_of(model, b)) for b in ids]
    if kind == "geom":
        ids = [g for g in range(model.ngeom) if model.geom(g).name]
        return [(model.geom(g).name, owner_of(model, int(model.geom_bodyid[g]))) for g in ids]
    return [(model.actuator(a).name, ROBOT) for a in range(model.nu) if model.actuator(a).name]


def shapes_of(model: mujoco.MjModel, bodies: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the geoms of some bodies that can touch something."""
    chosen = {model.body(name).id for name in bodies}
    geoms = [g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in chosen and model.geom(g).name]
    return tuple(model.geom(g).name for g in geoms if model.geom_contype[g] or model.geom_conaffinity[g])


def servos_of(model: mujoco.MjModel, joints: tuple[str, ...]) -> dict[str, float]:
    """Returns the position actuators that drive some joints, and the square of their gears."""
    chosen = {model.joint(name).id for name in joints}
    servos = [a for a in range(model.nu) if driven_joint(model, a) in chosen and is_position_servo(model, a)]
    return {model.actuator(a).name: float(model.actuator_gear[a, 0]) ** 2 for a in servos}
