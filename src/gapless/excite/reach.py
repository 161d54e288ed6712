"""What the commands may do: how far and how fast the driven joints may move, and how hard the motors may push."""

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.errors import InputError, nearest
from gapless.core.results import LimitSource
from gapless.core.signal import Array
from gapless.excite.motion import Channels
from gapless.excite.prospect import Prospect
from gapless.sim.targets import driven_joint, is_position_servo

MARGIN = 0.05  # share of a joint's range that is left free at each end
EFFORT = 0.9  # share of the largest force or command that is used
FASTER = 1.5  # than the fastest in the logs: what the robot has done, and a little more
WIDER = 0.25  # beyond the span in the logs, at each end, for joints whose range the model leaves open
USUAL_SPEED = {"rad": 2.0, "m": 0.5}  # [1/s], without logs
USUAL_TRAVEL = {"rad": np.pi / 2, "m": 0.25}  # to each side of rest, without logs and without a range
OVERSHOOT = 0.8  # of the largest speed is commanded: servos overshoot


@dataclass(frozen=True)
class Wishes:
    """Limits that were asked for: a share of all defaults, and values by name."""

    share: float
    named: dict[str, float]

    @classmethod
    def read(cls, option: str, texts: Sequence[str], names: Sequence[str], default: float) -> "Wishes":
        """Reads `0.5` (a share of the default) and `NAME=VALUE`.

        Raises:
            InputError: If one is neither, or names nothing.
        """
        share, named = default, dict[str, float]()
        for text in texts:
            name, equals, value = str(text).rpartition("=")
            try:
                number = float(value)
            except ValueError:
                number = float("nan")
            if not 0 < number < float("inf"):
                raise InputError(f"{option} {text}: write a share such as 0.5, or NAME=VALUE, above 0")
            if equals and name not in names:
                raise InputError(f"{option} {text}: no {name!r}; choose from: {nearest(name, names)}")
            if equals:
                named[name] = number
            elif number > 1:
                raise InputError(f"{option} {text}: a share is at most 1; write NAME=VALUE for a value")
            else:
                share = number
        return cls(share, named)


@dataclass(frozen=True)
class Driven:
    """A driven joint and what is known of how it may move.

    Attributes:
        joint: The joint's index.
        column: Column of the command that drives it.
        actuator: The actuator's index.
        name: The joint's name, or that of its actuator.
        unit: `rad` or `m`.
        low: Smallest position.
        high: Largest position.
        max_speed: Largest speed [unit/s].
        travel_source: Where `low` and `high` come from.
        speed_source: Where `max_speed` comes from.
    """

    joint: int
    column: int
    actuator: int
    name: str
    unit: str
    low: float
    high: float
    max_speed: float
    travel_source: LimitSource
    speed_source: LimitSource


def joint_names(prospect: Prospect) -> tuple[str, ...]:
    """Returns the names of the driven joints."""
    model = prospect.blueprint.model
    found = [driven_joint(model, actuator) for actuator in prospect.blueprint.actuator_ids]
    return tuple(dict.fromkeys(model.joint(joint).name for joint in found if joint is not None))


def driven_joints(prospect: Prospect, rest: Array, speed: Wishes) -> tuple[Driven, ...]:
    """Returns the driven hinge and slide joints, each once, with their limits.

    Args:
        prospect: What is known.
        rest: (nq,) positions at rest.
        speed: What was asked for by `--max-speed`.
    """
    model = prospect.blueprint.model
    found: dict[int, Driven] = {}
    for column, actuator in enumerate(prospect.blueprint.actuator_ids):
        joint = driven_joint(model, actuator)
        if joint is None or joint in found:
            continue
        name = model.joint(joint).name or model.actuator(actuator).name
        unit = "rad" if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE else "m"
        seen = _seen(prospect, model.joint(joint).name)
        low, high, travel = _travel(model, joint, unit, float(rest[model.jnt_qposadr[joint]]), seen)
        fastest = speed.share * (USUAL_SPEED[unit] if seen is None else FASTER * seen[1])
        source: LimitSource = "assumed" if seen is None else "logs"
        if name in speed.named:
            fastest, source = speed.named[name], "asked for"
        found[joint] = Driven(joint, column, actuator, name, unit, low, high, fastest, travel, source)
    return tuple(found.values())


