"""From a path to its target."""

from collections.abc import Callable

import mujoco
import numpy as np

from gapless.core.errors import InputError, nearest
from gapless.project.records import Project
from gapless.sim.targets.actuator import actuator_target
from gapless.sim.targets.body import body_target, site_target
from gapless.sim.targets.geom import geom_target
from gapless.sim.targets.joint import joint_target
from gapless.sim.targets.layers import layer_target, refuse_unknown_knob
from gapless.sim.targets.path import is_knob, split_target
from gapless.sim.targets.target import NamedElements, Target
from gapless.sim.targets.world import measurement_target, world_target

_KINDS: dict[str, Callable[[NamedElements], Target]] = {
    "joint": joint_target,
    "actuator": actuator_target,
    "body": body_target,
    "geom": geom_target,
    "site": site_target,
    "world": world_target,
    "measurement": measurement_target,
}


def resolve(path: str, project: Project, model: mujoco.MjModel) -> Target:
    """Returns the target of a path such as `joint/elbow/damping` or `joint/elbow/cogging/amplitude`.

    Raises:
        InputError: If the path names nothing; the message lists what exists.
    """
    kind = path.partition("/")[0]
    if kind not in _KINDS:
        raise InputError(f"parameter {path}: no kind {kind!r}; write one of {', '.join(_KINDS)}")
    elements = _elements(kind, project, model)
    parts = split_target(path, set(elements.values()))
    everything = parts.name == "*" or kind == "world"
    ids = [k for k, known in elements.items() if everything or (known and known == parts.name)]
    if not ids:
        known = nearest(parts.name, [known for known in elements.values() if known])
        raise InputError(f"parameter {path}: no {kind} {parts.name!r}; choose from: {known}")
    named = NamedElements(path, kind, parts.name, parts.field, np.array(ids, np.intp), project, model)
    if is_knob(named.field):
        return layer_target(named)
    try:
        return _KINDS[kind](named)
    except InputError as error:
        _, unknown, known = str(error).partition("write one of")
        if unknown and f"{named.field.partition('/')[0]}/" not in known:
            refuse_unknown_knob(path, named.field)
        raise


def _elements(kind: str, project: Project, model: mujoco.MjModel) -> dict[int, str]:
    """Returns index -> name of everything of a kind but the world body; a name may be empty."""
    if kind == "world":
        return {0: ""}
    if kind == "measurement":
        return dict(enumerate(project.measurement_names))
    counts = {
        "joint": model.njnt,
        "actuator": model.nu,
        "body": model.nbody,
        "geom": model.ngeom,
        "site": model.nsite,
    }
    first = 1 if kind == "body" else 0
    return {k: getattr(model, kind)(k).name for k in range(first, counts[kind])}
