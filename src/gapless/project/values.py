"""The values that may stand in `gapless.yaml`, each with its own complaint."""

import math
import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.errors import nearest
from gapless.core.parameters import SHARINGS, Sharing

TARGET_KINDS = ("joint", "actuator", "body", "geom", "site", "world", "measurement")
MIN_RATE_HZ, MAX_RATE_HZ = 0.1, 1e5  # slower is no control; faster than any drive's own current loop
MAX_BOUND = 1e12  # size of a bound of a parameter, in its unit
# Gains, offsets, biases, loads, centres and tilts have either sign.
NOT_NEGATIVE = frozenset(
    (
        *("damping", "frictionloss", "armature", "stiffness", "backlash", "creep"),  # of joints
        *("kp", "kd", "delay", "lag", "limit", "speed"),  # of actuators and readings
        *("resistance", "motorconst", "voltage", "cogging", "coulomb", "static", "stribeck"),  # of DC motors
        *("mass", "length", "inertia", "spread", "payload"),  # of bodies
        *("friction", "restitution", "size"),  # of geoms
    )
)
_CODE = re.compile(r"[^:]+\.py:[A-Za-z_]\w*")


def smallest_value(target: str) -> float:
    """Returns the smallest value that a target can have by physics, in its unit or as a factor; -inf without a limit.

    Knobs of layers have limits of their own besides; see `Knob`.
    """
    *_, owner, field = ("", *target.split("/"))
    name = owner if field in ("x", "y", "z") else field
    return 0.0 if name in NOT_NEGATIVE else -math.inf


def shown(value: Any) -> str:
    """Returns a value as the owner wrote it, short."""
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return f"'{value[:60]}'"
    return "a list" if isinstance(value, list) else "a mapping"


def _number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{shown(value)} is not a number: write one such as 0.5") from None
    if not math.isfinite(number):
        raise ValueError(f"{shown(value)} is not finite: write a number such as 0.5")
    return number


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{shown(value)} is not a name: write text")
    return value.strip()


def _whole(value: Any) -> int:
    if not isinstance(value, str) or not value.strip().isdecimal():
        raise ValueError(f"{shown(value)} is not a whole number: write 0, 1, 2, ...")
    return int(value)


def _scale(value: Any) -> float:
    if (number := _number(value)) == 0:
        raise ValueError("scale 0 makes every value the same: write the factor from column to model units")
    return number


def _noise(value: Any) -> float:
    if (number := _number(value)) < 0:
        raise ValueError(f"noise {number:g} is negative: it is a standard deviation, write {-number:g}")
    return number


def _rate(value: Any) -> float:
    if (number := _number(value)) <= 0:
        raise ValueError(f"{number:g} is not positive: write the control rate in Hz, such as 100")
    if not MIN_RATE_HZ <= number <= MAX_RATE_HZ:
        span = f"from {MIN_RATE_HZ:g} to {MAX_RATE_HZ:g}"
        raise ValueError(f"{number:g} Hz is no control rate: write one {span}, such as 100")
    return number


def _bound(value: Any) -> float:
    if abs(number := _number(value)) > MAX_BOUND:
        raise ValueError(f"{number:g} is beyond {MAX_BOUND:g}: write the largest value that this robot could have")
    return number


def _code(value: Any) -> str:
    if not isinstance(value, str) or not _CODE.fullmatch(value):
        raise ValueError(f"{shown(value)} does not name code: write FILE.py:NAME, such as task.py:Push")
    return value


def _dimension(value: Any) -> Any:
    if value not in DIMENSIONS:
        raise ValueError(f"no dimension {shown(value)}; choose from: {nearest(str(value), DIMENSIONS, 9)}")
    return value


def _sharing(value: Any) -> Any:
    if value not in SHARINGS:
        raise ValueError(f"per {shown(value)}: write robot if all runs share the value, episode if each has its own")
    return value


def _target(value: Any) -> str:
    form = "write kind/NAME/field, such as joint/elbow/damping"
    text = _text(value)
    kind, _, rest = text.partition("/")
    if kind not in TARGET_KINDS:
        kinds = nearest(kind, TARGET_KINDS)
        raise ValueError(f"target {value} begins with {kind or 'nothing'}; there are: {kinds}; {form}")
    if rest != rest.strip() or rest.endswith("/") or (kind != "world" and "/" not in rest[1:]) or not rest:
        raise ValueError(f"target {value} is malformed: {form}")
    return text


Number = Annotated[float, BeforeValidator(_number)]
Whole = Annotated[int, BeforeValidator(_whole)]
Text = Annotated[str, BeforeValidator(_text)]
Scale = Annotated[float, BeforeValidator(_scale)]
Bound = Annotated[float, BeforeValidator(_bound)]
Noise = Annotated[float, BeforeValidator(_noise)]
Rate = Annotated[float, BeforeValidator(_rate)]
Code = Annotated[str, BeforeValidator(_code)]
Target = Annotated[str, BeforeValidator(_target)]
SharingName = Annotated[Sharing, BeforeValidator(_sharing)]
DimensionName = Annotated[Dimension, BeforeValidator(_dimension)]
