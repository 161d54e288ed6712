"""Causes that act by chance, `scatter` in `diagnose.py`: they show in how runs scatter, not in where they go.

Nothing of gapless's realism layers plays here. Readings that are lost or rounded are so on their way into the log, with
their noise: what moves the robot sees them whole.
"""

from collections.abc import Mapping
from dataclasses import replace

import mujoco
import numpy as np
from gap_causes import Change, Scene, marked, some_joint
from gap_robots import Robot
from gap_world import Effect, Reality

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array


def dropouts(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """A column repeats its last reading in 4-12 % of the rows, 2-5 rows in turn; where it moves fast enough to show."""
    column, share, burst = _some_column(robot, rng), rng.uniform(0.04, 0.12), rng.uniform(2.0, 5.0)

    def spoil(seen: Array, rng: np.random.Generator) -> Array:
        found, lost = seen.copy(), False
        for row in range(1, len(seen)):
            lost = rng.random() < (1 - 1 / burst if lost else share / ((1 - share) * burst))
            if lost:
                found[row, column] = found[row - 1, column]
        return found

    name = robot.columns[column].name
    places = {f"measurement/{name}/occlusion/share": float(share)}
    return marked(replace(reality, spoil=spoil), places), f"{100 * share:.0f} % of {name} repeats, {burst:.1f} in turn"


def jitter(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Each command arrives late by 10-30 ms times |n|; the newest that has arrived acts."""
    size_s = float(rng.uniform(0.01, 0.03))
    found = marked(replace(reality, jitter_s=size_s), {"actuator/*/jitter/jitter_s": None})
    return found, f"commands late by {1000 * size_s:.0f} ms times |n|"


def gusts(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Pushes on a joint, 0.5-2 per second, 0.1-0.2 s long, of 20-50 % of its largest effort times n."""
    joint, rate_hz, length_s = some_joint(robot, rng), rng.uniform(0.5, 2.0), rng.uniform(0.1, 0.2)
    size, seed = rng.uniform(0.2, 0.5) * scene.efforts[robot.drives[joint]], int(rng.integers(2**32))
    runs = np.random.default_rng(seed)  # the next run has other gusts

    def make(model: mujoco.MjModel, step_s: float) -> Effect:
        dof, luck, now = int(model.joint(joint).dofadr[0]), np.random.default_rng(runs.integers(2**32)), [0.0, 0.0]

        def act(model: mujoco.MjModel, data: mujoco.MjData, time_s: float) -> None:
            now[1] -= step_s
            if now[1] <= 0:
                begins = luck.random() < rate_hz * step_s
                now[:] = [size * luck.standard_normal(), length_s] if begins else [0.0, 0.0]
            data.qfrc_applied[dof] = reality.load.get(joint, 0.0) + now[0]

        return act

    places = {f"joint/{joint}/pushes/strength": float(size), f"joint/{joint}/pushes/rate_hz": float(rate_hz)}
    text = f"gusts of {size:.2f} n on {joint}, {rate_hz:.1f} per second, {length_s:.2f} s each"
    return marked(replace(reality, effect=make), places), text


def quantisation(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """A column is rounded to steps of 12-25 times its noise."""
    column = _some_column(robot, rng)
    step = float(rng.uniform(12.0, 25.0) * robot.columns[column].noise)

    def spoil(seen: Array, rng: np.random.Generator) -> Array:
        found = seen.copy()
        found[:, column] = step * np.round(seen[:, column] / step)
        return found

    name = robot.columns[column].name
    return marked(replace(reality, spoil=spoil), {f"measurement/{name}/quantisation/step": step}), (
        f"{name} in steps of {step:.4f}"
    )


def _some_column(robot: Robot, rng: np.random.Generator) -> int:
    """Returns the number of a measured position."""
    return int(rng.choice([k for k, c in enumerate(robot.columns) if c.quantity in ("position", "x", "y")]))


SCATTER: Mapping[str, tuple[Dimension, Change]] = {
    "dropouts": ("sensor", dropouts),
    "jitter": ("latency", jitter),
    "gusts": ("environment", gusts),
    "quantisation": ("sensor", quantisation),
}
"""Name -> dimension, what it changes."""
