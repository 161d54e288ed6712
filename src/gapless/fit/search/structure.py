"""From logs to a row near the best: windows drawn, a start searched, their length and the terms chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Progress
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.idle_contacts import without_idle_contacts
from gapless.fit.prediction.lengths import choose_window_s, max_num_windows, shortest_window_s
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.fit.problem import FitProblem
from gapless.fit.search.checkpoint import Checkpoint
from gapless.fit.search.config import SEARCH
from gapless.fit.search.force_scale import fit_force_scale
from gapless.fit.search.swaps import Swap, groups_ending_in, try_lag, try_play
from gapless.fit.search.terms import Columns, Structure, select_terms
from gapless.fit.solve import descend, partial_progress
from gapless.fit.start_search import search_starts
from gapless.fit.summary import MIN_WINDOWS
from gapless.fit.time_step import subtract_time_step_error, with_finer_time_step
from gapless.sim.targets.target import split_target

# What every model has a value of.
MODEL_FIELDS = ("mass", "length", "com/", "spread/", "inertia", "armature", "kd", "limit")


@dataclass(frozen=True)
class StructureResult:
    """Where the last solve begins."""

    problem: FitProblem  # the problem on windows of the length that was chosen
    structure: Structure  # which parameters to fit, and a row near the best
    window_s: float  # length of the windows [s]
    held: Columns  # columns of masses, shapes and tilt that stay as written: their errors show too little


@dataclass(frozen=True)
class _TermTiers:
    """Terms in the order of trying: what may be wrong in the model, what it lacks, what is around it."""

    wrong: list[Columns]
    lacking: list[Columns]
    around: list[Columns]


def build_problem(
    evidence: ProjectData,
    space: ParameterSpace,
    episodes: Sequence[int],
    window_s: float,
    rng: np.random.Generator,
) -> FitProblem:
    """Returns the problem of fitting all parameters of a space to some episodes, weighted by noise alone."""
    windows = draw_windows(_cut_episodes(evidence, episodes, window_s), rng, max_num_windows(window_s, space))
    predictor = Predictor(without_idle_contacts(evidence.blueprint, evidence.tracks), space)
    return FitProblem(predictor, windows, tuple(range(len(space))), space.nominal, windows.noise)


def _cut_episodes(evidence: ProjectData, episodes: Sequence[int], window_s: float) -> Windows:
    windows = cut_windows(evidence.project, [evidence.tracks[k] for k in episodes], window_s)
    return replace(windows, track=np.array(list(episodes), dtype=np.intp)[windows.track])


def draw_windows(windows: Windows, rng: np.random.Generator, most: int) -> Windows:
    """Returns at most `most` of the windows, those with more motion likelier, kept in order."""
    if len(windows) <= most:
        return windows
    moves = np.nanstd(windows.measured, axis=1)
    moves = moves / np.maximum(np.sqrt(np.nanmean(moves**2, axis=0)), 1e-12)
    likely = SEARCH.still_window_weight + np.clip(np.nan_to_num(moves), 0.0, 3.0).mean(axis=1)
    return windows.pick(np.sort(rng.choice(len(windows), most, replace=False, p=likely / likely.sum())))


def search_structure(
    problem: FitProblem,
    evidence: ProjectData,
    episodes: Sequence[int],
    window_s: float | None,
    rng: np.random.Generator,
    progress: Progress | None,
    checkpoint: Checkpoint | None = None,
) -> StructureResult:
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
        checkpoint: Where what each step finds is noted, or was noted by a fit that was stopped; None for nowhere.
    """
    checkpoint = checkpoint or Checkpoint()
    step = checkpoint.step
    always, groups = _split_columns(evidence, episodes)
    tiers = _sort_terms(problem, groups)
    few = replace(problem, free=always).on_windows(draw_windows(problem.windows, rng, SEARCH.max_first_windows))
    found = _fit_first_windows(few, tiers, rng, progress, checkpoint)
    row = found.row
    if window_s is None:
        window_s = step(lambda: choose_window_s(evidence, problem.predictor, list(episodes), row, rng), rng)
    measured = replace(problem, free=found.free)
    if window_s > shortest_window_s(evidence.project):
        most = max_num_windows(window_s, evidence.space)
        measured = measured.on_windows(draw_windows(_cut_episodes(evidence, episodes, window_s), rng, most))
    measured = measured.with_coupling(found.row)
    raw = measured.on_windows(
        draw_windows(measured.windows, rng, max(MIN_WINDOWS, round(SEARCH.term_windows_s / window_s)))
    )
    if window_s > shortest_window_s(evidence.project):
        row = step(lambda: descend(raw.weighted_at(found.row), found.row, SEARCH.first))
    report_progress(progress, 0.5)
    fine = with_finer_time_step(measured.predictor)
    some = subtract_time_step_error(raw, fine, row)
    structure = _select_all_terms(
        some, replace(found, row=row), tiers, partial_progress(progress, 0.5, 0.25), checkpoint
    )
    played = step(lambda: _try_swap(try_play, some, structure, groups, SEARCH.min_term_saving))
    report_progress(progress, 0.85)
    if len(played.free) > len(structure.free):
        only = tuple(sorted({*always, *(set(played.free) - set(structure.free))}))
        played = _select_terms_beside_play(
            raw, fine, replace(played, free=only), tiers, partial_progress(progress, 0.85, 0.1), checkpoint
        )
    structure = step(lambda: _try_swap(try_lag, some, played, groups, SEARCH.min_lag_saving))
    now = replace(some, free=structure.free)
    structure = replace(structure, row=step(lambda: fit_force_scale(now, structure.row, near=True)))
    left = set(range(len(row))) - set(structure.free)
    targets = measured.predictor.space.targets
    held = tuple(sorted(k for k in left if targets[k].startswith(("body/", "world/tilt"))))
    report_progress(progress, 1.0)
    return StructureResult(measured, structure, window_s, held)


