"""From logs to a row near the best: windows drawn, a start searched, their length and the terms chosen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.fit.prediction.predict import Predictor, without_idle_contacts
from gapless.fit.prediction.windows import (
    LENGTHS_S,
    Windows,
    cut_windows,
    draw_windows,
    max_num_windows,
    shortest_window_s,
)
from gapless.fit.problem import FitProblem
from gapless.fit.search.checkpoint import Checkpoint
from gapless.fit.search.config import SEARCH
from gapless.fit.search.flat_directions import fit_force_scale, groups_ending_in, try_lag, try_play
from gapless.fit.search.terms import Columns, Structure, select_terms
from gapless.fit.solve import Report, descend, ignore_progress, report_part
from gapless.fit.start_errors import start_effects
from gapless.fit.summary import MIN_WINDOWS
from gapless.fit.time_step import subtract_time_step_error, with_finer_time_step
from gapless.sim.targets.target import split_target

# What every model has a value of.
MODEL_FIELDS = ("mass", "length", "com/", "spread/", "inertia", "armature", "kd", "limit")
NUM_TRIES, NUM_ROUNDS = 64, 3  # of draws
NUM_BEST = 8  # best draws that the next ones are drawn around
MIN_DISTANCE = 0.25  # of the range of some kind: draws that far from each other may lie in different valleys
MIN_SPREAD = 0.03  # of the next draws, as a share of the range
NUM_WINDOWS = 12  # of each length that is tried
MAX_START_EFFECT = 0.6  # what a start's uncertainty may do at the end of windows, in units of noise


@dataclass(frozen=True)
class StructureResult:
    """Where the last solve begins."""

    problem: FitProblem  # the problem on windows of the length that was chosen
    structure: Structure  # which parameters to fit, and a row near the best
    window_s: float  # length of the windows [s]
    held: Columns  # columns of masses, shapes and tilt that stay as written: their errors show too little


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


def search_structure(
    problem: FitProblem,
    evidence: ProjectData,
    episodes: Sequence[int],
    window_s: float | None,
    rng: np.random.Generator,
    report: Report = ignore_progress,
    checkpoint: Checkpoint | None = None,
    start: Structure | None = None,
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
        report: Called with how far it is.
        checkpoint: Where what each step finds is noted, or was noted by a fit that was stopped; None for nowhere.
        start: What explains the logs already, and is fitted with what always is; None searches a start.
    """
    checkpoint = checkpoint or Checkpoint()
    step = checkpoint.step
    always, groups = split_columns(evidence, episodes)
    if start is not None:  # how the robot stands is in it, if the logs call for it
        always = tuple(sorted({*always, *start.free}))
        groups = [group for group in groups if not set(group) & {*always, *range(len(evidence.space))}]
    tiers = _sort_terms(problem, groups)
    few = replace(problem, free=always).on_windows(draw_windows(problem.windows, rng, SEARCH.max_first_windows))
    if start is None:
        found = _fit_first_windows(few, tiers[0], rng, report, checkpoint)
    else:
        near = start.row
        part = report_part(report, 0.0, 0.4)
        row = step(lambda: descend(few.with_coupling(near).weighted_at(near), near, SEARCH.first, part))
        found = Structure(always, row, ())
    row = found.row
    if window_s is None:
        window_s = step(lambda: choose_window_s(evidence, problem.predictor, episodes, row, rng), rng)
    longer = window_s > shortest_window_s(evidence.project)
    measured = replace(problem, free=found.free)
    if longer:
        most = max_num_windows(window_s, evidence.space)
        measured = measured.on_windows(draw_windows(_cut_episodes(evidence, episodes, window_s), rng, most))
    measured = measured.with_coupling(row)
    most = max(MIN_WINDOWS, round(SEARCH.term_windows_s / window_s))
    raw = measured.on_windows(draw_windows(measured.windows, rng, most))
    if longer:
        found = replace(found, row=step(lambda: descend(raw.weighted_at(row), row, SEARCH.first)))
    report(0.5)
    fine = with_finer_time_step(measured.predictor)
    some = subtract_time_step_error(raw, fine, found.row)
    plain = _select_all_terms(some, found, tiers, report_part(report, 0.5, 0.25), checkpoint)
    played = step(lambda: try_play(some, plain, groups))
    report(0.85)
    if len(played.free) > len(plain.free):  # some terms, and the scale of all forces, may have made up for play
        only = tuple(sorted({*always, *(set(played.free) - set(plain.free))}))
        bare = np.where(np.isin(np.arange(len(row)), only), played.row, raw.base)
        again = replace(subtract_time_step_error(raw, fine, bare), free=only)
        bare = step(lambda: fit_force_scale(again, descend(again.weighted_at(bare), bare, SEARCH.first)))
        played = replace(played, free=only, row=bare)
        played = _select_all_terms(again, played, tiers, report_part(report, 0.85, 0.1), checkpoint)
    structure = step(lambda: try_lag(some, played, groups))
    now = replace(some, free=structure.free)
    structure = replace(structure, row=step(lambda: fit_force_scale(now, structure.row, near=True)))
    report(1.0)
    return StructureResult(measured, structure, window_s, held_columns(measured.predictor.space, structure.free))


