"""Logs predicted under many rows at once: what the methods that need no fit look at."""

from dataclasses import dataclass

import numpy as np

from gapless.core.distribution import Range
from gapless.core.errors import InputError
from gapless.core.parameters import ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.signals.track import subtract_readings

MAX_ERROR_STDS = 1e3  # an error of a diverged prediction counts as this many standard deviations


@dataclass(frozen=True)
class Replay:
    """Windows of real logs, what predicts them under rows, and the parameters as numbers in [0, 1]."""

    predictor: Predictor
    windows: Windows
    scaling: Scaling

    @classmethod
    def of(cls, data: ProjectData, window_s: float, max_windows: int, rng: np.random.Generator) -> "Replay":
        """Cuts a project's logs into windows and picks some of them at random if there are too many.

        Raises:
            InputError: If no log is long enough.
        """
        windows = cut_windows(data.project, data.tracks, window_s)
        if not len(windows):
            raise InputError(f"no log holds {window_s:g} s without a gap: record longer ones")
        if len(windows) > max_windows:
            windows = windows.pick(np.sort(rng.choice(len(windows), max_windows, replace=False)))
        return cls(Predictor(data.blueprint, data.space), windows, Scaling.of(data.space))

    @property
    def space(self) -> ParameterSpace:
        """The parameters that rows hold."""
        return self.predictor.space

    @property
    def sigma(self) -> Array:
        """Standard deviation of the error at a window's end that noise alone makes, (num_measurements,).

        Noise of the reading, of the start, and of its slope carried through the window.
        """
        windows = self.windows
        length_s = windows.num_steps / self.predictor.blueprint.project.rate_hz
        return np.sqrt(windows.noise**2 + windows.start_sd**2 + (length_s * windows.slope_sd) ** 2)

    def errors(self, rows: Array) -> Array:
        """Returns prediction minus reading in units of `sigma`, (num_rows, num_windows, num_steps, num_measurements).

        What was not measured is NaN; what diverged counts as `MAX_ERROR_STDS`.
        """
        predicted = self.predictor.predict(self.windows, rows)
        project, measured = self.predictor.blueprint.project, self.windows.measured
        error = subtract_readings(project, predicted, measured[None])[:, :, 1:] / self.sigma
        error = np.clip(np.nan_to_num(error, nan=MAX_ERROR_STDS), -MAX_ERROR_STDS, MAX_ERROR_STDS)
        return np.where(np.isfinite(measured[:, 1:]), error, np.nan)

    def normal_ranges(self, centre: Array, width: Array, reason: str) -> tuple[Range, ...]:
        """Returns a normal range per parameter, cut at two widths and at the parameter's bounds.

        Widths are carried over by the slope of the scale; what is never 0 is log-normal.

        Args:
            centre: (num_parameters,) in [0, 1].
            width: (num_parameters,) standard deviations, as shares of the scaled ranges.
            reason: Why these, for the reader.
        """
        unit = np.clip(np.stack([centre - 2 * width, centre, centre + 2 * width]), 0.0, 1.0)
        low, mean, high = np.clip(self.scaling.values(unit), self.space.low, self.space.high).tolist()
        std = (width * self.scaling.slope(unit[1])).tolist()
        return tuple(
            Range(p.target, "log-normal", low[k], high[k], mean[k], std[k] / mean[k], reason)
            if p.low > 0
            else Range(p.target, "normal", low[k], high[k], mean[k], std[k], reason)
            for k, p in enumerate(self.space.parameters)
        )
