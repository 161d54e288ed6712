"""Curricula: they begin at the centre, grow where the policy succeeds, and keep to their limits."""

import math

import numpy as np
import pytest

from gapless.core.distribution import Correlation, Distribution, Range
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.learn.curriculum import (
    MAX_DIVERGENCE,
    MIN_RUNS,
    MIN_SUCCESS,
    divergence,
    make_curriculum,
    move_shapes,
    success_rate,
)

SPACE = ParameterSpace(
    (
        Parameter("a/a/a", "actuator", "1", nominal=1.0, low=0.0, high=4.0),
        Parameter("b/b/b", "contact", "1", nominal=0.0, low=0.0, high=2.0),
        Parameter("c/c/c", "object", "1", nominal=5.0, low=0.0, high=9.0),
    )
)
LIMITS = Distribution(
    SPACE,
    (
        Range("a/a/a", "uniform", 0.0, 4.0, 2.0),
        Range("b/b/b", "normal", 0.0, 2.0, 1.5, 0.2),
        Range("c/c/c", "fixed", 7.0, 7.0, 7.0),
    ),
)
SHAPES = np.array([[2.0, 3.0], [60.0, 1.2], [0.95, 30.0]])


def entropy(shape: np.ndarray) -> float:
    """Returns the entropy [nat]: minus the divergence from the even distribution."""
    return -divergence(shape, np.ones_like(shape))


def test_entropy_is_that_of_known_cases() -> None:
    # Even: 0. Beta(2, 2): ln B(2, 2) - 2 psi(2) + 2 psi(4) = ln(1/6) + 2 (1/2 + 1/3) = -0.12509.
    assert entropy(np.array([[1.0, 1.0]])) == pytest.approx(0.0, abs=1e-12)
    assert entropy(np.array([[2.0, 2.0]])) == pytest.approx(math.log(1 / 6) + 5 / 3, abs=1e-12)


def test_divergence_of_near_distributions_does_not_go_below_zero() -> None:
    # The trap of single precision: there it comes out negative, and a solver that must bound it cannot move.
    for step in (1e-3, 1e-5, 1e-7):
        near = divergence(SHAPES * (1 + step), SHAPES)
        assert near >= -1e-12
    # for small steps it goes with the square
    one, two = (divergence(SHAPES * (1 + s), SHAPES) for s in (1e-4, 2e-4))
    assert two / one == pytest.approx(4.0, rel=1e-3)


def test_success_under_other_distributions_is_weighted_by_their_density() -> None:
    rng = np.random.default_rng(0)
    old, new = np.array([[2.0, 2.0]]), np.array([[3.0, 2.0]])
    points = rng.beta(2.0, 2.0, (20_000, 1))
    won = (points[:, 0] > 0.5).astype(float)
    rate = success_rate(new, old, points, won)
    # P(X > 1/2) for Beta(3, 2): 1 - (4 (1/2)^3 - 3 (1/2)^4) = 0.6875
    assert rate == pytest.approx(0.6875, abs=0.01)


def test_with_success_everywhere_a_step_goes_as_far_as_it_may() -> None:
    rng = np.random.default_rng(0)
    old = np.array([[30.0, 30.0], [30.0, 30.0]])
    points = np.clip(rng.beta(30.0, 30.0, (200, 2)), 1e-3, 1 - 1e-3)
    new = move_shapes(old, points, np.ones(200))
    assert divergence(new, old) == pytest.approx(MAX_DIVERGENCE, rel=0.01)
    assert entropy(new) > entropy(old) + 0.3


def test_below_the_target_it_moves_to_where_the_policy_succeeds() -> None:
    rng = np.random.default_rng(0)
    old = np.array([[5.0, 5.0]])
    points = np.clip(rng.beta(5.0, 5.0, (400, 1)), 1e-3, 1 - 1e-3)
    won = (points[:, 0] < 0.4).astype(float)
    assert won.mean() < MIN_SUCCESS
    new = move_shapes(old, points, won)
    assert new[0, 0] / new[0].sum() < 0.45
    assert success_rate(new, old, points, won) > won.mean() + 0.1