def _fit_first_windows(
    few: FitProblem, tiers: _TermTiers, rng: np.random.Generator, progress: Progress | None, checkpoint: Checkpoint
) -> Structure:
    """Returns what may be wrong in the model and a row near the best, on few short windows."""
    step = checkpoint.step
    look = few.on_windows(draw_windows(few.windows, rng, SEARCH.max_search_windows))
    starts = step(lambda: search_starts(look.weighted_at(few.base), rng, num_found=SEARCH.num_starts), rng)
    report_progress(progress, 0.05)
    few = few.with_coupling(starts[0])
    row = step(lambda: _descend_from_each(few.weighted_at(starts[0]), starts, partial_progress(progress, 0.05, 0.15)))
    row = step(lambda: fit_force_scale(few, row))
    report_progress(progress, 0.25)
    found = step(
        lambda: select_terms(
            few, row, tiers.wrong, worth=SEARCH.min_correction_saving, progress=partial_progress(progress, 0.25, 0.1)
        )
    )
    report_progress(progress, 0.35)
    row = step(lambda: descend(replace(few, free=found.free).weighted_at(found.row), found.row, SEARCH.first))
    report_progress(progress, 0.4)
    return replace(found, row=row)


def _descend_from_each(problem: FitProblem, starts: Array, progress: Progress | None) -> Array:
    """Returns the best of the rows that solves from some starts end at."""
    ends: list[Array] = []
    for number, start in enumerate(starts):
        ends.append(
            descend(problem, start, SEARCH.first, partial_progress(progress, number / len(starts), 1 / len(starts)))
        )
    return min(ends, key=problem.cost)


def _select_terms_beside_play(
    raw: FitProblem,
    fine: Predictor,
    played: Structure,
    tiers: _TermTiers,
    progress: Progress | None,
    checkpoint: Checkpoint,
) -> Structure:
    """Returns the terms that are needed beside play: some, and the scale of all forces, may have made up for it."""
    bare = np.where(np.isin(np.arange(len(raw.base)), played.free), played.row, raw.base)
    some = subtract_time_step_error(raw, fine, bare)
    now = replace(some, free=played.free)
    bare = checkpoint.step(lambda: fit_force_scale(now, descend(now.weighted_at(bare), bare, SEARCH.first)))
    return _select_all_terms(some, replace(played, row=bare), tiers, progress, checkpoint)


def _select_all_terms(
    some: FitProblem,
    structure: Structure,
    tiers: _TermTiers,
    progress: Progress | None,
    checkpoint: Checkpoint,
) -> Structure:
    """Returns a structure with the terms that the logs call for: what may be wrong, then what lacks, then around it."""
    still = [group for group in tiers.wrong if not set(group) <= set(structure.free)]
    parts = [
        (still, SEARCH.min_correction_saving),
        (tiers.lacking, SEARCH.min_term_saving),
        (tiers.around, SEARCH.min_term_saving),
    ]
    for number, (groups, worth) in enumerate(parts):
        structure = checkpoint.step(
            partial(
                _select_some_terms,
                some,
                structure,
                groups,
                worth,
                number > 0,
                partial_progress(progress, number / 3, 1 / 3),
            )
        )
    return structure


def _select_some_terms(
    problem: FitProblem,
    structure: Structure,
    groups: Sequence[Columns],
    worth: float,
    thorough: bool,
    progress: Progress | None,
) -> Structure:
    now = replace(problem, free=structure.free)
    return select_terms(now, structure.row, groups, worth=worth, thorough=thorough, progress=progress).after(structure)


def _try_swap(swap: Swap, some: FitProblem, structure: Structure, groups: Sequence[Columns], worth: float) -> Structure:
    now = replace(some, free=structure.free).weighted_at(structure.row)
    return swap(now, structure.row, groups, worth).after(structure)


def _sort_terms(problem: FitProblem, groups: Sequence[Columns]) -> _TermTiers:
    """Returns the terms that may be wrong in the model, those that it lacks, and its surroundings; not lag and play.

    What the model lacks is tried later: in a model with wrong masses much of it seems to help. How the robot stands
    comes after what belongs to the robot and goes with it. Play and lag come last, by exchange: whatever rubs looks
    like play, whatever is heavy or slow like a lag.
    """
    targets = problem.predictor.space.targets
    wrong = [group for group in groups if all(split_target(targets[k]).field.startswith(MODEL_FIELDS) for k in group)]
    swaps = groups_ending_in(problem, groups, "/lag", "/backlash")
    around = [group for group in groups if all(targets[k].startswith("world/") for k in group)]
    return _TermTiers(wrong, [group for group in groups if group not in (*wrong, *swaps, *around)], around)


def _split_columns(evidence: ProjectData, episodes: Sequence[int]) -> tuple[Columns, list[Columns]]:
    """Returns the columns of what is always fitted to some episodes, and of each term that is tried.

    How the robot stands is tried, not assumed: gravity that may point anywhere explains a little of everything.
    """
    space = evidence.whole
    groups = [tuple(space.index(target) for target in term.targets) for term in evidence.terms]
    tried = {column for group in groups for column in group}
    around = tuple(k for k, p in enumerate(evidence.space.parameters) if groups and p.dimension == "environment")
    runs = (None, *episodes)
    here = [k for k, p in enumerate(evidence.space.parameters) if p.run in runs]
    always = tuple(k for k in here if k not in around and k not in tried)
    return always, ([around] if around else []) + groups


def report_progress(progress: Progress | None, done: float) -> None:
    """Says how far a fit is, in [0, 1], to whoever wants to know."""
    if progress is not None:
        progress("fit", done)
