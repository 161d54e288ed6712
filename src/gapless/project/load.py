"""Reads a project folder: `gapless.yaml`, checked against the names in the model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import mujoco

from gapless.core.errors import nearest
from gapless.project.model import QUANTITIES, command_unit, index, load_model, measurement_unit, names
from gapless.project.records import CommandMap, Element, MeasurementMap, ParameterEntry, Project
from gapless.project.schema import MeasurementKeys, ProjectKeys, read_keys
from gapless.project.yaml_file import FILE_NAME, Document, read_document

ELEMENTS: tuple[Element, ...] = get_args(Element)
_YAW_ONLY = "of angles only yaw; for others map qw qx qy qz"
_HINTS = {  # quantity that no joint has -> what to write instead
    **dict.fromkeys(
        ("degrees", "degree", "deg", "angle", "angles"), "use position with scale: 0.01745 if the column is in degrees"
    ),
    **dict.fromkeys(("deg/s", "degrees/s"), "use velocity with scale: 0.01745 if the column is in degrees/s"),
    **dict.fromkeys(("rad", "radians", "pos", "qpos", "q", "theta", "m"), "use position"),
    **dict.fromkeys(("mm", "millimetres", "millimeters"), "use position with scale: 0.001"),
    **dict.fromkeys(("vel", "qvel", "dq", "qd", "speed", "rad/s", "m/s"), "use velocity"),
    "rpm": "use velocity with scale: 0.10472 if the column is in revolutions per minute",
    **dict.fromkeys(("torque", "tau", "force", "nm", "n"), "use effort, the generalised force at the joint"),
}


def load_project(directory: str | Path) -> Project:
    """Reads and checks a project folder: its `gapless.yaml`, that its model compiles, that all names exist.

    Logs are not read, and the owner's code is not loaded.

    Raises:
        ProjectError: One line about the first mistake: what was found, what exists, what to write.
    """
    folder = Path(directory).expanduser()
    if folder.name == FILE_NAME and folder.is_file():
        folder = folder.parent
    document = read_document(folder / FILE_NAME)
    keys = read_keys(document)
    model_path = folder / Path(keys.model).expanduser()
    mapper = _Mapper(document, load_model(model_path))
    return Project(
        directory=folder,
        name=keys.name or folder.resolve().name,
        model_path=model_path,
        rate_hz=keys.rate_hz,
        horizon_s=keys.horizon_s,
        commands=mapper.map_commands(keys),
        measurements=mapper.map_measurements(keys),
        logs_path=folder / Path(keys.logs).expanduser(),
        parameters=_read_parameters(document, keys),
        task=keys.task,
        reality=keys.reality,
    )


def _read_parameters(document: Document, keys: ProjectKeys) -> Literal["auto"] | tuple[ParameterEntry, ...]:
    if keys.parameters is None:
        return "auto"
    found: dict[str, ParameterEntry] = {}
    for place, item in enumerate(keys.parameters):
        if item.target in found:
            raise document.error(("parameters", place), f"parameter {item.target} is listed twice: keep one")
        found[item.target] = ParameterEntry(item.target, item.low, item.high, item.dimension, item.per)
    return tuple(found.values())


@dataclass(frozen=True)
class _Mapper:
    """Maps columns to elements of a model; each mistake is one line about its place in the document."""

    document: Document
    model: mujoco.MjModel

    def map_commands(self, keys: ProjectKeys) -> tuple[CommandMap, ...]:
        found: dict[str, CommandMap] = {}
        for column, item in keys.commands.items():
            where = ("commands", column)
            self._check_column(where)
            self._check_name(where, "actuator", item.actuator)
            if item.actuator in found:
                both = f"columns {found[item.actuator].column} and {column} both command actuator {item.actuator}"
                raise self.document.error(where, f"{both}: keep one")
            unit = command_unit(self.model, item.actuator)
            found[item.actuator] = CommandMap(column, item.actuator, item.scale, item.offset, unit, item.noise)
        return tuple(found.values())

    def map_measurements(self, keys: ProjectKeys) -> tuple[MeasurementMap, ...]:
        if not keys.measurements:
            text = "measurements is empty: map at least one column"
            raise self.document.error(("measurements",), f"{text}, such as q: {{joint: elbow, quantity: position}}")
        found: dict[tuple[str, str, str, int], MeasurementMap] = {}
        for column, item in keys.measurements.items():
            where = ("measurements", column)
            self._check_column(where)
            if column in keys.commands:
                raise self.document.error(where, f"column {column} is mapped as command and as measurement: keep one")
            mapped = self._map_measurement(where, item)
            key = (mapped.element, mapped.name, mapped.quantity, mapped.axis)
            if key in found:
                what = f"{mapped.element} {mapped.name} {mapped.quantity}"
                what += f" axis {mapped.axis}" if mapped.element == "sensor" else ""
                text = f"columns {found[key].column} and {column} both map {what}: keep one"
                raise self.document.error(where, text)
            found[key] = mapped
        return tuple(found.values())

    def _map_measurement(self, where: tuple[str, str], item: MeasurementKeys) -> MeasurementMap:
        given: dict[Element, str] = {kind: name for kind in ELEMENTS if (name := getattr(item, kind)) is not None}
        if len(given) != 1:
            found = " and ".join(given) or "nothing"
            text = f"measurement {where[1]} names {found}: write exactly one of joint, body, actuator, sensor"
            raise self.document.error(where, text)
        element, name = next(iter(given.items()))
        self._check_name(where, element, name)
        quantity = self._check_quantity(where, element, item.quantity)
        axis = self._check_axis(where, element, name, item.axis)
        unit = measurement_unit(self.model, element, name, quantity)
        return MeasurementMap(where[1], element, name, quantity, axis, item.scale, item.offset, item.noise, unit)

    def _check_column(self, where: tuple[str, str]) -> None:
        if where[1] == "time_s":
            raise self.document.error(where, "column time_s is the time and is not mapped: delete this line")
        if not where[1].strip():
            raise self.document.error(where, f"a column without a name below {where[0]}: write the log's column name")

    def _check_name(self, where: tuple[str, str], element: Element, name: str) -> None:
        """Checks that an element exists and, if it is a joint, that its position is one number."""
        known = names(self.model, element)
        if name not in known:
            others = [kind for kind in ELEMENTS if kind != element and name in names(self.model, kind)]
            also = f" ({name} is {'an' if others[0] == 'actuator' else 'a'} {others[0]})" if others else ""
            text = f"{where[1]}: the model has no {element} {name}{also}; there are: {nearest(name, known)}"
            raise self.document.error((*where, element), f"{text}; write {element}: NAME")
        if element == "joint":
            joint_id = index(self.model, "joint", name)
            body = self.model.body(self.model.jnt_bodyid[joint_id]).name or "NAME"
            quantities = {mujoco.mjtJoint.mjJNT_FREE: ("free", "x"), mujoco.mjtJoint.mjJNT_BALL: ("a ball", "qw")}
            if found := quantities.get(mujoco.mjtJoint(self.model.jnt_type[joint_id])):
                several = f"{where[1]}: joint {name} is {found[0]}, not one number: map body"
                raise self.document.error((*where, "joint"), f"{several}, {{body: {body}, quantity: {found[1]}}}")

    def _check_quantity(self, where: tuple[str, str], element: Element, quantity: str | None) -> str:
        known = QUANTITIES[element]
        if quantity in known:
            return quantity
        if quantity is None and len(known) == 1:
            return known[0]
        if quantity is None:
            missing = f"{where[1]}: quantity is missing; a {element} has: {', '.join(known)}"
            raise self.document.error(where, f"{missing}; write quantity: {known[0]}")
        write = f"write quantity: {known[0]}"
        hints = {
            "joint": _HINTS.get(quantity.lower(), write),
            "actuator": "an actuator has force only; for position or velocity write joint: NAME",
            "body": {"roll": _YAW_ONLY, "pitch": _YAW_ONLY}.get(quantity.lower(), write),
            "sensor": "delete quantity, write axis instead",
        }
        text = f"{where[1]}: no quantity {quantity}; there are: {nearest(quantity, known, 14)}"
        raise self.document.error((*where, "quantity"), f"{text}; {hints[element]}")

    def _check_axis(self, where: tuple[str, str], element: Element, name: str, axis: int | None) -> int:
        if axis is None:
            return 0
        if element != "sensor":
            raise self.document.error((*where, "axis"), f"{where[1]}: axis is for sensors: delete it")
        size = int(self.model.sensor_dim[index(self.model, "sensor", name)])
        if axis >= size:
            text = f"{where[1]}: axis {axis} of sensor {name}, which has {size}: write axis: 0 to {size - 1}"
            raise self.document.error((*where, "axis"), text)
        return axis