def held_columns(space: ParameterSpace, free: Columns) -> Columns:
    """Returns the columns of masses, shapes and tilt that are not fitted, and so stay as written."""
    left = sorted(set(range(len(space))) - set(free))
    return tuple(k for k in left if space.targets[k].startswith(("body/", "world/tilt")))


def choose_window_s(
    evidence: ProjectData, predictor: Predictor, episodes: Sequence[int], row: Array, rng: np.random.Generator
) -> float:
    """Returns the longest of `LENGTHS_S`, from `shortest_window_s` on, at whose end starts are surer than readings.

    A window starts at a measured state, which is uncertain. Where that uncertainty dies out, as in an arm that servos
    hold, longer windows show more: friction that holds, slow creep, sag. Where it grows, as in a pendulum, longer
    windows show ever more of the start's error, and fitting it teaches wrong things.
    """
    tracks, chosen = [evidence.tracks[k] for k in episodes], shortest_window_s(evidence.project)
    for length_s in (length_s for length_s in LENGTHS_S if length_s > chosen):
        windows = cut_windows(evidence.project, tracks, length_s)
        if len(windows) < NUM_WINDOWS:
            break
        windows = windows.pick(np.sort(rng.choice(len(windows), NUM_WINDOWS, replace=False)))
        last = start_effects(predictor, windows, row, windows.noise)[:, :, -1]
        if np.sqrt(np.nanmean(np.sum(last**2, axis=0), axis=0)).max() > MAX_START_EFFECT:
            break
        chosen = length_s
    return chosen


def _fit_first_windows(
    few: FitProblem, wrong: Sequence[Columns], rng: np.random.Generator, report: Report, checkpoint: Checkpoint
) -> Structure:
    """Returns what may be wrong in the model and a row near the best, on few short windows."""
    step = checkpoint.step
    look = few.on_windows(draw_windows(few.windows, rng, SEARCH.max_search_windows))
    starts = step(lambda: search_starts(look.weighted_at(few.base), rng, SEARCH.num_starts), rng)
    report(0.05)
    few = few.with_coupling(starts[0])
    row = step(lambda: _descend_from_each(few.weighted_at(starts[0]), starts, report_part(report, 0.05, 0.15)))
    row = step(lambda: fit_force_scale(few, row))
    report(0.25)
    start, part = Structure(few.free, row, ()), report_part(report, 0.25, 0.1)
    found = step(lambda: select_terms(few, start, wrong, SEARCH.min_correction_saving, report=part))
    report(0.35)
    row = step(lambda: descend(replace(few, free=found.free).weighted_at(found.row), found.row, SEARCH.first))
    report(0.4)
    return replace(found, row=row)


