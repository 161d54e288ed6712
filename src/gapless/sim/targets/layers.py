"""Knobs of layers as targets: `KIND/NAME/LAYER/KNOB`, the same form for all layers."""

import mujoco
import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError, nearest
from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.sim.realism.layer import Knob, Layer
from gapless.sim.realism.switching import BY_PATH, as_written
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.joint import has_one_axis
from gapless.sim.targets.slots import KINDS_OF_MODEL_LAYERS
from gapless.sim.targets.target import Place, Target
from gapless.sim.targets.use import KnobPlace

# What other targets set already: one mechanism, not two.
SAME = {
    ("gain", "gain"): "actuator/NAME/gain",
    ("lag", "lag_s"): "actuator/NAME/lag",
    ("backlash", "width"): "joint/NAME/backlash",
    ("command delay", "delay_s"): "actuator/NAME/delay",
    ("reading delay", "delay_s"): "measurement/COLUMN/delay",
    ("torque-speed curve", "limit"): "actuator/NAME/limit",
    ("friction", "coulomb"): "joint/NAME/frictionloss",
    ("friction", "viscous"): "joint/NAME/damping",
    ("LuGre friction", "viscous"): "joint/NAME/damping",
    ("cable drag", "drag"): "joint/NAME/damping",
    ("scale and bias", "scale"): "measurement/COLUMN/scale",
    ("scale and bias", "bias"): "measurement/COLUMN/bias",
    ("inertial sensor", "scale"): "measurement/COLUMN/scale",
    ("surface friction", "factor"): "geom/NAME/friction",
    ("contact stiffness", "factor"): "geom/NAME/stiffness",
    ("restitution", "factor"): "geom/NAME/restitution",
    ("mass", "factor"): "body/NAME/mass",
    ("shifted centre", "shift_m"): "body/NAME/com/x",
    ("tilt", "x_rad"): "world/tilt/x",
    ("tilt", "y_rad"): "world/tilt/y",
}
_KIND_OF = {"command": ("actuator",), "effort": ("joint",), "reading": ("measurement",)}
_OF_SPREAD: dict[str, Dimension] = {"actuator": "actuator", "joint": "actuator", "body": "object", "geom": "contact"}
_WIDTHS = {"size": 3, "clutter": 2}  # axes of an element
_SENSORS = {
    "inertial sensor": ((mujoco.mjtSensor.mjSENS_GYRO,), (mujoco.mjtSensor.mjSENS_ACCELEROMETER,)),
    "force-torque sensor": ((mujoco.mjtSensor.mjSENS_FORCE, mujoco.mjtSensor.mjSENS_TORQUE),),
}  # layer -> sensors whose axes are its columns, one after the other


def kinds_of(layer: Layer) -> tuple[str, ...]:
    """Returns the kinds of elements that a layer can be switched on for."""
    if layer.acts_on == "model":
        return KINDS_OF_MODEL_LAYERS.get(layer.name, ())
    on_bodies = layer.acts_on == "effort" and layer.adds and not layer.needs
    return (*_KIND_OF[layer.acts_on], *(("body",) if on_bodies else ()))


def refuse_unknown_knob(path: str, field: str) -> None:
    """Refuses `LAYER/NOTHING`.

    Raises:
        InputError: If the path names a layer, and no knob of it.
    """
    name, slash, knob = field.partition("/")
    if slash and name in BY_PATH:
        known = nearest(knob, [one.name for one in BY_PATH[name].knobs], 12)
        raise InputError(f"parameter {path}: the layer {BY_PATH[name].name} has no knob {knob!r}; write one of {known}")


def layer_target(place: Place) -> Target:
    """Returns the target of a knob of a layer; every element of `*` gets the same value.

    Raises:
        InputError: If another target sets this already, or the layer does not act on elements of this kind.
    """
    name, _, rest = place.field.partition("/")
    kind, layer = place.kind, BY_PATH[name]
    knob_name, _, axis = rest.partition("/")
    knob = next(one for one in layer.knobs if one.name == knob_name)
    same = SAME.get((layer.name, knob.name))
    if same:
        shown = same.replace("NAME", place.name) if same.startswith(kind) else same
        raise InputError(f"parameter {place.path}: that is the same as {shown}; write that")
    kinds = kinds_of(layer)
    if kind not in kinds:
        raise InputError(
            f"parameter {place.path}: the layer {layer.name} acts on a {' or a '.join(kinds)}, no "
            f"{kind}: name one of these"
        )
    where = _where(place, kind, layer, knob, axis)

    def write(fields: Fields, values: Array) -> None:
        fields.uses[where.key].write(where, fields.ids, values)

    dimension: Dimension = _OF_SPREAD[kind] if layer.dimension == "spread" else layer.dimension
    return Target(place.path, dimension, _unit(place, where), as_written(knob), write, knob=where)


