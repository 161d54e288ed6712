"""How far, how fast and how hard a motion may move the driven joints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from gapless.core.errors import InputError, nearest
from gapless.core.results import KeptLimit, LimitSource
from gapless.core.signal import Array
from gapless.excite.knowledge import PriorKnowledge
from gapless.excite.motion import CommandLimits, SimulatedMotions
from gapless.sim.targets import driven_joint, is_position_servo

RANGE_MARGIN = 0.05  # share of a joint's range that is left free at each end
EFFORT_SHARE = 0.9  # share of the largest force or command that is used
SPEED_FACTOR = 1.5  # times the fastest in the logs: what the robot has done, and a little more
TRAVEL_MARGIN = 0.25  # beyond the span in the logs, at each end, for joints whose range the model leaves open
DEFAULT_SPEED = {"rad": 2.0, "m": 0.5}  # [1/s], without logs
DEFAULT_TRAVEL = {"rad": np.pi / 2, "m": 0.25}  # to each side of rest, without logs and without a range
COMMANDED_SPEED_SHARE = 0.8  # of the largest speed: servos overshoot
ACTIVE_SHARE = 0.1  # a limit is active if less than this share of the way from rest to it is left
SUSTAINED_S = 0.5  # servos cut their own peaks; what heats them is force that lasts this long


@dataclass(frozen=True)
class RequestedLimits:
    """Limits that were asked for: a share of all defaults, and values by name."""

    share: float
    named: dict[str, float]

    @classmethod
    def parse(cls, option: str, texts: Sequence[str], names: Sequence[str], default: float) -> "RequestedLimits":
        """Reads `0.5` (a share of the default) and `NAME=VALUE`."""
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
class MotionLimit:
    """One quantity that must stay between two values."""

    name: str  # what is limited
    unit: str  # its unit
    low: float  # smallest value
    high: float  # largest value
    rest: float  # value at rest
    source: LimitSource  # where the limit comes from
    command: int  # column of the command that moves it most directly
    read: Callable[[SimulatedMotions], Array]  # returns the quantity in simulated motions, (num_motions, num_steps)

    def is_kept(self, run: SimulatedMotions) -> NDArray[np.bool_]:
        """Tells which motions keep it, (num_motions,)."""
        values = self._read_settled(run)
        slack = 1e-9 + 1e-6 * (abs(self.low) + abs(self.high))
        return np.all((values >= self.low - slack) & (values <= self.high + slack), axis=1)

    def allowed_share(self, run: SimulatedMotions) -> Array:
        """Returns the share of its way from rest that each motion may go, (num_motions,); 1 where it keeps it."""
        values = self._read_settled(run) - self.rest
        up, down = np.maximum(values.max(axis=1), 1e-12), np.maximum(-values.min(axis=1), 1e-12)
        return np.minimum(1.0, np.minimum((self.high - self.rest) / up, (self.rest - self.low) / down))

    def widen_to(self, undriven: SimulatedMotions) -> "MotionLimit":
        """Returns the limit; one that was only assumed is widened to hold what happens without any motion."""
        values = self._read_settled(undriven)
        if self.source != "assumed" or self.is_kept(undriven).all() or not np.isfinite(values).all():
            return self
        low, high = (self.rest + SPEED_FACTOR * (float(end) - self.rest) for end in (values.min(), values.max()))
        return replace(self, low=min(self.low, low), high=max(self.high, high))

    def describe_use(self, run: SimulatedMotions) -> KeptLimit:
        """Returns how much of it a run uses, all its motions together."""
        values = self._read_settled(run)
        low, high = float(values.min()), float(values.max())
        near_low = low - self.low < ACTIVE_SHARE * (self.rest - self.low)
        near_high = self.high - high < ACTIVE_SHARE * (self.high - self.rest)
        return KeptLimit(self.name, self.unit, self.low, self.high, low, high, self.source, near_low or near_high)

    def _read_settled(self, run: SimulatedMotions) -> Array:
        return self.read(run)[:, run.settled :]


def find_limits(
    known: PriorKnowledge, rest: Array, max_speed: Sequence[str], max_effort: Sequence[str]
) -> tuple[CommandLimits, tuple[MotionLimit, ...]]:
    """Returns what each command may do, and everything that a motion must keep, but for what it touches.

    Servos are sent positions within their joint's range, no faster than the joint may go; others are sent at most a
    share of the largest command that the model, the logs or the options allow. `rest` are positions at rest, (nq,);
    `max_speed` and `max_effort`, of forces and commands that are no positions, are as `excite` takes them.
    """
    model, rest_command = known.blueprint.model, known.rest[1]
    driven = [driven_joint(model, actuator) for actuator in known.blueprint.actuator_ids]
    names = [model.joint(joint).name for joint in dict.fromkeys(driven) if joint is not None]
    speed = RequestedLimits.parse("--max-speed", max_speed, names, 1.0)
    actuators = [item.actuator for item in known.project.commands]
    effort = RequestedLimits.parse("--max-effort", max_effort, actuators, EFFORT_SHARE)
    low, high = known.blueprint.command_limits()
    rate, is_position = np.full(len(low), np.inf), np.zeros(len(low), dtype=bool)
    joints: dict[int, tuple[MotionLimit, MotionLimit]] = {}  # of position and speed
    others: list[MotionLimit] = []
    for k, (actuator, joint) in enumerate(zip(known.blueprint.actuator_ids, driven, strict=True)):
        if joint is not None and joint not in joints:
            joints[joint] = _find_joint_limits(known, k, joint, float(rest[model.jnt_qposadr[joint]]), speed)
        others += _find_force_limits(known, k, actuator, effort)
        if joint is not None and is_position_servo(model, actuator):
            gear, (place, velocity) = float(model.actuator_gear[actuator, 0]) or 1.0, joints[joint]
            ends = sorted((gear * place.low, gear * place.high))
            low[k], high[k] = max(low[k], ends[0]), min(high[k], ends[1])
            rate[k], is_position[k] = COMMANDED_SPEED_SHARE * abs(gear) * velocity.high, True
        else:
            others.append(_find_effort_limit(known, k, (low[k], high[k]), float(rest_command[k]), effort))
            low[k], high[k] = others[-1].low, others[-1].high
    low, high = np.minimum(low, rest_command), np.maximum(high, rest_command)
    of_joints = [limit for pair in joints.values() for limit in pair]
    return CommandLimits(rest_command, low, high, rate, is_position), (*of_joints, *others)


def _find_joint_limits(
    known: PriorKnowledge, column: int, joint: int, rest: float, speed: RequestedLimits
) -> tuple[MotionLimit, MotionLimit]:
    """Returns how far and how fast a driven joint may move; its rest lies between its limits in any case."""
    model, measurements = known.blueprint.model, known.project.measurements
    own = ("joint", model.joint(joint).name, "position")
    shown = [k for k, item in enumerate(measurements) if (item.element, item.name, item.quantity) == own]
    name = model.joint(joint).name or model.actuator(known.blueprint.actuator_ids[column]).name
    unit = "rad" if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE else "m"
    low = high = rest
    margin, fastest = DEFAULT_TRAVEL[unit], speed.share * DEFAULT_SPEED[unit]
    travel_source: LimitSource = "assumed"
    speed_source: LimitSource = "assumed"
    if shown and known.tracks:
        positions = np.concatenate([track.smooth[:, shown[0]] for track in known.tracks])
        speeds = np.concatenate([np.abs(track.slope[:, shown[0]]) for track in known.tracks])
        fastest, speed_source = speed.share * (SPEED_FACTOR * float(np.quantile(speeds, 0.999))), "logs"
        low, high, travel_source = float(positions.min()), float(positions.max()), "logs"
        margin = TRAVEL_MARGIN * (high - low)
    if model.jnt_limited[joint]:
        (low, high), travel_source = model.jnt_range[joint], "model"
        margin = -RANGE_MARGIN * (high - low)
    if name in speed.named:
        fastest, speed_source = speed.named[name], "asked for"
    low, high = min(float(low - margin), rest), max(float(high + margin), rest)
    place, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
    position = (f"joint/{name} position", unit, low, high, rest, travel_source, column)
    velocity = (f"joint/{name} speed", f"{unit}/s", -fastest, fastest, 0.0, speed_source, column)
    read_place, read_speed = (lambda run: run.qpos[:, :, place]), (lambda run: run.qvel[:, :, dof])
    return MotionLimit(*position, read_place), MotionLimit(*velocity, read_speed)


def _find_effort_limit(
    known: PriorKnowledge, column: int, range_of_model: tuple[float, float], rest: float, effort: RequestedLimits
) -> MotionLimit:
    """Returns the limit of a command that is no position; kept by construction, shown so that one sees it used."""
    item, (low, high) = known.project.commands[column], range_of_model
    source: LimitSource = "model" if np.isfinite(high) else "logs"
    if item.actuator in effort.named:
        source, asked = "asked for", effort.named[item.actuator]
        low, high = max(low, -asked), min(high, asked)
    elif np.isfinite(low) and np.isfinite(high):
        low, high = effort.share * low, effort.share * high
    elif known.tracks:
        largest = max(float(np.max(np.abs(track.commands[:, column]))) for track in known.tracks)
        low, high = -effort.share * largest, effort.share * largest
    else:
        text = f"give it a ctrlrange, or --max-effort {item.actuator}=..."
        raise InputError(f"the model does not say how hard {item.actuator} may push: {text}")
    about = (f"command/{item.column}", item.unit, min(float(low), rest), max(float(high), rest), rest, source, column)
    return MotionLimit(*about, lambda run: run.commands[:, :, column])


def _find_force_limits(known: PriorKnowledge, column: int, actuator: int, effort: RequestedLimits) -> list[MotionLimit]:
    """Returns the limit of an actuator's force, if it has one.

    A servo cuts its peaks itself, and a stiff one meets them at every new command: its force counts as the mean of
    `SUSTAINED_S`, unless a value was asked for.
    """
    model = known.blueprint.model
    name, servo = model.actuator(actuator).name, is_position_servo(model, actuator)
    asked = effort.named.get(name) if servo else None
    if f"actuator/{name}/limit" in known.wanted or (asked is None and not model.actuator_forcelimited[actuator]):
        return []  # a wanted largest force shows only where it is reached
    low, high = effort.share * model.actuator_forcerange[actuator] if asked is None else (-asked, asked)
    joint = driven_joint(model, actuator)
    unit = "N" if joint is None or model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE else "N·m"
    count = round(SUSTAINED_S * known.project.rate_hz) if servo and asked is None else 1
    what = f"actuator/{name} force" + (f" over {SUSTAINED_S:g} s" if count > 1 else "")
    source: LimitSource = "model" if asked is None else "asked for"
    about = (what, unit, low, high, 0.0, source, column)

    def read_force(run: SimulatedMotions) -> Array:
        """Returns the means of so many steps up to each; before the first step the force counts as it is there."""
        return uniform_filter1d(run.force[:, :, actuator], count, axis=1, mode="nearest", origin=(count - 1) // 2)

    return [MotionLimit(*about, read_force)]
