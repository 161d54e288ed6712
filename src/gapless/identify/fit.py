"""From logs to a row near the best: windows drawn, a start searched, their length and the terms chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.identify.horizon import choose_length_s, num_windows
from gapless.identify.solver.problem import Problem
from gapless.identify.solver.search import search
from gapless.identify.solver.solve import FINE, MEDIUM, Progress, solve
from gapless.identify.structure import Columns, Structure, choose
from gapless.identify.swap import try_lag
from gapless.sim.evidence import Evidence
from gapless.sim.prediction.predict import Predictor
from gapless.sim.prediction.windows import Windows, cut

SHORT_S = 0.3  # length of the windows that a fit begins with [s]
MIN_WINDOWS = 8
SEARCH_WINDOWS = 24
FEW_WINDOWS = 48  # for the first solve
SOME_S = 20.0  # simulated for choosing terms [s]
FIRST = ((MEDIUM, 8),)
FINAL = ((MEDIUM, 4), (FINE, 6))
HAS = ("/mass", "/com/", "/inertia", "/armature", "/kd", "/limit")  # what every model has a value of
STILL = 0.1  # how much likelier than nothing a window without motion is drawn, against 1 for a typical one


@dataclass(frozen=True)
class Found:
    """Where the last solve begins.

    Attributes:
        problem: The problem on windows of the length that was chosen.
        structure: Which parameters to fit, and a row near the best.
        window_s: Length of the windows [s].
    """

    problem: Problem
    structure: Structure
    window_s: float


def make_problem(
    evidence: Evidence,
    space: ParameterSpace,
    episodes: Sequence[int],
    window_s: float,
    rng: np.random.Generator,
) -> Problem:
    """Returns the problem of fitting all parameters of a space to some episodes."""
    windows = limited(_cut(evidence, episodes, window_s), rng, num_windows(window_s))
    predictor = Predictor(evidence.blueprint, space)
    problem = Problem(predictor, windows, tuple(range(len(space))), space.nominal, windows.noise)
    return problem.reweighted(space.nominal) if len(windows) else problem


def _cut(evidence: Evidence, episodes: Sequence[int], window_s: float) -> Windows:
    windows = cut(evidence.project, [evidence.tracks[k] for k in episodes], window_s)
    return replace(windows, track=np.array(list(episodes), dtype=np.intp)[windows.track])


def limited(windows: Windows, rng: np.random.Generator, most: int) -> Windows:
    """Returns at most `most` of the windows, those with more motion likelier, kept in order."""
    if len(windows) <= most:
        return windows
    moves = np.nanstd(windows.measured, axis=1)
    moves = moves / np.maximum(np.sqrt(np.nanmean(moves**2, axis=0)), 1e-12)
    likely = STILL + np.clip(np.nan_to_num(moves), 0.0, 3.0).mean(axis=1)
    return windows.pick(np.sort(rng.choice(len(windows), most, replace=False, p=likely / likely.sum())))


def fit(
    problem: Problem,
    evidence: Evidence,
    episodes: Sequence[int],
    window_s: float | None,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Found:
    """Finds which parameters to fit and a row near the best: on some windows, with coarse slopes.

    It starts where a search finds the kinds of parameters to fit best, solves there and from the model as written on
    few windows, and lets terms enter as the logs call for them. Then windows are made as long as the start's
    uncertainty allows.

    Args:
        problem: All parameters on short windows, or on those of `window_s`.
        evidence: The logs.
        episodes: Which of them are fitted.
        window_s: Length of the windows [s]; None chooses it.
        rng: Draws windows and starts.
        progress: Called with what is being done and how far it is, in [0, 1].
    """
    always, groups = _columns(evidence)
    problem = replace(problem, free=always)
    few = problem.on(limited(problem.windows, rng, FEW_WINDOWS))
    row = search(few.on(limited(few.windows, rng, SEARCH_WINDOWS)), rng)
    _tell(progress, 0.1)
    row = solve(few.reweighted(row), row, FIRST).row
    _tell(progress, 0.25)
    if window_s is None:
        window_s = choose_length_s(evidence, problem.predictor, list(episodes), row, rng)
    if window_s > SHORT_S:
        problem = problem.on(limited(_cut(evidence, episodes, window_s), rng, num_windows(window_s)))
        row = solve(problem.reweighted(row), row, FIRST).row
    _tell(progress, 0.5)
    some = problem.on(limited(problem.windows, rng, max(MIN_WINDOWS, round(SOME_S / window_s))))
    structure = Structure(always, row, ())
    for number, tier in enumerate(_tiers(problem, groups)):
        some = replace(some, free=structure.free).reweighted(structure.row)
        more = choose(some, structure.row, tier, together=number == 0, progress=_later(progress, number))
        structure = replace(more, tried=(*structure.tried, *more.tried))
    some = replace(some, free=structure.free).reweighted(structure.row)
    lag = try_lag(some, structure.row, groups)
    structure = Structure(lag.problem.free, lag.row, (*structure.tried, *lag.tried))
    return Found(problem, structure, window_s)


def _tiers(problem: Problem, groups: Sequence[Columns]) -> tuple[list[Columns], list[Columns]]:
    """Returns the terms that may be wrong in the model, then those that it lacks; a lag is in neither.

    What the model lacks is tried last: in a model with wrong masses much of it seems to help. A lag comes after all of
    them, since whatever is heavy or slow looks like one.
    """
    targets = problem.predictor.space.targets
    wrong = [group for group in groups if all(any(part in targets[k] for part in HAS) for k in group)]
    lacking = [group for group in groups if group not in wrong and not all(targets[k].endswith("/lag") for k in group)]
    return wrong, lacking


def _columns(evidence: Evidence) -> tuple[Columns, list[Columns]]:
    """Returns the columns of what is always fitted, and of each term that is tried.

    How the robot stands is tried, not assumed: gravity that may point anywhere explains a little of everything.
    """
    space = evidence.whole
    groups = [tuple(space.index(target) for target in term.targets) for term in evidence.terms]
    always = [k for k, p in enumerate(evidence.space.parameters) if not groups or p.dimension != "environment"]
    surroundings = tuple(k for k in range(len(evidence.space)) if k not in always)
    return tuple(always), ([surroundings] if surroundings else []) + groups


def _tell(progress: Progress | None, done: float) -> None:
    if progress is not None:
        progress("fit", done)


def _later(progress: Progress | None, tier: int) -> Progress | None:
    return None if progress is None else lambda label, done: progress(label, 0.5 + 0.25 * (tier + done))
