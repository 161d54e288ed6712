"""How far, how fast and how hard a motion may move the driven joints."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True)
class DrivenJoint:
    """A hinge or slide joint that an actuator drives, and how it may move."""

    joint: int  # the joint's index
    column: int  # column of the command that drives it
    name: str  # the joint's name, or that of its actuator
    unit: str  # `rad` or `m`
    low: float  # smallest position
    high: float  # largest position
    max_speed: float  # largest speed [unit/s]
    travel_source: LimitSource  # where `low` and `high` come from
    speed_source: LimitSource  # where `max_speed` comes from


def find_driven_joints(known: PriorKnowledge, rest: Array, speed: RequestedLimits) -> tuple[DrivenJoint, ...]:
    """Returns the driven joints, each once, with their limits; `rest` are the positions at rest, (nq,).

    The rest of a joint lies between its limits in any case.
    """
    model, found = known.blueprint.model, dict[int, DrivenJoint]()
    columns: dict[str, int] = {}  # joint -> first column that shows its position in logs
    for column, item in enumerate(known.project.measurements if known.tracks else ()):
        if item.element == "joint" and item.quantity == "position":
            columns.setdefault(item.name, column)
    for column, actuator in enumerate(known.blueprint.actuator_ids):
        joint = driven_joint(model, actuator)
        if joint is None or joint in found:
            continue
        name, read = model.joint(joint).name or model.actuator(actuator).name, columns.get(model.joint(joint).name)
        unit = "rad" if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE else "m"
        low = high = at_rest = float(rest[model.jnt_qposadr[joint]])
        margin, fastest, travel, source = DEFAULT_TRAVEL[unit], speed.share * DEFAULT_SPEED[unit], "assumed", "assumed"
        if read is not None:
            positions = np.concatenate([track.smooth[:, read] for track in known.tracks])
            speeds = np.concatenate([np.abs(track.slope[:, read]) for track in known.tracks])
            fastest, source = speed.share * (SPEED_FACTOR * float(np.quantile(speeds, 0.999))), "logs"
            low, high, travel = float(positions.min()), float(positions.max()), "logs"
            margin = TRAVEL_MARGIN * (high - low)
        if model.jnt_limited[joint]:
            (low, high), travel = model.jnt_range[joint], "model"
            margin = -RANGE_MARGIN * (high - low)
        if name in speed.named:
            fastest, source = speed.named[name], "asked for"
        low, high = min(float(low - margin), at_rest), max(float(high + margin), at_rest)
        found[joint] = DrivenJoint(joint, column, name, unit, low, high, fastest, travel, source)
    return tuple(found.values())


def find_command_limits(
    known: PriorKnowledge, rest: Array, joints: Sequence[DrivenJoint], effort: RequestedLimits
) -> CommandLimits:
    """Returns what each command may do; `rest` are the commands at rest, (num_commands,).

    Servos are sent positions within their joint's range, no faster than the joint may go; others are sent at most a
    share of the largest command that the model, the logs or the options allow.
    """
    model, blueprint = known.blueprint.model, known.blueprint
    lows, highs = blueprint.command_limits()
    by_joint = {item.joint: item for item in joints}
    low, high, rate = lows.copy(), highs.copy(), np.full(len(rest), np.inf)
    is_position = np.zeros(len(rest), dtype=bool)
    for k, actuator in enumerate(blueprint.actuator_ids):
        joint = by_joint.get(-1 if (found := driven_joint(model, actuator)) is None else found)
        if joint is not None and is_position_servo(model, actuator):
            gear = float(model.actuator_gear[actuator, 0]) or 1.0
            ends = sorted((gear * joint.low, gear * joint.high))
            low[k], high[k] = max(lows[k], ends[0]), min(highs[k], ends[1])
            rate[k], is_position[k] = COMMANDED_SPEED_SHARE * abs(gear) * joint.max_speed, True
        else:
            low[k], high[k] = _find_effort(known, k, effort, lows[k], highs[k])
    return CommandLimits(rest, np.minimum(low, rest), np.maximum(high, rest), rate, is_position)


def _find_effort(
    known: PriorKnowledge, column: int, effort: RequestedLimits, low: float, high: float
) -> tuple[float, float]:
    """Returns the smallest and largest command of an actuator that is no position servo."""
    name = known.project.commands[column].actuator
    if name in effort.named:
        return max(low, -effort.named[name]), min(high, effort.named[name])
    if np.isfinite(low) and np.isfinite(high):
        return effort.share * low, effort.share * high
    if known.tracks:
        largest = max(float(np.max(np.abs(track.commands[:, column]))) for track in known.tracks)
        return -effort.share * largest, effort.share * largest
    text = f"give it a ctrlrange, or --max-effort {name}=..."
    raise InputError(f"the model does not say how hard {name} may push: {text}")


def find_motion_limits(
    known: PriorKnowledge, joints: Sequence[DrivenJoint], commands: CommandLimits, effort: RequestedLimits, rest: Array
) -> tuple[MotionLimit, ...]:
    """Returns everything that a simulated motion must keep, but for what it touches; `rest` are positions, (nq,)."""
    model, found = known.blueprint.model, list[MotionLimit]()
    for item in joints:
        place, dof = int(model.jnt_qposadr[item.joint]), int(model.jnt_dofadr[item.joint])
        name, at_rest, speed = f"joint/{item.name}", float(rest[place]), item.max_speed
        position = (f"{name} position", item.unit, item.low, item.high, at_rest, item.travel_source, item.column)
        velocity = (f"{name} speed", f"{item.unit}/s", -speed, speed, 0.0, item.speed_source, item.column)
        found.append(MotionLimit(*position, lambda run, place=place: run.qpos[:, :, place]))
        found.append(MotionLimit(*velocity, lambda run, dof=dof: run.qvel[:, :, dof]))
    largest = known.blueprint.command_limits()[1]
    for k, (actuator, item) in enumerate(zip(known.blueprint.actuator_ids, known.project.commands, strict=True)):
        found += _force_limits(known, k, actuator, effort)
        if not commands.is_position[k]:  # kept by construction, shown so that one sees it used
            source = "asked for" if item.actuator in effort.named else "model" if np.isfinite(largest[k]) else "logs"
            low, high, at_rest = (float(values[k]) for values in (commands.low, commands.high, commands.rest))
            about = (f"command/{item.column}", item.unit, low, high, at_rest, source, k)
            found.append(MotionLimit(*about, lambda run, k=k: run.commands[:, :, k]))
    return tuple(found)


def _force_limits(known: PriorKnowledge, column: int, actuator: int, effort: RequestedLimits) -> list[MotionLimit]:
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
    return [MotionLimit(*about, lambda run: _running_mean(run.force[:, :, actuator], count))]


def _running_mean(values: Array, count: int) -> Array:
    """Returns running means of `count` steps, (num_motions, num_steps), those before the first whole one repeated."""
    if count <= 1 or values.shape[1] < count:
        return values
    sums = np.cumsum(np.concatenate([np.zeros((len(values), 1)), values], axis=1), axis=1)
    means = (sums[:, count:] - sums[:, :-count]) / count
    return np.concatenate([np.repeat(means[:, :1], count - 1, axis=1), means], axis=1)
