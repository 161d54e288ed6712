"""How well a MuJoCo model predicts real logs: one neutral scorer for every fit, ours and the peer's.

It takes a compiled `mujoco.MjModel` (delays and filters inside it count) and, per measured joint, a bias, where
reading = true value + bias. It knows nothing of how the model was found.

Timing: the command of row k acts from row k to row k + 1; the reading of row k is the state at row k.
"""

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout
from sets import JAW_RANGE, SO101_JOINTS, data_folder

SO101_SCORED = SO101_JOINTS[:5]  # the jaw is simulated, not scored
SO101_QUANTUM = (2.0 * np.pi / 4096.0,) * 5  # [rad], NOTES.md
QUBE_JOINTS, QUBE_QUANTUM = ("theta", "alpha"), (2.0 * np.pi / 2048.0,) * 2  # [rad]
DOUBLE_JOINTS, DOUBLE_QUANTUM = ("shoulder", "elbow"), (25.0 / 65535.0,) * 2  # [rad]
CARTPOLE_JOINTS, CARTPOLE_QUANTUM = ("x", "theta"), (2.274e-5, 2.0 * np.pi / 4096.0)  # [m], [rad]
SMOOTHER_S = 0.068  # of the cubic that gives start states: 17 rows at 250 Hz
WARM_S = 0.1  # simulated before a window, to fill delays and filters,
MIN_WARM_ROWS = 10  # and at least so many rows
HORIZONS_S = (0.1, 0.5, 1.0, None)  # of predictions; None: whole runs
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS.value


@dataclass(frozen=True)
class Run:
    """One log, in the units of the model."""

    name: str
    rate_hz: float
    actuators: tuple[str, ...]
    commands: np.ndarray
    """(rows, actuators) [ctrl of the model]: row k acts from row k to row k + 1."""
    joints: tuple[str, ...]
    readings: np.ndarray
    """(rows, joints) [rad] or [m]: row k is the state at row k."""


@dataclass(frozen=True)
class Score:
    """Errors of one model on some runs."""

    rmse: np.ndarray
    """(joints,) [rad] or [m]; infinite where a simulation diverged."""
    per_run: dict[str, np.ndarray]
    """Per run, (joints,) [rad] or [m]."""

    @property
    def mean(self) -> float:
        """Mean over joints [rad]; meaningful where all joints share a unit."""
        return float(self.rmse.mean())


@dataclass(frozen=True)
class Windows:
    """Pieces of runs, all of one length, with the states that they start from."""

    runs: np.ndarray
    """(windows,) index of the run [1]."""
    starts: np.ndarray
    """(windows,) first row [1]."""
    rows: int
    """Rows that are predicted: start + 1 .. start + rows."""


def smoother_rows(rate_hz: float) -> int:
    """Returns how many rows the start-state smoother takes: odd, at least the five that a cubic needs."""
    return max(5, round(SMOOTHER_S * rate_hz) | 1)


def warm_rows(rate_hz: float) -> int:
    """Returns how many rows are simulated before a window."""
    return max(MIN_WARM_ROWS, round(WARM_S * rate_hz))


def so101_run(name: str, seconds: float = 40.0) -> Run:
    """Returns the first seconds of one motion of the SO-101; the jaw's 0..1 becomes radians."""
    with np.load(data_folder() / "so101" / "npz" / f"{name}.npz") as data:
        keep = data["t"] - data["t"][0] <= seconds
        commands, readings = data["q_cmd"][keep].copy(), data["q"][keep].copy()
    low, high = JAW_RANGE
    for values in (commands, readings):
        values[:, 5] = low + (high - low) * values[:, 5]
    return Run(name, 50.0, SO101_JOINTS, commands, SO101_JOINTS, readings)


def pendulum_run(path: Path, joints: tuple[str, str]) -> Run:
    """Returns one run of the Qube or the cart-pole; the filtered velocities of the log are not used."""
    with np.load(path) as data:
        commands = data["actions_applied"].astype(float)
        readings = data["states"][: len(commands), :2].astype(float)
    return Run(f"{path.parent.name}/{path.stem}", 250.0, ("motor",), commands, joints, readings)


