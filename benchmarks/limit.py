"""The best that ours's class of model can do: the same parameters, fitted to the very logs that are scored.

First `identify` itself gets those logs, with the list of parameters that it had chosen before. Then its row, or the
one that was found without those logs if that is better, is polished on the very number that is scored.
"""

import tempfile
from pathlib import Path

import numpy as np
import yaml
from cases import Case, Say
from mujoco import minimize
from ours import Ours, episode_of, errors_as_fitted, fit, scored_windows
from score import Run

from gapless.fit.prediction.windows import Windows
from gapless.project.load import load_project
from gapless.project.log.write import write_log

STEP = 0.003  # of a parameter's range, or of its logarithm's
ROUND_ITERS = 3  # each simulates every scored run once per parameter
WIDE = 20.0  # positive parameters whose bounds differ by more are moved as logarithms


def best_row(case: Case, ours: Ours, runs: list[Run], say: Say) -> np.ndarray:
    """Returns the best row of the class that was found, in the columns of ours.

    Args:
        case: What is scored, and how.
        ours: The fit whose parameters are taken.
        runs: The logs that are scored.
        say: Told what is being done.
    """
    windows = scored_windows(case, ours.predictor.blueprint.project, runs)
    say("class limit: identify on the scored logs")
    rows = [ours.row, _refitted(case, ours, runs)]
    best = min(rows, key=lambda row: _cost(case, ours, row, windows))
    for number in range(case.limit_rounds):
        say(f"class limit: round {number}, {_cost(case, ours, best, windows):.5g}")
        best = min([best, _polished(case, ours, best, windows)], key=lambda row: _cost(case, ours, row, windows))
    return best


def write_project(place: Path, case: Case, runs: list[Run], parameters: object = "auto") -> Path:
    """Makes a project folder of runs, with a list of parameters or `auto`."""
    case.project(place, [])
    settings = yaml.safe_load((place / "gapless.yaml").read_text())
    (place / "gapless.yaml").write_text(yaml.safe_dump(settings | {"parameters": parameters}, sort_keys=False))
    project = load_project(place)
    for run in runs:
        write_log(project, episode_of(project, run))
    return place


def _refitted(case: Case, ours: Ours, runs: list[Run]) -> np.ndarray:
    """Returns the row that `identify` finds on the scored logs with the same parameters."""
    chosen = [{"target": p.target, "low": p.prior_low, "high": p.prior_high} for p in ours.result.parameters]
    row = ours.row
    with tempfile.TemporaryDirectory() as place:
        for p in fit(write_project(Path(place), case, runs, chosen)).result.parameters:
            row[ours.space.index(p.target)] = p.value
    return row


def _errors(case: Case, ours: Ours, rows: np.ndarray, windows: Windows) -> np.ndarray:
    """Returns errors, (rows, windows, steps, joints); 0 where a run is over, large where it diverged."""
    errors = errors_as_fitted(case, ours, rows, windows)
    over = np.isnan(windows.measured[..., :1])
    return np.where(over, 0.0, np.nan_to_num(np.clip(errors, -1e3, 1e3), nan=1e3))


def _rms(errors: np.ndarray, windows: Windows) -> np.ndarray:
    """Returns the RMSEs of all windows together, (1, joints)."""
    counts = np.isfinite(windows.measured[:, :, :1]).sum(axis=1)
    squares = (errors**2).sum(axis=1)
    return np.sqrt(squares.sum(axis=0, keepdims=True) / counts.sum())


def _cost(case: Case, ours: Ours, row: np.ndarray, windows: Windows) -> float:
    """Returns what is minimised: the mean RMSE, each joint in units that make joints alike."""
    rms = _rms(_errors(case, ours, row[None], windows)[0], windows)
    return float(rms.mean()) if len(set(case.units)) == 1 else float(np.exp(np.log(rms).mean()))


def _polished(case: Case, ours: Ours, row: np.ndarray, windows: Windows) -> np.ndarray:
    """Returns a row after a few Gauss-Newton steps.

    The score is a mean of RMSEs, not of squares: weighing each by 1 / sqrt(RMSE) gives their sum the same slope.
    """
    index = [ours.space.index(p.target) for p in ours.result.parameters]
    coordinates = _Coordinates(*(getattr(ours.space, name)[index] for name in ("low", "high")))
    rms = _rms(_errors(case, ours, row[None], windows)[0], windows)
    power = 0.5 if len(set(case.units)) == 1 else 1.0
    weight = np.broadcast_to(rms[:, None, :] ** -power, (len(windows), 1, rms.shape[1]))

    def residual(units: np.ndarray) -> np.ndarray:
        rows = np.tile(row, (units.shape[1], 1))
        rows[:, index] = coordinates.values(units.T)
        return (_errors(case, ours, rows, windows) * weight).reshape(len(rows), -1).T

    found, _ = minimize.least_squares(
        coordinates.units(row[index]),
        residual,
        [np.zeros(len(index)), np.ones(len(index))],
        eps=STEP,
        max_iter=ROUND_ITERS,
        verbose=minimize.Verbosity.SILENT,
    )
    moved = row.copy()
    moved[index] = coordinates.values(found.ravel()[None])[0]
    return moved


class _Coordinates:
    """Parameters between their bounds as numbers in [0, 1]."""

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        self._log = (low > 0) & (high > WIDE * np.maximum(low, 1e-300))
        self._low, self._high = self._bent(low), self._bent(high)

    def _bent(self, values: np.ndarray) -> np.ndarray:
        return np.where(self._log, np.log(np.where(self._log, values, 1.0)), values)

    def units(self, values: np.ndarray) -> np.ndarray:
        """Returns values as numbers in [0, 1]."""
        return np.clip((self._bent(values) - self._low) / (self._high - self._low), 0.0, 1.0)

    def values(self, units: np.ndarray) -> np.ndarray:
        """Returns the values of numbers in [0, 1], (rows, parameters)."""
        bent = self._low + np.clip(units, 0.0, 1.0) * (self._high - self._low)
        return np.where(self._log, np.exp(np.where(self._log, bent, 0.0)), bent)
