"""Records the logs that the bundled examples ship with, on the twin of seed 0.

python -m gapless.examples.record push 6
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from gapless.core.episode import Episode
from gapless.core.protocols import Moment, Start, World
from gapless.core.run import run_open
from gapless.core.signal import Array
from gapless.examples.handover.task import ASK_M, angles_of, cup_of, points
from gapless.project.code import load_reality, load_task
from gapless.project.load import load_project
from gapless.project.log.write import write_log
from gapless.project.records import Project

Motion = Callable[[np.random.Generator, Start], Callable[[float, Array], Array]]


def shove(rng: np.random.Generator, start: Start) -> Callable[[float, Array], Array]:
    """Returns a motion that circles the tip about and through the puck."""
    tip = np.concatenate([start.positions["tip_x"], start.positions["tip_y"]], axis=1)[0]
    puck = start.positions["puck"][0, :2]
    stops = np.concatenate([tip[None], puck + rng.uniform(-0.13, 0.13, (7, 2))])
    stops[1] = puck + 1.2 * (puck - tip)

    def command(time_s: float, measured: Array) -> Array:
        del measured
        return np.array([[np.interp(time_s, np.arange(8), stops[:, k]) for k in range(2)]])

    return command


def sway(rng: np.random.Generator, start: Start) -> Callable[[float, Array], Array]:
    """Returns a motion that keeps the pole up with plain feedback while it sways the cart."""
    del start
    size, rate_hz, phase = rng.uniform(0.06, 0.15, 3), rng.uniform(0.3, 2.0, 3), rng.uniform(0, 6.3, 3)
    last: list[Array] = []

    def command(time_s: float, measured: Array) -> Array:
        last.append(measured)
        cart, pole = measured[0]
        cart_rate, pole_rate = (measured - last[max(0, len(last) - 3)])[0] / max(1, min(2, len(last) - 1)) * 50.0
        push = 11.0 * pole + 2.2 * pole_rate + 1.4 * cart + 1.4 * cart_rate
        push += float(np.sum(size * np.sin(2 * np.pi * rate_hz * time_s + phase)))
        return np.array([[push]])

    return command


def take(rng: np.random.Generator, start: Start) -> Callable[[float, Array], Array]:
    """Returns a motion that asks for the parcel, sways far from the hand until it has come, and takes the parcel."""
    home = cup_of(np.concatenate([start.positions["shoulder"], start.positions["elbow"]], axis=1))
    rate_hz, phase = rng.uniform(0.3, 1.0, 2), rng.uniform(0, 6.3, 2)
    asks_s, takes_s = rng.uniform(0.4, 1.0), 4.0
    aim, has = home.copy(), np.zeros(1, bool)

    def command(time_s: float, measured: Array) -> Array:
        columns = ("q_shoulder", "q_elbow", "hand_x", "hand_y", "hand_yaw", "parcel_out")
        now = Moment(dict(zip(columns, measured.T, strict=True)), measured, start.goal, np.array([time_s]))
        cup, parcel = points(now)
        if time_s < takes_s:
            aim[:] = home + [0.03, 0.06] * np.sin(2 * np.pi * rate_hz * time_s + phase)
        elif measured[0, 5] < 0.08:
            has[:] |= (parcel - cup)[0, 0] < 0.001
            to_parcel = np.clip(parcel - aim + np.array([0.01, 0.0]), -0.008, 0.008)
            aim[:] += np.where(has, [-0.004, 0.0], to_parcel)
        return np.concatenate([angles_of(aim), [[time_s >= takes_s, ASK_M * (time_s >= asks_s)]]], axis=1)

    return command


MOTIONS: dict[str, tuple[Motion, float]] = {"push": (shove, 7.0), "balance": (sway, 5.0), "handover": (take, 8.0)}


def record(project: Project, world: World, motion: Motion, duration_s: float, seed: int) -> Episode:
    """Runs one motion in a world and returns what it showed."""
    rng = np.random.default_rng([7, seed])
    start = load_task(project).start(rng, 1)
    steps = round(duration_s * project.rate_hz)
    units = (project.command_units, project.measurement_units)
    return run_open(world, motion(rng, start), start, rng, steps, units=units, name=f"motion{seed}")


def main(name: str, count: int) -> None:
    """Records `count` logs of an example into its folder."""
    project = load_project(Path(__file__).parent / name)
    motion, duration_s = MOTIONS[name]
    world = load_reality(project, 0, 1)
    for seed in range(count):
        episode = record(project, world, motion, duration_s, seed)
        if name == "handover":
            episode = replace(episode, conditions={"person": f"{seed % 8}"})  # the eight people of a twin take turns
        print(write_log(project, episode))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
