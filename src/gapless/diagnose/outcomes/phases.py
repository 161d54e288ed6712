"""In which phases failures concentrate, and what that says."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import expit, gammaln, logit, logsumexp
from scipy.stats import beta as beta_distribution

from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.episode import Episode
from gapless.core.interval import Interval
from gapless.core.signal import Array
from gapless.diagnose.outcomes.records import FailurePhase
from gapless.diagnose.outcomes.regression import prior_probability
from gapless.diagnose.outcomes.vocabulary import normalize_name, phase_dimensions

MIN_PHASES = 2  # a task has at least these, even if all failures are in one
MAX_ODDS_FACTOR = 6.0  # a gap multiplies the odds of failing in a phase of weight 1 by up to this
STRENGTHS = (1 / 3, 2 / 3, 1.0)  # exponents of that, equally likely: a dimension may take part without dominating
UNIFORM_FAILURES = 6.0  # how many failures the uniform expectation counts for: phases differ for many reasons
REFERENCE_FAILURES = 20.0  # the same for an expectation from simulated failures
UNIFORM_SHARE = 0.1  # of the uniform in a given expectation: simulation may never fail where reality does
MAX_LOG_ODDS = 2.0  # from phases alone [nat]


def weigh_phases(
    episodes: Sequence[Episode], reference: Mapping[str, float] | None
) -> tuple[tuple[FailurePhase, ...], dict[Dimension, float]]:
    """Returns the phases, most probable first, and log odds per dimension [nat].

    Counts of failures are Dirichlet-multinomial about the expected shares q. A gap in dimension d moves the
    expectation to q_d ∝ q · MAX_ODDS_FACTOR^(strength · weight), averaged over STRENGTHS; its log odds are the log
    ratio of the two probabilities of the counts, squeezed into ±MAX_LOG_ODDS. A single phase concentrates failures if
    raising it alone explains the counts better, with the sparse prior of conditions.
    """
    named = [normalize_name(e.failed_in) for e in episodes if e.outcome == "failure" and e.failed_in]
    if not named:
        return (), {dimension: 0.0 for dimension in DIMENSIONS}
    names, expected = _expect_shares(named, reference)
    num_prior = UNIFORM_FAILURES if reference is None else REFERENCE_FAILURES
    counts = np.array([*map(named.count, names), 0.0])  # the last is elsewhere: phases nobody named
    shares = np.append(expected, max(1.0 - expected.sum(), 1e-6))
    speaks_for = [phase_dimensions(name) for name in names]

    def log_probability(weights: Array) -> float:
        """Returns that of the counts if phases are raised by MAX_ODDS_FACTOR^weight, up to a constant."""
        raised = shares * MAX_ODDS_FACTOR ** np.append(weights, 0.0)
        concentration = num_prior * raised / raised.sum()
        return float(np.sum(gammaln(counts + concentration) - gammaln(concentration)))

    before, prior = log_probability(np.zeros(len(names))), logit(prior_probability(len(names)))
    phases: list[FailurePhase] = []
    for k, name in enumerate(names):
        a, b = counts[k] + expected[k], len(named) - counts[k] + 1 - expected[k]  # the share is Beta(q, 1 - q) before
        low, high = beta_distribution.ppf([0.025, 0.975], a, b)
        share = Interval(a / (a + b), float(low), float(high), 0.95, len(named), "dirichlet-multinomial")
        probability = float(expit(log_probability(np.eye(len(names))[k]) - before + prior))
        phases.append(FailurePhase(name, int(counts[k]), share, float(expected[k]), probability, speaks_for[k]))
    log_odds: dict[Dimension, float] = {}
    for dimension in DIMENSIONS:
        weights = np.array([some.get(dimension, 0.0) for some in speaks_for])
        raised = [log_probability(strength * weights) for strength in STRENGTHS]
        ratio = logsumexp(raised) - np.log(len(STRENGTHS)) - before if weights.any() else 0.0
        log_odds[dimension] = float(MAX_LOG_ODDS * np.tanh(ratio / MAX_LOG_ODDS))
    return tuple(sorted(phases, key=lambda phase: (-phase.probability, -phase.num_failures, phase.name))), log_odds


def _expect_shares(named: Sequence[str], reference: Mapping[str, float] | None) -> tuple[list[str], Array]:
    """Returns phase names and the share of failures expected in each [1]; what is left to 1 is elsewhere."""
    given = {normalize_name(name): float(weight) for name, weight in (reference or {}).items()}
    names = list(dict.fromkeys([*given, *named]))
    uniform = np.full(len(names), 1.0 / max(len(names), MIN_PHASES))
    total = sum(given.values())
    if total <= 0:
        return names, uniform
    shares = np.array([given.get(name, 0.0) for name in names]) / total
    return names, (1 - UNIFORM_SHARE) * shares + UNIFORM_SHARE * uniform
