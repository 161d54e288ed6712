"""Motions of the robots that play reality in `diagnose.py`: families of smooth curves within [-1, 1].

Test cases move in two families that tuning never sees.
"""

from collections.abc import Callable

import numpy as np
from scipy.interpolate import CubicSpline

from gapless.core.signal import Array

TUNING = ("multisine", "steps", "smooth")
TEST = (*TUNING, "chirp", "moves")


def multisine(rng: np.random.Generator, times_s: Array, fastest_hz: float) -> Array:
    """Returns a sum of five sines."""
    rates = 2 * np.pi * rng.uniform(0.12 * fastest_hz, fastest_hz, 5)
    waves = np.sin(rates * times_s[:, None] + rng.uniform(0, 2 * np.pi, 5)) @ rng.uniform(0.3, 1.0, 5)
    return waves / np.abs(waves).max()


def steps(rng: np.random.Generator, times_s: Array, fastest_hz: float) -> Array:
    """Returns levels that are held, with quick changes between."""
    return _levels(rng, times_s, move_s=0.35 / fastest_hz, hold_s=(0.3 / fastest_hz, 0.8 / fastest_hz))


def moves(rng: np.random.Generator, times_s: Array, fastest_hz: float) -> Array:
    """Returns slow moves from point to point, with short rests."""
    return _levels(rng, times_s, move_s=0.9 / fastest_hz, hold_s=(0.1 / fastest_hz, 0.4 / fastest_hz))


def smooth(rng: np.random.Generator, times_s: Array, fastest_hz: float) -> Array:
    """Returns a spline through random points."""
    knots = np.arange(-1.0, times_s[-1] + 2.0, 0.7 / fastest_hz)
    return np.clip(CubicSpline(knots, rng.uniform(-0.9, 0.9, len(knots)))(times_s), -1.2, 1.2)


def chirp(rng: np.random.Generator, times_s: Array, fastest_hz: float) -> Array:
    """Returns a sine that becomes faster, or slower, about a level that wanders."""
    ends_hz = fastest_hz * np.array([0.2, 1.2])
    first, last = ends_hz if rng.random() < 0.7 else ends_hz[::-1]
    share = times_s / times_s[-1]
    phase = 2 * np.pi * times_s * (first + (last - first) * share / 2) + rng.uniform(0, 2 * np.pi)
    return 0.6 * np.sin(phase) + 0.4 * np.sin(np.pi * share * rng.uniform(0.5, 1.5) + rng.uniform(0, 2 * np.pi))


def _levels(rng: np.random.Generator, times_s: Array, move_s: float, hold_s: tuple[float, float]) -> Array:
    """Returns minimum-jerk moves between random levels: s = 10 u^3 - 15 u^4 + 6 u^5."""
    value, begins_s, last = np.zeros(len(times_s)), rng.uniform(*hold_s), rng.uniform(-0.9, 0.9)
    value += last
    while begins_s < times_s[-1]:
        goal = rng.uniform(-1.0, 1.0)
        goal = goal if abs(goal - last) > 0.4 else -np.sign(last or 1.0) * rng.uniform(0.4, 1.0)
        part = np.clip((times_s - begins_s) / (move_s * rng.uniform(0.8, 1.3)), 0.0, 1.0)
        value += (goal - last) * part**3 * (10 - 15 * part + 6 * part**2)
        begins_s, last = begins_s + 1.3 * move_s + rng.uniform(*hold_s), goal
    return value


FAMILIES: dict[str, Callable[[np.random.Generator, Array, float], Array]] = {
    family.__name__: family for family in (multisine, steps, smooth, chirp, moves)
}


def curves(family: str, rng: np.random.Generator, times_s: Array, num_curves: int, fastest_hz: float) -> Array:
    """Returns some curves of one family, (num_times, num_curves) [1]."""
    return np.stack([FAMILIES[family](rng, times_s, fastest_hz) for _ in range(num_curves)], axis=1)


def families(split: str, rng: np.random.Generator, num_episodes: int) -> list[str]:
    """Returns the family of each episode of a case: as many different ones as the split has."""
    known = TEST if split == "test" else TUNING
    order = [known[k] for k in rng.permutation(len(known))]
    return [order[k % len(order)] for k in range(num_episodes)]
