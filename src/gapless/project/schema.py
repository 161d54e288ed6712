"""The keys of `gapless.yaml` and what each may hold."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from gapless.core.errors import nearest
from gapless.project.values import (
    Bound,
    Code,
    DimensionName,
    Noise,
    Number,
    Rate,
    Scale,
    SharingName,
    Target,
    Text,
    Whole,
    shown,
    smallest_value,
)
from gapless.project.yaml_file import Document

VERSION = "1"
MAX_RATIO_OF_BOUNDS = 1e12  # a search by factors gets lost in more
_EXAMPLES = {
    "model": "model: robot.xml",
    "rate_hz": "rate_hz: 100",
    "measurements": "measurements: {q_elbow: {joint: elbow, quantity: position}}",
    "actuator": "{actuator: NAME}",
    "joint": "{joint: NAME, quantity: position}",
    "target": "{target: joint/NAME/damping, low: 0, high: 2}",
}
_BELOW = {"commands": "actuator", "measurements": "joint", "parameters": "target"}


def _entries(value: Any) -> Any:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"not a mapping of columns: write lines such as 'q_elbow: {_EXAMPLES['joint']}'")
    return value


def _parameters(value: Any) -> Any:
    if value == "auto" or value is None:
        return None
    if isinstance(value, list):
        return value
    advice = f"write auto, or lines such as '- {_EXAMPLES['target']}'"
    raise ValueError(f"{shown(value)} is neither auto nor a list: {advice}")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class CommandKeys(_Strict):
    """One line below `commands`."""

    actuator: Text
    scale: Scale = 1.0
    offset: Number = 0.0
    noise: Noise | None = None


class MeasurementKeys(_Strict):
    """One line below `measurements`."""

    joint: Text | None = None
    body: Text | None = None
    actuator: Text | None = None
    sensor: Text | None = None
    quantity: Text | None = None
    axis: Whole | None = None
    scale: Scale = 1.0
    offset: Number = 0.0
    noise: Noise | None = None


class ParameterKeys(_Strict):
    """One item of the list `parameters`."""

    target: Target
    low: Bound | None = None
    high: Bound | None = None
    dimension: DimensionName | None = None
    per: SharingName = "robot"

    @model_validator(mode="after")
    def _ordered(self) -> "ParameterKeys":
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(
                f"{self.target}: low {self.low:g} is not below high {self.high:g}: write the smaller number as low"
            )
        least = smallest_value(self.target)
        for name, bound in (("low", self.low), ("high", self.high)):
            if bound is not None and bound < least:
                raise ValueError(f"{self.target} cannot be {bound:g}: write {name}: {least:g} or more")
        if self.low and self.high and self.low > 0 and self.high / self.low > MAX_RATIO_OF_BOUNDS:
            text = f"{self.target}: from {self.low:g} to {self.high:g} is a factor of more than {MAX_RATIO_OF_BOUNDS:g}"
            raise ValueError(f"{text}: write low: 0, or bounds that are closer")
        return self


class ProjectKeys(_Strict):
    """The top level of `gapless.yaml`."""

    gapless: Literal["1"]
    name: Text | None = None
    model: Text
    rate_hz: Rate
    commands: Annotated[dict[str, CommandKeys], BeforeValidator(_entries)] = Field(default_factory=dict)
    measurements: Annotated[dict[str, MeasurementKeys], BeforeValidator(_entries)]
    logs: Text = "logs"
    parameters: Annotated[list[ParameterKeys] | None, BeforeValidator(_parameters)] = None
    task: Code | None = None
    reality: Code | None = None


def read_keys(document: Document) -> ProjectKeys:
    """Returns the document's keys, checked one by one but not yet against the model.

    Raises:
        ProjectError: One line about the first mistake.
    """
    version = document.data.get("gapless")
    if "gapless" not in document.data:
        raise document.error((), "key gapless is missing: begin the file with 'gapless: 1'")
    if version != VERSION:
        text = f"gapless: {shown(version)} is not a version known here: write 'gapless: 1'"
        raise document.error(("gapless",), text)
    try:
        return ProjectKeys.model_validate(document.data)
    except ValidationError as error:
        _refuse(document, error)


def _refuse(document: Document, error: ValidationError) -> NoReturn:
    """Turns pydantic's findings into one line about the most telling of them."""
    order = {"extra_forbidden": 0, "missing": 2}
    first = min(error.errors(include_url=False), key=lambda item: order.get(item["type"], 1))
    where: tuple[str | int, ...] = first["loc"]
    key_path = ".".join(str(part) for part in where)
    key = str(where[-1])
    if first["type"] == "extra_forbidden":
        raise document.error(where, f"unknown key {key_path}; choose from: {nearest(key, _known(where), 10)}")
    if first["type"] == "missing":
        raise document.error(where[:-1], f"key {key_path} is missing: write {_EXAMPLES[key]}")
    if "error" in first.get("ctx", {}):
        raise document.error(where, f"{key_path}: {first['ctx']['error']}")
    raise document.error(where, f"{key_path}: not a mapping: write {_EXAMPLES[_BELOW[str(where[0])]]}")


def _known(where: tuple[str | int, ...]) -> tuple[str, ...]:
    """Returns the keys that may stand where an unknown one stood."""
    below = {"commands": CommandKeys, "measurements": MeasurementKeys, "parameters": ParameterKeys}
    keys: type[_Strict] = below[str(where[0])] if len(where) > 1 else ProjectKeys
    return tuple(keys.model_fields)
