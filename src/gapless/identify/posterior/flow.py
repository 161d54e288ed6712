"""A flow that learns the density of parameters given the numbers that tell a case."""

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from sbi.inference import NPE
from sbi.neural_nets import posterior_nn
from scipy.special import ndtri
from scipy.stats import kstest

from gapless.core.signal import Array
from gapless.fit.solve import Progress
from gapless.identify.posterior.cases import Cases
from gapless.identify.posterior.samples import NUM_SAMPLES

NUM_SIMULATIONS = 3000
COPIES = 3  # of each, with other noise
NUM_CHECKS = 200
NUM_RANKED = 199  # samples that a truth is ranked among
BATCH, RATE, LAST_EPOCHS = 200, 1e-3, 10
LABEL = "neural posterior"


class Flow:
    """A density of parameters given the numbers of a case, learned from simulated cases."""

    def __init__(self, cases: Cases, rng: np.random.Generator, report: Progress) -> None:
        """Simulates cases and learns from them.

        Args:
            cases: Makes them.
            rng: Draws everything random.
            report: Called with how far it is, in [0, 1].
        """
        self._cases, self._rng = cases, rng
        units = cases.cloud.sample(rng, NUM_SIMULATIONS + NUM_CHECKS)
        numbers: list[Array] = []
        for piece in np.array_split(units, 20):
            numbers.append(cases.simulated(piece, rng, COPIES))
            report(LABEL, 0.7 * len(numbers) / 20)
        told = np.concatenate(numbers, axis=1)
        learned = told[:, :NUM_SIMULATIONS].reshape(-1, told.shape[2])
        self._checks = units[NUM_SIMULATIONS:], told[0, NUM_SIMULATIONS:]
        self._margins = Margins.of(units)
        self._scale = np.quantile(learned, [0.25, 0.5, 0.75], axis=0)
        self._estimator = self._train(np.tile(self._margins.normal(units[:NUM_SIMULATIONS]), (COPIES, 1)), learned)

    def _train(self, normal: Array, told: Array) -> Any:
        build = posterior_nn("maf", z_score_theta="none", z_score_x="none", hidden_features=40, num_transforms=3)
        with _quiet(self._rng):
            trainer = NPE(density_estimator=build, tracker=_Silence(), show_progress_bars=False)
            trainer.append_simulations(_tensor(normal), self._condition(told))
            estimator = trainer.train(training_batch_size=BATCH, learning_rate=RATE, stop_after_epochs=15)
            _settle(estimator, _tensor(normal), self._condition(told))
            return estimator

    def _condition(self, told: Array) -> torch.Tensor:
        low, middle, high = self._scale
        return _tensor(np.arcsinh((told - middle) / ((high - low) / 1.35 + 1e-12)))  # far ones draw near, in order

    def _draw(self, told: Array, count: int) -> Array:
        """Returns units given the numbers of some cases, (num_cases, count, num_free)."""
        with _quiet(self._rng), torch.no_grad():
            found = self._estimator.sample((count,), condition=self._condition(told))
        return self._margins.unit(found.numpy().astype(np.float64).transpose(1, 0, 2))

    def sample_logs(self) -> tuple[Array, int]:
        """Returns samples given the logs, (NUM_SAMPLES, num_free) in [0, 1], and how many independent ones they are.

        What the flow learned has the cloud as prior. Samples are drawn again with weights that put that of the fit
        in its place. With uneven weights w few samples count: (sum w)^2 / sum w^2 (Kish, 1965).
        """
        unit = self._draw(self._cases.observed()[None], 20 * NUM_SAMPLES)[0]
        weight = self._cases.log_prior(unit) - self._cases.cloud.log_density(unit)
        weight = np.exp(weight - weight.max())
        num_effective = min(float(NUM_SAMPLES), weight.sum() ** 2 / np.sum(weight**2))
        return unit[self._rng.choice(len(unit), NUM_SAMPLES, p=weight / weight.sum())], round(num_effective)

    def rank_p_values(self) -> list[float]:
        """Returns, per parameter, the p-value of uniform ranks of the truth in cases that were not learned from."""
        truths, told = self._checks
        below = np.sum(self._draw(told, NUM_RANKED) < truths[:, None], axis=1)
        ranks = (below + self._rng.uniform(size=below.shape)) / (NUM_RANKED + 1)
        return [float(kstest(column, "uniform").pvalue) for column in ranks.T]


@dataclass(frozen=True)
class Margins:
    """Maps draws of a cloud to numbers without bounds that are about N(0, 1) and uncorrelated, and back.

    Attributes:
        knots: (num_knots, num_free) quantiles of the draws.
        normal_knots: (num_knots,) the same quantiles of N(0, 1).
        factor: (num_free, num_free) with the correlations of the draws, once each is normal.
    """

    knots: Array
    normal_knots: Array
    factor: Array

    @classmethod
    def of(cls, unit: Array, num_knots: int = 400) -> "Margins":
        """Returns the map for draws, (num_draws, num_free)."""
        shares = (np.arange(num_knots) + 0.5) / num_knots
        plain = cls(np.quantile(unit, shares, axis=0), ndtri(shares), np.eye(unit.shape[1]))
        covariance = np.atleast_2d(np.cov(plain.normal(unit).T))
        return replace(plain, factor=np.linalg.cholesky(covariance + 1e-9 * np.eye(unit.shape[1])))

    def normal(self, unit: Array) -> Array:
        """Returns units, (num_draws, num_free), as such numbers."""
        columns = [np.interp(unit[:, k], self.knots[:, k], self.normal_knots) for k in range(unit.shape[1])]
        return np.asarray(np.linalg.solve(self.factor, np.stack(columns)), dtype=np.float64).T

    def unit(self, normal: Array) -> Array:
        """Returns such numbers, (..., num_free), as units."""
        along = normal @ self.factor.T
        columns = [np.interp(along[..., k], self.normal_knots, self.knots[:, k]) for k in range(along.shape[-1])]
        return np.stack(columns, axis=-1)


def _settle(estimator: Any, normal: torch.Tensor, told: torch.Tensor) -> None:
    """Trains a little longer with steps that shrink to nothing: with equal steps it ends aside of the optimum."""
    optimiser = torch.optim.Adam(estimator.parameters(), lr=RATE)
    num_steps = LAST_EPOCHS * -(-len(normal) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, num_steps)
    estimator.train()
    for _ in range(LAST_EPOCHS):
        for chosen in torch.randperm(len(normal)).split(BATCH):
            optimiser.zero_grad()
            estimator.loss(normal[chosen], told[chosen]).mean().backward()
            optimiser.step()
            schedule.step()
    estimator.eval()


def _tensor(values: Array) -> torch.Tensor:
    return torch.as_tensor(values, dtype=torch.float32)


@contextlib.contextmanager
def _quiet(rng: np.random.Generator) -> Iterator[None]:
    """Lets torch work with a seed of its own, on one thread (the network is small); sbi then prints nothing."""
    num_threads = torch.get_num_threads()
    with torch.random.fork_rng(), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about outliers, which are dealt with here
        torch.manual_seed(int(rng.integers(2**31)))
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(num_threads)


class _Silence:
    """A tracker that keeps nothing, where sbi would write a folder of logs."""

    log_dir = None

    def log_metric(self, *arguments: Any, **options: Any) -> None:
        """Keeps nothing."""

    log_metrics = log_params = add_figure = log_metric

    def flush(self) -> None:
        """Has nothing to write."""
