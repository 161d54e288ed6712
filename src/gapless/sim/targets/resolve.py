"""From a path to its target; targets of the world, of readings, and of knobs of layers, `KIND/NAME/LAYER/KNOB`."""

from collections.abc import Callable
from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError, nearest
from gapless.core.signal import Array
from gapless.core.target_path import FIELDS
from gapless.project.records import Project
from gapless.sim.active_layers.active_layer import KnobTarget
from gapless.sim.realism.layer import Knob, Layer
from gapless.sim.realism.registry import BY_PATH
from gapless.sim.targets.actuator import actuator_target
from gapless.sim.targets.drive import has_one_axis
from gapless.sim.targets.geom import geom_target
from gapless.sim.targets.joint_and_body import body_target, joint_target
from gapless.sim.targets.target import Fields, NamedElements, Target, add_to, is_knob, split_target

_LAYER_KINDS = {"command": ("actuator",), "effort": ("joint",), "reading": ("measurement",), "model": ("geom",)}
_SPREAD_DIMENSIONS: dict[str, Dimension] = {
    "actuator": "actuator", "joint": "actuator", "body": "object", "geom": "contact",
}  # fmt: skip
_SENSORS = {
    "inertial sensor": ((mujoco.mjtSensor.mjSENS_GYRO,), (mujoco.mjtSensor.mjSENS_ACCELEROMETER,)),
    "force-torque sensor": ((mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE),),
}  # layer -> sensors whose axes are its columns, one after the other


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
        return _layer_target(named)
    fields = FIELDS[kind]
    if named.field not in fields:
        layer = named.field.partition("/")[0]
        knobs = [f"{layer}/{knob.name}" for knob in BY_PATH[layer].knobs] if layer in BY_PATH else []
        known = nearest(named.field, [*knobs, *fields], len(knobs) + len(fields))
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


def kinds_of(layer: Layer) -> tuple[str, ...]:
    """Returns the kinds of elements that a layer can be switched on for."""
    return ("joint", "body") if layer.is_weather else layer.kinds or _LAYER_KINDS[layer.acts_on]


def _layer_target(named: NamedElements) -> Target:
    """Returns the target of a knob of a layer; every element of `*` gets the same value."""
    name, _, rest = named.field.partition("/")
    kind, layer = named.kind, BY_PATH[name]
    knob_name, _, axis = rest.partition("/")
    knob = next(one for one in layer.knobs if one.name == knob_name)
    if knob.same_as:
        same = knob.same_as.replace("NAME", named.name) if knob.same_as.startswith(kind) else knob.same_as
        raise named.error(f"that is the same as {same}; write that")
    kinds = kinds_of(layer)
    if kind not in kinds:
        raise named.error(f"the layer {layer.name} acts on a {' or a '.join(kinds)}, no {kind}: name one of these")
    target = _find_elements(named, layer, knob, axis)

    def write(fields: Fields, values: Array) -> None:
        fields.active_layers[target.key].write(target, fields.ids, values)

    dimension: Dimension = _SPREAD_DIMENSIONS[kind] if layer.dimension == "spread" else layer.dimension
    return Target(named.path, dimension, _unit(named, target), knob.nominal, write, knob=target)


def _unit(named: NamedElements, target: KnobTarget) -> str:
    """Returns the unit of a knob: `signal` is that of the element."""
    first, kind, signal = target.elements[0], target.kind, "1"
    if kind == "measurement":
        signal = named.project.measurement_units[first]
    elif kind == "actuator":
        name = named.model.actuator(first).name
        signal = next((item.unit for item in named.project.commands if item.actuator == name), "1")
    elif kind == "world":
        signal = "rad"  # temperature shifts encoders
    return replace(named, ids=np.array([first])).choose_unit(target.knob.unit).replace("signal", signal)


def _find_elements(named: NamedElements, layer: Layer, knob: Knob, axis: str) -> KnobTarget:
    """Returns which elements a knob belongs to, and which others are columns of the same signal."""
    kind, model, elements = named.kind, named.model, [int(e) for e in named.ids]
    num_axes = 3 if kind == "body" and layer.acts_on == "effort" else layer.num_axes
    axes = "xyz"[: num_axes if num_axes > 1 else 0]
    if axis and axis not in tuple(axes):
        text = f"write one of {', '.join(axes)}, or nothing" if axes else "it has no axes: leave that out"
        raise named.error(f"nothing called {axis!r} there: {text}")
    if kind == "joint":
        elements = [j for j in elements if has_one_axis(model, j)]
        if not elements:
            raise named.error(f"only hinge and slide joints have a {layer.name}: name one of these")
    if layer.name == "uneven mass":
        elements = [b for b in elements if model.body_mass[b] > 0]
        if len(elements) != 1:
            raise named.error("name one body that has a mass")
    if layer.name == "light of day":
        elements = list(range(model.nlight))
        if not elements:
            raise named.error("the model has no light; add one")
    if kind == "measurement" and layer.columns:
        signal = _axes_of_one_sensor(named, layer)
        return KnobTarget(named.path, kind, layer, knob, signal if named.shared else tuple(elements), signal)
    num_axes = len(layer.columns) or num_axes
    signal = tuple(element * num_axes + k for element in elements for k in range(num_axes))
    chosen = tuple(column for column in signal if not axis or column % num_axes == "xyz".index(axis))
    return KnobTarget(named.path, kind, layer, knob, chosen, signal)


def _axes_of_one_sensor(named: NamedElements, layer: Layer) -> tuple[int, ...]:
    """Returns the columns of the project that are the axes of one sensor, in the order that the layer wants."""
    mapped = [(k, item) for k, item in enumerate(named.project.measurements) if item.element == "sensor"]
    sensors = {k: named.model.sensor(item.name) for k, item in mapped}
    columns = {(int(sensors[k].objid[0]), int(sensors[k].type[0]), item.axis): k for k, item in mapped}
    groups: set[tuple[int, ...]] = set()
    for column in (int(k) for k in named.ids if int(k) in sensors):
        site, kind = int(sensors[column].objid[0]), int(sensors[column].type[0])
        for types in ([int(one) for one in types] for types in _SENSORS[layer.name]):
            axes = [(site, one, axis) for one in types for axis in range(3)]
            if kind in types and all(one in columns for one in axes):
                groups.add(tuple(columns[one] for one in axes))
    if len(groups) != 1:
        wanted = ", ".join(layer.columns)
        found = "map all of them, each with its `axis`" if not groups else "name a column of one"
        raise named.error(f"the layer {layer.name} acts on {wanted} of one sensor: {found}")
    return next(iter(groups))


_KINDS: dict[str, Callable[[NamedElements], Target]] = {
    **{"joint": joint_target, "actuator": actuator_target, "body": body_target, "geom": geom_target},
    **{"site": body_target, "world": _world_target, "measurement": _measurement_target},
}