def qube_run(path: Path) -> Run:
    """Returns one run of the Qube; a swing-up ends at the catch."""
    run = pendulum_run(path, QUBE_JOINTS)
    if "su" not in path.parent.name:
        return run
    end = catch_row(run.readings[:, 1], run.rate_hz)
    return Run(run.name, run.rate_hz, run.actuators, run.commands[:end], run.joints, run.readings[:end])


def cartpole_run(path: Path) -> Run:
    """Returns one run of the cart-pole."""
    return pendulum_run(path, CARTPOLE_JOINTS)


def double_pendulum_run(path: Path, rate_hz: float = 500.0) -> Run:
    """Returns one run of the double pendulum at one rate: positions between rows, commands as held on average."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    time_s = table["time_s"]
    rows_s = np.arange(0.0, time_s[-1], 1.0 / rate_hz)
    readings = np.stack([np.interp(rows_s, time_s, table[name]) for name in ("q1", "q2")], axis=1)
    sent = np.stack([table["tau1"], table["tau2"]], axis=1)
    impulse = np.concatenate([np.zeros((1, 2)), np.cumsum(sent[:-1] * np.diff(time_s)[:, None], axis=0)])
    edges_s = np.append(rows_s, rows_s[-1] + 1.0 / rate_hz)
    commands = rate_hz * np.stack([np.diff(np.interp(edges_s, time_s, impulse[:, k])) for k in range(2)], axis=1)
    commands[-1] = sent[-1]  # the log ends within its last row
    return Run(path.stem, rate_hz, DOUBLE_JOINTS, commands, DOUBLE_JOINTS, readings)


def catch_row(angle: np.ndarray, rate_hz: float, near_rad: float = 0.35, stay_s: float = 0.2) -> int:
    """Returns the row where a pendulum (0 = down) first comes near upright and stays; the last row if it never does."""
    near = np.abs(np.mod(angle, 2.0 * np.pi) - np.pi) < near_rad
    need = round(stay_s * rate_hz)
    stays = np.convolve(near, np.ones(need), mode="valid") >= need - 0.5
    return int(np.argmax(stays)) if stays.any() else len(angle)


def smooth(readings: np.ndarray, rate_hz: float, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns positions and velocities of each row by a cubic fitted to the rows around it (Savitzky-Golay).

    Rows nearer to an end than half the window are NaN: no state may start there.

    Args:
        readings: (rows, joints).
        rate_hz: Rate of the rows [Hz].
        rows: Odd number of rows per fit; None for `smoother_rows`.
    """
    rows = rows or smoother_rows(rate_hz)
    half = rows // 2
    offsets_s = np.arange(-half, half + 1) / rate_hz
    weights = np.linalg.pinv(np.vander(offsets_s, 4, increasing=True))
    windows = np.lib.stride_tricks.sliding_window_view(readings, rows, axis=0)
    positions, velocities = np.full(readings.shape, np.nan), np.full(readings.shape, np.nan)
    positions[half : len(readings) - half] = windows @ weights[0]
    velocities[half : len(readings) - half] = windows @ weights[1]
    return positions, velocities


def cut(runs: list[Run], window_s: float = 0.5, every_s: float = 0.1, after_s: float = 0.0) -> Windows:
    """Returns windows of every run: one starts each `every_s`, after what the smoother and the warm-up need."""
    half = smoother_rows(runs[0].rate_hz) // 2
    first = max(warm_rows(runs[0].rate_hz) + half, round(after_s * runs[0].rate_hz))
    index, starts, rows = [], [], round(window_s * runs[0].rate_hz)
    for number, run in enumerate(runs):
        last = len(run.readings) - 1 - max(rows, half)
        chosen = np.arange(first, last + 1, round(every_s * run.rate_hz))
        index += [number] * len(chosen)
        starts += chosen.tolist()
    return Windows(np.array(index), np.array(starts), rows)


