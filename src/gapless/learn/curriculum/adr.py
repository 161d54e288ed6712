"""Automatic domain randomisation: a box that grows where the policy succeeds at its walls.

After ADR (OpenAI: Solving Rubik's Cube with a robot hand, 2019): the box begins as a point; in half of the runs one
parameter, drawn at random, is set to one of its walls; when a wall has seen enough runs, it moves out if the policy
did well there and in if it did badly.

Differences: performance is the share of runs that succeed; walls move by a share of the way that is open to them, so
that parameters of all sizes grow alike.
"""

import numpy as np

from gapless.core.distribution import Distribution, Range
from gapless.core.signal import Array, Flags
from gapless.learn.curriculum.growth import GrowthLimits

WALL_SHARE = 0.5  # share of runs with one parameter at a wall
MIN_RUNS_AT_WALL = 10  # before it moves
OUT_FROM, IN_FROM = 0.8, 0.5  # success from which a wall moves out, and down to which it moves in
STEP_SHARE = 0.1  # of the way from the start to the limit


class Adr:
    """A box in [0, 1] of each parameter's limits. A `Curriculum`."""

    def __init__(self, limits: Distribution) -> None:
        """Begins as a point."""
        self._limits = GrowthLimits.of(limits)
        start = self._limits.start
        self._walls = np.stack([start, start])  # (2, num_ranges): lower, upper
        self._outcomes: list[list[list[bool]]] = [[[] for _ in start] for _ in range(2)]

    @property
    def distribution(self) -> Distribution:
        """The box as even ranges."""
        low, high = self._limits.low + (self._limits.high - self._limits.low) * self._walls
        reason = "grown while the policy did well"
        ranges = [
            Range(item.target, "uniform", float(a), float(b), float((a + b) / 2), reason=reason)
            for item, a, b in zip(self._limits.ranges, low, high, strict=True)
        ]
        return self._limits.with_ranges(ranges)

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Returns rows inside the box, half of them with one parameter at a wall."""
        lower, upper = self._walls
        unit = rng.uniform(lower, upper, (count, len(lower)))
        at_wall = np.flatnonzero(rng.random(count) < WALL_SHARE)
        which = rng.integers(0, len(lower), len(at_wall)) if len(lower) else at_wall[:0]
        side = rng.integers(0, 2, len(at_wall))
        if len(lower):
            unit[at_wall, which] = self._walls[side, which]
        return self._limits.rows(unit, rng)

    def record_outcomes(self, rows: Array, success: Flags) -> None:
        """Takes note of runs that had one parameter at a wall; while both walls are one, the run counts for both."""
        unit = self._limits.unit(rows)
        for row, won in zip(unit, success, strict=True):
            for side in range(2):
                for k in np.flatnonzero(np.abs(row - self._walls[side]) < 1e-9):
                    self._outcomes[side][int(k)].append(bool(won))

    def advance(self) -> None:
        """Moves each wall that has seen enough runs."""
        for side in range(2):
            limit = float(side)
            for k, start in enumerate(self._limits.start):
                outcomes = self._outcomes[side][k]
                if len(outcomes) < MIN_RUNS_AT_WALL:
                    continue
                success, step = float(np.mean(outcomes)), STEP_SHARE * (limit - start)
                move = step if success >= OUT_FROM else -step if success <= IN_FROM else 0.0
                low, high = sorted((float(start), limit))
                self._walls[side, k] = np.clip(self._walls[side, k] + move, low, high)
                outcomes.clear()

    def restore(self, distribution: Distribution) -> None:
        """Goes on from the box of ranges."""
        own, span = self._limits.find_own(distribution), self._limits.high - self._limits.low
        ends = np.array([[item.low for item in own], [item.high for item in own]])
        self._walls = np.clip((ends - self._limits.low) / span, 0.0, 1.0)