def _seen(prospect: Prospect, name: str) -> tuple[Array, float] | None:
    """Returns the positions of a joint in the logs, and its largest speed there; None if no log shows them."""
    for column, item in enumerate(prospect.project.measurements):
        if item.element == "joint" and item.name == name and item.quantity == "position" and prospect.tracks:
            places = np.concatenate([track.smooth[:, column] for track in prospect.tracks])
            speeds = np.concatenate([np.abs(track.slope[:, column]) for track in prospect.tracks])
            return places, float(np.quantile(speeds, 0.999))
    return None


def _travel(
    model: mujoco.MjModel, joint: int, unit: str, rest: float, seen: tuple[Array, float] | None
) -> tuple[float, float, LimitSource]:
    """Returns the smallest and largest position of a joint; its rest lies between them in any case."""
    if model.jnt_limited[joint]:
        low, high = model.jnt_range[joint]
        margin, source = MARGIN * (high - low), "model"
        low, high = low + margin, high - margin
    elif seen is not None:
        low, high = float(seen[0].min()), float(seen[0].max())
        margin, source = WIDER * (high - low), "logs"
        low, high = low - margin, high + margin
    else:
        low, high, source = rest - USUAL_TRAVEL[unit], rest + USUAL_TRAVEL[unit], "assumed"
    return min(float(low), rest), max(float(high), rest), source


def channels_of(prospect: Prospect, rest: Array, joints: Sequence[Driven], effort: Wishes) -> Channels:
    """Returns what each command may do.

    Servos are sent places within their joint's range, no faster than the joint may go; others are sent at most a
    share of the largest command that the model, the logs or the options allow.

    Raises:
        InputError: If nothing says how hard an actuator may push.
    """
    model, blueprint = prospect.blueprint.model, prospect.blueprint
    lows, highs = blueprint.command_limits()
    by_joint = {item.joint: item for item in joints}
    low, high, rate = lows.copy(), highs.copy(), np.full(len(rest), np.inf)
    places = np.zeros(len(rest), dtype=bool)
    for k, actuator in enumerate(blueprint.actuator_ids):
        joint = by_joint.get(-1 if (found := driven_joint(model, actuator)) is None else found)
        if joint is not None and is_position_servo(model, actuator):
            gear = float(model.actuator_gear[actuator, 0]) or 1.0
            ends = sorted((gear * joint.low, gear * joint.high))
            low[k], high[k] = max(lows[k], ends[0]), min(highs[k], ends[1])
            rate[k], places[k] = OVERSHOOT * abs(gear) * joint.max_speed, True
        else:
            low[k], high[k] = _pushes(prospect, k, effort, lows[k], highs[k])
    return Channels(rest, np.minimum(low, rest), np.maximum(high, rest), rate, places)


def _pushes(prospect: Prospect, column: int, effort: Wishes, low: float, high: float) -> tuple[float, float]:
    """Returns the smallest and largest command of an actuator that is no position servo."""
    name = prospect.project.commands[column].actuator
    if name in effort.named:
        return max(low, -effort.named[name]), min(high, effort.named[name])
    if np.isfinite(low) and np.isfinite(high):
        return effort.share * low, effort.share * high
    if prospect.tracks:
        most = max(float(np.max(np.abs(track.commands[:, column]))) for track in prospect.tracks)
        return -effort.share * most, effort.share * most
    raise InputError(
        f"the model does not say how hard {name} may push: give it a ctrlrange, or --max-effort {name}=..."
    )
