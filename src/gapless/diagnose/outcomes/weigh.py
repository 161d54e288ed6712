"""What the outcomes of real runs say about the gap: factors, phases, and log odds of dimensions."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy.special import expit, gammaln, logit, logsumexp, ndtr
from scipy.stats import beta as beta_distribution

from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.episode import Episode
from gapless.core.interval import Interval, wilson
from gapless.core.signal import Array, Flags
from gapless.diagnose.outcomes.factors import FactorColumn, RunFactors, find_factors
from gapless.diagnose.outcomes.records import FactorLevel, FailureFactor, FailurePhase, OutcomeEvidence
from gapless.diagnose.outcomes.regression import ModelPosterior, prior_probability, weigh_models
from gapless.diagnose.outcomes.sentences import describe_factors, describe_phases, suggest_recordings
from gapless.diagnose.outcomes.vocabulary import OTHER_CHANCE, condition_dimensions, normalize_name, phase_dimensions

MIN_RUNS = 4  # known outcomes below which nothing is said
MIN_SAME = 0.95  # shared variance from which two factors divide the runs alike
MIN_SIMILAR = 0.5  # shared variance from which they may be confounded, if the posterior is undecided between them
LOG_ODDS_BOUNDS = (-1.5, 4.5)  # from conditions [nat]
MIN_PHASES = 2  # a task has at least these, even if all failures are in one
MAX_ODDS_FACTOR = 6.0  # a gap multiplies the odds of failing in a phase of weight 1 by up to this
STRENGTHS = (1 / 3, 2 / 3, 1.0)  # exponents of that, equally likely: a dimension may take part without dominating
UNIFORM_FAILURES = 6.0  # how many failures the uniform expectation counts for: phases differ for many reasons
MAX_PHASE_LOG_ODDS = 2.0  # from phases alone [nat]


def weigh_outcomes(episodes: Sequence[Episode]) -> OutcomeEvidence | None:
    """Returns which conditions and phases concentrate failures and what that says about each dimension.

    Simulated episodes and those without an outcome are left out; None where fewer than `MIN_RUNS` are left or none is
    a failure. Where every run failed, only phases say something. Takes no random numbers: the same episodes give the
    same answer. Cost: about 0.1 s for 200 runs and 6 conditions.
    """
    runs = [e for e in episodes if e.outcome is not None and e.source != "sim"]
    num_failures = sum(e.outcome == "failure" for e in runs)
    if len(runs) < MIN_RUNS or num_failures == 0:
        return None
    phases, log_odds = weigh_phases(runs)
    sentences = [f"{num_failures} of {len(runs)} runs failed: {wilson(num_failures, len(runs)).percent()}"]
    found = find_factors(runs)
    factors: tuple[FailureFactor, ...] = ()
    if num_failures == len(runs):
        sentences.append("no run succeeded: conditions say nothing")
        suggestions = ("record runs that succeed, on an easier object or in better light: only contrast shows causes",)
    elif not found.columns:
        sentences.append("no condition was varied: only phases say something")
        suggestions = suggest_recordings((), found)
    else:
        unsorted, from_conditions = judge_factors(found)
        for dimension in DIMENSIONS:
            log_odds[dimension] += from_conditions[dimension]
        factors = tuple(sorted(unsorted, key=lambda factor: (-factor.probability, factor.name)))
        sentences += describe_factors(factors)
        suggestions = suggest_recordings(factors, found)
    sentences += describe_phases(phases)
    return OutcomeEvidence(factors, phases, log_odds, tuple(sentences), suggestions)


def judge_factors(runs: RunFactors) -> tuple[list[FailureFactor], dict[Dimension, float]]:
    """Returns the factors in the order of their columns, and what they add to the log odds of each dimension [nat]."""
    groups = []
    for column in runs.columns:
        for j in range(len(column.values)):
            groups += [column.level == j, column.known & (column.level != j)]
    shared = _shared_variances(runs.columns)
    posterior = weigh_models(runs, groups, shared >= MIN_SAME)
    intervals = iter(_predict_failures(posterior, groups))
    factors: list[FailureFactor] = []
    for k, (column, partners) in enumerate(zip(runs.columns, _find_confounded(shared, posterior), strict=True)):
        levels: list[FactorLevel] = []
        for j, value in enumerate(column.values):
            here = column.level == j
            counts = int(here.sum()), int(runs.failed[here].sum())
            levels.append(FactorLevel(value, *counts, next(intervals), next(intervals)))
        names = tuple(runs.columns[j].name for j in partners)
        meaning = condition_dimensions(column.name)
        alone, together = _any_matters(posterior, [k]), _any_matters(posterior, [k, *partners])
        factors.append(FailureFactor(column.name, alone, tuple(levels), *meaning, names, together))
    return factors, _condition_log_odds(factors, posterior)


def _predict_failures(posterior: ModelPosterior, groups: Sequence[Flags]) -> list[Interval]:
    """Returns each group's failure probability: 50, 2.5 and 97.5 % of the mixture of models, which are normal [logit].

    Found by bisection to about 1e-4 logit.
    """
    low, high = (posterior.means - 6 * posterior.sds).min(axis=0), (posterior.means + 6 * posterior.sds).max(axis=0)
    levels = np.array([[0.5], [0.025], [0.975]])
    low, high = np.tile(low, (3, 1)), np.tile(high, (3, 1))
    for _ in range(18):
        middle = (low + high) / 2
        below = posterior.weights @ ndtr((middle[:, None] - posterior.means) / posterior.sds) < levels
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return [
        Interval(value, least, most, 0.95, int(group.sum()), "hierarchical logistic")
        for (value, least, most), group in zip(expit((low + high) / 2).T.tolist(), groups, strict=True)
    ]


def _shared_variances(columns: Sequence[FactorColumn]) -> Array:
    """Returns how much of each factor's variation another explains, the lesser of both ways, in [0, 1].

    (num_factors, num_factors); 0 of each with itself.
    """
    shared = np.zeros((len(columns), len(columns)))
    for (i, one), (j, other) in combinations(enumerate(columns), 2):
        both = one.known & other.known
        if both.sum() >= 3:
            a, b = (column.basis[both] - column.basis[both].mean(axis=0) for column in (one, other))
            shared[i, j] = shared[j, i] = min(_explained_share(a, b), _explained_share(b, a))
    return shared


def _explained_share(target: Array, by: Array) -> float:
    total = np.sum(target**2)
    if total <= 1e-12:
        return 0.0
    fitted = by @ np.linalg.lstsq(by, target, rcond=1e-9)[0]
    return float(np.sum(fitted**2) / total)


def _find_confounded(shared: Array, posterior: ModelPosterior) -> list[list[int]]:
    """Returns for each factor those that these runs do not distinguish from it.

    Either both divide the runs alike, or nearly so and the posterior says that one matters but not which.
    """
    found: list[list[int]] = [[] for _ in shared]
    alone = posterior.probabilities
    for i, j in np.argwhere(np.triu(shared >= MIN_SIMILAR)):
        either = _any_matters(posterior, (i, j))
        undecided = either > 0.5 and min(alone[i], alone[j]) > 0.1 * either and max(alone[i], alone[j]) < 0.9
        if shared[i, j] >= MIN_SAME or undecided:
            found[i].append(int(j))
            found[j].append(int(i))
    return [sorted(partners) for partners in found]


def _any_matters(posterior: ModelPosterior, which: Sequence[int]) -> float:
    """Returns the probability that at least one of these factors matters."""
    return float(posterior.weights @ posterior.includes[:, list(which)].any(axis=1))


def _condition_log_odds(factors: Sequence[FailureFactor], posterior: ModelPosterior) -> dict[Dimension, float]:
    """Returns what conditions add to the log odds that each dimension takes part [nat].

    If dimension d takes part, factor f matters with chance a_fd (the vocabulary), otherwise with OTHER_CHANCE. The
    result is the log ratio of the two evidences, each a sum over models of posterior / prior times the chance of the
    model. Factors that changed together share what they say, because the models do; runs that say nothing leave 0.
    """

    def evidence(chances: Sequence[float]) -> float:
        models = np.where(posterior.includes, chances, 1 - np.array(chances)).prod(axis=1)
        return float(np.sum(models * posterior.weights / posterior.priors) / models.sum())

    base = evidence([OTHER_CHANCE] * len(factors))
    found: dict[Dimension, float] = {}
    for dimension in DIMENSIONS:
        chances = [factor.speaks_for.get(dimension, OTHER_CHANCE) for factor in factors]
        found[dimension] = float(np.clip(np.log(evidence(chances) / base), *LOG_ODDS_BOUNDS))
    return found


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