def test_a_wall_of_failure_is_not_crossed() -> None:
    # Success only below 0.6: the estimated rate stays at the target while entropy grows to the other side.
    rng = np.random.default_rng(0)
    curriculum = make_curriculum("max-entropy", Distribution(SPACE, (Range("a/a/a", "uniform", 0.0, 4.0, 2.0),)))
    assert curriculum is not None
    shares = []
    for _ in range(60):
        rows = curriculum.draw(rng, MIN_RUNS)
        won = rows[:, 0] < 2.4
        shares.append(won.mean())
        curriculum.record_outcomes(rows, won)
        curriculum.advance()
    (grown,) = curriculum.distribution.ranges
    assert grown.kind == "beta"
    assert grown.std > 0.8  # it began with 4 sqrt(0.25 0.75 / 61) = 0.22; the even distribution on 4 has 1.15
    assert np.mean(shares[-10:]) == pytest.approx(MIN_SUCCESS, abs=0.08)


@pytest.mark.parametrize("name", ["adr", "max-entropy"])
def test_it_begins_at_the_centre_and_grows_to_the_limits(name: str) -> None:
    curriculum = make_curriculum(name, LIMITS)
    assert curriculum is not None
    rng = np.random.default_rng(0)
    first = curriculum.draw(rng, 200)
    assert first[:, 0].mean() == pytest.approx(1.0, abs=0.1)  # even range: the model's own value
    assert first[:, 1].mean() == pytest.approx(1.5, abs=0.1)  # bell: its centre
    assert set(first[:, 2]) == {7.0}
    for _ in range(150):
        rows = curriculum.draw(rng, 100)
        assert np.all((rows >= [0.0, 0.0, 7.0]) & (rows <= [4.0, 2.0, 7.0]))
        curriculum.record_outcomes(rows, np.ones(100, dtype=bool))
        curriculum.advance()
    spread = curriculum.distribution.sample(rng, 20_000)[:, :2].std(axis=0)
    np.testing.assert_allclose(spread, np.array([4.0, 2.0]) / math.sqrt(12), rtol=0.2)


def test_adr_walls_follow_success_at_the_wall_alone() -> None:
    curriculum = make_curriculum("adr", LIMITS)
    assert curriculum is not None
    rng = np.random.default_rng(0)
    for _ in range(300):
        rows = curriculum.draw(rng, 100)
        curriculum.record_outcomes(rows, rows[:, 0] < 2.5)  # it fails where a is above 2.5, whatever b is
        curriculum.advance()
    grown = {item.target: item for item in curriculum.distribution.ranges}
    assert grown["a/a/a"].low == pytest.approx(0.0)
    assert 2.2 <= grown["a/a/a"].high <= 2.9
    assert grown["b/b/b"].high - grown["b/b/b"].low > 1.5


@pytest.mark.parametrize("name", ["adr", "max-entropy"])
def test_it_goes_on_where_it_was(name: str) -> None:
    rng = np.random.default_rng(0)
    first, again = make_curriculum(name, LIMITS), make_curriculum(name, LIMITS)
    assert first is not None
    assert again is not None
    for _ in range(5):
        rows = first.draw(rng, 200)
        first.record_outcomes(rows, np.ones(200, dtype=bool))
        first.advance()
    assert first.distribution != again.distribution
    again.state = first.state
    for one, other in zip(first.distribution.ranges, again.distribution.ranges, strict=True):
        assert (one.low, one.high, one.mean, one.std) == pytest.approx((other.low, other.high, other.mean, other.std))


@pytest.mark.parametrize("name", ["adr", "max-entropy"])
def test_what_hangs_together_stays_as_evidence_has_it(name: str) -> None:
    bells = (Range("a/a/a", "normal", 0.0, 4.0, 2.0, 0.5), Range("b/b/b", "normal", 0.0, 2.0, 1.0, 0.25))
    limits = Distribution(
        SPACE, (*bells, Range("c/c/c", "uniform", 5.0, 9.0, 7.0)), (Correlation("a/a/a", "b/b/b", 0.9),)
    )
    curriculum = make_curriculum(name, limits)
    assert curriculum is not None
    rng = np.random.default_rng(0)
    first = curriculum.draw(rng, 4000)
    for _ in range(100):
        rows = curriculum.draw(rng, 100)
        curriculum.record_outcomes(rows, rows[:, 0] > 2.0)  # easy where a is large
        curriculum.advance()
    last = curriculum.draw(rng, 4000)
    for rows in (first, last):
        np.testing.assert_allclose(rows[:, :2].mean(axis=0), [2.0, 1.0], atol=0.03)
        np.testing.assert_allclose(rows[:, :2].std(axis=0), [0.5, 0.25], rtol=0.05)
        assert np.corrcoef(rows[:, :2].T)[0, 1] == pytest.approx(0.9, abs=0.02)
    assert first[:, 2].std() < 0.5
    assert curriculum.distribution.correlations == limits.correlations


def test_none_is_no_curriculum() -> None:
    assert make_curriculum("none", LIMITS) is None
