"""Reads a project folder: `gapless.yaml`, checked against the names in the model."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

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
_NEEDED_KEYS = ("gapless", "model", "rate_hz", "measurements")
_PROJECT_KEYS = (*_NEEDED_KEYS, "name", "horizon_s", "commands", "logs", "parameters", "task", "reality")
_SCALING_KEYS = ("scale", "offset", "noise")
_PARAMETER_KEYS = tuple(field.name for field in fields(ParameterEntry))
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
    version = {key: value for key, value in document.data.items() if key == "gapless"}
    read_keys(document, (), version, ["gapless"], ["gapless"])  # first, as another version may have other keys
    keys = read_keys(document, (), document.data, _PROJECT_KEYS, _NEEDED_KEYS)
    model_path = folder / Path(keys["model"]).expanduser()
    mapper = _Mapper(document, load_model(model_path))
    return Project(
        directory=folder,
        name=keys.get("name", folder.resolve().name),
        model_path=model_path,
        rate_hz=keys["rate_hz"],
        horizon_s=keys.get("horizon_s", DEFAULT_HORIZON_S),
        commands=mapper.map_commands(keys.get("commands", {})),
        measurements=mapper.map_measurements(keys["measurements"], keys.get("commands", {})),
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

    def map_commands(self, entries: dict[str, Any]) -> tuple[CommandMap, ...]:
        found: dict[str, CommandMap] = {}
        for column, entry in entries.items():
            where = ("commands", column)
            self._check_column(where)
            keys = read_keys(self.document, where, entry, ("actuator", *_SCALING_KEYS), ["actuator"])
            actuator = keys["actuator"]
            self._check_name(where, "actuator", actuator)
            if actuator in found:
                both = f"columns {found[actuator].column} and {column} both command actuator {actuator}"
                raise self.document.error(where, f"{both}: keep one")
            found[actuator] = CommandMap(column, unit=command_unit(self.model, actuator), **keys)
        return tuple(found.values())

    def map_measurements(self, entries: dict[str, Any], commands: dict[str, Any]) -> tuple[MeasurementMap, ...]:
        if not entries:
            text = "measurements is empty: map at least one column"
            raise self.document.error(("measurements",), f"{text}, such as q: {{joint: elbow, quantity: position}}")
        found: dict[tuple[str, str, str, int], MeasurementMap] = {}
        for column, entry in entries.items():
            where = ("measurements", column)
            self._check_column(where)
            if column in commands:
                raise self.document.error(where, f"column {column} is mapped as command and as measurement: keep one")
            mapped = self._map_measurement(where, entry)
            key = (mapped.element, mapped.name, mapped.quantity, mapped.axis)
            if key in found:
                what = f"{mapped.element} {mapped.name} {mapped.quantity}"
                what += f" axis {mapped.axis}" if mapped.element == "sensor" else ""
                text = f"columns {found[key].column} and {column} both map {what}: keep one"
                raise self.document.error(where, text)
            found[key] = mapped
        return tuple(found.values())

    def _map_measurement(self, where: tuple[str, str], entry: Any) -> MeasurementMap:
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

    def _check_axis(self, where: tuple[str, str], element: Element, name: str, axis: int | None) -> None:
        if axis is None:
            return
        if element != "sensor":
            raise self.document.error((*where, "axis"), f"{where[1]}: axis is for sensors: delete it")
        size = int(self.model.sensor_dim[index(self.model, "sensor", name)])
        if axis >= size:
            text = f"{where[1]}: axis {axis} of sensor {name}, which has {size}: write axis: 0 to {size - 1}"
            raise self.document.error((*where, "axis"), text)
