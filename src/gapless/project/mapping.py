"""The mappings of `gapless.yaml`, checked against the names in the model."""

from typing import get_args

import mujoco

from gapless.core.errors import nearest
from gapless.project.model import QUANTITIES, command_unit, index, measurement_unit, names
from gapless.project.records import CommandMap, Element, MeasurementMap
from gapless.project.schema import MeasurementKeys, ProjectKeys
from gapless.project.yaml_file import Document

ELEMENTS: tuple[Element, ...] = get_args(Element)
_DEGREES = "use position with scale: 0.01745 if the column is in degrees"
_FORCE = "use effort, the generalised force at the joint"
_JOINT_HINTS = {
    **dict.fromkeys(("degrees", "degree", "deg", "angle", "angles"), _DEGREES),
    **dict.fromkeys(("rad", "radians", "pos", "qpos", "q", "theta", "m"), "use position"),
    **dict.fromkeys(("mm", "millimetres", "millimeters"), "use position with scale: 0.001"),
    **dict.fromkeys(("vel", "qvel", "dq", "qd", "speed", "rad/s", "m/s"), "use velocity"),
    **dict.fromkeys(("deg/s", "degrees/s"), "use velocity with scale: 0.01745 if the column is in degrees/s"),
    "rpm": "use velocity with scale: 0.10472 if the column is in revolutions per minute",
    **dict.fromkeys(("torque", "tau", "force", "nm", "n"), _FORCE),
}
_ACTUATOR_HINT = "an actuator has force only; for position or velocity write joint: NAME"
_TURN_HINT = "of angles only yaw; for others map qw qx qy qz"


def command_maps(document: Document, keys: ProjectKeys, model: mujoco.MjModel) -> tuple[CommandMap, ...]:
    """Returns the commands, with units.

    Raises:
        ProjectError: If an actuator does not exist or is commanded twice.
    """
    found: dict[str, CommandMap] = {}
    for column, item in keys.commands.items():
        where = ("commands", column)
        _check_column(document, where)
        _check_name(document, where, model, "actuator", item.actuator)
        if item.actuator in found:
            other = found[item.actuator].column
            text = f"columns {other} and {column} both command actuator {item.actuator}: keep one"
            raise document.error(where, text)
        unit = command_unit(model, item.actuator)
        found[item.actuator] = CommandMap(column, item.actuator, item.scale, item.offset, unit, item.noise)
    return tuple(found.values())


def measurement_maps(document: Document, keys: ProjectKeys, model: mujoco.MjModel) -> tuple[MeasurementMap, ...]:
    """Returns the measurements, with units.

    Raises:
        ProjectError: If there are none, or one names what does not exist or is measured already.
    """
    if not keys.measurements:
        text = "measurements is empty: map at least one column"
        raise document.error(("measurements",), f"{text}, such as q: {{joint: elbow, quantity: position}}")
    found: dict[tuple[str, str, str, int], MeasurementMap] = {}
    for column, item in keys.measurements.items():
        where = ("measurements", column)
        _check_column(document, where)
        if column in keys.commands:
            raise document.error(where, f"column {column} is mapped as command and as measurement: keep one")
        mapped = _measurement(document, column, item, model)
        key = (mapped.element, mapped.name, mapped.quantity, mapped.axis)
        if key in found:
            what = f"{mapped.element} {mapped.name} {mapped.quantity}"
            axis = f" axis {mapped.axis}" if mapped.element == "sensor" else ""
            text = f"columns {found[key].column} and {column} both map {what}{axis}: keep one"
            raise document.error(where, text)
        found[key] = mapped
    return tuple(found.values())


def _measurement(document: Document, column: str, item: MeasurementKeys, model: mujoco.MjModel) -> MeasurementMap:
    where = ("measurements", column)
    given = {element: getattr(item, element) for element in ELEMENTS if getattr(item, element) is not None}
    if len(given) != 1:
        found = " and ".join(given) or "nothing"
        text = f"measurement {column} names {found}: write exactly one of joint, body, actuator, sensor"
        raise document.error(where, text)
    element, name = next(iter(given.items()))
    _check_name(document, where, model, element, name)
    if element == "joint":
        _check_joint(document, where, model, name)
    quantity = _quantity(document, where, element, item.quantity)
    axis = _axis(document, where, element, name, item.axis, model)
    unit = measurement_unit(model, element, name, quantity)
    return MeasurementMap(column, element, name, quantity, axis, item.scale, item.offset, item.noise, unit)


def _check_column(document: Document, where: tuple[str, str]) -> None:
    if where[1] == "time_s":
        raise document.error(where, "column time_s is the time and is not mapped: delete this line")
    if not where[1].strip():
        raise document.error(where, f"a column without a name below {where[0]}: write the log's column name")


def _check_name(document: Document, where: tuple[str, str], model: mujoco.MjModel, element: Element, name: str) -> None:
    known = names(model, element)
    if name in known:
        return
    others = [kind for kind in ELEMENTS if kind != element and name in names(model, kind)]
    article = {"actuator": "an"}
    also = f" ({name} is {article.get(others[0], 'a')} {others[0]})" if others else ""
    text = f"{where[1]}: the model has no {element} {name}{also}; there are: {nearest(name, known)}"
    raise document.error((*where, element), f"{text}; write {element}: NAME")


def _check_joint(document: Document, where: tuple[str, str], model: mujoco.MjModel, name: str) -> None:
    joint_id = index(model, "joint", name)
    kind = mujoco.mjtJoint(model.jnt_type[joint_id])
    body = model.body(model.jnt_bodyid[joint_id]).name or "NAME"
    if kind == mujoco.mjtJoint.mjJNT_FREE:
        text = f"{where[1]}: joint {name} is free, not one number: map body, {{body: {body}, quantity: x}}"
        raise document.error((*where, "joint"), text)
    if kind == mujoco.mjtJoint.mjJNT_BALL:
        text = f"{where[1]}: joint {name} is a ball, not one number: map body, {{body: {body}, quantity: qw}}"
        raise document.error((*where, "joint"), text)


def _quantity(document: Document, where: tuple[str, str], element: Element, quantity: str | None) -> str:
    known = QUANTITIES[element]
    if quantity in known:
        return quantity
    if quantity is None and len(known) == 1:
        return known[0]
    if quantity is None:
        text = f"{where[1]}: quantity is missing; a {element} has: {', '.join(known)}"
        raise document.error(where, f"{text}; write quantity: {known[0]}")
    hint = _JOINT_HINTS.get(quantity.lower(), "") if element == "joint" else ""
    hint = _ACTUATOR_HINT if element == "actuator" else hint
    hint = _TURN_HINT if element == "body" and quantity.lower() in ("roll", "pitch") else hint
    hint = "delete quantity, write axis instead" if element == "sensor" else hint
    text = f"{where[1]}: no quantity {quantity}; there are: {nearest(quantity, known, 14)}"
    raise document.error((*where, "quantity"), f"{text}; {hint or 'write quantity: ' + known[0]}")


def _axis(
    document: Document,
    where: tuple[str, str],
    element: Element,
    name: str,
    axis: int | None,
    model: mujoco.MjModel,
) -> int:
    if axis is None:
        return 0
    if element != "sensor":
        raise document.error((*where, "axis"), f"{where[1]}: axis is for sensors: delete it")
    size = int(model.sensor_dim[index(model, "sensor", name)])
    if axis >= size:
        text = f"{where[1]}: axis {axis} of sensor {name}, which has {size}: write axis: 0 to {size - 1}"
        raise document.error((*where, "axis"), text)
    return axis
