"""From logs to explanations of them: what `identify` fits, and what `diagnose` judges."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import mujoco
import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.parameters import ParameterSpace
from gapless.core.results import FittedParameter, ScatterCause
from gapless.core.signal import Array
from gapless.data.stored_results import code_version
from gapless.fit.data import ProjectData
from gapless.fit.mechanisms.candidates import CandidateParameters
from gapless.fit.mechanisms.evidence import CauseProbabilities, estimate_probabilities, find_best, measure_worth
from gapless.fit.mechanisms.far_start import search_kinds
from gapless.fit.mechanisms.mechanism import NUMERICS
from gapless.fit.mechanisms.problem import MechanismProblem, draw_fit_problem, prepare_problem
from gapless.fit.mechanisms.search import Explanation, MechanismSearch, Report
from gapless.fit.mechanisms.stored import load_explanations, save_explanations
from gapless.fit.problem import FitProblem
from gapless.fit.summary import find_refusal
from gapless.project.fingerprint import fingerprint

MIN_REACH = 0.95  # share of the way to the model's value that an interval keeps in any case
Z_95 = 1.96  # standard deviations of a 95 % interval
MAX_TIE = 4.0  # difference of explanations that are about as good [nats]
JUDGED_S = 0.6  # length of the windows on which explanations are judged, where the horizon is not nearer [s]
MIN_JUDGED, MAX_JUDGED = 12, 32  # number of such windows
UNDECIDED = 0.01  # how far from one half a probability is, that only the fit decides


@dataclass(frozen=True)
class SignalEvidence:
    """What the signals of some logs say."""

    problem: MechanismProblem  # the windows on which explanations were judged
    explanations: tuple[Explanation, ...]  # all that were fitted
    probabilities: CauseProbabilities  # what they say
    short: MechanismProblem  # the short windows on which they were searched
    scatter: tuple[ScatterCause, ...] = ()  # what acts by chance beside them
    preferred: int | None = None  # the explanation that is taken for the best; None for the likeliest

    @cached_property
    def best(self) -> Explanation:
        """The likeliest explanation."""
        likeliest = int(np.argmax(self.probabilities.weights))
        return self.explanations[likeliest if self.preferred is None else self.preferred]

    def prefer_prediction(self, fitted: Collection[str]) -> "SignalEvidence":
        """Returns the evidence with the explanation that predicts best for its numbers as the best: what is fitted.

        Which causes are believed is another question: much that is left unexplained makes it doubtful, and yet the most
        predictive values are the best to go on with. Of explanations about as good, that is taken which frees least
        beside the targets that are fitted anyway: of two values that show alike neither would be determined.
        """
        values = [measure_worth(one) for one in self.explanations]
        near = [k for k, value in enumerate(values) if value > max(values) - MAX_TIE]

        def count_added(k: int) -> int:
            return sum(m.price for m in self.explanations[k].mechanisms if not set(m.targets) <= set(fitted))

        return replace(self, preferred=min(near, key=lambda k: (count_added(k), -values[k])))

    @cached_property
    def written(self) -> Explanation:
        """The model as written."""
        return next(one for one in self.explanations if not one.mechanisms)

    @cached_property
    def fitted_targets(self) -> frozenset[str]:
        """What the best explanation moves."""
        return frozenset(target for mechanism in self.best.mechanisms for target in mechanism.targets)

    @cached_property
    def fitted_problem(self) -> FitProblem:
        """The short windows, with what the best explanation moves free; the first parameter where it moves none.

        Predicted with a finer time step where that is part of the explanation: what the step does is no scatter.
        """
        entries = {entry for mechanism in self.best.mechanisms for entry in mechanism.entries}
        free = tuple(sorted(k for k in entries if k < len(self.short.fit.base)))
        predictor = self.short.fine if NUMERICS in self.best.dimensions else self.short.fit.predictor
        return replace(self.short.fit, free=free or (0,), predictor=predictor)

    @property
    def whole_row(self) -> Array:
        """The parameters of the best explanation, (num_parameters,), those of each run apart."""
        return self.problem.rows(self.best.point[None])[0]

    @property
    def values(self) -> dict[str, Array]:
        """Target -> its value in the best explanation, (1,), or for per-run parameters that of each run."""
        row, targets = self.whole_row, np.array(self.problem.candidates.space.targets)
        return {str(target): row[targets == target] for target in dict.fromkeys(targets)}

    def find_value(self, target: str) -> float:
        """Returns a target's value in the likeliest explanation that moves it; of per-run parameters the mean."""
        moving = [k for k, one in enumerate(self.explanations) if any(target in m.targets for m in one.mechanisms)]
        likeliest = max(moving, key=lambda k: float(self.probabilities.weights[k]), default=None)
        row = self.problem.rows((self.best if likeliest is None else self.explanations[likeliest]).point[None])[0]
        columns = [k for k, other in enumerate(self.problem.candidates.space.targets) if other == target]
        return float(row[columns].mean())

    @property
    def row(self) -> Array:
        """The parameters of the best one, (num_parameters,), each target once: of per-run parameters the mean."""
        return np.array([np.mean(values) for values in self.values.values()], dtype=np.float64)


