"""Reads a project folder: `gapless.yaml`, checked against the names in the model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import mujoco

from gapless.core.errors import nearest
from gapless.core.target_path import smallest_value
from gapless.project.model import QUANTITIES, command_unit, index, load_model, measurement_unit, names
from gapless.project.records import CommandMap, Element, MeasurementMap, ParameterEntry, Project
from gapless.project.schema import CommandKeys, MeasurementKeys, ProjectKeys, read_keys
from gapless.project.yaml_file import FILE_NAME, Document, read_document

MAX_RATIO_OF_BOUNDS = 1e12  # a search by factors gets lost in more
ELEMENTS: tuple[Element, ...] = get_args(Element)
_HINTS: dict[Element, str] = {  # element -> what to write in place of a quantity that it does not have
    "joint": "use position, velocity or effort (the force or torque) in SI units; a column in degrees has scale: "
    "0.01745, in mm 0.001, in rpm 0.10472",
    "actuator": "an actuator has force only; for position or velocity write joint: NAME",
    "body": "of angles use only yaw; for others map qw qx qy qz",
    "sensor": "delete quantity, write axis instead",
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
    if not keys.measurements:
        text = "measurements is empty: map at least one column, such as q: {joint: elbow, quantity: position}"
        raise document.error(("measurements",), text)
    commands = tuple(mapper.map_command(column, entry) for column, entry in keys.commands.items())
    measurements = tuple(mapper.map_measurement(column, entry) for column, entry in keys.measurements.items())
    _check_columns(document, commands, measurements)
    return Project(
        directory=folder,
        name=keys.name or folder.resolve().name,
        model_path=model_path,
        rate_hz=keys.rate_hz,
        horizon_s=keys.horizon_s,
        commands=commands,
        measurements=measurements,
        logs_path=folder / Path(keys.logs).expanduser(),
        parameters=_read_parameters(document, keys),
        task=keys.task,
        reality=keys.reality,
        columns=keys.columns,
    )


def _check_columns(
    document: Document, commands: tuple[CommandMap, ...], measurements: tuple[MeasurementMap, ...]
) -> None:
    """Refuses columns that are the time, or mapped twice, and meanings that two columns have."""
    by_column: dict[str, str] = {}
    by_meaning: dict[str, str] = {}
    for item in (*commands, *measurements):
        column, where = item.column, ("commands" if isinstance(item, CommandMap) else "measurements", item.column)
        if column == "time_s":
            raise document.error(where, "column time_s is the time and is not mapped: delete this line")
        if not column.strip():
            raise document.error(where, f"a column without a name below {where[0]}: write the log's column name")
        if by_column.setdefault(column, where[0]) != where[0]:
            raise document.error(where, f"column {column} is mapped as command and as measurement: keep one")
        if (other := by_meaning.setdefault(item.what, column)) != column:
            raise document.error(where, f"columns {other} and {column} both map {item.what}: keep one")


def _read_parameters(document: Document, keys: ProjectKeys) -> Literal["auto"] | tuple[ParameterEntry, ...]:
    if keys.parameters is None:
        return "auto"
    found: dict[str, ParameterEntry] = {}
    for place, item in enumerate(keys.parameters):
        entry, where = ParameterEntry(**item.model_dump()), ("parameters", place)
        if found.setdefault(entry.target, entry) is not entry:
            raise document.error(where, f"parameter {entry.target} is listed twice: keep one")
        if fault := _check_bounds(entry):
            raise document.error(where, f"{entry.target}: {fault}")
    return tuple(found.values())


def _check_bounds(entry: ParameterEntry) -> str:
    """Returns what is wrong with the bounds of a parameter; empty if nothing is."""
    low, high, least = entry.low, entry.high, smallest_value(entry.target)
    for name, bound in (("low", low), ("high", high)):
        if bound is not None and bound < least:
            return f"it cannot be {bound:g}: write {name}: {least:g} or more"
    if low is not None and high is not None and low >= high:
        return f"low {low:g} is not below high {high:g}: write the smaller number as low"
    if low and high and low > 0 and high / low > MAX_RATIO_OF_BOUNDS:
        text = f"from {low:g} to {high:g} is a factor of more than {MAX_RATIO_OF_BOUNDS:g}"
        return f"{text}: write low: 0, or bounds that are closer"
    return ""


@dataclass(frozen=True)
class _Mapper:
    """Maps columns to elements of a model; each mistake is one line about its place in the document."""

    document: Document
    model: mujoco.MjModel

    def map_command(self, column: str, keys: CommandKeys) -> CommandMap:
        self._check_name(("commands", column), "actuator", keys.actuator)
        return CommandMap(column, unit=command_unit(self.model, keys.actuator), **keys.model_dump())

    def map_measurement(self, column: str, keys: MeasurementKeys) -> MeasurementMap:
        where = ("measurements", column)
        given: dict[Element, str] = {kind: name for kind in ELEMENTS if (name := getattr(keys, kind)) is not None}
        if len(given) != 1:
            found = " and ".join(given) or "nothing"
            text = f"measurement {column} names {found}: write exactly one of {', '.join(ELEMENTS)}"
            raise self.document.error(where, text)
        ((element, name),) = given.items()
        self._check_name(where, element, name)
        quantity = self._check_quantity(where, element, keys.quantity)
        if keys.axis is not None and element != "sensor":
            raise self.document.error((*where, "axis"), f"{column}: axis is for sensors: delete it")
        size, axis = int(self.model.sensor(name).dim[0]) if element == "sensor" else 1, keys.axis or 0
        if axis >= size:
            text = f"{column}: axis {axis} of sensor {name}, which has {size}: write axis: 0 to {size - 1}"
            raise self.document.error((*where, "axis"), text)
        unit = measurement_unit(self.model, element, name, quantity)
        return MeasurementMap(column, element, name, quantity, axis, keys.scale, keys.offset, keys.noise, unit)

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
        text = f"{where[1]}: no quantity {quantity}; choose from: {nearest(quantity, known, 14)}"
        raise self.document.error((*where, "quantity"), f"{text}; {_HINTS[element]}")
