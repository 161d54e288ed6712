"""What no model can predict: rounding of readings, errors of start states, and the robot's own variation.

A model whose error is near these floors has nothing left to explain; what lies between is unmodelled.
"""

import mujoco
import numpy as np
from score import Run, Windows, bias_of, cut, simulate, smooth, smoother_rows, warm_rows, window_errors


def quantisation_floor(quantum: tuple[float, ...]) -> np.ndarray:
    """Returns the RMSE that a perfect prediction has against rounded readings: quantum / sqrt(12), per joint."""
    return np.asarray(quantum) / np.sqrt(12.0)


def repeat_spread(runs: list[Run]) -> np.ndarray:
    """Returns the spread of readings between repeats of one command sequence: (joints,), rows pooled.

    Where repeats start from different states (cart-pole) this is mostly that; see `repeat_floor`.
    """
    groups = _repeats(runs)
    return np.sqrt(np.mean([np.var([run.readings for run in group], axis=0, ddof=1).mean(0) for group in groups], 0))


def _repeats(runs: list[Run]) -> list[list[Run]]:
    """Returns runs grouped by identical commands; groups of one are left out."""
    groups: dict[bytes, list[Run]] = {}
    for run in runs:
        groups.setdefault(np.round(run.commands, 3).tobytes(), []).append(run)
    repeated = [group for group in groups.values() if len(group) > 1]
    if not repeated:
        raise ValueError(f"none of the {len(runs)} runs repeats the commands of another")
    return repeated


def repeat_floor(
    model: mujoco.MjModel, biases: dict[str, float], runs: list[Run], window_s: float = 0.5, every_s: float = 0.1
) -> np.ndarray:
    """Returns the part of window errors that differs between repeats of the same commands: (joints,).

    The model takes out what different starts explain; what repeats share is the model's error and is removed.
    What is left (start-state errors, noise, the robot's own variation) no model of these inputs predicts.
    """
    parts = []
    for group in _repeats(runs):
        errors = window_errors(model, biases, group, cut(group, window_s, every_s))
        errors = errors.reshape(len(group), -1, *errors.shape[1:])  # equal lengths: as many windows each
        parts.append(errors.var(axis=0, ddof=1).mean(axis=(0, 1)))
    return np.sqrt(np.mean(parts, axis=0))


def start_floor(
    model: mujoco.MjModel,
    biases: dict[str, float],
    runs: list[Run],
    quantum: tuple[float, ...],
    window_s: float = 0.5,
    every_s: float = 0.1,
) -> np.ndarray:
    """Returns the window error of a model that is exactly right: from start states and rounding alone, (joints,).

    The model itself plays the robot: it is simulated around every window, its readings are rounded to the quantum,
    and it then has to predict them from its own smoothed state.
    """
    bias, windows = bias_of(biases, runs[0].joints), cut(runs, window_s, every_s)
    smoothed, rows = smoother_rows(runs[0].rate_hz), windows.rows
    before = warm_rows(runs[0].rate_hz) + smoothed // 2
    twins = []
    for number, run in enumerate(runs):
        q, v = smooth(run.readings, run.rate_hz)
        starts = windows.starts[windows.runs == number]
        for s in starts[starts >= before + smoothed // 2]:  # the first have no smoothed state so far back
            commands = run.commands[None, s - before : s + rows + smoothed]
            start = (q[None, s - before] - bias, v[None, s - before])
            true = simulate(model, run, (*start, commands[:, :1]), start, commands[:, :-1], threads=1)[0] + bias
            rounded = np.round(true / quantum) * quantum
            twins.append(Run(f"{run.name}@{s}", run.rate_hz, run.actuators, commands[0], run.joints, rounded))
    ones = Windows(np.arange(len(twins)), np.full(len(twins), before), rows)
    return np.sqrt(np.mean(window_errors(model, biases, twins, ones) ** 2, axis=(0, 1)))
