"""Samples of the posterior by neural estimation, with the package `sbi` (the extra `sbi`).

A masked autoregressive flow (Papamakarios et al., 2017) learns the density of parameters given the numbers that tell
a case (neural posterior estimation, see Greenberg et al., 2019), and is then asked about the numbers of the logs.
Whether it learned that density is checked with cases that it has not seen: in them the rank of the truth among
samples must be uniform (simulation-based calibration, Talts et al., 2018).
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.results import NeuralPosterior, SampledParameter
from gapless.core.scaling import Scaling
from gapless.core.signal import Array, Indices
from gapless.fit.problem import PRIOR_WEIGHT, FitProblem
from gapless.fit.solution import Solution
from gapless.fit.solve import Progress
from gapless.fit.summary import INTERVAL_LEVEL
from gapless.identify.posterior.cases import Cases
from gapless.identify.posterior.flow import LABEL, NUM_CHECKS, NUM_SIMULATIONS, Flow
from gapless.identify.posterior.samples import NUM_SAMPLES

FALSE_ALARMS = 0.05  # share of calibrated posteriors that the check calls otherwise
FEW = 100  # fewer independent samples than this do not tell an interval
SHIFT, RATIO = 1.0, 2.0  # medians further apart, in standard deviations of the fit, or widths: a strong disagreement


def sample_posterior(
    problem: FitProblem, solution: Solution, rng: np.random.Generator, progress: Progress | None = None
) -> tuple[Array, NeuralPosterior]:
    """Returns samples of the free parameters, (NUM_SAMPLES, num_free), and how far to trust them.

    The prior is that of the fit, cut at the bounds. Parameters that no window shows are uniform within their bounds.

    Args:
        problem: The problem at its solution, start errors discounted.
        solution: Its solution.
        rng: Draws everything random.
        progress: Called with how far it is, in [0, 1].
    """
    report = progress or (lambda label, share: None)
    shown = np.flatnonzero(np.diag(solution.information) >= PRIOR_WEIGHT**2)
    unit = rng.uniform(0.0, 1.0, (NUM_SAMPLES, len(solution.unit)))
    p_values: dict[int, float] = {}
    num_effective = NUM_SAMPLES
    if len(shown):
        cases = Cases.of(*_narrowed(problem, solution, shown), rng).focused(rng)
        flow = Flow(cases, rng, report)
        unit[:, shown], num_effective = flow.sample_logs()
        p_values = dict(zip(shown.tolist(), flow.rank_p_values(), strict=True))
    report(LABEL, 1.0)
    return Scaling.of(problem.space).values(unit), replace(
        _summary(problem.space, solution, unit, p_values), num_effective=num_effective
    )


def describe_posterior(found: NeuralPosterior) -> list[str]:
    """Returns what a reader of the verdict must know about a neural posterior."""
    texts: list[str] = []
    if not found.calibrated:
        least, target = min((p.rank_p, p.target) for p in found.parameters if p.rank_p is not None)
        texts.append(f"do not use the neural posterior: it is not calibrated (ranks of {target}: p = {least:.1g})")
    if found.num_effective < FEW:
        texts.append(
            f"only {found.num_effective} samples of the neural posterior are independent: it lies aside of the fit"
        )
    if found.disagrees:
        texts.append(f"the neural posterior disagrees with the intervals of: {', '.join(found.disagrees)}")
    return texts


def _narrowed(problem: FitProblem, solution: Solution, shown: Indices) -> tuple[FitProblem, Solution]:
    """Returns the problem and its solution with the shown parameters only; the others stay as the model has them."""
    grid = np.ix_(shown, shown)
    part = replace(
        solution,
        unit=solution.unit[shown],
        covariance=solution.covariance[grid],
        information=solution.information[grid],
    )
    return replace(problem, free=tuple(problem.free[k] for k in shown)), part


def _summary(space: ParameterSpace, solution: Solution, unit: Array, p_values: Mapping[int, float]) -> NeuralPosterior:
    ends = np.quantile(unit, [0.5, (1 - INTERVAL_LEVEL) / 2, (1 + INTERVAL_LEVEL) / 2], axis=0)
    medians, lows, highs = Scaling.of(space).values(ends)
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
    return NeuralPosterior(None, NUM_SIMULATIONS, NUM_CHECKS, NUM_SAMPLES, calibrated, parameters, disagrees)