def simulate(
    model: mujoco.MjModel,
    run: Run,
    warm: tuple[np.ndarray, np.ndarray, np.ndarray],
    start: tuple[np.ndarray, np.ndarray],
    commands: np.ndarray,
    threads: int = 2,
) -> np.ndarray:
    """Returns true joint positions at every row, start row first: (batch, rows + 1, joints) [rad] or [m].

    A warm-up with its own start and commands fills delays and filters; then positions and velocities are set to
    the start and the commands are played. After a divergence all values are infinite.

    Args:
        model: Its time step must divide the row interval.
        run: Names joints and actuators, and the rate.
        warm: Positions (batch, joints), velocities (batch, joints), commands (batch, warm_rows, actuators).
        start: Positions and velocities, (batch, joints) each.
        commands: (batch, rows, actuators).
        threads: Threads for the roll-outs.
    """
    steps = _steps_per_row(model, run.rate_hz)
    datas = [mujoco.MjData(model) for _ in range(threads)]
    states = np.stack([_state(model, run, *row) for row in zip(warm[0], warm[1], warm[2][:, 0], strict=True)])
    warmed, _ = rollout.rollout(model, datas, states, _controls(model, run, warm[2], steps))
    states = warmed[:, -1].copy()
    q, v = state_columns(model, run.joints)
    free = np.setdiff1d(np.arange(1, 1 + model.nq + model.nv), np.r_[q, v])
    rest = np.r_[model.qpos0, np.zeros(model.nv)]
    states[:, free] = rest[free - 1]
    states[:, q], states[:, v] = start
    began = states[:, 0].copy()
    played, _ = rollout.rollout(model, datas, states, _controls(model, run, commands, steps))
    positions = np.concatenate([start[0][:, None], played[:, steps - 1 :: steps, q]], axis=1)
    expected = began + commands.shape[1] * steps * model.opt.timestep
    positions[np.abs(played[:, -1, 0] - expected) > 0.5 * model.opt.timestep, 1:] = np.inf
    return positions


def _steps_per_row(model: mujoco.MjModel, rate_hz: float) -> int:
    """Returns time steps per row of a log; a row that is no whole number of them is refused."""
    steps = 1.0 / (rate_hz * model.opt.timestep)
    if abs(steps - round(steps)) > 1e-6:
        raise ValueError(f"a row of {1 / rate_hz} s is not a whole number of time steps of {model.opt.timestep} s")
    return round(steps)


