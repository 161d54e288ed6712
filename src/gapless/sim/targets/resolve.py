"""From a path to its target; targets of the world and of readings."""

from collections.abc import Callable

import mujoco
import numpy as np

from gapless.core.errors import InputError, nearest
from gapless.core.signal import Array
from gapless.core.target_path import FIELDS
from gapless.project.records import Project
from gapless.sim.realism.registry import BY_PATH
from gapless.sim.targets.actuator import actuator_target
from gapless.sim.targets.body import body_target
from gapless.sim.targets.geom import geom_target
from gapless.sim.targets.joint import joint_target
from gapless.sim.targets.layers import layer_target
from gapless.sim.targets.target import Fields, NamedElements, Target, add_to, is_knob, split_target


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
    fields = FIELDS[kind]
    if named.field not in fields:
        name, slash, knob = named.field.partition("/")
        if slash and name in BY_PATH and not any(one.startswith(f"{name}/") for one in fields):
            known = nearest(knob, [one.name for one in BY_PATH[name].knobs], 12)
            raise named.error(f"the layer {BY_PATH[name].name} has no knob {knob!r}; write one of {known}")
        known = nearest(named.field, fields, len(fields))
        raise named.error(f"nothing called {named.field!r} there; write one of {known}")
    return _KINDS[kind](named)


def _elements(kind: str, project: Project, model: mujoco.MjModel) -> dict[int, str]:
    """Returns index -> name of everything of a kind but the world body; a name may be empty."""
    if kind == "world":
        return {0: ""}
    if kind == "measurement":
        return dict(enumerate(project.measurement_names))
    counts = {"joint": model.njnt, "actuator": model.nu, "body": model.nbody, "geom": model.ngeom, "site": model.nsite}
    first = 1 if kind == "body" else 0
    return {k: getattr(model, kind)(k).name for k in range(first, counts[kind])}


def _world_target(named: NamedElements) -> Target:
    """Returns a target of the ground that a robot stands on."""
    size = float(np.linalg.norm(named.model.opt.gravity))
    if size == 0:
        raise named.error("the model has no gravity, so it has no direction: leave this out")
    about_x = named.field == "tilt/x"

    def write_gravity(fields: Fields, values: Array) -> None:
        fields.of("opt.gravity")[fields.ids] *= (values / size)[:, None]

    def write_tilt(fields: Fields, values: Array) -> None:
        gravity = fields.of("opt.gravity")
        x, y, z = gravity[fields.ids].T
        cos, sin = np.cos(values), np.sin(values)
        # The floor turned by +angle about the axis: gravity, seen from it, turns by -angle.
        turned = [x, cos * y + sin * z, cos * z - sin * y] if about_x else [cos * x - sin * z, y, cos * z + sin * x]
        gravity[fields.ids] = np.stack(turned, axis=1)

    if named.field == "gravity":
        return Target(named.path, "environment", "m/s²", size, write_gravity)
    return Target(named.path, "environment", "rad", 0.0, write_tilt, turn=0 if about_x else 1)


def _measurement_target(named: NamedElements) -> Target:
    """Returns a target of readings: scale * true value + bias, later by a delay."""
    if named.field == "bias":
        unit = named.project.measurement_units[named.ids[0]]
        return Target(named.path, "sensor", unit, 0.0, add_to("bias", named.ids))
    if named.field == "delay":
        return Target(named.path, "latency", "s", 0.0, add_to("reading_delay_s", named.ids))

    def write_scale(fields: Fields, values: Array) -> None:
        fields.scale[np.ix_(fields.ids, named.ids)] *= values[:, None]

    return Target(named.path, "sensor", "1", 1.0, write_scale)


_KINDS: dict[str, Callable[[NamedElements], Target]] = {
    **{"joint": joint_target, "actuator": actuator_target, "body": body_target, "geom": geom_target},
    **{"site": body_target, "world": _world_target, "measurement": _measurement_target},
}
