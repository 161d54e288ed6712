"""The keys of `gapless.yaml`, and what each may hold; each mistake has its own message."""

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.errors import nearest
from gapless.core.parameters import SHARINGS, Sharing
from gapless.project.yaml_file import Document

TARGET_KINDS = ("joint", "actuator", "body", "geom", "site", "world", "measurement")
MIN_RATE_HZ, MAX_RATE_HZ = 0.1, 1e5  # slower is no control; faster than any drive's own current loop
MAX_HORIZON_S = 3600.0
MAX_BOUND = 1e12  # size of a bound of a parameter, in its unit
# Fields that physics keeps from being negative. Gains, offsets, biases, loads, centres and tilts have either sign.
NOT_NEGATIVE = frozenset(
    (
        *("damping", "frictionloss", "armature", "stiffness", "backlash", "creep"),  # of joints
        *("kp", "kd", "delay", "lag", "limit", "speed"),  # of actuators and readings
        *("resistance", "motorconst", "voltage", "cogging", "coulomb", "static", "stribeck"),  # of DC motors
        *("mass", "length", "inertia", "spread", "payload"),  # of bodies
        *("friction", "restitution", "size"),  # of geoms
    )
)


def smallest_value(target: str) -> float:
    """Returns the smallest value that a target can have by physics, in its unit or as a factor; -inf without a limit.

    Knobs of layers have limits of their own besides; see `Knob`.
    """
    *_, owner, field = ("", *target.split("/"))
    name = owner if field in ("x", "y", "z") else field
    return 0.0 if name in NOT_NEGATIVE else -math.inf


