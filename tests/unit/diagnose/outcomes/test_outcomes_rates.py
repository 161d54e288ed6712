"""How often outcomes are read rightly, over simulated data sets with known causes."""

from itertools import product

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss

from gapless.diagnose.outcomes import regression
from gapless.diagnose.outcomes.exposures import list_exposures
from gapless.diagnose.outcomes.factors import find_factors
from gapless.diagnose.outcomes.weigh import weigh_outcomes
from unit.diagnose.outcomes.outcome_runs import LEVELS, balanced, drawn, factor


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
        lows.append([evidence.log_odds[d] for d in ("object", "visual")])
        highs.append(max(evidence.log_odds.values()))
    assert alarms / 200 < 0.05
    assert np.median(highs) < 0.5
    # Forty runs without an effect acquit a little, not wholly. The most that can be: one condition speaks for objects
    # and leaves ln(1 - 0.5), two speak for vision and leave twice that.
    assert np.all(np.median(lows, axis=0) > 0.8 * np.array([1, 2]) * np.log(0.5))


def draw_logits(levels: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Returns which factors matter, and the logit of each run's failure, drawn from the prior of the model."""
    columns = find_factors(drawn(levels, np.zeros(len(levels)), rng)).columns
    share = rng.beta(1.0, 1 / regression.prior_probability(6) - 1)
    matters, kind = rng.random(6) < share, int(rng.random() < regression.KIND_SHARES[1])
    exposures = list_exposures(columns)
    own = [[e for e in exposures if e.factor == k] for k in np.flatnonzero(matters)]
    chosen = [some[rng.choice(len(some), p=[e.share for e in some])] for some in own]
    base = regression.BASE if any(e.raises for e in chosen) else regression.EVEN
    logit = np.full(len(levels), rng.normal(*base[kind]))
    for exposure in chosen:
        effect = (regression.EFFECT if exposure.raises else regression.OWN_EFFECT)[kind]
        logit += exposure.basis @ rng.normal(*effect, exposure.basis.shape[1])
    return matters, logit


def test_probabilities_and_intervals_are_calibrated() -> None:
    rng = np.random.default_rng(5)
    said, true, covered = [], [], []
    for _ in range(100):
        levels = np.stack([rng.integers(0, n, 60) for n in LEVELS.values()], axis=1)
        matters, logit = draw_logits(levels, rng)
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
    # Dim runs are exposed, bright ones are not: logit = a + b and a, with normal a and b of either kind of prior.
    failed_a, num_a, failed_b, num_b = counts
    failed = np.array([k < failed_a for k in range(num_a)] + [k < failed_b for k in range(num_b)])
    design = np.column_stack([np.ones(num_a + num_b), np.arange(num_a + num_b) < num_a])
    nodes, weights = hermegauss(80)
    weights = weights / weights.sum()

    def evidence(base: np.ndarray, effect: np.ndarray) -> float:
        a, b = np.meshgrid(base[0] + base[1] * nodes, effect[0] + effect[1] * nodes, indexing="ij")
        logs = -failed_a * np.logaddexp(0, -a - b) - (num_a - failed_a) * np.logaddexp(0, a + b)
        logs += -failed_b * np.logaddexp(0, -a) - (num_b - failed_b) * np.logaddexp(0, a)
        return float(np.log(np.sum(np.outer(weights, weights) * np.exp(logs))))

    exact = [evidence(*kind) for kind in zip(regression.BASE, regression.EFFECT, strict=True)]
    means, sds = np.stack([regression.BASE, regression.EFFECT], axis=1).transpose(2, 0, 1)  # (num_kinds, 2) each
    laplace, _, _ = regression.integrate_effects(design, failed, means, sds**-2.0)
    np.testing.assert_allclose(laplace, exact, atol=0.15)


def test_the_search_agrees_with_summing_all_models() -> None:
    rng = np.random.default_rng(6)
    levels = balanced(60, rng)
    shift = 2.0 * (levels[:, 0] == 0) + 1.5 * (levels[:, 3] == 0)
    runs = find_factors(drawn(levels, 1 / (1 + np.exp(1.5 - shift)), rng))
    runs = type(runs)(runs.failed, tuple(runs.columns[k] for k in (0, 2, 3)), (), ())
    exposures = list_exposures(runs.columns)
    ways = [[None, *(k for k, e in enumerate(exposures) if e.factor == f)] for f in range(3)]
    every = [tuple(k for k in chosen if k is not None) for chosen in product(*ways)]
    always, nothing = regression.list_always(runs), np.zeros((0, 60))
    fits = [regression.fit_model(always, [exposures[k] for k in model], runs.failed, nothing) for model in every]
    shares = np.array([np.prod([exposures[k].share for k in model]) for model in every])
    scores = regression.log_priors(every, 3) + np.log(shares) + np.array([fit.log_evidence for fit in fits])
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    exact = [
        sum(w for w, m in zip(weights, every, strict=True) if any(exposures[k].factor == f for k in m))
        for f in range(3)
    ]
    found = regression.weigh_models(runs, [], alike=np.zeros((3, 3), dtype=bool))
    np.testing.assert_allclose(found.probabilities, exact, atol=0.02)
    assert (np.exp(regression.log_priors(every, 3)) * shares).sum() == pytest.approx(1.0)
    assert [sum(e.share for e in exposures if e.factor == f) for f in range(3)] == pytest.approx([1.0] * 3)
