"""How often outcomes are read rightly, over simulated data sets with known causes."""

from itertools import product

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from gapless.diagnose.outcomes import regression
from gapless.diagnose.outcomes.factors import find_factors
from gapless.diagnose.outcomes.weigh import weigh_outcomes
from unit.diagnose.outcomes.outcome_runs import LEVELS, balanced, drawn, factor, run


def planted(num_runs: int, num_sets: int, seed: int) -> np.ndarray:
    """Returns the probability that light matters where dim fails in 70 % of runs and bright in 20 %."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(num_sets):
        levels = balanced(num_runs, rng)
        evidence = weigh_outcomes(drawn(levels, np.where(levels[:, 0] == 0, 0.7, 0.2), rng))
        found.append(factor(evidence, "light").probability)
    return np.array(found)


def oracle(num_runs: int, num_sets: int, seed: int) -> np.ndarray:
    """Returns the same from a judge who knows 70, 20 and 45 % and that at most one of six factors matters."""
    rng = np.random.default_rng(seed)
    factors = np.stack([np.arange(num_runs) % 2] * 6, axis=1)
    found = []
    for _ in range(num_sets):
        levels = rng.permuted(factors, axis=0)
        failed = (rng.random(num_runs) < np.where(levels[:, 0] == 0, 0.7, 0.2))[:, None]
        share = np.where(levels == 0, 0.7, 0.2)
        ratio = np.exp(np.where(failed, np.log(share / 0.45), np.log((1 - share) / 0.55)).sum(axis=0)) / 12
        found.append(ratio[0] / (0.5 + ratio.sum()))
    return np.array(found)


def test_a_planted_factor_is_found() -> None:
    few, many = planted(40, 100, 1), planted(120, 40, 2)
    # 40 runs do not hold more: one who knows the very rates is sure in two thirds of the sets only.
    assert 0.6 < np.mean(oracle(40, 1000, 3) > 0.9) < 0.75
    assert np.mean(few > 0.5) >= 0.5
    assert np.mean(few > 0.9) >= 0.2
    assert np.mean(many > 0.9) >= 0.95


def test_factors_that_do_not_matter_raise_few_alarms() -> None:
    rng = np.random.default_rng(4)
    alarms, lows, highs = 0, [], []
    for _ in range(200):
        evidence = weigh_outcomes(drawn(balanced(40, rng), np.full(40, 0.45), rng))
        assert evidence is not None
        alarms += evidence.factors[0].probability > 0.5
        lows.append(min(evidence.log_odds.values()))
        highs.append(max(evidence.log_odds.values()))
    assert alarms / 200 < 0.05
    assert np.median(highs) < 0.5
    assert np.median(lows) > -0.7  # forty runs without an effect acquit a little, not wholly


def test_probabilities_and_intervals_are_calibrated() -> None:
    rng = np.random.default_rng(5)
    said, true, covered = [], [], []
    for _ in range(100):
        levels = np.stack([rng.integers(0, n, 60) for n in LEVELS.values()], axis=1)
        logit = np.full(60, rng.normal(0.0, 1.0))
        matters = rng.random(6) < regression.prior_probability(6)
        for k in np.flatnonzero(matters):
            logit += rng.normal(0.0, abs(rng.normal(0.0, regression.TAU_SCALE)), levels[:, k].max() + 1)[levels[:, k]]
        probability = 1 / (1 + np.exp(-logit))
        evidence = weigh_outcomes(drawn(levels, probability, rng))
        if evidence is None or not evidence.factors:
            continue
        for k, name in enumerate(LEVELS):
            judged = factor(evidence, name)
            said.append(judged.probability)
            true.append(matters[k])
            for level in judged.levels:
                rate = probability[levels[:, k] == int(level.value[1:])].mean()
                covered.append(level.failure.low <= rate <= level.failure.high)
    assert calibration_error(np.array(said), np.array(true)) < 0.05
    assert 0.92 < np.mean(covered) < 0.98


def calibration_error(said: np.ndarray, true: np.ndarray, num_bins: int = 10) -> float:
    bins = np.minimum((said * num_bins).astype(int), num_bins - 1)
    gaps = [np.mean(bins == b) * abs(said[bins == b].mean() - true[bins == b].mean()) for b in np.unique(bins)]
    return float(np.sum(gaps))


@pytest.mark.parametrize("counts", [(14, 20, 4, 20), (4, 4, 0, 4), (10, 20, 9, 20), (3, 20, 0, 20)])
def test_laplace_agrees_with_quadrature(counts: tuple[int, int, int, int]) -> None:
    # Two levels of n runs each, centred: logit = a ± (u - v) / 2 with u, v ~ N(0, tau²), so ± N(0, tau² / 2).
    failed_a, num_a, failed_b, num_b = counts
    runs = [run(k < failed_a, {"light": "dim"}) for k in range(num_a)]
    runs += [run(k < failed_b, {"light": "bright"}) for k in range(num_b)]
    factors = find_factors(runs)
    nodes, weights = hermegauss(80)
    weights = weights / weights.sum()

    def evidence(tau: float) -> float:
        a, u = np.meshgrid(regression.INTERCEPT_SD * nodes, tau / np.sqrt(2) * nodes, indexing="ij")
        logs = -failed_a * np.logaddexp(0, -a - u) - (num_a - failed_a) * np.logaddexp(0, a + u)
        logs += -failed_b * np.logaddexp(0, u - a) - (num_b - failed_b) * np.logaddexp(0, a - u)
        return float(np.log(np.sum(np.outer(weights, weights) * np.exp(logs))))

    exact = np.array([evidence(tau) for tau in regression.TAUS]) - evidence(0.0)
    design = np.hstack([regression.list_always(factors), factors.columns[0].basis])
    precision = np.array([[regression.INTERCEPT_SD, tau, tau] for tau in (1e-6, *regression.TAUS)]) ** -2.0
    laplace, _, _ = regression.integrate_effects(design, factors.failed, precision)
    np.testing.assert_allclose(laplace[1:] - laplace[0], exact, atol=0.15)


def test_the_search_agrees_with_summing_all_models() -> None:
    rng = np.random.default_rng(6)
    levels = balanced(60, rng)
    shift = 2.0 * (levels[:, 0] == 0) + 1.5 * (levels[:, 3] == 0)
    runs = find_factors(drawn(levels, 1 / (1 + np.exp(1.5 - shift)), rng)[:60])
    runs = type(runs)(runs.failed, runs.columns[:4], (), ())
    every = [tuple(f for f in range(4) if chosen[f]) for chosen in product((False, True), repeat=4)]
    always, nothing = regression.list_always(runs), np.zeros((0, 60))
    bases = [[runs.columns[f].basis for f in model] for model in every]
    evidence = np.array([regression.fit_model(always, some, runs.failed, nothing)[0] for some in bases])
    scores = regression.log_priors(every, 4) + evidence
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    exact = [sum(w for w, m in zip(weights, every, strict=True) if f in m) for f in range(4)]
    found = regression.weigh_models(runs, [], alike=np.zeros((4, 4), dtype=bool))
    np.testing.assert_allclose(found.probabilities, exact, atol=0.02)
    assert np.exp(regression.log_priors(every, 4)).sum() == pytest.approx(1.0)
