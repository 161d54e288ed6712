"""Samples of the fitted parameters as a Parquet file, and the simulated cases that a neural posterior learns from.

Cases are about a solution: parameters drawn near it, and what the logs would then have shown, in short.

A case is drawn in three steps. Parameters come from a cloud about the solution, wide enough to hold the posterior.
The windows are predicted under them; the difference to the prediction under the solution is how the residuals would
move. To that come the residuals of the solution itself with one random factor per window: they hold the noise of the
readings, that of the start states, and what the model lacks, and errors that persist within a window stay together,
as in the covariance of the solution.

A case is then told by a few numbers: the Gauss-Newton step from its residuals, which is what the fit itself looks at,
and some shapes in which they would move besides. The noise of the shapes is drawn apart from that of the step. Drawn
together, it would give away a part of the step's noise, through a likeness that only these very residuals have.
"""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.special import ndtr, ndtri

from gapless.core.parameters import ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.problem import FitProblem, flatten_outliers
from gapless.fit.slopes import FINE_STEP, two_sided_slopes
from gapless.fit.solution import Solution

NUM_SAMPLES = 1000
GAUSSIAN, NEURAL = "posterior.parquet", "posterior_sbi.parquet"
SPREAD = 2.0  # standard deviations of the cloud, in those of the solution
UNIFORM = 12.0  # precision of a uniform density on [0, 1]: 1 / variance
NUM_SWEEPS = 50
NUM_SHAPES = 5  # numbers beyond one per parameter, for what is not linear
NUM_PILOT, PILOT_COPIES, NEAREST = 600, 3, 0.3  # of the first look: cases, noises for each, share that is used
MAX_NUMBERS = 20_000_000  # residuals held at once: 160 MB


def gaussian_samples(
    space: ParameterSpace, solution: Solution, rng: np.random.Generator, num_samples: int = NUM_SAMPLES
) -> Array:
    """Draws from the posterior that the intervals describe, (num_samples, num_free), each column in its unit.

    It is normal in the solver's coordinates; what falls beyond a bound lies on the bound, as the intervals do.
    """
    unit = solution.unit + rng.standard_normal((num_samples, len(space))) @ square_root(solution.covariance).T
    return Scaling.of(space).values(np.clip(unit, 0.0, 1.0))


