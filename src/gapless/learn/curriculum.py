"""Curricula: ranges that grow from their centre with the policy's ability while it trains.

Ranges that are correlated do not grow: they come from evidence that knows them only together, and a curriculum that
moved each by itself would go where success is easy and reality cannot be (strong motors on light arms).

`adr`, after ADR (OpenAI: Solving Rubik's Cube with a robot hand, 2019), is a box that begins as a point. In half of the
runs one parameter, drawn at random, is set to one of its walls; when a wall has seen enough runs, it moves out if the
policy did well there and in if it did badly. Differences: performance is the share of runs that succeed; walls move by
a share of the way that is open to them, so that parameters of all sizes grow alike.

`max-entropy`, after DORAEMON (Tiboni and others: Domain randomization via entropy maximization, ICLR 2024), has a beta
distribution per parameter. After a number of runs they move to those of greatest entropy for which the success rate,
estimated from these runs by importance weights, stays above a target, at most a given KL divergence away; if there are
none, they move to those of greatest success instead. Differences: importance weights are divided by their sum (less
scatter, a small bias); the solver is SLSQP, in double precision: in single precision the divergence of near
distributions comes out below 0 and nothing moves; shapes are stepped in by factors. `shape`, (num, 2), holds a and b of
each beta distribution.
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from scipy.optimize import minimize
from scipy.special import betaln, digamma

from gapless.core.distribution import Distribution, Range
from gapless.core.signal import Array, Flags

Name = Literal["none", "adr", "max-entropy"]
CURRICULA: tuple[Name, ...] = get_args(Name)
WALL_SHARE = 0.5  # adr: share of runs with one parameter at a wall
MIN_RUNS_AT_WALL = 10  # before it moves
OUT_FROM, IN_FROM = 0.8, 0.5  # success from which a wall moves out, and down to which it moves in
STEP_SHARE = 0.1  # of the way from the start to the limit
MIN_SUCCESS = 0.7  # max-entropy: success rate to keep
MAX_DIVERGENCE = 0.5  # that the distributions move at a time [nat]
MIN_RUNS = 100  # between moves
START_SIZE = 60.0  # a + b at the start: a standard deviation of 6 % of the limits in the middle
MIN_SHAPE, MAX_SHAPE = 0.9, 500.0  # of a and b; 1 and 1 is even
EDGE = 1e-3  # points this near the limits count as here: densities there may be infinite


def make_curriculum(name: Name, limits: Distribution) -> "Curriculum | None":
    """Returns a curriculum that begins at the centre of ranges and may grow to their ends; None for `none`.

    A parameter begins at the `mean` of its range; those of `uniform` kinds begin at the model's own value.
    """
    if name == "none":
        return None
    return Adr(limits) if name == "adr" else MaxEntropy(limits)


class Curriculum(ABC):
    """Draws the rows of runs, learns how they ended, and moves its ranges between rollouts.

    Ranges that may grow are numbers in [0, 1] of what each may span, (num_ranges,). `state` says how far they have
    grown; who keeps it can go on from there.
    """

    state: Array
    _min_runs = 1  # before `_move` is called

    def __init__(self, limits: Distribution) -> None:
        """Reads ranges; bells begin at their centre, even ranges at the model's own value if it lies inside."""
        correlated = {target for pair in limits.correlations for target in (pair.first, pair.second)}
        self._growing = [item for item in limits.ranges if item.high > item.low and item.target not in correlated]
        self._columns = [limits.space.index(item.target) for item in self._growing]
        self._low, high, centre = (
            np.array([getattr(item, name) for item in self._growing]) for name in ("low", "high", "mean")
        )
        self._span = high - self._low
        even = np.array([item.kind in ("uniform", "log-uniform") for item in self._growing], dtype=bool)
        begin = np.clip(np.where(even, limits.space.nominal[self._columns], centre), self._low, high)
        self._start: Array = (begin - self._low) / self._span
        # drawn as they are: single values, and ranges that are correlated
        self._held = replace(limits, ranges=tuple(item for item in limits.ranges if item not in self._growing))
        self._runs: list[tuple[Array, Flags]] = []  # where runs were, in [0, 1], and which succeeded

    @property
    def distribution(self) -> Distribution:
        """What is trained on now."""
        return replace(self._held, ranges=(*self._held.ranges, *self._grown_ranges()))

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Returns rows to train in, (count, num_parameters)."""
        rows = self._held.sample(rng, count)
        rows[:, self._columns] = self._low + self._span * self._draw_unit(rng, count)
        return rows

    def record_outcomes(self, rows: Array, success: Flags) -> None:
        """Takes note of how runs in these rows ended, (num_runs, num_parameters) and (num_runs,)."""
        unit = np.clip((rows[:, self._columns] - self._low) / self._span, 0.0, 1.0)
        self._runs.append((unit, np.asarray(success, dtype=bool)))

    def advance(self) -> None:
        """Moves the ranges, if enough runs ended since they moved last; called after each rollout."""
        if self._growing and sum(len(won) for _, won in self._runs) >= self._min_runs:
            self._move(*(np.concatenate(parts) for parts in zip(*self._runs, strict=True)))
            self._runs.clear()

    @abstractmethod
    def _grown_ranges(self) -> list[Range]:
        """Returns the ranges that may grow, as they are now."""

    @abstractmethod
    def _draw_unit(self, rng: np.random.Generator, count: int) -> Array:
        """Returns numbers in [0, 1], (count, num_ranges)."""

    @abstractmethod
    def _move(self, unit: Array, won: Flags) -> None:
        """Moves the ranges after runs at numbers in [0, 1], (num_runs, num_ranges) and (num_runs,)."""


class Adr(Curriculum):
    """A box that grows where the policy succeeds at its walls; its state is these: lower and upper, (2, num_ranges)."""

    def __init__(self, limits: Distribution) -> None:
        """Begins as a point."""
        super().__init__(limits)
        self.state = np.stack([self._start, self._start])
        self._num_runs, self._num_won = np.zeros_like(self.state), np.zeros_like(self.state)  # at each wall

    def _grown_ranges(self) -> list[Range]:
        ends = zip(self._growing, *(self._low + self._span * self.state).tolist(), strict=True)
        reason = "grown while the policy did well"
        return [Range(r.target, "uniform", low, high, (low + high) / 2, reason=reason) for r, low, high in ends]

    def _draw_unit(self, rng: np.random.Generator, count: int) -> Array:
        """Returns points inside the box, half of them with one parameter at a wall."""
        num_ranges = len(self._start)
        unit = rng.uniform(self.state[0], self.state[1], (count, num_ranges))
        if num_ranges:
            at_wall = np.flatnonzero(rng.random(count) < WALL_SHARE)
            which, side = rng.integers(0, num_ranges, len(at_wall)), rng.integers(0, 2, len(at_wall))
            unit[at_wall, which] = self.state[side, which]
        return unit

    def _move(self, unit: Array, won: Flags) -> None:
        """Moves each wall that has seen enough runs; while both walls are one, a run there counts for both."""
        at_wall = np.abs(unit[:, None] - self.state) < 1e-9
        self._num_runs += at_wall.sum(axis=0)
        self._num_won += at_wall[won].sum(axis=0)
        ready = self._num_runs >= MIN_RUNS_AT_WALL
        success = self._num_won / np.maximum(self._num_runs, 1)
        direction = np.where(success >= OUT_FROM, 1.0, np.where(success <= IN_FROM, -1.0, 0.0))
        step = STEP_SHARE * (np.array([[0.0], [1.0]]) - self._start)
        lower, upper = self.state + np.where(ready, direction * step, 0.0)
        self.state = np.stack([np.clip(lower, 0.0, self._start), np.clip(upper, self._start, 1.0)])
        self._num_runs[ready] = self._num_won[ready] = 0.0


class MaxEntropy(Curriculum):
    """Beta distributions on each parameter's limits, as wide as success allows; its state is their shape."""

    _min_runs = MIN_RUNS

    def __init__(self, limits: Distribution) -> None:
        """Begins narrow."""
        super().__init__(limits)
        mean = np.clip(self._start, 1.2 / START_SIZE, 1 - 1.2 / START_SIZE)
        self.state = START_SIZE * np.stack([mean, 1 - mean], axis=1)

    def _grown_ranges(self) -> list[Range]:
        size = self.state.sum(axis=1)
        mean = self.state[:, 0] / size
        std = np.sqrt(mean * (1 - mean) / (size + 1))
        reason = "grown as far as success allows"
        return [
            Range(r.target, "beta", r.low, r.high, float(r.low + w * m), float(w * s), reason)
            for r, m, s, w in zip(self._growing, mean, std, self._span, strict=True)
        ]

    def _draw_unit(self, rng: np.random.Generator, count: int) -> Array:
        a, b = self.state.T
        return rng.beta(a, b, (count, len(self.state)))

    def _move(self, unit: Array, won: Flags) -> None:
        """Moves the distributions. Runs that began before the last move count as of now."""
        self.state = move_shapes(self.state, np.clip(unit, EDGE, 1 - EDGE), won.astype(np.float64))


