"""From logs to a row near the best: windows drawn, a start searched, their length and the terms chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.identify.horizon import choose_length_s, num_windows, shortest_s
from gapless.identify.lean import lean
from gapless.identify.rescale import rescaled
from gapless.identify.solver.problem import Problem
from gapless.identify.solver.search import search
from gapless.identify.solver.slopes import FINE, MEDIUM
from gapless.identify.solver.solve import Progress, approach
from gapless.identify.structure import Columns, Structure, choose
from gapless.identify.swap import try_lag
from gapless.sim.evidence import Evidence
from gapless.sim.prediction.predict import Predictor
from gapless.sim.prediction.windows import Windows, cut

MIN_WINDOWS = 8
SEARCH_WINDOWS = 16
FEW_WINDOWS = 32  # for the first solve
SOME_S = 20.0  # simulated for choosing terms [s]
FIRST = ((MEDIUM, 8),)
FINAL = ((MEDIUM, 4), (FINE, 6))
# What every model has a value of.
HAS = ("/mass", "/length", "/com/", "/spread/", "/inertia", "/armature", "/kd", "/limit")
CORRECTED = 0.02  # least share of the held-out cost that a corrected value must save
ADDED = 0.2  # the same of a term that the model lacks, a tenth of the error: whatever is added, is extrapolated
LAG = 0.01  # the same of a lag: it only changes places with part of the delay
STILL = 0.1  # how much likelier than nothing a window without motion is drawn, against 1 for a typical one


@dataclass(frozen=True)
class Found:
    """Where the last solve begins.

    Attributes:
        problem: The problem on windows of the length that was chosen.
        structure: Which parameters to fit, and a row near the best.
        window_s: Length of the windows [s].
        held: Columns of masses and shapes that stay as written: their errors show too little.
    """

    problem: Problem
    structure: Structure
    window_s: float
    held: Columns


def make_problem(
    evidence: Evidence,
    space: ParameterSpace,
    episodes: Sequence[int],
    window_s: float,
    rng: np.random.Generator,
) -> Problem:
    """Returns the problem of fitting all parameters of a space to some episodes, weighted by noise alone."""
    windows = limited(_cut(evidence, episodes, window_s), rng, num_windows(window_s))
    predictor = Predictor(lean(evidence.blueprint, evidence.tracks), space)
    return Problem(predictor, windows, tuple(range(len(space))), space.nominal, windows.noise)


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

    It starts where a search finds the kinds of parameters to fit best, goes downhill from there on few windows, and
    corrects the links where the logs call for it. Then windows are made as long as the start's uncertainty allows, and
    what the model lacks may enter.

    Args:
        problem: All parameters on short windows, or on those of `window_s`.
        evidence: The logs.
        episodes: Which of them are fitted.
        window_s: Length of the windows [s]; None chooses it.
        rng: Draws windows and starts.
        progress: Called with what is being done and how far it is, in [0, 1].
    """
    always, groups = _columns(evidence)
    wrong, lacking, around = _tiers(problem, groups)
    few = replace(problem, free=always).on(limited(problem.windows, rng, FEW_WINDOWS))
    row = search(few.on(limited(few.windows, rng, SEARCH_WINDOWS)).reweighted(few.base), rng)
    _tell(progress, 0.1)
    row = rescaled(few, approach(few.reweighted(row), row, FIRST))
    found = choose(few, row, wrong, worth=CORRECTED)
    _tell(progress, 0.25)
    row = approach(replace(few, free=found.free).reweighted(found.row), found.row, FIRST)
    if window_s is None:
        window_s = choose_length_s(evidence, problem.predictor, list(episodes), row, rng)
    problem = replace(problem, free=found.free)
    if window_s > shortest_s(evidence.project):
        problem = problem.on(limited(_cut(evidence, episodes, window_s), rng, num_windows(window_s)))
        row = approach(problem.reweighted(row), row, FIRST)
    _tell(progress, 0.5)
    some = problem.on(limited(problem.windows, rng, max(MIN_WINDOWS, round(SOME_S / window_s))))
    structure = replace(found, row=row)
    still = [group for group in wrong if not set(group) <= set(found.free)]  # on all windows they may be plainer
    structure = choose(problem, row, still, worth=CORRECTED).after(structure)
    for number, tier in enumerate((lacking, around)):
        some = replace(some, free=structure.free)
        more = choose(some, structure.row, tier, worth=ADDED, thorough=True, progress=_later(progress, number))
        structure = more.after(structure)
    some = replace(some, free=structure.free).reweighted(structure.row)
    structure = try_lag(some, structure.row, groups, LAG).after(structure)
    links = {column for column, target in enumerate(problem.predictor.space.targets) if target.startswith("body/")}
    held = tuple(sorted(links - set(structure.free)))
    return Found(problem, structure, window_s, held)


def _tiers(problem: Problem, groups: Sequence[Columns]) -> tuple[list[Columns], ...]:
    """Returns the terms that may be wrong in the model, those that it lacks, and its surroundings; not the lag.

    What the model lacks is tried later: in a model with wrong masses much of it seems to help. How the robot stands
    comes after what belongs to the robot and goes with it. A lag comes last: whatever is heavy or slow looks like one.
    """
    targets = problem.predictor.space.targets
    wrong = [group for group in groups if all(any(part in targets[k] for part in HAS) for k in group)]
    lags = [group for group in groups if all(targets[k].endswith("/lag") for k in group)]
    around = [group for group in groups if all(targets[k].startswith("world/") for k in group)]
    return wrong, [group for group in groups if group not in (*wrong, *lags, *around)], around


def _columns(evidence: Evidence) -> tuple[Columns, list[Columns]]:
    """Returns the columns of what is always fitted, and of each term that is tried.

    How the robot stands is tried, not assumed: gravity that may point anywhere explains a little of everything.
    """
    space = evidence.whole
    groups = [tuple(space.index(target) for target in term.targets) for term in evidence.terms]
    tried = {column for group in groups for column in group}
    around = tuple(k for k, p in enumerate(evidence.space.parameters) if groups and p.dimension == "environment")
    always = tuple(k for k in range(len(evidence.space)) if k not in around and k not in tried)
    return always, ([around] if around else []) + groups


def _tell(progress: Progress | None, done: float) -> None:
    if progress is not None:
        progress("fit", done)


def _later(progress: Progress | None, tier: int) -> Progress | None:
    return None if progress is None else lambda label, done: progress(label, 0.5 + (tier + done) / 4)
