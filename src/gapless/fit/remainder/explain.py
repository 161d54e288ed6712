"""What remains after a fit, and which variable at which joint or body would explain it.

Errors that a force f(t) makes are, to first order, e = G f + J d: G is what forces do to the readings, J what the
fitted parameters do, which have taken up what they could and give it back. Each hypothesis is fitted to four fifths of
the windows and judged on the others, its shape chosen anew each time, so that a flexible one pays for what it frees.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.interval import Interval
from gapless.core.results import RemainderForm
from gapless.core.signal import Array
from gapless.fit.prediction.predict import Predictor
from gapless.fit.problem import FitProblem
from gapless.fit.remainder.motion import Motion, count_pieces, follow_motion, force_responses
from gapless.fit.remainder.shapes import Place, Shape, list_shapes
from gapless.fit.slopes import FINE_STEP
from gapless.sim.auto import moving_joints
from gapless.sim.targets.drive import free_joint_of

NUM_FOLDS = 5
FOLD_WINDOWS = 2  # windows that follow each other and are held out together
VALUES_PER_WINDOW = 3.0  # independent values of a window's residuals, about: they go wrong together
WAVES_PER_S = 20.0  # of residuals that are kept, besides the first four
RIDGE = 1e-3  # on factors, as a share of their information
MAX_WINDOW_WEIGHT = 3.0  # times the median error: worse windows count as that much


@dataclass(frozen=True)
class Remainder:
    """Windows, what is left of them, and what forces and parameters would change."""

    motion: Motion
    places: tuple[Place, ...]
    residual: Array  # (num_windows, num_per_window) in units of noise, starts discounted, in slow waves over a window
    slopes: Array  # (num_windows, num_per_window, num_free) of the fitted parameters
    prior: Array  # (num_free,) weight of each parameter's distance from the fit
    responses: dict[int, Array]  # degree of freedom -> (num_windows, num_pieces, num_per_window) of forces
    fold: Array  # (num_windows,) which windows are held out together
    noise: float  # sum of squares that noise alone would leave


@dataclass(frozen=True)
class Judged:
    """A variable at a place."""

    place: Place
    shape: Shape  # the best on all windows
    left: Array  # (num_windows,) sum of squares that it leaves of each held-out window


def list_places(predictor: Predictor) -> tuple[Place, ...]:
    """Returns the joints and free bodies that are measured, or driven."""
    project, model = predictor.blueprint.project, predictor.blueprint.model
    found: list[Place] = []
    for name in moving_joints(project, model):
        joint = model.joint(name)
        where = (int(joint.dofadr[0]),), (int(joint.qposadr[0]),)
        found.append(Place("joint", name, *where, int(model.jnt_bodyid[joint.id])))
    for name in dict.fromkeys(item.name for item in project.measurements if item.element == "body"):
        number = model.body(name).id
        joint = free_joint_of(model, number)
        if joint is not None:
            dof, address = int(model.jnt_dofadr[joint]), int(model.jnt_qposadr[joint])
            found.append(Place("body", name, (dof, dof + 1, dof + 5), (address, address + 1), number))
    return tuple(found)


def gather_remainder(problem: FitProblem, row: Array) -> Remainder:
    """Returns what remains of windows under a row, and what forces at each place would change."""
    predictor, windows = problem.predictor, problem.windows
    problem = replace(problem, sigma=windows.noise, coupling=None).with_starts_at(row)
    places = list_places(predictor)
    dofs = sorted({dof for place in places for dof in place.dofs})
    num_pieces = count_pieces(windows, predictor.blueprint.project.rate_hz, len(dofs))
    motion = follow_motion(predictor, windows, row, num_pieces)
    unit = problem.unit(row)
    weighted = problem.weighted_errors(unit[None])[0]
    steps = np.where(unit + FINE_STEP <= 1.0, FINE_STEP, -FINE_STEP)
    changes = problem.weighted_changes(unit, weighted, steps) if len(unit) else np.zeros((0, *weighted.shape))
    known = np.isfinite(windows.measured[:, None, 1:])
    pushed = np.where(known, force_responses(predictor, windows, row, motion, dofs) / problem.sigma, 0.0)
    compress = _Compressor(problem)
    residual = compress(weighted[None])[0]
    responses = compress(np.moveaxis(pushed, 2, 1).reshape(len(dofs) * num_pieces, len(windows), -1))
    responses = np.moveaxis(responses.reshape(len(dofs), num_pieces, *residual.shape), 1, 2)
    weight = _weigh_windows(residual)[:, None]
    order = np.lexsort((windows.first_row, windows.track))
    fold = np.empty(len(windows), np.intp)
    fold[order] = np.arange(len(windows)) // FOLD_WINDOWS % NUM_FOLDS
    return Remainder(
        motion=motion,
        places=places,
        residual=residual * weight,
        slopes=np.moveaxis(compress(changes), 0, -1) * weight[..., None] / steps,
        prior=problem.prior,
        responses={dof: each * weight[:, None] for dof, each in zip(dofs, responses, strict=True)},
        fold=fold,
        noise=float(np.sum(compress.noise() * weight[:, 0] ** 2)),
    )


class _Compressor:
    """Discounts errors of the start states, and keeps the slow waves of what is left: forces show in no others."""

    def __init__(self, problem: FitProblem) -> None:
        num_steps, rate_hz = problem.windows.num_steps, problem.predictor.blueprint.project.rate_hz
        count = min(num_steps, 4 + round(WAVES_PER_S * num_steps / rate_hz))
        phase = np.pi * (np.arange(num_steps) + 0.5) / num_steps
        waves = np.cos(phase[:, None] * np.arange(count))
        self._waves, self._problem = waves / np.linalg.norm(waves, axis=0), problem

    def __call__(self, weighted: Array) -> Array:
        """Returns weighted errors, (any, num_windows, num_steps * num_measurements), as (any, num_windows, fewer)."""
        num, num_windows = weighted.shape[:2]
        left = self._problem.discount(weighted).reshape(num, num_windows, len(self._waves), -1)
        return np.moveaxis(np.tensordot(left, self._waves, axes=(2, 0)), 2, 3).reshape(num, num_windows, -1)

    def noise(self) -> Array:
        """Returns the sum of squares that noise alone would leave of each window, (num_windows,)."""
        windows, num_columns = self._problem.windows, len(self._problem.sigma)
        each = np.einsum("tc,mn->cmtn", self._waves, np.eye(num_columns)).reshape(-1, 1, self._waves.shape[0] * num_columns)
        known = np.isfinite(windows.measured[:, 1:]).reshape(len(windows), -1)
        return np.sum(self._problem.discount(np.repeat(each, len(windows), axis=1)) ** 2 * known, axis=(0, 2))


def _weigh_windows(residual: Array) -> Array:
    """Returns the weight of each window: 1, and less for those that are far worse than most."""
    size = np.sqrt(np.mean(residual**2, axis=1))
    return np.minimum(1.0, MAX_WINDOW_WEIGHT * float(np.median(size)) / np.maximum(size, 1e-12))


class Judge:
    """Fits shapes beside the parameters on most windows, and judges them on the others."""

    def __init__(self, remainder: Remainder, known: Sequence[Array] = ()) -> None:
        """Prepares the fits. `known` are responses, (num_windows, num_per_window, any), of what is explained already."""
        self.remainder = remainder
        slopes = np.concatenate([remainder.slopes, *known], axis=2)
        prior = np.concatenate([remainder.prior**2, *(_ridge(one) for one in known)])
        self._slopes, self._flat = slopes, slopes.reshape(-1, slopes.shape[2])
        self._train = np.array([remainder.fold != k for k in range(NUM_FOLDS + 1)], dtype=float)  # the last: all
        self._inverse = np.linalg.inv(self._sum(slopes, slopes) + np.diag(prior + 1e-9))
        self._alone = np.matmul(self._inverse, self._sum(slopes, remainder.residual[..., None]))
        self.before = self._leave(remainder.residual[..., None] - self._fit(self._flat, self._alone))[0]

    def respond(self, place: Place, shape: Shape) -> Array:
        """Returns what the forces of a shape do to the residuals, (num_windows, num_per_window, num_factors)."""
        found = np.zeros((*self.remainder.residual.shape, shape.forces.shape[-1]))
        for number, dof in enumerate(place.dofs):
            found += np.matmul(self.remainder.responses[dof].transpose(0, 2, 1), shape.forces[:, :, number])
        return found / np.maximum(np.sqrt(np.mean(found**2, axis=(0, 1))), 1e-12)

    def try_shape(self, response: Array) -> tuple[Array, Array]:
        """Returns what a shape leaves of each held-out window, (num_windows,), and of those it was fitted to, per fold."""
        cross = self._sum(self._slopes, response)
        own = self._sum(response, response) + np.diag(_ridge(response))
        right = self._sum(response, self.remainder.residual[..., None])
        solved = np.matmul(self._inverse, cross)
        schur = own - np.matmul(cross.transpose(0, 2, 1), solved)
        factors = np.linalg.solve(schur, right - np.matmul(cross.transpose(0, 2, 1), self._alone))
        fitted = self._fit(self._flat, self._alone - np.matmul(solved, factors))
        fitted += self._fit(response.reshape(-1, response.shape[2]), factors)
        return self._leave(self.remainder.residual[..., None] - fitted)

    def _sum(self, one: Array, other: Array) -> Array:
        """Returns the sum over the windows of each fold of products of two, (num_folds, any, any)."""
        each = np.matmul(one.transpose(0, 2, 1), other)
        return (self._train @ each.reshape(len(each), -1)).reshape(-1, *each.shape[1:])

    def _fit(self, flat: Array, factors: Array) -> Array:
        """Returns what factors of each fold, (num_folds, any, 1), make of slopes: (num_windows, num_per_window, folds)."""
        return (flat @ factors[..., 0].T).reshape(*self.remainder.residual.shape, -1)

    def _leave(self, left: Array) -> tuple[Array, Array]:
        """Returns sums of squares of windows that were held out, (num_windows,), and of those that were not, per fold."""
        squares = np.einsum("wnf,wnf->wf", left, left)
        return squares[np.arange(len(squares)), self.remainder.fold], np.sum(squares.T * self._train, axis=1)

    def judge_place(self, place: Place) -> list[Judged]:
        """Returns each variable at a place, by the shape that fits best in each fold."""
        best: dict[str, tuple[Array, Array, list[Shape | None]]] = {}
        count = VALUES_PER_WINDOW * self._train.sum(axis=1)
        for shape in list_shapes(self.remainder.motion, place):
            held, fitted = self.try_shape(self.respond(place, shape))
            price = count * np.log(np.maximum(fitted, 1e-12)) + 2.0 * shape.forces.shape[-1]
            if shape.variable not in best:
                best[shape.variable] = np.full(len(price), np.inf), np.zeros_like(held), [None]
            prices, left, chosen = best[shape.variable]
            better = price < prices
            prices[better] = price[better]
            mine = better[self.remainder.fold]
            left[mine] = held[mine]
            if better[-1]:
                chosen[0] = shape
        return [Judged(place, chosen[0], left) for _, left, chosen in best.values() if chosen[0] is not None]


def _ridge(response: Array) -> Array:
    return RIDGE * np.sum(response**2, axis=(0, 1)) + 1e-9
