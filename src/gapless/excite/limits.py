"""What a simulated motion must keep: how far, how fast and how hard the driven joints move."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.core.results import KeptLimit, LimitSource
from gapless.core.signal import Array
from gapless.excite.motion import Channels
from gapless.excite.prospect import Prospect
from gapless.excite.reach import FASTER, Driven, Wishes
from gapless.excite.rehearsal import Run
from gapless.sim.targets import driven_joint, is_position_servo

NEAR = 0.1  # an end is near if less than this share of the way from rest to it is left
SUSTAINED_S = 0.5  # servos cut their own peaks; what heats them is force that lasts this long


@dataclass(frozen=True)
class Limit:
    """One quantity that must stay between two values.

    Attributes:
        name: What is limited.
        unit: Its unit.
        low: Smallest value.
        high: Largest value.
        rest: Value at rest.
        source: Where the limit comes from.
        column: The command that moves it most directly.
        read: Returns the quantity in runs, (num_motions, num_steps).
    """

    name: str
    unit: str
    low: float
    high: float
    rest: float
    source: LimitSource
    column: int
    read: Callable[[Run], Array]

    def kept(self, run: Run) -> NDArray[np.bool_]:
        """Tells which motions keep it, (num_motions,)."""
        values = self._values(run)
        slack = 1e-9 + 1e-6 * (abs(self.low) + abs(self.high))
        return np.all((values >= self.low - slack) & (values <= self.high + slack), axis=1)

    def room(self, run: Run) -> Array:
        """Returns the share of its way from rest that each motion may go, (num_motions,); 1 where it may go on."""
        values = self._values(run) - self.rest
        up, down = np.maximum(values.max(axis=1), 1e-12), np.maximum(-values.min(axis=1), 1e-12)
        return np.minimum(1.0, np.minimum((self.high - self.rest) / up, (self.rest - self.low) / down))

    def widened(self, alone: Run) -> "Limit":
        """Returns the limit; one that was only assumed is widened to hold what happens without any motion."""
        values = self._values(alone)
        if self.source != "assumed" or self.kept(alone).all() or not np.isfinite(values).all():
            return self
        low, high = float(values.min()) - self.rest, float(values.max()) - self.rest
        return replace(
            self, low=min(self.low, self.rest + FASTER * low), high=max(self.high, self.rest + FASTER * high)
        )

    def used(self, run: Run) -> KeptLimit:
        """Returns how much of it a run uses, all its motions together."""
        values = self._values(run)
        low, high = float(values.min()), float(values.max())
        near_low = low - self.low < NEAR * (self.rest - self.low)
        near_high = self.high - high < NEAR * (self.high - self.rest)
        return KeptLimit(self.name, self.unit, self.low, self.high, low, high, self.source, near_low or near_high)

    def _values(self, run: Run) -> Array:
        return self.read(run)[:, run.settled :]


def limits_of(prospect: Prospect, joints: Sequence[Driven], channels: Channels, effort: Wishes) -> tuple[Limit, ...]:
    """Returns everything that a simulated motion must keep, but for what it touches."""
    found: list[Limit] = []
    for item in joints:
        found += _joint_limits(prospect.blueprint.model, item, prospect.states(prospect.rest()[0][None])[0])
    for k, actuator in enumerate(prospect.blueprint.actuator_ids):
        found += _force_limits(prospect, k, actuator, effort)
        if not channels.places[k]:
            found.append(_command_limit(prospect, k, channels, effort))
    return tuple(found)


def _joint_limits(model: mujoco.MjModel, item: Driven, rest: Array) -> list[Limit]:
    place, dof = int(model.jnt_qposadr[item.joint]), int(model.jnt_dofadr[item.joint])
    name, fast = f"joint/{item.name}", item.max_speed
    return [
        Limit(
            f"{name} position",
            item.unit,
            item.low,
            item.high,
            float(rest[place]),
            item.travel_source,
            item.column,
            lambda run: run.qpos[:, :, place],
        ),
        Limit(
            f"{name} speed",
            f"{item.unit}/s",
            -fast,
            fast,
            0.0,
            item.speed_source,
            item.column,
            lambda run: run.qvel[:, :, dof],
        ),
    ]


def _force_limits(prospect: Prospect, column: int, actuator: int, effort: Wishes) -> list[Limit]:
    """Returns the limit of an actuator's force, if it has one.

    A servo cuts its peaks itself, and a stiff one meets them at every new command: its force counts as the mean of
    `SUSTAINED_S`, unless a value was asked for.
    """
    model = prospect.blueprint.model
    name, servo = model.actuator(actuator).name, is_position_servo(model, actuator)
    asked = effort.named.get(name) if servo else None
    if f"actuator/{name}/limit" in prospect.wanted:
        return []  # its largest force shows only where it is reached
    if asked is None and not model.actuator_forcelimited[actuator]:
        return []
    low, high = effort.share * model.actuator_forcerange[actuator] if asked is None else (-asked, asked)
    source: LimitSource = "model" if asked is None else "asked for"
    unit = "N" if _slides(model, actuator) else "N·m"
    count = round(SUSTAINED_S * prospect.project.rate_hz) if servo and asked is None else 1
    what = f"actuator/{name} force" + (f" over {SUSTAINED_S:g} s" if count > 1 else "")
    return [Limit(what, unit, low, high, 0.0, source, column, lambda run: _sustained(run.force[:, :, actuator], count))]


def _sustained(values: Array, count: int) -> Array:
    """Returns running means of `count` steps, (num_motions, num_steps), those before the first whole one repeated."""
    if count <= 1 or values.shape[1] < count:
        return values
    sums = np.cumsum(np.concatenate([np.zeros((len(values), 1)), values], axis=1), axis=1)
    means = (sums[:, count:] - sums[:, :-count]) / count
    return np.concatenate([np.repeat(means[:, :1], count - 1, axis=1), means], axis=1)


def _slides(model: mujoco.MjModel, actuator: int) -> bool:
    joint = driven_joint(model, actuator)
    return joint is None or model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE


def _command_limit(prospect: Prospect, column: int, channels: Channels, effort: Wishes) -> Limit:
    """Returns the limit of a command that pushes: kept by construction, shown so that one sees it used."""
    item = prospect.project.commands[column]
    bounded = bool(np.isfinite(prospect.blueprint.command_limits()[1][column]))
    source: LimitSource = "asked for" if item.actuator in effort.named else "model" if bounded else "logs"
    return Limit(
        f"command/{item.column}",
        item.unit,
        float(channels.low[column]),
        float(channels.high[column]),
        float(channels.rest[column]),
        source,
        column,
        lambda run: run.commands[:, :, column],
    )
