"""What `identify` would report of a recording, predicted before there is one.

A recording of the motion is simulated on the robot as assumed, with noise, and goes the way of a log: bounds,
smoothing, candidates, windows, and the functions that judge a fit are those of `identify`. Its searches are left out:
the values that they would find are the assumed ones, and what explains them is selected by the linear model there.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.results import FittedParameter
from gapless.excite.knowledge import PriorKnowledge, always_fitted
from gapless.fit.data import ProjectData
from gapless.fit.mechanisms.candidates import CandidateParameters
from gapless.fit.mechanisms.evidence import WEIGHING, estimate_probabilities
from gapless.fit.mechanisms.explain import SignalEvidence, add_explained, place_explained, weigh_nominals
from gapless.fit.mechanisms.linear import LinearModel
from gapless.fit.mechanisms.problem import draw_fit_problem, prepare_problem
from gapless.fit.mechanisms.search import Explanation
from gapless.fit.mechanisms.set_fits import SetFitter
from gapless.fit.prediction.windows import shortest_window_s
from gapless.fit.search.config import SEARCH
from gapless.fit.search.structure import build_problem, choose_window_s, held_columns
from gapless.fit.solve import descend
from gapless.fit.summary import describe_parameters
from gapless.fit.uncertainty import judge_solution
from gapless.signals.track import Track
from gapless.sim.auto import candidate_terms, parameter_space, parameters_of

EPISODE = [0]  # the recording is the only one


@dataclass(frozen=True)
class PredictedFit:
    """What `identify` would report if the robot were as assumed."""

    parameters: tuple[FittedParameter, ...]  # what would be fitted, and what is wanted besides
    reported: frozenset[str]  # targets that would be fitted whether they are wanted or not
    window_s: float  # length of the windows [s]


def predict_fit(known: PriorKnowledge, track: Track, values: Mapping[str, float]) -> PredictedFit:
    """Returns what `identify` would report of a recording of a robot with some values; those of others are as written.

    Costs two predictions per candidate of at most 40 windows, and about as many of all windows per fitted parameter
    as `identify` needs to judge its last fit.
    """
    rng = np.random.default_rng(0)
    data = _make_data(known, track)
    fitted = always_fitted(known.blueprint, data.tracks).targets
    tried = {target for term in data.terms for target in term.targets}
    evidence = _expect_explanation(_linearise(data, values, rng)).prefer_prediction({*fitted} - tried)
    reported = frozenset(fitted) | evidence.fitted_targets
    data = add_explained(data, evidence)
    whole = data.whole
    _, row = place_explained(whole, evidence, EPISODE)
    short = build_problem(data, whole, EPISODE, shortest_window_s(data.project), rng)
    window_s = choose_window_s(data, short.predictor, EPISODE, row, rng)
    problem = build_problem(data, whole, EPISODE, window_s, rng).with_coupling(row).weighted_at(row)

    def judge(targets: Collection[str]) -> dict[str, FittedParameter]:
        """Returns what a fit of some targets would report."""
        free = tuple(k for k, target in enumerate(whole.targets) if target in targets)
        if not free:
            return {}
        held = [k for k in held_columns(whole, free) if whole.targets[k] not in others]  # it has no others
        now = replace(problem, free=free)
        judged = judge_solution(now, descend(now, row, SEARCH.polish), held)
        solution = replace(judged.solution, row=row, unit=now.unit(row))
        return {p.target: p for p in weigh_nominals(describe_parameters(now.space, solution), evidence)}

    others = {*whole.targets} & {*known.wanted} - reported
    found = judge(reported)
    if others:
        found |= {target: p for target, p in judge(reported | others).items() if target in others}
    return PredictedFit(tuple(found.values()), reported, window_s)


def _make_data(known: PriorKnowledge, track: Track) -> ProjectData:
    """Returns the project as if the recording were its only log, what is wanted among its parameters."""
    blueprint, tracks = known.blueprint, (track,)
    space, terms = parameter_space(blueprint, tracks), candidate_terms(blueprint, tracks)
    asked = parameters_of(blueprint, tracks, [target for target in known.wanted if target not in space.targets])
    space = ParameterSpace((*space.parameters, *asked))
    return ProjectData(known.project, known.catalogue, blueprint, (), (), tracks, space, terms, ())


def _linearise(data: ProjectData, values: Mapping[str, float], rng: np.random.Generator) -> LinearModel:
    """Returns the linear model of all mechanisms at some values, as the search for explanations has it there."""
    candidates = CandidateParameters.from_logs(data)
    problem = prepare_problem(draw_fit_problem(data, candidates, EPISODE, rng), candidates)
    fitter, every = SetFitter(problem), tuple(range(len(problem.mechanisms)))
    linear = fitter.linearise(fitter.begin(every, problem.point_near(values)), every).linear
    assert linear is not None
    return linear


def _expect_explanation(linear: LinearModel) -> SignalEvidence:
    """Returns what the search for explanations would find about: the best set that the linear model selects.

    Only what is not as written can be part of it, since slopes that bend would call for other things to make up for it.
    """
    problem, point = linear.problem, linear.point
    moved = [k for k, mechanism in enumerate(linear.mechanisms) if point[list(mechanism.entries)].any()]
    explanations: list[Explanation] = []
    for chosen in ((), linear.select((), moved, WEIGHING.price, len(moved))):
        mechanisms = tuple(problem.mechanisms[k] for k in chosen)
        residual = problem.residuals((point if chosen else np.zeros_like(point))[None])[0]
        explanations.append(Explanation(mechanisms, point, linear.held_out_squares(chosen), residual))
    return SignalEvidence(
        problem, tuple(explanations), estimate_probabilities(explanations, problem.mechanisms), problem
    )
