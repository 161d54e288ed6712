"""Which terms a model needs: those that lower the error on windows they were not fitted to, by more than chance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.special import ndtri, stdtr

from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Progress
from gapless.core.results import TriedTerm
from gapless.core.signal import Array
from gapless.fit.problem import FitProblem, flatten_outliers
from gapless.fit.search.config import SEARCH
from gapless.fit.slopes import COARSE_STEP, MEDIUM_STEP, slopes_ahead
from gapless.fit.solve import descend, follow_slopes

Columns = tuple[int, ...]


@dataclass(frozen=True)
class Structure:
    """The terms that were chosen."""

    free: Columns  # columns of the parameters that are fitted
    row: Array  # (num_parameters,) a whole row near the best
    tried: tuple[TriedTerm, ...]  # each term that was tried, in the order of trying, with what it saved

    def after(self, earlier: "Structure") -> "Structure":
        """Returns this one, with the terms that were tried earlier before its own; of those tried again, the last."""
        again = {term.targets for term in self.tried}
        return replace(self, tried=(*(term for term in earlier.tried if term.targets not in again), *self.tried))


def select_terms(
    problem: FitProblem,
    row: Array,
    groups: Sequence[Columns],
    *,
    worth: float,
    thorough: bool = False,
    progress: Progress | None = None,
) -> Structure:
    """Adds terms to a problem as long as they lower the error on windows that they were not fitted to.

    In each round every term is fitted to one half of the windows by one Gauss-Newton step and judged on the other
    half by real predictions, both ways round, against a step without it. All rows of a round go through two batched
    calls. Then the best term enters, or several at once where they do better together. Where none convinces, the best
    few may be solved for, since one step can be too short to tell.

    Args:
        problem: What to minimise; its free parameters are always fitted.
        row: (num_parameters,) where to begin: a solution without any of the terms.
        groups: Columns of each term; its parameters enter together.
        worth: Least share of the held-out cost that a term must save.
        thorough: Whether the most promising are solved for before all are given up.
        progress: Called with how far it is, in [0, 1].
    """
    chosen: Columns = problem.free
    left: list[Columns] = list(groups)
    last: dict[Columns, Saving] = {}
    halves = halves_of(problem)
    for number in range(SEARCH.max_rounds):
        if not left:
            break
        if progress is not None:
            progress("fit", number / SEARCH.max_rounds)
        now = replace(problem, free=chosen).weighted_at(row)
        savings = _measure_savings(now, row, left, halves, worth)
        for group, saving in zip(left, savings, strict=True):
            last[group] = saving
        best = _choose_best_terms(now, row, left, savings, halves, worth)
        if best is None and thorough:
            best = _choose_by_solving(now, row, left, savings, last, worth)
        if best is None:
            break
        chosen = tuple(sorted({*chosen, *(column for group in best for column in group)}))
        left = [group for group in left if not set(group) <= set(chosen)]
        row = descend(replace(problem, free=chosen).weighted_at(row), row, SEARCH.brief)
    space = problem.predictor.space
    kept = set(chosen)
    tried = tuple(tried_term(space, group, last[group], set(group) <= kept) for group in groups if group in last)
    return Structure(chosen, row, tried)


@dataclass(frozen=True)
class Saving:
    """What a term saves on windows that it was not fitted to: share of the cost, and in standard errors."""

    share: float
    score: float


def tried_term(space: ParameterSpace, group: Columns, saving: Saving, kept: bool) -> TriedTerm:
    """Returns the record of a term that was tried."""
    targets = tuple(space.targets[column] for column in group)
    return TriedTerm(targets, kept, float(saving.share), float(saving.score))


def halves_of(problem: FitProblem) -> NDArray[np.bool_]:
    """Returns which windows belong to the first half: every other episode, or every other block of windows."""
    tracks = np.unique(problem.windows.track)
    if len(tracks) >= 2:
        return np.isin(problem.windows.track, tracks[::2])
    return (np.arange(len(problem.windows)) // SEARCH.windows_per_block) % 2 == 0


def _choose_best_terms(
    problem: FitProblem,
    row: Array,
    left: Sequence[Columns],
    savings: Sequence[Saving],
    halves: NDArray[np.bool_],
    worth: float,
) -> list[Columns] | None:
    """Returns the term or the several terms that save most; None where none saves more than chance."""
    order = [int(k) for k in np.argsort([-saving.score for saving in savings])]
    order = [k for k in order if convinces(savings[k], worth)]
    if not order:
        return None
    best, share = [left[order[0]]], savings[order[0]].share
    unions = [[left[k] for k in order[:count]] for count in SEARCH.union_sizes if count <= len(order)]
    if len(order) not in SEARCH.union_sizes and len(order) > 1:
        unions.append([left[k] for k in order])
    if unions:
        merged = [tuple(sorted({column for group in union for column in group})) for union in unions]
        together = _measure_savings(problem, row, merged, halves, worth)
        for union, saving in zip(unions, together, strict=True):
            if convinces(saving, worth) and saving.share > share:
                best, share = union, saving.share
    return best


def convinces(saving: Saving, worth: float, score: float = SEARCH.min_score) -> bool:
    """Tells whether a saving is more than chance, and worth a term."""
    return bool(saving.score > score and saving.share > worth)


def _choose_by_solving(
    problem: FitProblem,
    row: Array,
    left: Sequence[Columns],
    savings: Sequence[Saving],
    last: dict[Columns, Saving],
    worth: float,
) -> list[Columns] | None:
    """Returns the one that saves most of the few that promise most, each solved for; notes what they save."""
    order = np.argsort([-saving.share for saving in savings])[: SEARCH.num_solved]
    few = [left[int(k)] for k in order if savings[int(k)].share > SEARCH.min_promise * worth]
    if not few:
        return None
    wide = [replace(problem, free=tuple(sorted({*problem.free, *group}))) for group in few]
    ends = [descend(one, row, SEARCH.brief) for one in wide]
    found = solve_for_savings(problem, row, list(zip(few, ends, strict=True)))
    last.update(zip(few, found, strict=True))
    convincing = [k for k in range(len(few)) if convinces(found[k], worth)]
    return [few[max(convincing, key=lambda k: found[k].share)]] if convincing else None


def solve_for_savings(
    problem: FitProblem, row: Array, candidates: Sequence[tuple[Columns, Array]], step: float = MEDIUM_STEP
) -> list[Saving]:
    """Returns what terms save on the half of the windows that they were not solved for, both ways round.

    Slopes are measured once, on all windows; each half then follows its own.

    Args:
        problem: What to minimise, as it is at `row`.
        row: (num_parameters,) a solution without any of them.
        candidates: Columns of each term, and the row that its solve begins at: nearly a solution on all windows.
        step: Finite-difference step of the slopes, as a share of the range.
    """
    halves = halves_of(problem)
    costs = np.empty((1 + len(candidates), len(halves)))
    for k, (group, start) in enumerate([((), row), *candidates]):
        wide = replace(problem, free=tuple(sorted({*problem.free, *group})), watch=None)
        unit = wide.unit(start)
        slopes = slopes_ahead(wide, unit, wide.weighted_errors(unit[None])[0], step)
        for fitted in (halves, ~halves):
            end = follow_slopes(wide.keep_windows(fitted), start, slopes[fitted])
            judge = wide.keep_windows(~fitted)
            costs[k, ~fitted] = 0.5 * np.sum(judge.residuals(judge.unit(end)[None])[0] ** 2, axis=1)
    noise = problem.noise_cost()
    return [_compare_costs(costs[0], cost, noise) for cost in costs[1:]]


def _measure_savings(
    problem: FitProblem, row: Array, groups: Sequence[Columns], halves: NDArray[np.bool_], worth: float
) -> list[Saving]:
    """Returns what each group of columns saves when it is freed along with the problem's own.

    Only those whose steps promise enough are judged by real predictions, `SEARCH.max_judged` at most; the others save
    nothing.
    """
    every = tuple(sorted({*problem.free, *(column for group in groups for column in group)}))
    wide = replace(problem, free=every)
    unit = np.clip(wide.unit(row), 0.0, 1.0)
    weighted = wide.weighted_errors(unit[None])
    residual = flatten_outliers(wide.discount(weighted))[0]
    jacobian = slopes_ahead(wide, unit, weighted[0], MEDIUM_STEP)
    place = {column: k for k, column in enumerate(every)}
    sets = [[place[c] for c in sorted({*problem.free, *group})] for group in ((), *groups)]
    steps, promised = np.zeros((2, len(sets), len(every))), np.zeros(len(sets))
    prior, pull = wide.prior, wide.unit(wide.base) - unit
    for half, windows in enumerate((halves, ~halves)):
        triangle, target, rest = _reduce_problem(jacobian[windows].reshape(-1, len(every)), residual[windows].ravel())
        for k, columns in enumerate(sets):
            step = _bounded_step(triangle[:, columns], target, unit[columns], prior[columns], pull[columns])
            steps[half, k, columns] = step
            promised[k] += rest + np.sum((target + triangle[:, columns] @ step) ** 2)  # what the step is to leave
    found = [Saving(0.0, 0.0)] * len(groups)
    excess = _excess(promised[0], 2.0 * float(wide.noise_cost().sum()))
    few = [
        0,
        *(
            int(k)
            for k in 1 + np.argsort(promised[1:])[: SEARCH.max_judged]
            if promised[0] - promised[k] > SEARCH.min_promise * worth * excess
        ),
    ]
    if len(few) == 1:
        return found
    judged = _held_out_costs(wide, unit, steps[:, few], halves)
    for k, cost in zip(few[1:], judged[1:], strict=True):
        found[k - 1] = _compare_costs(judged[0], cost, wide.noise_cost())
    return found


def _held_out_costs(problem: FitProblem, unit: Array, steps: Array, halves: NDArray[np.bool_]) -> Array:
    """Returns costs per window after steps that were fitted to the other half, (num_sets, num_windows)."""
    num_sets = steps.shape[1]
    trial = unit + np.concatenate([length * steps for length in SEARCH.step_lengths]).reshape(-1, len(unit))
    cost = 0.5 * np.sum(problem.residuals(np.clip(trial, 0.0, 1.0)) ** 2, axis=2)
    cost = cost.reshape(len(SEARCH.step_lengths), 2, num_sets, -1)  # step length, half fitted to, set, window
    judged = np.empty((num_sets, len(halves)))
    for half, fitted in enumerate((halves, ~halves)):
        length = np.argmin(cost[:, half][:, :, fitted].sum(axis=2), axis=0)
        judged[:, ~fitted] = cost[length, half, np.arange(num_sets)][:, ~fitted]
    return judged


def _bounded_step(jacobian: Array, residual: Array, unit: Array, prior: Array, pull: Array) -> Array:
    """Returns the Gauss-Newton step within bounds and within twice `COARSE_STEP` of the range, (num_columns,).

    Args:
        jacobian: (num_rows, num_columns).
        residual: (num_rows,).
        unit: (num_columns,) where it begins.
        prior: (num_columns,) weight of the distance from nominal.
        pull: (num_columns,) the way to nominal.
    """
    matrix = np.concatenate([jacobian, np.diag(prior)])
    target = np.concatenate([-residual, prior * pull])
    low = np.maximum(-unit, -2 * COARSE_STEP)
    high = np.minimum(1.0 - unit, 2 * COARSE_STEP)
    return lsq_linear(matrix, target, (low - 1e-9, high + 1e-9), method="bvls").x


def _reduce_problem(matrix: Array, target: Array) -> tuple[Array, Array, float]:
    """Returns a square problem with the same solution, by QR decomposition, and the squares that no solution saves."""
    both: Array = np.asarray(np.linalg.qr(np.concatenate([matrix, target[:, None]], axis=1), mode="r"))
    count = matrix.shape[1]
    return both[:count, :-1], both[:count, -1], float(np.sum(both[count:, -1] ** 2))


def _compare_costs(without: Array, with_it: Array, noise: Array) -> Saving:
    """Compares costs per window: the share saved of what noise does not explain, and how sure that is.

    The score compares roots of the costs, so that a few violent windows do not decide it, and lets neighbouring
    windows count together, as their errors do.
    """
    share = float((without - with_it).sum() / _excess(float(without.sum()), float(noise.sum())))
    difference = np.sqrt(without) - np.sqrt(with_it)
    count = len(difference) // SEARCH.windows_per_block * SEARCH.windows_per_block
    blocks = (
        difference[:count].reshape(-1, SEARCH.windows_per_block).sum(axis=1)
        if count >= 4 * SEARCH.windows_per_block
        else difference
    )
    error = float(np.std(blocks, ddof=1)) * np.sqrt(len(blocks))
    return Saving(share, _as_normal(float(blocks.sum() / max(error, 1e-12)), len(blocks) - 1))


def training_saving(problem: FitProblem, cost: float, before: float) -> Saving:
    """Returns what a cost on the very windows that it was fitted to saves: a hint, since chance does as much."""
    return Saving((before - cost) / _excess(before, float(problem.noise_cost().sum())), 0.0)


def _excess(cost: float, noise: float) -> float:
    """Returns what of a cost noise does not explain; a tenth of it at least, since noise is known no better."""
    return max(cost - noise, 0.1 * cost, 1e-12)


def _as_normal(score: float, freedom: int) -> float:
    """Returns the normal score that is as unlikely as one of Student's t: few blocks are often far off together."""
    tail = max(float(stdtr(max(freedom, 1), -abs(score))), 1e-300)
    return -np.sign(score) * float(ndtri(tail))
