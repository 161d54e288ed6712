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
from gapless.fit.prediction.windows import Windows
from gapless.fit.problem import FitProblem
from gapless.fit.remainder.motion import Motion, count_pieces, follow_motion, force_responses
from gapless.fit.remainder.shapes import Place, Shape, list_shapes
from gapless.fit.slopes import FINE_STEP
from gapless.signals.smoother import smooth
from gapless.sim.auto import moving_joints
from gapless.sim.targets.drive import free_joint_of

WINDOW_S = 0.3  # length of the windows that are explained [s], about
MAX_WINDOWS, GROUP_WINDOWS = 120, 4  # that are explained at most; those that follow each other at least
NUM_FOLDS = 5
FOLD_WINDOWS = 2  # windows that follow each other and are held out together
VALUES_PER_WINDOW = 3.0  # independent values of a window's residuals, about: they go wrong together
WAVES_PER_S = 20.0  # of residuals that are kept, besides the first four
RIDGE = 1e-3  # on factors, as a share of their information
MAX_WINDOW_WEIGHT = 3.0  # times the median error: worse windows count as that much
MIN_LEFT = 1.5  # sum of squares in multiples of that of noise, below which nothing is left to explain
MIN_SHARE = 0.05  # of the remaining error: less is not worth a parameter
MAX_FORMS = 3  # that are named, each beside those before it
LEVEL, NUM_RESAMPLES = 0.95, 400  # of the interval of a share, windows drawn with replacement
TEST_LEVEL = 0.995  # at which a share must exceed 0: some forty hypotheses are tried
MIN_PHASE_RATIO, MIN_PHASE_WINDOWS = 3.0, 4  # explained error in windows of a phase beside that of the others


def explain_remainder(problem: FitProblem, row: Array) -> tuple[RemainderForm, ...]:
    """Returns what the error that remains under a fitted row is a function of, the largest share first.

    Empty where nothing above noise is left, or nothing that is tried explains a significant part of it. Costs about
    as much as two iterations of a fit with a parameter per piece of a window and degree of freedom.

    Args:
        problem: Windows and predictor; its free parameters are those that were fitted.
        row: (num_parameters,) the whole row that was fitted.
    """
    if not len(problem.windows):
        return ()
    remainder, found, known = gather_remainder(problem, row), list[RemainderForm](), list[Array]()
    excess: Array | None = None
    while len(found) < MAX_FORMS and remainder.places:
        judge = Judge(remainder, known)
        if judge.before.sum() < MIN_LEFT * remainder.noise:
            break
        excess = judge.before - remainder.noise / len(judge.before) if excess is None else excess
        judged = [one for place in remainder.places for one in judge.judge_place(place)]
        best = min(judged, key=lambda one: float(one.left.sum()))
        gain = judge.before - best.left
        share, surely = _share_of(gain, excess)
        if share.value < MIN_SHARE or surely <= 0.0:
            break
        found.append(_describe_form(remainder.motion, best, gain, share))
        known.append(judge.respond(best.place, best.shape))
    return tuple(sorted(found, key=lambda form: -form.share.value))


def _share_of(gain: Array, excess: Array) -> tuple[Interval, float]:
    """Returns the share of an error that is explained, and its lower end at `TEST_LEVEL`; windows are resampled.

    `gain` and `excess` are what is explained, and what there was above noise, of each window: sums of squares.
    """
    drawn = np.random.default_rng(0).integers(len(gain), size=(NUM_RESAMPLES, len(gain)))
    shares = gain[drawn].sum(axis=1) / np.maximum(excess[drawn].sum(axis=1), 1e-9)
    low, high, surely = np.quantile(shares, [0.5 - LEVEL / 2, 0.5 + LEVEL / 2, 1.0 - TEST_LEVEL])
    value = float(np.clip(gain.sum() / max(float(excess.sum()), 1e-9), 0.0, 1.0))
    ends = min(value, max(0.0, float(low))), max(value, min(1.0, float(high)))
    return Interval(value, *ends, LEVEL, len(gain), "bootstrap over held-out windows"), float(surely)


