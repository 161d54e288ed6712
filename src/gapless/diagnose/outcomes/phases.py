"""In which phases failures concentrate, and what that says."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import betaln, expit, gammaln, logsumexp
from scipy.stats import beta as beta_distribution

from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.episode import Episode
from gapless.core.interval import Interval
from gapless.core.signal import Array
from gapless.diagnose.outcomes.model import prior_probability
from gapless.diagnose.outcomes.records import Phase
from gapless.diagnose.outcomes.words import normal, phase_dimensions

MIN_PHASES = 2  # a task has at least these, even if all failures are in one
TILT = 6.0  # a gap multiplies the odds of failing in a phase of weight 1 by up to this
STRENGTHS = (1 / 3, 2 / 3, 1.0)  # exponents of TILT, equally likely: a dimension may take part without dominating
CERTAINTY_UNIFORM = 6.0  # how many failures the uniform expectation is worth: phases differ for many reasons
CERTAINTY_GIVEN = 20.0  # the same for an expectation from simulated failures
SMOOTHING = 0.1  # share of the uniform in a given expectation: simulation may never fail where reality does
LIMIT = 2.0  # largest log odds from phases alone [nat]


def weigh_phases(
    episodes: Sequence[Episode], reference: Mapping[str, float] | None
) -> tuple[tuple[Phase, ...], dict[Dimension, float]]:
    """Returns the phases, most probable first, and log odds per dimension [nat].

    Counts of failures are Dirichlet-multinomial about the expected shares q. A gap in dimension d moves the
    expectation to q_d ∝ q · TILT^(strength · weight), averaged over STRENGTHS; its log odds are the log ratio of the
    two probabilities of the counts, squeezed into ±LIMIT. A single phase concentrates failures if TILT times its
    odds explains its count better, with the sparse prior of conditions.
    """
    named = [normal(e.failed_in) for e in episodes if e.outcome == "failure" and e.failed_in]
    if not named:
        return (), {dimension: 0.0 for dimension in DIMENSIONS}
    names, expected = _expectation(named, reference)
    counts = np.array([named.count(name) for name in names], dtype=float)
    certainty = CERTAINTY_UNIFORM if reference is None else CERTAINTY_GIVEN
    weights = [phase_dimensions(name) for name in names]
    phases = [
        _phase(name, int(count), len(named), share, certainty, len(names), weight)
        for name, count, share, weight in zip(names, counts, expected, weights, strict=True)
    ]
    full_counts = np.append(counts, 0.0)  # the last is elsewhere: phases that nobody named
    full = np.append(expected, max(1.0 - expected.sum(), 1e-6))
    odds: dict[Dimension, float] = {}
    for dimension in DIMENSIONS:
        weight = np.array([*(table.get(dimension, 0.0) for table in weights), 0.0])
        odds[dimension] = _log_odds(weight, full_counts, full, certainty)
    return tuple(sorted(phases, key=lambda phase: (-phase.probability, -phase.num_failures, phase.name))), odds


def _expectation(named: Sequence[str], reference: Mapping[str, float] | None) -> tuple[list[str], Array]:
    """Returns phase names and the share of failures expected in each [1]; what is left to 1 is elsewhere."""
    given = {normal(name): float(weight) for name, weight in (reference or {}).items()}
    names = list(dict.fromkeys([*given, *named]))
    uniform = np.full(len(names), 1.0 / max(len(names), MIN_PHASES))
    total = sum(given.values())
    if total <= 0:
        return names, uniform
    shares = np.array([given.get(name, 0.0) for name in names]) / total
    return names, (1 - SMOOTHING) * shares + SMOOTHING * uniform


def _phase(
    name: str,
    count: int,
    total: int,
    expected: float,
    certainty: float,
    num_phases: int,
    weight: Mapping[Dimension, float],
) -> Phase:
    raised = TILT * expected / (TILT * expected + 1 - expected)
    log_ratio = _beta_binomial(count, total, raised, certainty) - _beta_binomial(count, total, expected, certainty)
    prior = prior_probability(num_phases)
    probability = float(expit(log_ratio + np.log(prior / (1 - prior))))
    above, below = count + expected, total - count + 1 - expected  # posterior of the share under Beta(q, 1 - q)
    low, high = beta_distribution.ppf([0.025, 0.975], above, below)
    share = Interval(above / (above + below), float(low), float(high), 0.95, total, "dirichlet-multinomial")
    return Phase(name, count, share, float(expected), probability, weight)


def _beta_binomial(count: int, total: int, share: float, certainty: float) -> float:
    """Returns the log probability of a count, up to the binomial coefficient."""
    a, b = certainty * share, certainty * (1 - share)
    return float(betaln(count + a, total - count + b) - betaln(a, b))


def _log_odds(weights: Array, counts: Array, expected: Array, certainty: float) -> float:
    if not np.any(weights):
        return 0.0
    usual = _count_probability(counts, certainty * expected / expected.sum())
    ratios = []
    for strength in STRENGTHS:
        tilted = expected * TILT ** (strength * weights)
        ratios.append(_count_probability(counts, certainty * tilted / tilted.sum()) - usual)
    return float(LIMIT * np.tanh((logsumexp(ratios) - np.log(len(STRENGTHS))) / LIMIT))


def _count_probability(counts: Array, concentration: Array) -> float:
    """Returns the Dirichlet-multinomial log probability, up to terms that depend on the totals alone."""
    return float(np.sum(gammaln(counts + concentration) - gammaln(concentration)))
