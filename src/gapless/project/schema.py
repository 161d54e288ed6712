"""The keys of `gapless.yaml`: what each may hold, with an example of what to write."""

import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, StringConstraints, ValidationError, model_validator

from gapless.core.dimensions import Dimension
from gapless.core.errors import ProjectError, nearest
from gapless.core.parameters import Sharing
from gapless.core.target_path import FIELDS
from gapless.project.yaml_file import Document

MAX_BOUND = 1e12  # size of a bound of a parameter, in its unit


def _check_scale(number: float) -> float:
    if number == 0:
        raise ValueError("makes every value the same, give the factor")
    return number


def _check_target(text: str) -> str:
    kind, _, rest = text.partition("/")
    is_whole = rest == rest.strip() and not rest.endswith("/") and (kind == "world" or "/" in rest[1:])
    if kind not in FIELDS or not rest or not is_whole:
        raise ValueError(f"is malformed, give kind/NAME/field with a kind of {', '.join(FIELDS)}")
    return text


_Number = Annotated[float, Field(allow_inf_nan=False)]
_Scale = Annotated[_Number, AfterValidator(_check_scale)]
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Target = Annotated[_Text, AfterValidator(_check_target)]
_Bound = Annotated[_Number, Field(ge=-MAX_BOUND, le=MAX_BOUND)]
_Code = Annotated[str, Field(pattern=r"^[^:]+\.py:[A-Za-z_]\w*$")]
_LIST_EXAMPLE = "auto, or a list [{target: joint/elbow/damping, low: 0, high: 2}]"


class _Keys(BaseModel, extra="forbid"):
    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, data: Any) -> Any:
        """A key without a value counts as not written."""
        if not isinstance(data, dict):
            return data
        return {key: value for key, value in data.items() if value is not None or key not in cls.model_fields}


class _ScaledKeys(_Keys):
    scale: _Scale = Field(1.0, examples=["0.5, model units per unit of the column"])
    offset: _Number = Field(0.0, examples=["0.1"])
    noise: _Number | None = Field(None, ge=0, examples=["0.001, a standard deviation"])


class CommandKeys(_ScaledKeys):
    """What may stand at a column of `commands`."""

    actuator: _Text


class MeasurementKeys(_ScaledKeys):
    """What may stand at a column of `measurements`."""

    joint: _Text | None = None
    body: _Text | None = None
    actuator: _Text | None = None
    sensor: _Text | None = None
    quantity: _Text | None = None
    axis: int | None = Field(None, ge=0, examples=["0"])


class ParameterKeys(_Keys):
    """What may stand at an item of `parameters`; for the fields see `ParameterEntry`."""

    target: _Target = Field(examples=["joint/elbow/damping"])
    low: _Bound | None = Field(None, examples=["0"])
    high: _Bound | None = Field(None, examples=["2"])
    dimension: Dimension | None = Field(None, examples=["actuator"])
    per: Sharing = Field("robot", examples=["robot if all runs share the value, episode if each has its own"])


class DataKeys(_Keys):
    """What may stand in the `gapless.yaml` of a project that has data only; for the fields see `Project`."""

    gapless: Literal["1"] = Field(examples=["1"])
    name: _Text | None = None
    columns: dict[str, _Text | None] = Field({}, examples=["{observation.state.elbow: q_elbow}"])


class ProjectKeys(_Keys):
    """What may stand in `gapless.yaml`, not yet checked against the model; for the fields see `Project`."""

    gapless: Literal["1"] = Field(examples=["1"])
    name: _Text | None = None
    columns: dict[str, _Text | None] = Field({}, examples=["{observation.state.elbow: q_elbow}"])
    model: _Text = Field(examples=["robot.xml"])
    rate_hz: _Number = Field(ge=0.1, le=1e5, examples=["100"])  # slower is no control; no drive's loop is faster
    horizon_s: _Number = Field(1.0, gt=0, le=3600, examples=["1"])
    commands: dict[str, CommandKeys] = Field({}, examples=["{u_elbow: {actuator: elbow}}"])
    measurements: dict[str, MeasurementKeys] = Field({}, examples=["{q_elbow: {joint: elbow, quantity: position}}"])
    logs: _Text = "logs"
    parameters: list[ParameterKeys] | None = Field(None, examples=[_LIST_EXAMPLE])  # None is `auto`
    task: _Code | None = Field(None, examples=["FILE.py:NAME, such as task.py:Push"])
    reality: _Code | None = Field(None, examples=["FILE.py:NAME, such as twin.py:make"])


_AnyKeys = TypeVar("_AnyKeys", DataKeys, ProjectKeys)
_ENTRIES = {  # section -> keys of an entry, and what every entry has
    "commands": (CommandKeys, "actuator: NAME"),
    "measurements": (MeasurementKeys, "joint: NAME"),
    "parameters": (ParameterKeys, "target: joint/elbow/damping"),
}


def read_keys(document: Document) -> ProjectKeys:
    """Returns what a project file says; raises ProjectError about the first mistake, another version before all."""
    return _validate(document, ProjectKeys)


def read_data_keys(document: Document) -> DataKeys:
    """Returns what the file of a project with data only says, as `read_keys` does."""
    return _validate(document, DataKeys)


def _validate(document: Document, keys: type[_AnyKeys]) -> _AnyKeys:
    written = {key: value for key, value in document.data.items() if (key, value) != ("parameters", "auto")}
    try:
        return keys.model_validate(written)
    except ValidationError as error:
        ranks = {"extra_forbidden": 1, "missing": 2}
        mistakes = error.errors(include_url=False)
        first = min(mistakes, key=lambda each: 0 if each["loc"] == ("gapless",) else ranks.get(each["type"], 3))
        raise _explain(first, document) from None


def _explain(mistake: Any, document: Document) -> ProjectError:
    """Returns a one-line error for a mistake that pydantic found."""
    where = mistake["loc"]
    path, key = ".".join(map(str, where)), str(where[-1])
    keys, begin = _ENTRIES[where[0]] if len(where) > 1 else (ProjectKeys, "")
    known = keys.model_fields
    if mistake["type"] == "extra_forbidden":
        return document.error(where, f"unknown key {path}; choose from: {nearest(key, known, 10)}")
    example = (known[key].examples if key in known else None) or ["NAME"]
    if mistake["type"] == "missing":
        return document.error(where, f"key {path} is missing: write {key}: {example[0]}")
    value = mistake["input"]
    shown = {str: f"'{str(value)[:60]}'", list: "a list", dict: "a mapping"}.get(type(value), "nothing")
    if mistake["type"] == "model_type":
        return document.error(where, f"{path}: {shown} is not a mapping: write {{{begin}, ...}}")
    reason = re.sub("^(Input|String) should ", "must ", mistake["msg"].removeprefix("Value error, "))
    return document.error(where, f"{path}: {shown} {reason}: write {key}: {example[0]}")