def add_explained(data: ProjectData, evidence: SignalEvidence) -> ProjectData:
    """Returns the data with all that is fitted for these logs among the parameters that may be wrong.

    Terms that it judged already are left out.
    """
    known, judged = set(data.space.targets), set(evidence.problem.candidates.space.targets)
    shared = {p.target: replace(p, run=None) for p in evidence.problem.candidates.space.parameters}
    added = tuple(p for target, p in shared.items() if target in evidence.fitted_targets - known)
    terms = tuple(term for term in data.terms if not set(term.targets) & judged)
    return replace(data, space=ParameterSpace((*data.space.parameters, *added)), terms=terms)


def place_explained(
    space: ParameterSpace, evidence: SignalEvidence, episodes: Sequence[int]
) -> tuple[tuple[int, ...], Array]:
    """Returns the columns of a space that are fitted to some episodes, and a row as the best explanation has it."""
    values = {
        (p.target, p.run): float(value)
        for p, value in zip(evidence.problem.candidates.space.parameters, evidence.whole_row, strict=True)
    }
    row, chosen = (
        np.array([values.get((p.target, p.run), p.nominal) for p in space.parameters]),
        evidence.fitted_targets,
    )
    free = tuple(k for k, p in enumerate(space.parameters) if p.target in chosen and p.run in (None, *episodes))
    return free, np.clip(row, space.low, space.high)


def weigh_nominals(
    parameters: Sequence[FittedParameter], evidence: SignalEvidence | None
) -> tuple[FittedParameter, ...]:
    """Returns fitted parameters whose intervals hold the model's values as explanations allow it.

    A value of a dimension that no explanation needs is as likely right as it was written, whatever was fitted beside
    it. Where explanations without a dimension are worse, the value of it that is furthest from the model's has an
    interval that ends where they say, if slopes say less: see `find_reach`.
    """
    if evidence is None:
        return tuple(parameters)
    found = [p if p.dimension in evidence.best.dimensions else _widen_to_nominal(p) for p in parameters]
    for dimension in evidence.best.dimensions:
        mine = [k for k, p in enumerate(found) if p.dimension == dimension]
        if mine and all(found[k].low <= found[k].nominal <= found[k].high for k in mine):
            main = max(mine, key=lambda k: _measure_distance(found[k]))
            found[main] = _end_interval(found[main], find_reach(evidence, dimension))
    return tuple(found)


def find_reach(evidence: SignalEvidence, dimension: Dimension) -> float:
    """Returns where the interval of a value ends on the way to the model's, as a share of that way.

    The odds of explanations with the dimension against those without say how unlikely the model's value is; for a
    normal distribution that is z standard deviations, log odds = z^2 / 2, and 1.96 of them are the interval. What they
    say is of all values of the dimension together: so the interval loses no more than the model's value.
    """
    has = np.array([dimension in one.dimensions for one in evidence.explanations])
    weights = evidence.probabilities.weights
    log_odds = np.log(max(weights[has].sum(), 1e-300)) - np.log(max(weights[~has].sum(), 1e-300))
    return max(MIN_REACH, float(Z_95 / np.sqrt(2.0 * max(log_odds, 1e-12))))