def log_density(shape: Array, points: Array) -> Array:
    """Returns the log density of points inside (0, 1), (num_points, num); (num_points,)."""
    a, b = shape.T
    return np.sum((a - 1) * np.log(points) + (b - 1) * np.log1p(-points) - betaln(a, b), axis=1)


def divergence(shape: Array, other: Array) -> float:
    """Returns KL(shape || other) [nat], at least 0; from the even distribution (1, 1) it is the entropy times -1."""
    (a, b), (c, d) = shape.T, other.T
    terms = betaln(c, d) - betaln(a, b) + (a - c) * digamma(a) + (b - d) * digamma(b)
    return float((terms + (c - a + d - b) * digamma(a + b)).sum())


def success_rate(shape: Array, old: Array, points: Array, won: Array) -> float:
    """Returns the success rate under other distributions, from runs under `old`.

    sum w s / sum w with w = density / old density, self-normalised.
    """
    log_weight = log_density(shape, points) - log_density(old, points)
    weight = np.exp(log_weight - log_weight.max())
    return float(weight @ won / weight.sum())


def move_shapes(old: Array, points: Array, won: Array) -> Array:
    """Returns the shapes, (num, 2), that a step moves to, after runs at (num_runs, num) points, won (1) or lost (0).

    The solver steps in logarithms of shapes, flat.
    """

    def shape_of(logs: Array) -> Array:
        return np.exp(logs).reshape(-1, 2)

    def minus_entropy(logs: Array) -> float:
        return divergence(shape_of(logs), np.ones_like(old))

    def minus_success(logs: Array) -> float:
        return -success_rate(shape_of(logs), old, points, won)

    near = {"type": "ineq", "fun": lambda logs: MAX_DIVERGENCE - divergence(shape_of(logs), old)}
    good = {"type": "ineq", "fun": lambda logs: -minus_success(logs) - MIN_SUCCESS}
    start = np.log(np.clip(old, MIN_SHAPE, MAX_SHAPE)).ravel()
    options = {"bounds": [(np.log(MIN_SHAPE), np.log(MAX_SHAPE))] * len(start), "options": {"maxiter": 50}}
    for goal, constraints in ((minus_entropy, [near, good]), (minus_success, [near])):
        found = minimize(goal, start, constraints=constraints, method="SLSQP", **options)
        if np.isfinite(found.x).all() and all(item["fun"](found.x) > -1e-3 for item in constraints):
            return shape_of(found.x)
    return old
