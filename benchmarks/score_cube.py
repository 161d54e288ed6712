"""How well a MuJoCo model predicts tosses of the cube: position and rotation, from states of free flight."""

from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout
from score import FULL, Run, Score, pool_runs, state_columns

SMOOTHER_ROWS = 7  # rows of the parabola that gives start states: 47 ms at 148 Hz
HALF_WIDTH_M = 0.0524  # NOTES.md
MIN_CLEARANCE_M = 0.004  # of the lowest corner in free flight; at rest it is 0.9 to 2.8 mm inside the board
EVERY_ROWS = 5  # windows start at these rows of free flight
CORNERS = HALF_WIDTH_M * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=float)


def cube_run(path: Path) -> Run:
    """Returns the poses of one toss, (rows, 7): x, y, z [m], then the quaternion, of one sign along the run."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    poses = np.stack([table[name] for name in ("x", "y", "z", "qw", "qx", "qy", "qz")], axis=1)
    flips = np.sign(np.sum(poses[1:, 3:] * poses[:-1, 3:], axis=1))
    poses[1:, 3:] *= np.cumprod(flips)[:, None]
    return Run(path.stem, 148.0, (), np.zeros((len(poses), 0)), ("cube",), poses)


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Returns products of quaternions, (..., 4)."""
    w, v, p, q = a[..., :1], a[..., 1:], b[..., :1], b[..., 1:]
    return np.concatenate([w * p - np.sum(v * q, -1, keepdims=True), w * q + p * v + np.cross(v, q)], axis=-1)


def conjugate(q: np.ndarray) -> np.ndarray:
    """Returns inverses of unit quaternions, (..., 4)."""
    return q * np.array([1.0, -1.0, -1.0, -1.0])


def pose_difference(measured: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Returns measured minus predicted poses, (..., 6): metres, then the rotation vector between them [rad]."""
    turn = multiply(conjugate(predicted[..., 3:]), measured[..., 3:])
    turn = turn * np.where(turn[..., :1] < 0, -1.0, 1.0)
    size = np.linalg.norm(turn[..., 1:], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(size, turn[..., :1])
    return np.concatenate([measured[..., :3] - predicted[..., :3], turn[..., 1:] / np.maximum(size, 1e-12) * angle], -1)


def flight_states(run: Run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the rows of a toss that a parabola through free flight gives a state of; positions and velocities."""
    half = SMOOTHER_ROWS // 2
    offsets_s = np.arange(-half, half + 1) / run.rate_hz
    weights = np.linalg.pinv(np.vander(offsets_s, 3, increasing=True))
    around = np.lib.stride_tricks.sliding_window_view(run.readings, SMOOTHER_ROWS, axis=0)
    pose, rate = around @ weights[0], around @ weights[1]
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    spin = 2.0 * multiply(conjugate(pose[:, 3:]), rate[:, 3:])[:, 1:]
    clear = _lowest_corner(run.readings) > MIN_CLEARANCE_M
    free = np.lib.stride_tricks.sliding_window_view(clear, SMOOTHER_ROWS).all(axis=1)
    return half + np.flatnonzero(free), pose[free], np.concatenate([rate[free, :3], spin[free]], axis=1)


def _lowest_corner(poses: np.ndarray) -> np.ndarray:
    """Returns the height of the lowest corner above the board, (rows,) [m]."""
    quaternion = np.repeat(poses[:, None, 3:], len(CORNERS), axis=1)
    corners = np.concatenate([np.zeros((len(CORNERS), 1)), CORNERS], axis=1)
    turned = multiply(multiply(quaternion, np.broadcast_to(corners, quaternion.shape)), conjugate(quaternion))
    return (poses[:, None, 2] + turned[..., 3]).min(axis=1)


def predict_poses(
    model: mujoco.MjModel, positions: np.ndarray, velocities: np.ndarray, rows: int, threads: int = 2
) -> np.ndarray:
    """Returns predicted poses after each row, (starts, rows, 7)."""
    steps = round(1.0 / (148.0 * model.opt.timestep))
    data = [mujoco.MjData(model) for _ in range(threads)]
    states = np.zeros((len(positions), mujoco.mj_stateSize(model, FULL)))
    q, v = state_columns(model, ("cube",))
    states[:, q], states[:, v] = positions, velocities
    played, _ = rollout.rollout(model, data, states, nstep=rows * steps)
    return played[:, steps - 1 :: steps, q]


def score(model: mujoco.MjModel, runs: list[Run], horizon_s: float | None) -> Score:
    """Returns RMS position error [m] and rotation error [rad] of predictions, over windows or whole tosses.

    Windows start in free flight; a whole toss at its first such row, and its RMSE is averaged over tosses.
    """
    found: dict[str, np.ndarray] = {}
    for run in runs:
        first, positions, velocities = flight_states(run)
        if not len(first):
            continue
        rows = len(run.readings) - 1 - int(first[0]) if horizon_s is None else round(horizon_s * run.rate_hz)
        fits = np.flatnonzero(first + rows < len(run.readings))
        fits = fits[: 1 if horizon_s is None else None : EVERY_ROWS]
        if len(fits):
            shown = predict_poses(model, positions[fits], velocities[fits], rows)
            seen = np.stack([run.readings[row + 1 : row + 1 + rows] for row in first[fits]])
            error = pose_difference(seen, shown)
            found[run.name] = np.sqrt(np.stack([np.sum(error[..., k : k + 3] ** 2, -1) for k in (0, 3)], -1))
    if horizon_s is None:
        return pool_runs({name: error[0] for name, error in found.items()})
    squares = [np.mean(error**2, axis=1) for error in found.values()]
    return Score(
        np.sqrt(np.concatenate(squares).mean(axis=0)),
        {name: np.sqrt(square.mean(axis=0)) for name, square in zip(found, squares, strict=True)},
    )
