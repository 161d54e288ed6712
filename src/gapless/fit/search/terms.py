"""Which terms a model needs: those that lower the error on windows they were not fitted to, by more than chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from scipy.special import ndtri, stdtr

from gapless.core.parameters import ParameterSpace
from gapless.core.results import TriedTerm
from gapless.core.signal import Array
from gapless.fit.problem import FitProblem, flatten_outliers
from gapless.fit.search.config import SEARCH
from gapless.fit.slopes import COARSE_STEP, MEDIUM_STEP, slopes_ahead
from gapless.fit.solve import Report, descend, follow_slopes, ignore_progress

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
    structure: Structure,
    groups: Sequence[Columns],
    worth: float,
    *,
    thorough: bool = False,
    report: Report = ignore_progress,
) -> Structure:
    """Adds terms to a structure as long as they lower the error on windows that they were not fitted to.

    In each round every term is fitted to one half of the windows by one Gauss-Newton step and judged on the other
    half by real predictions, both ways round, against a step without it. All rows of a round go through two batched
    calls. Then the best term enters, or several at once where they do better together. Where none convinces, the best
    few may be solved for, since one step can be too short to tell.

    Args:
        problem: What to minimise.
        structure: What is fitted in any case, and where to begin: a solution without any of the terms.
        groups: Columns of each term; its parameters enter together.
        worth: Least share of the held-out cost that a term must save.
        thorough: Whether the most promising are solved for before all are given up.
        report: Called with how far it is.
    """
    chosen, row = structure.free, structure.row
    left: list[Columns] = list(groups)
    last: dict[Columns, Saving] = {}
    for number in range(SEARCH.max_rounds):
        if not left:
            break
        report(number / SEARCH.max_rounds)
        now = replace(problem, free=chosen).weighted_at(row)
        savings = _measure_savings(now, row, left, worth)
        last |= savings
        best = _choose_best_terms(now, row, savings, worth)
        if not best and thorough:
            solved = _solve_most_promising(now, row, savings, worth)
            last |= solved
            convincing = [group for group, saving in solved.items() if convinces(saving, worth)]
            best = sorted(convincing, key=lambda group: -solved[group].share)[:1]
        if not best:
            break
        chosen = tuple(sorted({*chosen, *(column for group in best for column in group)}))
        left = [group for group in left if not set(group) <= set(chosen)]
        row = descend(replace(problem, free=chosen).weighted_at(row), row, SEARCH.brief)
    space, kept = problem.predictor.space, set(chosen)
    tried = tuple(tried_term(space, group, last[group], set(group) <= kept) for group in groups if group in last)
    return Structure(chosen, row, tried).after(structure)


@dataclass(frozen=True)
class Saving:
    """What a term saves on windows that it was not fitted to: share of the cost, and in standard errors."""

    share: float
    score: float


def tried_term(space: ParameterSpace, group: Columns, saving: Saving, kept: bool) -> TriedTerm:
    """Returns the record of a term that was tried."""
    targets = tuple(space.targets[column] for column in group)
    return TriedTerm(targets, kept, float(saving.share), float(saving.score))


def convinces(saving: Saving, worth: float, score: float = SEARCH.min_score) -> bool:
    """Tells whether a saving is more than chance, and worth a term."""
    return bool(saving.score > score and saving.share > worth)


def _halve_windows(problem: FitProblem) -> NDArray[np.bool_]:
    """Returns which windows belong to the first half: every other episode, or every other block of windows."""
    tracks = np.unique(problem.windows.track)
    if len(tracks) >= 2:
        return np.isin(problem.windows.track, tracks[::2])
    return (np.arange(len(problem.windows)) // SEARCH.windows_per_block) % 2 == 0


def _choose_best_terms(
    problem: FitProblem, row: Array, savings: Mapping[Columns, Saving], worth: float
) -> list[Columns]:
    """Returns the term or the several terms that save most; none where none saves more than chance."""
    order = sorted((g for g in savings if convinces(savings[g], worth)), key=lambda g: -savings[g].score)
    best, share = order[:1], savings[order[0]].share if order else 0.0
    sizes = sorted({*(size for size in SEARCH.union_sizes if size <= len(order)), len(order)} - {0, 1})
    if sizes:
        unions = {tuple(sorted({c for group in order[:size] for c in group})): order[:size] for size in sizes}
        for union, saving in _measure_savings(problem, row, list(unions), worth).items():
            if convinces(saving, worth) and saving.share > share:
                best, share = unions[union], saving.share
    return best


def _solve_most_promising(
    problem: FitProblem, row: Array, savings: Mapping[Columns, Saving], worth: float
) -> dict[Columns, Saving]:
    """Returns what the few terms that promise most save when they are solved for."""
    order = sorted(savings, key=lambda group: -savings[group].share)[: SEARCH.num_solved]
    few = [group for group in order if savings[group].share > SEARCH.min_promise * worth]
    ends = {group: descend(problem.with_free(group), row, SEARCH.brief) for group in few}
    return solve_for_savings(problem, row, ends)


def solve_for_savings(
    problem: FitProblem, row: Array, starts: Mapping[Columns, Array], step: float = MEDIUM_STEP
) -> dict[Columns, Saving]:
    """Returns what terms save on the half of the windows that they were not solved for, both ways round.

    Slopes are measured once, on all windows, by finite differences of `step`; each half then follows its own. `row` is
    a solution without any of them; each has a row that its solve `starts` at, nearly a solution on all windows.
    """
    if not starts:
        return {}
    halves, noise = _halve_windows(problem), problem.noise_cost()
    costs: list[Array] = []
    for group, start in [((), row), *starts.items()]:
        wide = replace(problem.with_free(group), watch=None)
        unit, cost = wide.unit(start), np.empty(len(halves))
        slopes = slopes_ahead(wide, unit, wide.weighted_errors(unit[None])[0], step)
        for fitted in (halves, ~halves):
            end = follow_slopes(wide.keep_windows(fitted), start, slopes[fitted])
            judge = wide.keep_windows(~fitted)
            cost[~fitted] = 0.5 * np.sum(judge.residuals(judge.unit(end)[None])[0] ** 2, axis=1)
        costs.append(cost)
    return {group: _compare_costs(costs[0], cost, noise) for group, cost in zip(starts, costs[1:], strict=True)}


def _measure_savings(problem: FitProblem, row: Array, groups: Sequence[Columns], worth: float) -> dict[Columns, Saving]:
    """Returns what each group of columns saves when it is freed along with the problem's own.

    Only those whose steps promise enough are judged by real predictions, `SEARCH.max_judged` at most; the others save
    nothing.
    """
    wide, halves = problem.with_free(column for group in groups for column in group), _halve_windows(problem)
    unit, every = wide.unit(row), wide.free
    weighted = wide.weighted_errors(unit[None])
    residual = flatten_outliers(wide.discount(weighted))[0]
    jacobian = slopes_ahead(wide, unit, weighted[0], MEDIUM_STEP)
    sets = [[every.index(column) for column in problem.with_free(group).free] for group in ((), *groups)]
    steps, promised = np.zeros((2, len(sets), len(every))), np.zeros(len(sets))
    prior, pull = wide.prior, wide.unit(wide.base) - unit
    for half, windows in enumerate((halves, ~halves)):
        triangle, target, rest = _reduce_problem(jacobian[windows].reshape(-1, len(every)), residual[windows].ravel())
        for k, columns in enumerate(sets):
            step = _bounded_step(triangle[:, columns], target, unit[columns], prior[columns], pull[columns])
            steps[half, k, columns] = step
            promised[k] += rest + np.sum((target + triangle[:, columns] @ step) ** 2)  # what the step is to leave
    found, noise = dict.fromkeys(groups, Saving(0.0, 0.0)), wide.noise_cost()
    least = SEARCH.min_promise * worth * _excess(promised[0], 2.0 * float(noise.sum()))
    few = [int(k) for k in 1 + np.argsort(promised[1:])[: SEARCH.max_judged] if promised[0] - promised[k] > least]
    if few:
        without, *judged = _held_out_costs(wide, unit, steps[:, [0, *few]], halves)
        found |= {groups[k - 1]: _compare_costs(without, cost, noise) for k, cost in zip(few, judged, strict=True)}
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

    It begins at `unit`; `prior` weighs the distance from nominal, and `pull` is the way there, (num_columns,) each.
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
    windows count together, as their errors do. It is the normal score that is as unlikely as that of Student's t: few
    blocks are often far off together.
    """
    share = float((without - with_it).sum() / _excess(float(without.sum()), float(noise.sum())))
    difference = np.sqrt(without) - np.sqrt(with_it)
    count = len(difference) // SEARCH.windows_per_block * SEARCH.windows_per_block
    enough = count >= 4 * SEARCH.windows_per_block
    blocks = difference[:count].reshape(-1, SEARCH.windows_per_block).sum(axis=1) if enough else difference
    error = float(np.std(blocks, ddof=1)) * np.sqrt(len(blocks))
    score = float(blocks.sum() / max(error, 1e-12))
    tail = max(float(stdtr(max(len(blocks) - 1, 1), -abs(score))), 1e-300)
    return Saving(share, -np.sign(score) * float(ndtri(tail)))


def training_saving(problem: FitProblem, cost: float, before: float) -> Saving:
    """Returns what a cost on the very windows that it was fitted to saves: a hint, since chance does as much."""
    return Saving((before - cost) / _excess(before, float(problem.noise_cost().sum())), 0.0)


def _excess(cost: float, noise: float) -> float:
    """Returns what of a cost noise does not explain; a tenth of it at least, since noise is known no better."""
    return max(cost - noise, 0.1 * cost, 1e-12)
