"""The peer on the Qube and the cart-pole: short windows from the smoothed state, as they are scored."""

import math
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import mujoco
import numpy as np
import score
import sets
from mujoco import sysid
from peer import Task, bias_parameter, delay_parameter, positive, set_joint
from score import Run

WINDOW_S = 0.5  # of 0.25, 0.5, 1 and 2 s, the best for the peer on the runs that it has not seen


def cut_pieces(runs: list[Run], window_s: float) -> tuple[list[Run], list[tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Returns consecutive windows of runs and their starts: smoothed positions and velocities, commands before."""
    pieces, starts = [], []
    for run in runs:
        positions, velocities = score.smooth(run.readings, run.rate_hz)
        rows, first = round(window_s * run.rate_hz), score.warm_rows(run.rate_hz)
        last = len(run.readings) - score.smoother_rows(run.rate_hz)
        for begin in range(first, last - min(rows, last - first - 1), rows):
            end = min(begin + rows + 1, len(run.readings))
            readings, commands = run.readings[begin:end], run.commands[begin:end]
            pieces.append(Run(f"{run.name}@{begin}", run.rate_hz, run.actuators, commands, run.joints, readings))
            starts.append((positions[begin], velocities[begin], run.commands[:begin]))
    return pieces, starts


def _parameters(spec: mujoco.MjSpec, driven: str, hanging: str) -> sysid.ParameterDict:
    """Returns gain, delay, damping and friction of both joints, mass of the driven body, length, bias and tilt."""
    params = sysid.ParameterDict()
    gain = float(spec.actuator("motor").gainprm[0])  # effort of one volt [N·m] or [N]
    params.add(positive("gain", gain, 0.2 * gain, 5.0 * gain, _set_gain))
    for joint, size in ((driven, gain), (hanging, 0.02 * gain)):
        damping = max(float(np.ravel(spec.joint(joint).damping)[0]), 0.1 * size)
        limits = (1e-3 * damping, 30.0 * damping)
        params.add(positive(f"damping {joint}", damping, *limits, partial(set_joint, joint, "damping")))
        setter = partial(set_joint, joint, "frictionloss")
        params.add(positive(f"frictionloss {joint}", 0.05 * size, 1e-4 * size, size, setter))
    params.add(delay_parameter(spec, 0.006, 0.05))
    body, rod = spec.geoms[0].name, spec.geoms[-1].name
    mass = spec.geom(body).mass  # the pendulum's is known: it sets the scale of all forces
    params.add(positive(f"mass {body}", mass, 0.3 * mass, 3.0 * mass, partial(_set_mass, body)))
    length = abs(float(spec.geom(rod).fromto[5]))
    params.add(positive("length", length, 0.7 * length, 1.4 * length, partial(_set_length, rod)))
    params.add(bias_parameter(hanging, 0.1))
    params.add(sysid.Parameter("tilt", [0.0, 0.0], [-0.1, -0.1], [0.1, 0.1], modifier=_set_tilt))
    return params


def _set_gain(spec: mujoco.MjSpec, value: float) -> None:
    """Writes the motor's gain."""
    spec.actuator("motor").gainprm[0] = value


def _set_mass(geom: str, spec: mujoco.MjSpec, value: float) -> None:
    """Writes a geom's mass; its inertia follows."""
    spec.geom(geom).mass = value


def _set_length(geom: str, spec: mujoco.MjSpec, value: float) -> None:
    """Writes the pendulum's length; centre and inertia follow."""
    spec.geom(geom).fromto[5] = -value


def _set_tilt(spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
    """Tilts gravity by two angles [rad]."""
    x, y = parameter.value
    down = math.sqrt(1.0 - math.sin(x) ** 2 - math.sin(y) ** 2)
    spec.option.gravity = 9.81 * np.array([math.sin(x), math.sin(y), -down])


def task(make: Callable, runs: list[Run], weights: tuple[float, float]) -> Task:
    """Returns the set-up of the Qube or the cart-pole: nominal values of its maker to start from."""
    with tempfile.TemporaryDirectory() as place:
        xml = (make(Path(place), []) / "robot.xml").read_text()
    stock = mujoco.MjSpec.from_string(xml)
    params = _parameters(stock, *runs[0].joints)
    pieces, starts = cut_pieces(runs, WINDOW_S)
    return Task(stock.copy(), stock, params, pieces, starts, np.array(weights))


def qube_task(logs: list[Path]) -> Task:
    """Returns the set-up of the Qube on some runs, by path."""
    return task(sets.qube, [score.qube_run(path) for path in logs], (30.0, 30.0))


def cartpole_task(logs: list[Path]) -> Task:
    """Returns the set-up of the cart-pole on some runs, by path."""
    return task(sets.cartpole, [score.cartpole_run(path) for path in logs], (200.0, 30.0))