def search_starts(problem: FitProblem, rng: np.random.Generator, num_found: int) -> Array:
    """Returns the best whole rows found, the best first, (at most num_found, num_parameters).

    A model whose servos are all fifty times too stiff is far from any good fit, and slopes there lead nowhere. In the
    space of kinds (all stiffnesses together, all frictions together, the delay) a few hundred draws find the right
    region, however many joints there are. Kinds are drawn from their bounds, half of them kept as written, then nearer.
    Rows that are returned lie apart: which of some valleys is the deepest shows only at their bottoms.
    """
    problem = problem if problem.starts else problem.with_starts_at(problem.base)
    centre, kinds = problem.unit(problem.base), _group_kinds(problem)
    if not kinds:
        return problem.base[None]
    written = np.array([centre[columns].mean() for columns in kinds])
    draws = np.where(rng.random((NUM_TRIES, len(kinds))) < 0.5, written, rng.random((NUM_TRIES, len(kinds))))
    every, costs = np.zeros((0, len(kinds))), np.zeros(0)
    for _ in range(NUM_ROUNDS):
        found = 0.5 * np.sum(problem.residuals(_move_kinds(draws, centre, kinds)) ** 2, axis=(1, 2))
        every, costs = np.concatenate([every, draws]), np.concatenate([costs, found])
        best = every[np.argsort(costs)[:NUM_BEST]]
        about = best[rng.integers(0, len(best), NUM_TRIES // 2)]
        spread = 0.7 * best.std(axis=0) + MIN_SPREAD
        draws = np.clip(about + spread * rng.standard_normal(about.shape), 0.0, 1.0)
    return problem.rows(_move_kinds(_pick_distant(every[np.argsort(costs)], num_found), centre, kinds))


def _pick_distant(draws: Array, count: int) -> Array:
    """Returns the first of some draws, and those after it that lie apart from all before, `count` at most."""
    found = draws[:1]
    for draw in draws[1:]:
        if len(found) < count and np.abs(found - draw).max(axis=1).min() > MIN_DISTANCE:
            found = np.concatenate([found, draw[None]])
    return found


def _group_kinds(problem: FitProblem) -> list[list[int]]:
    """Returns the free parameters of each kind; offsets, which may have either sign, stay where they are."""
    found: dict[tuple[str, str], list[int]] = {}
    for k, parameter in enumerate(problem.space.parameters):
        if not parameter.low < 0 < parameter.high:
            parts = split_target(parameter.target)
            found.setdefault((parts.kind, parts.field), []).append(k)
    return list(found.values())


def _move_kinds(draws: Array, centre: Array, kinds: list[list[int]]) -> Array:
    """Returns (num_draws, num_free) units in which all parameters of a kind have the value of its draw."""
    units = np.tile(centre, (len(draws), 1))
    for number, columns in enumerate(kinds):
        units[:, columns] = draws[:, [number]]
    return units


def _descend_from_each(problem: FitProblem, starts: Array, report: Report) -> Array:
    """Returns the best of the rows that solves from some starts end at."""
    share = 1 / len(starts)
    ends = [
        descend(problem, start, SEARCH.first, report_part(report, k * share, share)) for k, start in enumerate(starts)
    ]
    return min(ends, key=problem.cost)


def _select_all_terms(
    some: FitProblem, structure: Structure, tiers: Sequence[Sequence[Columns]], report: Report, checkpoint: Checkpoint
) -> Structure:
    """Returns a structure with the terms that the logs call for, one tier after the other; see `_sort_terms`."""
    still = [group for group in tiers[0] if not set(group) <= set(structure.free)]
    for number, groups in enumerate([still, *tiers[1:]]):
        worth = SEARCH.min_term_saving if number else SEARCH.min_correction_saving
        part = report_part(report, number / 3, 1 / 3)
        select = partial(select_terms, some, structure, groups, worth, thorough=number > 0, report=part)
        structure = checkpoint.step(select)
    return structure


def _sort_terms(problem: FitProblem, groups: Sequence[Columns]) -> list[list[Columns]]:
    """Returns the terms in the order of trying: what may be wrong in the model, what it lacks, what is around it.

    What the model lacks is tried later: in a model with wrong masses much of it seems to help. How the robot stands
    comes after what belongs to the robot and goes with it. Play and lag come last, by exchange: whatever rubs looks
    like play, whatever is heavy or slow like a lag.
    """
    targets = problem.predictor.space.targets
    wrong = [group for group in groups if all(split_target(targets[k]).field.startswith(MODEL_FIELDS) for k in group)]
    swaps = groups_ending_in(problem, groups, "/lag", "/backlash")
    around = [group for group in groups if all(targets[k].startswith("world/") for k in group)]
    return [wrong, [group for group in groups if group not in (*wrong, *swaps, *around)], around]


def find_surroundings(evidence: ProjectData) -> Columns:
    """Returns the columns of how the robot stands, where these were proposed and there is anything else to fit."""
    if evidence.project.parameters != "auto":
        return ()
    found = tuple(k for k, p in enumerate(evidence.space.parameters) if p.dimension == "environment")
    return found if len(found) < len(evidence.space) else ()


def split_columns(evidence: ProjectData, episodes: Sequence[int]) -> tuple[Columns, list[Columns]]:
    """Returns the columns of what is always fitted to some episodes, and of each term that is tried.

    How the robot stands is tried, not assumed: gravity that may point anywhere explains a little of everything. What
    the project's owner lists is fitted.
    """
    space = evidence.whole
    groups = [tuple(space.index(target) for target in term.targets) for term in evidence.terms]
    tried = {column for group in groups for column in group}
    around = find_surroundings(evidence)
    runs = (None, *episodes)
    here = [k for k, p in enumerate(evidence.space.parameters) if p.run in runs]
    always = tuple(k for k in here if k not in around and k not in tried)
    return always, ([around] if around else []) + groups