def show_value(value: Any) -> str:
    """Returns a value as the owner wrote it, short."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"'{value[:60]}'"
    return "a list" if isinstance(value, list) else "a mapping"


def _read_number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{show_value(value)} is not a number: write one such as 0.5") from None
    if not math.isfinite(number):
        raise ValueError(f"{show_value(value)} is not finite: write a number such as 0.5")
    return number


def _read_text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{show_value(value)} is not a name: write text")
    return value.strip()


def _read_whole(value: Any) -> int:
    if not isinstance(value, str) or not value.strip().isdecimal():
        raise ValueError(f"{show_value(value)} is not a whole number: write 0, 1, 2, ...")
    return int(value)


def _check_scale(number: float) -> float:
    if number == 0:
        raise ValueError("scale 0 makes every value the same: write the factor from column to model units")
    return number


def _check_noise(number: float) -> float:
    if number < 0:
        raise ValueError(f"noise {number:g} is negative: it is a standard deviation, write {-number:g}")
    return number


def _check_rate(number: float) -> float:
    if not MIN_RATE_HZ <= number <= MAX_RATE_HZ:
        found = f"{number:g} is not positive" if number <= 0 else f"{number:g} Hz is no control rate"
        raise ValueError(f"{found}: write one from {MIN_RATE_HZ:g} to {MAX_RATE_HZ:g} Hz, such as 100")
    return number


def _check_horizon(number: float) -> float:
    if not 0.0 < number <= MAX_HORIZON_S:
        raise ValueError(f"{number:g} s is no horizon: write how far ahead predictions must hold, such as 1")
    return number


def _check_bound(number: float) -> float:
    if abs(number) > MAX_BOUND:
        raise ValueError(f"{number:g} is beyond {MAX_BOUND:g}: write the largest value that this robot could have")
    return number


def _read_code(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[^:]+\.py:[A-Za-z_]\w*", value):
        raise ValueError(f"{show_value(value)} does not name code: write FILE.py:NAME, such as task.py:Push")
    return value


def _read_dimension(value: Any) -> Any:
    if value not in DIMENSIONS:
        raise ValueError(f"no dimension {show_value(value)}; choose from: {nearest(str(value), DIMENSIONS, 9)}")
    return value


def _read_sharing(value: Any) -> Any:
    if value not in SHARINGS:
        text = f"per {show_value(value)}: write robot if all runs share the value, episode if each has its own"
        raise ValueError(text)
    return value


def _read_target(value: Any) -> str:
    form = "write kind/NAME/field, such as joint/elbow/damping"
    text = _read_text(value)
    kind, _, rest = text.partition("/")
    if kind not in TARGET_KINDS:
        kinds = nearest(kind, TARGET_KINDS)
        raise ValueError(f"target {value} begins with {kind or 'nothing'}; there are: {kinds}; {form}")
    if rest != rest.strip() or rest.endswith("/") or (kind != "world" and "/" not in rest[1:]) or not rest:
        raise ValueError(f"target {value} is malformed: {form}")
    return text


Number = Annotated[float, BeforeValidator(_read_number)]
Whole = Annotated[int, BeforeValidator(_read_whole)]
Text = Annotated[str, BeforeValidator(_read_text)]
Scale = Annotated[Number, AfterValidator(_check_scale)]
Bound = Annotated[Number, AfterValidator(_check_bound)]
Noise = Annotated[Number, AfterValidator(_check_noise)]
Rate = Annotated[Number, AfterValidator(_check_rate)]
Horizon = Annotated[Number, AfterValidator(_check_horizon)]
Code = Annotated[str, BeforeValidator(_read_code)]
Target = Annotated[str, BeforeValidator(_read_target)]
SharingName = Annotated[Sharing, BeforeValidator(_read_sharing)]
DimensionName = Annotated[Dimension, BeforeValidator(_read_dimension)]


VERSION = "1"
DEFAULT_HORIZON_S = 1.0
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


def _read_entries(value: Any) -> Any:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"not a mapping of columns: write lines such as 'q_elbow: {_EXAMPLES['joint']}'")
    return value


def _read_parameters(value: Any) -> Any:
    if value is None or value == "auto" or isinstance(value, list):
        return value if isinstance(value, list) else None
    advice = f"write auto, or lines such as '- {_EXAMPLES['target']}'"
    raise ValueError(f"{show_value(value)} is neither auto nor a list: {advice}")


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
    def _check_bounds(self) -> "ParameterKeys":
        if self.low is not None and self.high is not None and self.low >= self.high:
            order = f"low {self.low:g} is not below high {self.high:g}"
            raise ValueError(f"{self.target}: {order}: write the smaller number as low")
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
    horizon_s: Horizon = DEFAULT_HORIZON_S
    commands: Annotated[dict[str, CommandKeys], BeforeValidator(_read_entries)] = Field(default_factory=dict)
    measurements: Annotated[dict[str, MeasurementKeys], BeforeValidator(_read_entries)]
    logs: Text = "logs"
    parameters: Annotated[list[ParameterKeys] | None, BeforeValidator(_read_parameters)] = None
    task: Code | None = None
    reality: Code | None = None


def read_keys(document: Document) -> ProjectKeys:
    """Returns the document's keys, checked one by one but not yet against the model."""
    version = document.data.get("gapless")
    if "gapless" not in document.data:
        raise document.error((), "key gapless is missing: begin the file with 'gapless: 1'")
    if version != VERSION:
        text = f"gapless: {show_value(version)} is not a version known here: write 'gapless: 1'"
        raise document.error(("gapless",), text)
    try:
        return ProjectKeys.model_validate(document.data)
    except ValidationError as error:
        _raise_first(document, error)


def _raise_first(document: Document, found: ValidationError) -> NoReturn:
    """Turns pydantic's findings into one line about the one that helps most."""
    order = {"extra_forbidden": 0, "missing": 2}
    first = min(found.errors(include_url=False), key=lambda item: order.get(item["type"], 1))
    where: tuple[str | int, ...] = first["loc"]
    key_path = ".".join(str(part) for part in where)
    key = str(where[-1])
    if first["type"] == "extra_forbidden":
        below = {"commands": CommandKeys, "measurements": MeasurementKeys, "parameters": ParameterKeys}
        known = (below[str(where[0])] if len(where) > 1 else ProjectKeys).model_fields
        raise document.error(where, f"unknown key {key_path}; choose from: {nearest(key, known, 10)}")
    if first["type"] == "missing":
        raise document.error(where[:-1], f"key {key_path} is missing: write {_EXAMPLES[key]}")
    if (error := first.get("ctx", {}).get("error")) is not None:
        raise document.error(where, f"{key_path}: {error}")
    raise document.error(where, f"{key_path}: not a mapping: write {_EXAMPLES[_BELOW[str(where[0])]]}")