def _measure_distance(parameter: FittedParameter) -> float:
    """Returns how far a value is from the model's, in half widths of its interval on that side."""
    distance = parameter.nominal - parameter.value
    half = parameter.high - parameter.value if distance > 0 else parameter.value - parameter.low
    return abs(distance) / max(half, 1e-300)


def _end_interval(parameter: FittedParameter, reach: float) -> FittedParameter:
    end = parameter.value + reach * (parameter.nominal - parameter.value)
    if parameter.value < parameter.nominal:
        return replace(parameter, high=min(parameter.high, end))
    return replace(parameter, low=max(parameter.low, end)) if parameter.value > parameter.nominal else parameter


def _widen_to_nominal(parameter: FittedParameter) -> FittedParameter:
    low, high = min(parameter.low, parameter.nominal), max(parameter.high, parameter.nominal)
    return replace(parameter, low=low, high=high)


def agree_with_fit(evidence: SignalEvidence, parameters: Sequence[FittedParameter]) -> SignalEvidence:
    """Returns evidence in which a dimension is likelier than not where the fit has a value of it away from the model's.

    And less likely than not where it has none, identifiable or not: of a delay and a lag only the sum may show. Values
    of dimensions that the best explanation does without are never away; see `weigh_nominals`.
    """
    away = [p for p in parameters if not p.low <= p.nominal <= p.high]
    causes = dict(evidence.probabilities.causes)
    for dimension, chance in causes.items():
        mine = [p for p in away if p.dimension == dimension]
        if any(p.identifiable for p in mine):
            causes[dimension] = max(chance, 0.5 + UNDECIDED)
        elif not mine and dimension != NUMERICS:
            causes[dimension] = min(chance, 0.5 - UNDECIDED)
    return replace(evidence, probabilities=replace(evidence.probabilities, causes=causes))


def explain_logs(
    data: ProjectData, candidates: CandidateParameters, episodes: Sequence[int], seed: int, report: Report
) -> SignalEvidence | str:
    """Returns what some episodes say of their gap, or why they say nothing; searched once for the same inputs.

    Args:
        data: The project and its logs.
        candidates: What may be wrong, without values per run.
        episodes: Which of the logs are looked at.
        seed: Of the windows that are drawn.
        report: Called with how far it is, in [0, 1].
    """
    own = candidates.for_runs(len(data.tracks))
    drawn = draw_fit_problem(data, own, episodes, np.random.default_rng(seed))
    window_s = drawn.windows.num_steps / data.project.rate_hz
    if refusal := find_refusal(replace(data, space=own.space), drawn, window_s):
        return refusal
    short = prepare_problem(drawn, own)
    problem = _lengthen(data, short, episodes, seed)
    about = (code_version(), mujoco.__version__, fingerprint(data.project), [data.ids[k] for k in episodes], seed)
    digest = hashlib.sha256(repr(about).encode()).hexdigest()[:16]
    kept = data.catalogue.unfinished_path(f"explanations-{digest}.npz")
    found = load_explanations(kept, problem)
    if found is None:
        found = MechanismSearch(problem).run(short, lambda: search_kinds(short, data.space.targets, seed), report)
        save_explanations(kept, found, problem)
    best = find_best(found).point
    problem, short = problem.with_effects_at(best), short.with_effects_at(best)
    return SignalEvidence(problem, found, estimate_probabilities(found, problem.mechanisms), short)


def _lengthen(data: ProjectData, short: MechanismProblem, episodes: Sequence[int], seed: int) -> MechanismProblem:
    """Returns the problem on windows nearer to the horizon, on which explanations are judged.

    What is small and lasts, such as friction of a thing that slides, shows late. Where nothing is commanded windows
    stay short: there every impact makes what is left larger by chance.
    """
    length_s = min(data.project.horizon_s, JUDGED_S)
    if not data.project.commands or length_s * data.project.rate_hz < short.windows.num_steps:
        return short
    rng = np.random.default_rng([seed, 4])
    longer = draw_fit_problem(data, short.candidates, episodes, rng, (length_s, MAX_JUDGED))
    return prepare_problem(longer, short.candidates, short.unseen) if len(longer.windows) >= MIN_JUDGED else short