def _describe_form(motion: Motion, judged: "Judged", gain: Array, share: Interval) -> RemainderForm:
    place, shape = judged.place, judged.shape
    phase, target = _find_phase(motion, place, gain), shape.target
    text = f"{place.kind} {place.name}: {shape.words}, a function of {shape.variable}, would explain {share.percent()}"
    text += " of what remains above noise" + ("" if phase == "throughout" else f", most of it {phase}")
    each = " with `per: run`" if shape.variable == "run" else ""
    text += f"; try `{target}`{each}" if target else "; no parameter has this form"
    kind = "joint" if place.kind == "joint" else "body"
    return RemainderForm(kind, place.name, shape.variable, shape.words, phase, share, target, text)


def _find_phase(motion: Motion, place: Place, gain: Array) -> str:
    """Returns when the explained error shows, from windows in which it is much larger than in others."""
    speed = np.linalg.norm(motion.velocity[..., place.dofs], axis=-1)
    effort = np.linalg.norm(motion.effort[..., place.dofs], axis=-1)
    phases = {
        "in contact": motion.touching[..., place.body].mean(axis=1) > 0.5,
        "near standstill": speed.min(axis=1) < 0.1 * np.sqrt(np.mean(speed**2)),
        "at high effort": effort.mean(axis=1) > 1.3 * max(float(np.sqrt(np.mean(effort**2))), 1e-9),
    }
    ratios: dict[str, float] = {}
    for name, inside in phases.items():
        if min(inside.sum(), (~inside).sum()) >= MIN_PHASE_WINDOWS:
            ratios[name] = float(gain[inside].mean() / max(float(gain[~inside].mean()), 1e-9))
    name = max(ratios, key=lambda one: ratios[one], default="throughout")
    return name if ratios.get(name, 0.0) > MIN_PHASE_RATIO else "throughout"


@dataclass(frozen=True)
class Remainder:
    """Windows, what is left of them, and what forces and parameters would change."""

    windows: Windows  # of about `WINDOW_S`
    motion: Motion  # of the robot in them
    places: tuple[Place, ...]  # where forces may be lacking
    residual: Array  # (num_windows, num_per_window) in units of noise, starts discounted, in slow waves over a window
    slopes: Array  # (num_windows, num_per_window, num_free) of the fitted parameters
    prior: Array  # (num_free,) weight of each parameter's distance from the fit
    responses: dict[int, Array]  # degree of freedom -> (num_windows, num_pieces, num_per_window) of forces
    fold: Array  # (num_windows,) which windows are held out together
    noise: float  # sum of squares that noise alone would leave
    weight: Array  # (num_windows,) by which all of a window's values are multiplied: less than 1 for far worse ones


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


