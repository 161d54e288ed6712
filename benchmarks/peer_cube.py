"""The peer on the tossed cube: contact, gravity, size and inertia, on tosses from their free flight on."""

from pathlib import Path

import mujoco
import numpy as np
import score_cube
import sets
from mujoco import sysid
from peer import Task, positive
from score import Run

WINDOW_S = 0.2  # of 0.1, 0.2, 0.3 and 0.5 s, the best for the peer on the tosses that it has not seen; so the step
FINITE_STEP = 0.03
FRICTION = 0.3  # to start from: between the model's 0.5 and what is usual for plastic on wood


def parameters() -> sysid.ParameterDict:
    """Returns friction, time constant and damping ratio of the contact, gravity, half width, and inertia."""
    params = sysid.ParameterDict()
    for name, start, low, high, setter in (
        ("friction", FRICTION, 0.02, 2.0, _set_friction),
        ("time constant", 0.02, 0.0035, 0.1, _set_time_constant),
        ("damping ratio", 1.0, 0.05, 5.0, _set_damping_ratio),
        ("gravity", 9.81, 9.0, 10.5, _set_gravity),
        ("half width", 0.0524, 0.048, 0.057, _set_half_width),
        ("inertia", 0.00081, 0.0004, 0.0016, _set_inertia),
    ):
        params.add(positive(name, start, low, high, setter))
    return params


def _set_friction(spec: mujoco.MjSpec, value: float) -> None:
    """Writes the friction of both surfaces, of which the engine takes the larger."""
    for geom in spec.geoms:
        geom.friction[0] = value


def _set_time_constant(spec: mujoco.MjSpec, value: float) -> None:
    """Writes the time constant of both surfaces [s]."""
    for geom in spec.geoms:
        geom.solref[0] = value


def _set_damping_ratio(spec: mujoco.MjSpec, value: float) -> None:
    """Writes the damping ratio of both surfaces."""
    for geom in spec.geoms:
        geom.solref[1] = value


def _set_gravity(spec: mujoco.MjSpec, value: float) -> None:
    """Writes gravity [m/s²]."""
    spec.option.gravity = [0.0, 0.0, -value]


def _set_half_width(spec: mujoco.MjSpec, value: float) -> None:
    """Writes the cube's half width [m]."""
    spec.geom("cube").size = [value] * 3


def _set_inertia(spec: mujoco.MjSpec, value: float) -> None:
    """Writes the cube's moment of inertia [kg·m²]."""
    spec.body("cube").inertia = [value] * 3


def task(logs: list[Path], window_s: float = WINDOW_S, finite_step: float = FINITE_STEP) -> Task:
    """Returns the set-up on some tosses, by path: windows that start in free flight, as they are scored."""
    stock = mujoco.MjSpec.from_file(str(sets.data_folder() / "cube" / "model.xml"))
    pieces, starts = [], []
    for run in (score_cube.cube_run(path) for path in logs):
        rows = round(window_s * run.rate_hz)
        states = zip(*(part[:: score_cube.EVERY_ROWS] for part in score_cube.flight_states(run)), strict=True)
        for begin, position, velocity in states:
            end = begin + rows + 1
            if end <= len(run.readings):
                name, cut = f"{run.name}@{begin}", slice(begin, end)
                pieces.append(Run(name, run.rate_hz, (), run.commands[cut], run.joints, run.readings[cut]))
                starts.append((position, velocity, run.commands[:begin]))
    weights = np.array([100.0] * 3 + [10.0] * 3)
    about = {"difference": score_cube.pose_difference, "finite_step": finite_step}
    return Task(stock.copy(), stock, parameters(), pieces, starts, weights, **about)