def square_root(covariance: Array) -> Array:
    """Returns S with S S^T = covariance, also where it is singular or has rounding errors below 0."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def parquet_bytes(space: ParameterSpace, samples: Array, about: Sequence[tuple[str, str]]) -> bytes:
    """Returns samples, (num_samples, num_parameters), as Parquet: columns are targets, in their units.

    The metadata has the units, and the pairs of `about`, such as the method.
    """
    units = json.dumps({p.target: p.unit for p in space.parameters})
    schema = pa.schema([pa.field(target, pa.float64()) for target in space.targets])
    schema = schema.with_metadata({"units": units, **dict(about)})
    table = pa.table([samples[:, k] for k in range(len(space))], schema=schema)
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


@dataclass(frozen=True)
class Cloud:
    """Parameters about a solution: unit = centre + factor @ z with z ~ N(0, 1), cut to units in [0, 1]."""

    centre: Array  # (num_free,) the solution
    factor: Array  # (num_free, num_free)

    @classmethod
    def about(cls, unit: Array, covariance: Array) -> "Cloud":
        """Returns the cloud about a solution; what is hardly determined is spread over its range, not further."""
        bounded = np.linalg.inv(np.linalg.inv(covariance) + UNIFORM * np.eye(len(unit)))
        return cls(np.clip(unit, 0.0, 1.0), SPREAD * square_root(np.asarray(bounded, dtype=np.float64)))

    def log_density(self, unit: Array) -> Array:
        """Returns the logarithm of the density within the bounds, (num_draws,), up to a constant."""
        z = (unit - self.centre) @ np.linalg.inv(self.factor).T
        return -0.5 * np.sum(z**2, axis=-1)

    def sample(self, rng: np.random.Generator, count: int) -> Array:
        """Draws units, (count, num_free), by Gibbs sampling: one coordinate of z after the other, within the bounds."""
        z = np.zeros((count, len(self.centre)))
        for _ in range(NUM_SWEEPS):
            for k, slope in enumerate(self.factor.T):
                rest = self.centre + z @ self.factor.T - z[:, k : k + 1] * slope
                moves = np.abs(slope) > 1e-12
                ends = np.sort(np.stack([-rest[:, moves], 1.0 - rest[:, moves]]) / slope[moves], axis=0)
                low = ends[0].max(axis=1, initial=-40.0)  # least and greatest z that keep all units in [0, 1]
                high = np.maximum(ends[1].min(axis=1, initial=40.0), low)
                share = rng.uniform(ndtr(low), np.maximum(ndtr(high), ndtr(low)))
                z[:, k] = np.clip(ndtri(np.clip(share, 1e-12, 1 - 1e-12)), low, high)
        return np.clip(self.centre + z @ self.factor.T, 0.0, 1.0)


@dataclass(frozen=True)
class Cases:
    """Makes cases, and tells them and the logs by the same numbers."""

    problem: FitProblem  # at the solution, start errors discounted
    cloud: Cloud  # where parameters are drawn from
    residual: Array  # (num_windows, num_residuals) weighted residuals of the solution, not yet robust
    steps: Array  # (num_windows * num_residuals, num_free) onto the Gauss-Newton step, in the cloud's coordinates
    shapes: Array  # (num_windows * num_residuals, num_shapes) orthonormal projections that do not overlap with the step
    # How many times the residuals the noise is: what the fit took out of them, so that the step is as uncertain as the
    # solution's covariance says, for the median parameter.
    lost: float = 1.0

    @classmethod
    def of(cls, problem: FitProblem, solution: Solution, rng: np.random.Generator) -> "Cases":
        """Prepares cases about a solution of a problem.

        The shapes are the principal directions in which residuals move within the cloud, apart from the step.
        """
        cloud = Cloud.about(solution.unit, solution.covariance)
        residual = problem.plain_residuals(solution.unit[None])[0]
        every = np.arange(len(solution.unit))
        slopes = two_sided_slopes(problem.residuals, solution.unit, every, FINE_STEP)
        slopes = -slopes.reshape(len(every), -1).T  # of the data, which moves against the prediction
        inverse = np.linalg.inv(slopes.T @ slopes + UNIFORM * np.eye(len(solution.unit)))
        steps = slopes @ inverse @ np.linalg.inv(cloud.factor).T
        first = cls(problem, cloud, residual, steps, np.zeros((residual.size, 0)))
        few = int(np.clip(MAX_NUMBERS // residual.size, 16, 256))
        moved = flatten_outliers(first._shift_residuals(cloud.sample(rng, few))).reshape(few, -1)
        basis = np.linalg.qr(slopes)[0]
        apart = moved - (moved @ basis) @ basis.T
        shapes = np.linalg.svd(apart - apart.mean(axis=0), full_matrices=False)[2][:NUM_SHAPES]
        step_noise = (slopes @ inverse).reshape(*residual.shape, -1)
        per_window = np.einsum("wr,wrk->wk", flatten_outliers(residual), step_noise)
        ratio = np.diag(solution.covariance) / np.maximum(np.sum(per_window**2, axis=0), 1e-300)
        lost = float(np.sqrt(np.clip(np.median(ratio), 1.0, 10.0)))
        return cls(problem, cloud, residual, steps, shapes.T, lost)

    def observed(self) -> Array:
        """Returns the numbers that tell the logs, (num_numbers,)."""
        flat = flatten_outliers(self.residual).ravel()
        return np.concatenate([flat @ self.steps, flat @ self.shapes])

    def simulated(self, unit: Array, rng: np.random.Generator, copies: int = 1) -> Array:
        """Returns the numbers that tell the cases of units (num_draws, num_free), (copies, num_draws, num_numbers).

        Each draw is used for several copies, with other noise: noise is cheap, predictions are not.
        """
        at_once = int(np.clip(MAX_NUMBERS // self.residual.size, 1, 256))
        pieces: list[Array] = []
        for first in range(0, len(unit), at_once):
            moved = self._shift_residuals(unit[first : first + at_once])
            pieces.append(np.stack([self._simulate_readings(moved, rng) for _ in range(copies)]))
        return np.concatenate(pieces, axis=1)

    def focused(self, rng: np.random.Generator) -> "Cases":
        """Returns the same cases about where a first look puts the posterior.

        At a bound, and beyond what is linear, it may lie aside of the solution, narrower or wider. The first look is
        a local linear regression of parameters on numbers, among the cases most like the logs (Beaumont et al., 2002);
        the prior of the fit is then taken into account.
        """
        units = np.tile(self.cloud.sample(rng, NUM_PILOT), (PILOT_COPIES, 1))
        told = self.simulated(units[:NUM_PILOT], rng, PILOT_COPIES).reshape(len(units), -1)
        away = (told - self.observed()) / (np.std(told, axis=0) + 1e-12)
        near = np.argsort(np.sum(away**2, axis=1))[: int(NEAREST * len(units))]
        design = np.concatenate([np.ones((len(near), 1)), away[near]], axis=1)
        found = np.linalg.lstsq(design, units[near], rcond=None)[0]
        left = np.atleast_2d(np.cov((units[near] - design @ found).T))
        precision = np.linalg.inv(left + 1e-12 * np.eye(len(left)))
        prior = np.diag(self.problem.prior**2)
        covariance: Array = np.asarray(np.linalg.inv(precision + prior), dtype=np.float64)
        centre = covariance @ (precision @ found[0] + prior @ self.problem.unit(self.problem.base))
        return replace(self, cloud=Cloud.about(centre, covariance))

    def log_prior(self, unit: Array) -> Array:
        """Returns the logarithm of the fit's prior within the bounds, (num_draws,), up to a constant."""
        problem = self.problem
        return -0.5 * np.sum((problem.prior * (unit - problem.unit(problem.base))) ** 2, axis=-1)

    def _simulate_readings(self, moved: Array, rng: np.random.Generator) -> Array:
        count, num_windows, _ = moved.shape
        noisy = moved + self.lost * rng.standard_normal((count, num_windows, 1)) * self.residual
        shapes = self.shapes.reshape(*self.residual.shape, -1)
        per_window = np.einsum("wr,wrs->ws", flatten_outliers(self.residual), shapes)
        shown = flatten_outliers(moved).reshape(count, -1) @ self.shapes
        shown += self.lost * np.sqrt(np.sum(per_window**2, axis=0)) * rng.standard_normal(shown.shape)
        return np.concatenate([flatten_outliers(noisy).reshape(count, -1) @ self.steps, shown], axis=1)

    def _shift_residuals(self, unit: Array) -> Array:
        """Returns how the residuals of the solution move if the parameters are those, (num_draws, ...)."""
        return self.residual - self.problem.plain_residuals(unit)