def shorten_windows(problem: FitProblem) -> Windows:
    """Returns windows of about `WINDOW_S` that cover those of a problem: forces add up to first order in short ones.

    Starts within a window are smoothed from its readings. At most `MAX_WINDOWS`, in groups that follow each other.
    """
    windows, project = problem.windows, problem.predictor.blueprint.project
    count = max(1, round(windows.num_steps / (WINDOW_S * project.rate_hz)))
    num_steps, num_past = windows.num_steps // count, windows.history.shape[1]
    if count > 1:
        value, slope = _smooth_readings(windows, project.rate_hz)
        past = np.concatenate([windows.history, windows.commands], axis=1)
        parts: list[Windows] = []
        for first in range(0, num_steps * count, num_steps):
            part = replace(
                windows,
                commands=windows.commands[:, first : first + num_steps],
                history=past[:, first : first + num_past],
                measured=windows.measured[:, first : first + num_steps + 1],
                first_row=windows.first_row + first,
                **({"start": value[:, first], "slope": slope[:, first]} if first else {}),
            )
            known = np.isfinite(part.measured[:, [0, -1]]).all(axis=(1, 2))
            parts.append(part.pick(np.flatnonzero(known)))
        names = ("commands", "history", "measured", "start", "slope", "track", "first_row")
        windows = replace(parts[0], **{n: np.concatenate([getattr(part, n) for part in parts]) for n in names})
    order = np.lexsort((windows.first_row, windows.track))
    if len(order) > MAX_WINDOWS:
        groups = np.array_split(order, len(order) // GROUP_WINDOWS)
        chosen = np.linspace(0, len(groups) - 1, MAX_WINDOWS // GROUP_WINDOWS).astype(np.intp)
        order = np.concatenate([groups[k] for k in chosen])
    return windows.pick(order)


def _smooth_readings(windows: Windows, rate_hz: float) -> tuple[Array, Array]:
    """Returns the readings of windows without their noise, gaps bridged, and their slopes [unit/s]."""
    value, slope = np.zeros((2, *windows.measured.shape))
    rows = np.arange(windows.measured.shape[1])
    for window, column in np.ndindex(value.shape[0], value.shape[2]):
        readings = windows.measured[window, :, column]
        known = np.isfinite(readings)
        if known.any():
            found = smooth(np.interp(rows, rows[known], readings[known]), rate_hz, float(windows.noise[column]))
            value[window, :, column], slope[window, :, column] = found.value, found.slope
    return value, slope


def gather_remainder(problem: FitProblem, row: Array) -> Remainder:
    """Returns what remains of windows under a row, and what forces at each place would change."""
    predictor, windows = problem.predictor, shorten_windows(problem)
    problem = replace(problem.on_windows(windows), sigma=windows.noise, coupling=None).with_starts_at(row)
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
        windows=windows,
        motion=motion,
        places=places,
        residual=residual * weight,
        slopes=np.moveaxis(compress(changes), 0, -1) * weight[..., None] / steps,
        prior=problem.prior,
        responses={dof: each * weight[:, None] for dof, each in zip(dofs, responses, strict=True)},
        fold=fold,
        noise=float(np.sum(compress.noise() * weight[:, 0] ** 2)),
        weight=weight[:, 0],
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
        each = np.einsum("tc,mn->cmtn", self._waves, np.eye(num_columns))
        each = np.repeat(each.reshape(-1, 1, self._waves.shape[0] * num_columns), len(windows), axis=1)
        known = np.isfinite(windows.measured[:, 1:]).reshape(len(windows), -1)
        return np.sum(self._problem.discount(each) ** 2 * known, axis=(0, 2))


def _weigh_windows(residual: Array) -> Array:
    """Returns the weight of each window: 1, and less for those that are far worse than most."""
    size = np.sqrt(np.mean(residual**2, axis=1))
    return np.minimum(1.0, MAX_WINDOW_WEIGHT * float(np.median(size)) / np.maximum(size, 1e-12))


class Judge:
    """Fits shapes beside the parameters on most windows, and judges them on the others."""

    def __init__(self, remainder: Remainder, known: Sequence[Array] = ()) -> None:
        """Prepares the fits; `known` are responses, (num_windows, num_per_window, any), of what is explained."""
        self.remainder = remainder
        slopes = np.concatenate([remainder.slopes, *known], axis=2)
        prior = np.concatenate([remainder.prior**2, *(_ridge(one) for one in known)])
        self._slopes, self._flat = slopes, slopes.reshape(-1, slopes.shape[2])
        self._train = np.array([remainder.fold != k for k in range(NUM_FOLDS + 1)], dtype=float)  # the last: all
        self._inverse = np.linalg.inv(self._sum(slopes, slopes) + np.diag(prior + 1e-9))
        self._alone = np.matmul(self._inverse, self._sum(slopes, remainder.residual[..., None]))
        left = remainder.residual[..., None] - self._fit(self._flat, self._alone)
        self.before = self._leave(left)[0]  # (num_windows,) sum of squares of each held-out window
        self.left = left[..., -1]  # (num_windows, num_per_window) what parameters leave that are fitted to all windows

    def respond(self, place: Place, shape: Shape) -> Array:
        """Returns what the forces of a shape do to the residuals, (num_windows, num_per_window, num_factors)."""
        found = np.zeros((*self.remainder.residual.shape, shape.forces.shape[-1]))
        for number, dof in enumerate(place.dofs):
            found += np.matmul(self.remainder.responses[dof].transpose(0, 2, 1), shape.forces[:, :, number])
        return found / np.maximum(np.sqrt(np.mean(found**2, axis=(0, 1))), 1e-12)

    def try_shape(self, response: Array) -> tuple[Array, Array]:
        """Returns what a shape leaves of held-out windows, (num_windows,), and of those it is fitted to, per fold."""
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
        """Returns slopes times the factors of each fold, (num_windows, num_per_window, num_folds)."""
        return (flat @ factors[..., 0].T).reshape(*self.remainder.residual.shape, -1)

    def _leave(self, left: Array) -> tuple[Array, Array]:
        """Returns sums of squares of held-out windows, (num_windows,), and of the others in each fold."""
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
