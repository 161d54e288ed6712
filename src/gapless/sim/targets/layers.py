"""Knobs of layers as targets: `KIND/NAME/LAYER/KNOB`, the same form for all layers."""

from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array
from gapless.sim.active_layers.active_layer import KnobTarget
from gapless.sim.realism.layer import Knob, Layer
from gapless.sim.realism.registry import BY_PATH
from gapless.sim.targets.drive import has_one_axis
from gapless.sim.targets.target import Fields, NamedElements, Target

_KINDS = {"command": ("actuator",), "effort": ("joint",), "reading": ("measurement",), "model": ("geom",)}
_SPREAD_DIMENSIONS: dict[str, Dimension] = {
    "actuator": "actuator", "joint": "actuator", "body": "object", "geom": "contact",
}  # fmt: skip
_SENSORS = {
    "inertial sensor": ((mujoco.mjtSensor.mjSENS_GYRO,), (mujoco.mjtSensor.mjSENS_ACCELEROMETER,)),
    "force-torque sensor": ((mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE),),
}  # layer -> sensors whose axes are its columns, one after the other


def kinds_of(layer: Layer) -> tuple[str, ...]:
    """Returns the kinds of elements that a layer can be switched on for."""
    return ("joint", "body") if layer.is_weather else layer.kinds or _KINDS[layer.acts_on]


def layer_target(named: NamedElements) -> Target:
    """Returns the target of a knob of a layer; every element of `*` gets the same value.

    Raises:
        InputError: If another target sets this already, or the layer does not act on elements of this kind.
    """
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
