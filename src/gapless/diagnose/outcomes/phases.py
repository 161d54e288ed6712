"""What the phases of failures say: alone, and with who was exposed to what."""

from collections.abc import Sequence

import numpy as np
from scipy.special import expit, gammaln, logit, logsumexp
from scipy.stats import beta as beta_distribution

from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.episode import Episode
from gapless.core.interval import Interval
from gapless.core.signal import Array, Indices
from gapless.diagnose.outcomes.records import FailurePhase
from gapless.diagnose.outcomes.regression import prior_probability
from gapless.diagnose.outcomes.vocabulary import normalize_name, phase_dimensions

MIN_PHASES = 2  # a task has at least these, even if all failures are in one
MAX_ODDS_FACTOR = 6.0  # a gap multiplies the odds of failing in a phase of weight 1 by up to this
STRENGTHS = (1 / 3, 2 / 3, 1.0)  # exponents of that, equally likely: a dimension may take part without dominating
UNIFORM_FAILURES = 6.0  # how many failures the uniform expectation counts for: phases differ for many reasons
MAX_PHASE_LOG_ODDS = 2.0  # from phases alone [nat]
BITES = (0.5, 0.8)  # shares of a cause's failures in the phases that it speaks for, equally likely; tuning split
EVEN_FAILURES = 10.0  # failures that equal shares count for, of failures that no cause explains
MAX_EXPOSED_LOG_RATIO = 4.0  # from phases of exposed runs [nat]
NUM_STEPS = 8  # of expectation and maximisation, for shares of phases; more change nothing


def weigh_phases(episodes: Sequence[Episode]) -> tuple[tuple[FailurePhase, ...], dict[Dimension, float]]:
    """Returns the phases, most probable first, and log odds per dimension [nat].

    Counts of failures are Dirichlet-multinomial about the expected shares q, which are equal. A gap in dimension d
    moves the expectation to q_d ∝ q · MAX_ODDS_FACTOR^(strength · weight), averaged over STRENGTHS; its log odds are
    the log ratio of the two probabilities of the counts, squeezed into ±MAX_PHASE_LOG_ODDS. A single phase concentrates
    failures if raising it alone explains the counts better, with the sparse prior of conditions.
    """
    named = [normalize_name(e.failed_in) for e in episodes if e.outcome == "failure" and e.failed_in]
    if not named:
        return (), {dimension: 0.0 for dimension in DIMENSIONS}
    names = list(dict.fromkeys(named))
    expected = np.full(len(names), 1.0 / max(len(names), MIN_PHASES))
    counts = np.array([*map(named.count, names), 0.0])  # the last is elsewhere: phases nobody named
    shares = np.append(expected, max(1.0 - expected.sum(), 1e-6))
    speaks_for = [phase_dimensions(name) for name in names]

    def log_probability(weights: Array) -> float:
        """Returns that of the counts if phases are raised by MAX_ODDS_FACTOR^weight, up to a constant."""
        raised = shares * MAX_ODDS_FACTOR ** np.append(weights, 0.0)
        concentration = UNIFORM_FAILURES * raised / raised.sum()
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
        log_odds[dimension] = float(MAX_PHASE_LOG_ODDS * np.tanh(ratio / MAX_PHASE_LOG_ODDS))
    return tuple(sorted(phases, key=lambda phase: (-phase.probability, -phase.num_failures, phase.name))), log_odds


def compare_phases(episodes: Sequence[Episode], attributable: Array) -> dict[Dimension, Array]:
    """Returns dimension -> (num_exposures,) [nat]: how much better it explains the phases than an even rise does.

    A failed run with attributable share e, (num_exposures, num_runs), failed in phase k with probability
    (1 - e b) w_k + e b u_k: everyday failures have shares w, failures of a cause are b of the time in the phases of its
    dimension, with shares u. The shares w are the most probable ones, equal shares counting for EVEN_FAILURES;
    b is averaged over BITES, and the log ratio to b = 0 squeezed into ±MAX_EXPOSED_LOG_RATIO.
    """
    named = [k for k, e in enumerate(episodes) if e.outcome == "failure" and e.failed_in]
    names = [normalize_name(episodes[k].failed_in or "") for k in named]
    kinds = list(dict.fromkeys(names))
    phase = np.array([kinds.index(name) for name in names], dtype=np.intp)
    found: dict[Dimension, Array] = {}
    for dimension in DIMENSIONS:
        weights = np.array([phase_dimensions(name).get(dimension, 0.0) for name in kinds])
        found[dimension] = np.zeros(len(attributable))
        if weights.any():
            logs = [_log_likelihood(b * attributable[:, named], phase, weights / weights.sum()) for b in (0.0, *BITES)]
            ratio = logsumexp(logs[1:], axis=0) - np.log(len(BITES)) - logs[0]
            found[dimension] = MAX_EXPOSED_LOG_RATIO * np.tanh(ratio / MAX_EXPOSED_LOG_RATIO)
    return found


def _log_likelihood(caused: Array, phase: Indices, shares: Array) -> Array:
    """Returns that of phases, (num_exposures,), if a part of failures has the phases of a cause.

    This part is `caused`, (num_exposures, num_failures), and the cause's phases have `shares`.
    """
    indicator = (phase[:, None] == np.arange(len(shares))).astype(float)
    equal = EVEN_FAILURES / len(shares)
    everyday = np.full((len(caused), len(shares)), 1.0 / len(shares))
    for _ in range(NUM_STEPS):
        other = (1 - caused) * everyday[:, phase]
        counts = (other / (other + caused * shares[phase])) @ indicator + equal
        everyday = counts / counts.sum(axis=1, keepdims=True)
    each = (1 - caused) * everyday[:, phase] + caused * shares[phase]
    return np.log(each).sum(axis=1) + equal * np.log(everyday).sum(axis=1)
