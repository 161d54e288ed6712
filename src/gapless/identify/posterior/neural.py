"""Samples of the posterior by neural estimation, with the package `sbi` (the extra `sbi`).

A masked autoregressive flow (Papamakarios et al., 2017) learns the density of parameters given the numbers that tell
a case (neural posterior estimation, see Greenberg et al., 2019), and is then asked about the numbers of the logs.
Whether it learned that density is checked with cases that it has not seen: in them the rank of the truth among
samples must be uniform (simulation-based calibration, Talts et al., 2018).
"""

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

from gapless.core.protocols import Progress
from gapless.core.results import NeuralPosterior, SampledParameter
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem
from gapless.fit.solution import Solution
from gapless.fit.summary import INTERVAL_LEVEL
from gapless.identify.posterior.samples import NUM_SAMPLES, Cases

NUM_SIMULATIONS = 3000
COPIES = 3  # of each, with other noise
NUM_CHECKS = 200
NUM_RANKED = 199  # samples that a truth is ranked among
BATCH, RATE, LAST_EPOCHS = 200, 1e-3, 10
LABEL = "neural posterior"
FALSE_ALARMS = 0.05  # share of calibrated posteriors that the check calls otherwise
FEW = 100  # fewer independent samples than this do not tell an interval
SHIFT, RATIO = 1.0, 2.0  # medians further apart, in standard deviations of the fit, or widths: a strong disagreement


def sample_posterior(
    problem: FitProblem, solution: Solution, rng: np.random.Generator, progress: Progress | None = None
) -> tuple[Array, NeuralPosterior]:
    """Returns samples of the free parameters, (NUM_SAMPLES, num_free), and how far to trust them.

    The problem is that at its solution, start errors discounted. The prior is that of the fit, cut at the bounds.
    Parameters that no window shows are uniform within their bounds.
    """
    report = progress or (lambda label, share: None)
    space, scaling = problem.space, Scaling.of(problem.space)
    shown = np.flatnonzero(np.diag(solution.information) >= PRIOR_WEIGHT**2)
    unit = rng.uniform(0.0, 1.0, (NUM_SAMPLES, len(solution.unit)))
    p_values: dict[int, float] = {}
    num_effective = NUM_SAMPLES
    if len(shown):  # the others stay as the model has them
        grid = np.ix_(shown, shown)
        matrices = {"covariance": solution.covariance[grid], "information": solution.information[grid]}
        part = replace(solution, unit=solution.unit[shown], **matrices)
        narrowed = replace(problem, free=tuple(problem.free[k] for k in shown))
        flow = Flow(Cases.of(narrowed, part, rng).focused(rng), rng, report)
        unit[:, shown], num_effective = flow.sample_logs()
        p_values = dict(zip(shown.tolist(), flow.rank_p_values(), strict=True))
    report(LABEL, 1.0)
    ends = np.quantile(unit, [0.5, (1 - INTERVAL_LEVEL) / 2, (1 + INTERVAL_LEVEL) / 2], axis=0)
    medians, lows, highs = scaling.values(ends)
    parameters = tuple(
        SampledParameter(target, float(medians[k]), float(lows[k]), float(highs[k]), INTERVAL_LEVEL, p_values.get(k))
        for k, target in enumerate(space.targets)
    )
    half, deviation = solution.half_width(INTERVAL_LEVEL), np.sqrt(np.diag(solution.covariance))
    width = np.clip(solution.unit + half, 0.0, 1.0) - np.clip(solution.unit - half, 0.0, 1.0)
    apart = np.abs(ends[0] - solution.unit) > SHIFT * deviation
    ratio = (ends[2] - ends[1]) / np.maximum(width, 1e-9)
    disagrees = tuple(space.targets[k] for k in p_values if apart[k] or not 1 / RATIO < ratio[k] < RATIO)
    calibrated = all(p > FALSE_ALARMS / len(p_values) for p in p_values.values())
    about = NeuralPosterior(None, NUM_SIMULATIONS, NUM_CHECKS, NUM_SAMPLES, calibrated, parameters, disagrees)
    return scaling.values(unit), replace(about, num_effective=num_effective)


def describe_posterior(found: NeuralPosterior) -> list[str]:
    """Returns what a reader of the verdict must know about a neural posterior."""
    texts: list[str] = []
    if not found.calibrated:
        least, target = min((p.rank_p, p.target) for p in found.parameters if p.rank_p is not None)
        texts.append(f"do not use the neural posterior: it is not calibrated (ranks of {target}: p = {least:.1g})")
    if found.num_effective < FEW:
        count = f"only {found.num_effective} samples of the neural posterior are independent"
        texts.append(f"{count}: it lies aside of the fit")
    if found.disagrees:
        texts.append(f"the neural posterior disagrees with the intervals of: {', '.join(found.disagrees)}")
    return texts


class Flow:
    """A density of parameters given the numbers of a case, learned from simulated cases."""

    def __init__(self, cases: Cases, rng: np.random.Generator, report: Progress) -> None:
        """Simulates cases and learns from them."""
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
        """Returns a network; in the end its steps shrink to nothing: with equal ones it ends aside of the optimum."""
        theta, x = torch.as_tensor(normal, dtype=torch.float32), self._condition(told)
        build = posterior_nn("maf", z_score_theta="none", z_score_x="none", hidden_features=40, num_transforms=3)
        with _quiet(self._rng):
            trainer = NPE(density_estimator=build, tracker=_Silence(), show_progress_bars=False)
            trainer.append_simulations(theta, x)
            estimator = trainer.train(training_batch_size=BATCH, learning_rate=RATE, stop_after_epochs=15)
            optimiser = torch.optim.Adam(estimator.parameters(), lr=RATE)
            num_steps = LAST_EPOCHS * -(-len(theta) // BATCH)
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, num_steps)
            estimator.train()
            for _ in range(LAST_EPOCHS):
                for chosen in torch.randperm(len(theta)).split(BATCH):
                    optimiser.zero_grad()
                    estimator.loss(theta[chosen], x[chosen]).mean().backward()
                    optimiser.step()
                    schedule.step()
            estimator.eval()
            return estimator

    def _condition(self, told: Array) -> torch.Tensor:
        low, middle, high = self._scale
        scaled = np.arcsinh((told - middle) / ((high - low) / 1.35 + 1e-12))  # far ones draw near, in order
        return torch.as_tensor(scaled, dtype=torch.float32)

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
    """Maps draws of a cloud to numbers without bounds that are about N(0, 1) and uncorrelated, and back."""

    knots: Array  # (num_knots, num_free) quantiles of the draws
    normal_knots: Array  # (num_knots,) the same quantiles of N(0, 1)
    factor: Array  # (num_free, num_free) with the correlations of the draws, once each is normal

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

    log_metrics = log_params = add_figure = flush = log_metric