def bounds_of(knob: Knob) -> tuple[float, float]:
    """Returns bounds for a knob whose owner stated none: ten times as far from ideal as is typical, within its range.

    Of a knob that is typically ideal, or whose ideal is no limit at all: from a tenth to ten times the typical value.
    """
    typical, ideal = knob.typical, knob.ideal
    if np.isfinite(ideal) and typical != ideal:
        reach = 10 * abs(typical - ideal)
        return max(knob.low, ideal - reach), min(knob.high, ideal + reach)
    if typical > 0:
        return max(knob.low, typical / 10), min(knob.high, 10 * typical)
    return knob.low, knob.high


def _unit(place: Place, where: KnobPlace) -> str:
    """Returns the unit of a knob: `signal` is that of the element, and of `N·m, N` the first is that of a hinge."""
    first = where.elements[0]
    turns = where.kind == "joint" and place.model.jnt_type[first] == mujoco.mjtJoint.mjJNT_HINGE
    options = where.knob.unit.split(", ")
    return options[0 if turns else -1].replace("signal", _signal_unit(place, where.kind, first))


def _signal_unit(place: Place, kind: str, element: int) -> str:
    if kind == "measurement":
        return place.project.measurement_units[element]
    if kind == "actuator":
        name = place.model.actuator(element).name
        return next((item.unit for item in place.project.commands if item.actuator == name), "1")
    return "rad" if kind == "world" else "1"  # temperature shifts encoders


def _where(place: Place, kind: str, layer: Layer, knob: Knob, axis: str) -> KnobPlace:
    """Returns which elements a knob belongs to, and which others are columns of the same signal."""
    model, elements = place.model, tuple(int(e) for e in place.ids)
    width = _WIDTHS.get(layer.name, 3 if kind == "body" and layer.acts_on == "effort" else 1)
    if axis and (width == 1 or axis not in tuple("xyz"[:width])):
        text = f"write one of {', '.join('xyz'[:width])}, or nothing" if width > 1 else "it has no axes: leave that out"
        raise InputError(f"parameter {place.path}: nothing called {axis!r} there: {text}")
    if kind == "world":
        return KnobPlace(place.path, kind, layer, knob, (0,), (0,), _world_width(place, layer))
    if kind == "joint":
        elements = tuple(j for j in elements if has_one_axis(model, j))
        if not elements:
            raise InputError(
                f"parameter {place.path}: only hinge and slide joints have a {layer.name}: name one of these"
            )
    if layer.name == "uneven mass":
        elements = tuple(b for b in elements if model.body_mass[b] > 0)
        if len(elements) != 1:
            raise InputError(f"parameter {place.path}: name one body that has a mass")
        return KnobPlace(place.path, kind, layer, knob, elements, elements, len(layer.columns))
    if kind == "measurement" and layer.columns:
        group = _companions(place, layer)
        return KnobPlace(place.path, kind, layer, knob, group if place.shared else elements, group)
    column = "xyz".index(axis) if axis else None
    return KnobPlace(place.path, kind, layer, knob, elements, (), width, column)


def _world_width(place: Place, layer: Layer) -> int:
    if layer.columns:
        return len(layer.columns)
    if not place.model.nlight:
        raise InputError(f"parameter {place.path}: the model has no light; add one")
    return place.model.nlight


def _companions(place: Place, layer: Layer) -> tuple[int, ...]:
    """Returns the columns of the project that are the axes of one sensor, in the order in which the layer wants them.

    Raises:
        InputError: If they are not all mapped, or for `*` if there is more than one such sensor.
    """
    groups = {group for column in place.ids for group in _sensor_axes(place.project, place.model, int(column), layer)}
    if len(groups) != 1:
        wanted = ", ".join(layer.columns)
        found = "map all of them, each with its `axis`" if not groups else "name a column of one"
        raise InputError(f"parameter {place.path}: the layer {layer.name} acts on {wanted} of one sensor: {found}")
    return next(iter(groups))


def _sensor_axes(project: Project, model: mujoco.MjModel, column: int, layer: Layer) -> list[tuple[int, ...]]:
    item = project.measurements[column]
    if item.element != "sensor":
        return []
    here = model.sensor(item.name)
    place = int(here.objid[0])
    found: list[tuple[int, ...]] = []
    for types in _SENSORS[layer.name]:
        if int(here.type[0]) not in [int(one) for one in types]:
            continue
        axes = [(int(one), axis) for one in types for axis in range(3)]
        columns = {
            (int(model.sensor(other.name).type[0]), other.axis): k
            for k, other in enumerate(project.measurements)
            if other.element == "sensor" and int(model.sensor(other.name).objid[0]) == place
        }
        if all(one in columns for one in axes):
            found.append(tuple(columns[one] for one in axes))
    return found