def state_columns(model: mujoco.MjModel, joints: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the columns of joint positions and velocities in a full physics state."""
    found = [model.joint(name) for name in joints]
    q = [1 + joint.qposadr[0] + k for joint in found for k in range(len(joint.qpos0))]
    return np.array(q), np.array([1 + model.nq + j.dofadr[0] + k for j in found for k in range(len(j.damping))])


def _state(model: mujoco.MjModel, run: Run, q: np.ndarray, v: np.ndarray, command: np.ndarray) -> np.ndarray:
    """Returns a full physics state whose delay histories hold one command."""
    data, state = mujoco.MjData(model), np.empty(mujoco.mj_stateSize(model, FULL))
    for name, position, velocity in zip(run.joints, q, v, strict=True):
        data.joint(name).qpos, data.joint(name).qvel = position, velocity
    for name, value in zip(run.actuators, command, strict=True):
        actuator = model.actuator(name).id
        num_samples = model.actuator_history[actuator, 0]
        if num_samples:
            mujoco.mj_initCtrlHistory(model, data, actuator, None, np.full(num_samples, value))
    mujoco.mj_getState(model, data, state, FULL)
    return state


def _controls(model: mujoco.MjModel, run: Run, commands: np.ndarray, steps: int) -> np.ndarray:
    """Returns commands in the order of the model, held over the steps of each row: (batch, steps, nu)."""
    controls = np.zeros((*commands.shape[:2], model.nu))
    controls[:, :, [model.actuator(name).id for name in run.actuators]] = commands
    return np.repeat(controls, steps, axis=1)


def bias_of(biases: dict[str, float], joints: tuple[str, ...]) -> np.ndarray:
    """Returns biases in the order of the joints, 0 where none is given."""
    unknown = set(biases) - set(joints)
    if unknown:
        raise ValueError(f"biases of {sorted(unknown)}, but the measured joints are {list(joints)}")
    return np.array([biases.get(name, 0.0) for name in joints])


def open_loop(model: mujoco.MjModel, biases: dict[str, float], run: Run) -> np.ndarray:
    """Returns predicted readings of a whole run from its first row, at rest: (rows, joints) [rad]."""
    bias = bias_of(biases, run.joints)
    start = (run.readings[:1] - bias, np.zeros((1, len(run.joints))))
    held = np.repeat(run.commands[None, :1], 10, axis=1)  # 0.2 s of the first command fill delays and filters
    return simulate(model, run, (*start, held), start, run.commands[None, :-1], threads=1)[0] + bias


def pool_runs(errors: dict[str, np.ndarray]) -> Score:
    """Returns the score of whole runs: RMSE per joint and run, then the mean over runs.

    Args:
        errors: Per run, prediction minus reading, (rows, joints).
    """
    per_run = {name: np.sqrt(np.mean(error**2, axis=0)) for name, error in errors.items()}
    return Score(np.mean(list(per_run.values()), axis=0), per_run)


def pool_windows(errors: np.ndarray, windows: Windows, runs: list[Run]) -> Score:
    """Returns the score of windows: RMSE over all of them.

    Args:
        errors: Prediction minus reading, (windows, rows, joints).
        windows: Where they lie.
        runs: What they are pieces of.
    """
    squares = np.mean(errors**2, axis=1)
    per_run = {
        run.name: np.sqrt(squares[windows.runs == number].mean(axis=0))
        for number, run in enumerate(runs)
        if (windows.runs == number).any()
    }
    return Score(np.sqrt(squares.mean(axis=0)), per_run)


def window_errors(model: mujoco.MjModel, biases: dict[str, float], runs: list[Run], windows: Windows) -> np.ndarray:
    """Returns prediction minus reading of every window: (windows, rows, joints) [rad] or [m]."""
    bias, before = bias_of(biases, runs[0].joints), warm_rows(runs[0].rate_hz)
    smoothed = [smooth(run.readings, run.rate_hz) for run in runs]
    pairs = list(zip(windows.runs, windows.starts, strict=True))
    states = [np.stack([smoothed[r][part][s - back] for r, s in pairs]) for back in (before, 0) for part in (0, 1)]
    warm = np.stack([runs[r].commands[s - before : s] for r, s in pairs])
    commands = np.stack([runs[r].commands[s : s + windows.rows] for r, s in pairs])
    readings = np.stack([runs[r].readings[s + 1 : s + windows.rows + 1] for r, s in pairs])
    predicted = simulate(model, runs[0], (states[0] - bias, states[1], warm), (states[2] - bias, states[3]), commands)[
        :, 1:
    ]
    return predicted + bias - readings


def score_windows(
    model: mujoco.MjModel,
    biases: dict[str, float],
    runs: list[Run],
    window_s: float = 0.5,
    every_s: float = 0.1,
    after_s: float = 0.0,
) -> Score:
    """Returns errors of predictions in short windows that start from the smoothed state: RMSE over all windows."""
    windows = cut(runs, window_s, every_s, after_s)
    return pool_windows(window_errors(model, biases, runs, windows), windows, runs)


def score_whole(model: mujoco.MjModel, biases: dict[str, float], runs: list[Run], after_s: float = 0.0) -> Score:
    """Returns errors of whole runs from their first smoothed state on: RMSE per joint and run, then the mean."""
    errors = {}
    for run in runs:
        first = int(cut([run], 0.0, after_s=after_s).starts[0])
        whole = Windows(np.zeros(1, int), np.array([first]), len(run.readings) - 1 - first)
        errors[run.name] = window_errors(model, biases, [run], whole)[0]
    return pool_runs(errors)


def score_from_rest(model: mujoco.MjModel, biases: dict[str, float], runs: list[Run]) -> Score:
    """Returns errors of whole runs that begin at rest: RMSE per joint and run, then the mean over runs."""
    return pool_runs({run.name: open_loop(model, biases, run) - run.readings for run in runs})


def keep_joints(score: Score, columns: list[int]) -> Score:
    """Returns the score of some joints."""
    return Score(score.rmse[columns], {name: values[columns] for name, values in score.per_run.items()})
