"""Reads a project folder: `gapless.yaml`, checked against the names in the model."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import mujoco

from gapless.core.errors import nearest
from gapless.core.target_path import smallest_value
from gapless.project.model import QUANTITIES, command_unit, index, load_model, measurement_unit, names
from gapless.project.records import CommandMap, Element, MeasurementMap, ParameterEntry, Project
from gapless.project.schema import read_keys
from gapless.project.yaml_file import FILE_NAME, Document, read_document

DEFAULT_HORIZON_S = 1.0
MAX_RATIO_OF_BOUNDS = 1e12  # a search by factors gets lost in more
ELEMENTS: tuple[Element, ...] = get_args(Element)
_Place = tuple[str, str]  # section and column
_Map = TypeVar("_Map", CommandMap, MeasurementMap)
_NEEDED_KEYS = ("gapless", "model", "rate_hz", "measurements")
_PROJECT_KEYS = (*_NEEDED_KEYS, "name", "horizon_s", "commands", "logs", "parameters", "task", "reality")
_SCALING_KEYS = ("scale", "offset", "noise")
_PARAMETER_KEYS = tuple(field.name for field in fields(ParameterEntry))
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
    version = {key: value for key, value in document.data.items() if key == "gapless"}
    read_keys(document, (), version, ["gapless"], ["gapless"])  # first, as another version may have other keys
    keys = read_keys(document, (), document.data, _PROJECT_KEYS, _NEEDED_KEYS)
    model_path = folder / Path(keys["model"]).expanduser()
    mapper = _Mapper(document, load_model(model_path))
    for column in (column for column in keys["measurements"] if column in keys.get("commands", {})):
        text = f"column {column} is mapped as command and as measurement: keep one"
        raise document.error(("measurements", column), text)
    if not keys["measurements"]:
        text = "measurements is empty: map at least one column, such as q: {joint: elbow, quantity: position}"
        raise document.error(("measurements",), text)
    return Project(
        directory=folder,
        name=keys.get("name", folder.resolve().name),
        model_path=model_path,
        rate_hz=keys["rate_hz"],
        horizon_s=keys.get("horizon_s", DEFAULT_HORIZON_S),
        commands=mapper.map_columns("commands", keys.get("commands", {}), mapper.map_command),
        measurements=mapper.map_columns("measurements", keys["measurements"], mapper.map_measurement),
        logs_path=folder / Path(keys.get("logs", "logs")).expanduser(),
        parameters=_read_parameters(document, keys.get("parameters")),
        task=keys.get("task"),
        reality=keys.get("reality"),
    )


def _read_parameters(document: Document, listed: Any) -> Literal["auto"] | tuple[ParameterEntry, ...]:
    if not isinstance(listed, list):
        return "auto"
    found: dict[str, ParameterEntry] = {}
    for place, item in enumerate(listed):
        where = ("parameters", place)
        entry = ParameterEntry(**read_keys(document, where, item, _PARAMETER_KEYS, ["target"]))
        if entry.target in found:
            raise document.error(where, f"parameter {entry.target} is listed twice: keep one")
        if fault := _check_bounds(entry):
            raise document.error(where, f"{entry.target}: {fault}")
        found[entry.target] = entry
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

    def map_columns(
        self, section: str, entries: dict[str, Any], map_entry: Callable[[_Place, Any], _Map]
    ) -> tuple[_Map, ...]:
        """Maps all columns of a section; two must not map the same."""
        found: dict[str, _Map] = {}
        for column, entry in entries.items():
            where = (section, column)
            if column == "time_s":
                raise self.document.error(where, "column time_s is the time and is not mapped: delete this line")
            if not column.strip():
                raise self.document.error(
                    where, f"a column without a name below {section}: write the log's column name"
                )
            mapped = map_entry(where, entry)
            if mapped.what in found:
                text = f"columns {found[mapped.what].column} and {column} both map {mapped.what}: keep one"
                raise self.document.error(where, text)
            found[mapped.what] = mapped
        return tuple(found.values())

    def map_command(self, where: _Place, entry: Any) -> CommandMap:
        keys = read_keys(self.document, where, entry, ("actuator", *_SCALING_KEYS), ["actuator"])
        self._check_name(where, "actuator", keys["actuator"])
        return CommandMap(where[1], unit=command_unit(self.model, keys["actuator"]), **keys)

    def map_measurement(self, where: _Place, entry: Any) -> MeasurementMap:
        given: list[Element] = [kind for kind in ELEMENTS if not isinstance(entry, dict) or kind in entry]
        if isinstance(entry, dict) and len(given) != 1:
            found = " and ".join(given) or "nothing"
            text = f"measurement {where[1]} names {found}: write exactly one of {', '.join(ELEMENTS)}"
            raise self.document.error(where, text)
        element = given[0]
        keys = read_keys(self.document, where, entry, (*ELEMENTS, "quantity", "axis", *_SCALING_KEYS), given)
        name = keys.pop(element)
        self._check_name(where, element, name)
        keys["quantity"] = self._check_quantity(where, element, keys.get("quantity"))
        self._check_axis(where, element, name, keys.get("axis"))
        unit = measurement_unit(self.model, element, name, keys["quantity"])
        return MeasurementMap(where[1], element, name, unit=unit, **keys)

    def _check_name(self, where: _Place, element: Element, name: str) -> None:
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

    def _check_quantity(self, where: _Place, element: Element, quantity: str | None) -> str:
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

    def _check_axis(self, where: _Place, element: Element, name: str, axis: int | None) -> None:
        if axis is None:
            return
        if element != "sensor":
            raise self.document.error((*where, "axis"), f"{where[1]}: axis is for sensors: delete it")
        size = int(self.model.sensor_dim[index(self.model, "sensor", name)])
        if axis >= size:
            text = f"{where[1]}: axis {axis} of sensor {name}, which has {size}: write axis: 0 to {size - 1}"
            raise self.document.error((*where, "axis"), text)
