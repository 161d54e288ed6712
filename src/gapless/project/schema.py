"""The keys of `gapless.yaml`: what each may hold. A key means the same wherever it stands."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, TypeAdapter, ValidationError

from gapless.core.dimensions import Dimension
from gapless.core.errors import nearest
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
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Bound = Annotated[_Number, Field(ge=-MAX_BOUND, le=MAX_BOUND)]
_Code = Annotated[str, Field(pattern=r"^[^:]+\.py:[A-Za-z_]\w*$")]
_Mapping = Annotated[dict[str, Any], BeforeValidator(lambda value: {} if value is None else value)]
_NAMES = ("name", "model", "logs", "actuator", "joint", "body", "sensor", "quantity")
_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    key: TypeAdapter(kind)
    for key, kind in {
        **dict.fromkeys(_NAMES, _Text),
        "gapless": Literal["1"],
        "rate_hz": Annotated[_Number, Field(ge=0.1, le=1e5)],  # slower is no control; no drive's own loop is faster
        "horizon_s": Annotated[_Number, Field(gt=0, le=3600)],
        "commands": _Mapping,
        "measurements": _Mapping,
        "parameters": Literal["auto"] | list[Any] | None,
        "task": _Code,
        "reality": _Code,
        "axis": Annotated[int, Field(ge=0)],
        "scale": Annotated[_Number, AfterValidator(_check_scale)],
        "offset": _Number,
        "noise": Annotated[_Number, Field(ge=0)],
        "target": Annotated[_Text, AfterValidator(_check_target)],
        "low": _Bound,
        "high": _Bound,
        "dimension": Dimension,
        "per": Sharing,
    }.items()
}
_EXAMPLES = {
    **{
        "gapless": "1",
        "model": "robot.xml",
        "rate_hz": "100",
        "horizon_s": "1",
        "task": "FILE.py:NAME, such as task.py:Push",
    },
    **{
        "reality": "FILE.py:NAME, such as twin.py:make",
        "axis": "0",
        "scale": "0.5, model units per unit of the column",
    },
    **{
        "offset": "0.1",
        "noise": "0.001, a standard deviation",
        "target": "joint/elbow/damping",
        "low": "0",
        "high": "2",
    },
    **{"dimension": "actuator", "per": "robot if all runs share the value, episode if each has its own"},
    "commands": "{u_elbow: {actuator: elbow}}",
    "measurements": "{q_elbow: {joint: elbow, quantity: position}}",
    "parameters": "auto, or a list [{target: joint/elbow/damping, low: 0, high: 2}]",
}


def read_keys(
    document: Document, where: Sequence[str | int], data: Any, known: Sequence[str], needed: Sequence[str]
) -> dict[str, Any]:
    """Returns the values of a mapping in the document, each checked by its key, but not yet against the model.

    A key without a value counts as not written.

    Args:
        document: The file, for the line of a mistake.
        where: Place of the mapping in it.
        data: What stands there.
        known: Keys that the mapping may have.
        needed: Keys that it must have.
    """
    if not isinstance(data, Mapping):
        example = f"{{{needed[0]}: {_EXAMPLES.get(needed[0], 'NAME')}, ...}}"
        raise document.error(where, f"{_join(where)}: {show_value(data)} is not a mapping: write {example}")
    for key in data:
        if key not in known:
            text = f"unknown key {_join((*where, key))}; choose from: {nearest(key, known, 10)}"
            raise document.error((*where, key), text)
    for key in needed:
        if key not in data:
            text = f"key {_join((*where, key))} is missing: write {key}: {_EXAMPLES.get(key, 'NAME')}"
            raise document.error(where, text)
    found: dict[str, Any] = {}
    for key, value in data.items():
        if value is None and key not in needed:
            continue
        try:
            found[key] = _ADAPTERS[key].validate_python(value)
        except ValidationError as error:
            message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
            reason = re.sub("^(Input|String) should ", "must ", message)
            text = f"{_join((*where, key))}: {show_value(value)} {reason}"
            raise document.error((*where, key), f"{text}: write {key}: {_EXAMPLES.get(key, 'NAME')}") from None
    return found


def show_value(value: Any) -> str:
    """Returns a value as the owner wrote it, short."""
    if isinstance(value, str):
        return f"'{value[:60]}'"
    return "nothing" if value is None else "a list" if isinstance(value, list) else "a mapping"


def _join(where: Sequence[str | int]) -> str:
    return ".".join(str(part) for part in where)
