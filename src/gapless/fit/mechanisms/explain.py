"""From logs to explanations of them: what `identify` fits, and what `diagnose` judges."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import mujoco
import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.results import FittedParameter
from gapless.core.signal import Array
from gapless.data.stored_results import code_version
from gapless.fit.data import ProjectData
from gapless.fit.mechanisms.candidates import CandidateParameters
from gapless.fit.mechanisms.evidence import WEIGHING, CauseProbabilities, estimate_probabilities
from gapless.fit.mechanisms.mechanism import NUMERICS
from gapless.fit.mechanisms.problem import MechanismProblem, draw_fit_problem, prepare_problem
from gapless.fit.mechanisms.search import Explanation, MechanismSearch, Report
from gapless.fit.mechanisms.stored import load_explanations, save_explanations
from gapless.fit.prediction.windows import draw_windows
from gapless.fit.problem import FitProblem
from gapless.fit.search.config import SEARCH
from gapless.fit.search.structure import search_starts
from gapless.fit.summary import find_refusal
from gapless.project.fingerprint import fingerprint

UNDECIDED = 0.01  # how far from one half a probability is, that only the fit decides


@dataclass(frozen=True)
class SignalEvidence:
    """What the signals of some logs say."""

    problem: MechanismProblem  # the windows that were looked at
    explanations: tuple[Explanation, ...]  # all that were fitted
    probabilities: CauseProbabilities  # what they say

    @cached_property
    def best(self) -> Explanation:
        """The likeliest explanation."""
        return self.explanations[int(np.argmax(self.probabilities.weights))]

    def choose_beside(self, fitted: Collection[str]) -> "SignalEvidence":
        """Returns the evidence with the explanation that is best where some targets are fitted anyway, at no price.

        Two values that show alike explain logs alike; where one is fitted anyway, the other is freed for nothing, and
        neither is determined.
        """
        added = [sum(m.price for m in one.mechanisms if not set(m.targets) <= set(fitted)) for one in self.explanations]
        scores = [one.total - WEIGHING.price * more for one, more in zip(self.explanations, added, strict=True)]
        weights = np.eye(len(scores))[int(np.argmax(scores))]
        return replace(self, probabilities=replace(self.probabilities, weights=weights))

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
        """The windows, with what the best explanation moves as free parameters; the first one where it moves none.

        Predicted with a finer time step where that is part of the explanation: what the step does is no scatter.
        """
        entries = {entry for mechanism in self.best.mechanisms for entry in mechanism.entries}
        free = tuple(sorted(k for k in entries if k < len(self.problem.fit.base)))
        predictor = self.problem.fine if NUMERICS in self.best.dimensions else self.problem.fit.predictor
        return replace(self.problem.fit, free=free or (0,), predictor=predictor)

    @property
    def whole_row(self) -> Array:
        """The parameters of the best explanation, (num_parameters,), those of each run apart."""
        return self.problem.rows(self.best.point[None])[0]

    @property
    def values(self) -> dict[str, Array]:
        """Target -> its value in the best explanation, (1,), or for per-run parameters that of each run."""
        row, targets = self.whole_row, np.array(self.problem.candidates.space.targets)
        return {str(target): row[targets == target] for target in dict.fromkeys(targets)}

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


def allow_nominal(parameter: FittedParameter, evidence: SignalEvidence | None) -> FittedParameter:
    """Returns a fitted parameter; its interval holds the model's value if no explanation needs its dimension.

    Such a value is as likely right as it was written, whatever was fitted beside it. Which values of the other
    dimensions are wrong, the fit of all decides.
    """
    if evidence is None or parameter.dimension in evidence.best.dimensions:
        return parameter
    low, high = min(parameter.low, parameter.nominal), max(parameter.high, parameter.nominal)
    return replace(parameter, low=low, high=high)


def agree_with_fit(evidence: SignalEvidence, parameters: Sequence[FittedParameter]) -> SignalEvidence:
    """Returns evidence in which a dimension is likelier than not where the fit has a value of it away from the model's.

    Values of dimensions that the best explanation does without are never away; see `allow_nominal`.
    """
    moved = {p.dimension for p in parameters if p.identifiable and not p.low <= p.nominal <= p.high}
    judged = {p.dimension for p in parameters} | (set(evidence.problem.dimensions) - set(evidence.best.dimensions))
    causes = dict(evidence.probabilities.causes)
    for dimension, chance in causes.items():
        if dimension in moved:
            causes[dimension] = max(chance, 0.5 + UNDECIDED)
        elif dimension in judged and dimension != NUMERICS:
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
    problem = prepare_problem(drawn, own)
    about = (code_version(), mujoco.__version__, fingerprint(data.project), [data.ids[k] for k in episodes], seed)
    digest = hashlib.sha256(repr(about).encode()).hexdigest()[:16]
    kept = data.catalogue.unfinished_path(f"explanations-{digest}.npz")
    found = load_explanations(kept, problem)
    if found is None:
        found = MechanismSearch(problem).run(lambda: _find_far_start(problem, seed), report)
        save_explanations(kept, found, problem)
    return SignalEvidence(problem, found, estimate_probabilities(found, problem.mechanisms))


def _find_far_start(problem: MechanismProblem, seed: int) -> Array:
    """Returns a point where whole kinds of values are moved together.

    A model whose servos are all ten times too stiff is far from any explanation, and slopes there lead nowhere.
    """
    rng = np.random.default_rng([seed, 3])
    some = problem.fit.on_windows(draw_windows(problem.windows, rng, SEARCH.max_search_windows))
    (row,) = search_starts(some.weighted_at(some.base), rng, 1)
    return np.clip(problem.point_of(row), *problem.bounds)
