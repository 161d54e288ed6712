"""Who moves the robots of `diagnose.py`: open loop, by feedback from readings, or by looking at the box.

A pilot is called once per control interval with the row's number, the readings of that moment (in the order of the
robot's columns) and the true place of the box; it returns the commands, (num_commands,).
"""

from collections.abc import Callable

import gap_motions
import numpy as np

from gapless.core.signal import Array

Pilot = Callable[[int, Array, Array], Array]
"""(row, readings, true x, y, yaw of the box) -> commands."""

ARM_MIDDLE, ARM_REACH = np.array([0.0, -0.35, 0.9]), np.array([0.9, 0.55, 0.65])  # rad
UPPER_M, FORE_M, WALL_M = 0.3, 0.28, 0.34  # of the torque arm; the finger touches the wall there
BOX_ROUND_M = 0.125  # a circle around the box that the tip moves on without touching it


def follow(rng: np.random.Generator, family: str, times_s: Array) -> Pilot:
    """Returns the pilot of the free arm: servo targets, whatever happens."""
    goals = ARM_MIDDLE + ARM_REACH * gap_motions.curves(family, rng, times_s, 3, 0.8)
    return lambda row, readings, box: goals[row]


def swing(rng: np.random.Generator, family: str, times_s: Array) -> Pilot:
    """Returns the pilot of the cart: a force that brings it after a moving place, and so swings the pole."""
    rate_hz, reach_m = 1 / (times_s[1] - times_s[0]), rng.uniform(0.3, 0.45)
    goals = reach_m * gap_motions.curves(family, rng, times_s, 1, 1.1)[:, 0]
    wanted = np.gradient(np.gradient(goals)) * rate_hz**2
    past = {"place": np.nan, "speed": 0.0}

    def force(row: int, readings: Array, box: Array) -> Array:
        step = 0.0 if np.isnan(past["place"]) else (readings[0] - past["place"]) * rate_hz
        past["place"], past["speed"] = readings[0], 0.6 * past["speed"] + 0.4 * step
        wish = 14.0 * (goals[row] - readings[0]) - 5.0 * past["speed"] + 0.9 * wanted[row]
        return np.clip([wish], -8.0, 8.0)

    return force


def press(rng: np.random.Generator, family: str, times_s: Array) -> Pilot:
    """Returns the pilot of the torque arm: it moves before a wall, and now and then leans on it and slides along."""
    free = gap_motions.curves(family, rng, times_s, 2, 0.9)
    leaning = np.zeros(len(times_s))
    for start_s in (rng.uniform(0.6, 1.4), rng.uniform(2.8, 3.6)):
        into = np.clip((times_s - start_s) / 0.5, 0, 1) * np.clip(
            (start_s + rng.uniform(1.6, 2.1) - times_s) / 0.5, 0, 1
        )
        leaning = np.maximum(leaning, into**2 * (3 - 2 * into))
    goals_x = (1 - leaning) * (0.22 + 0.08 * free[:, 0]) + leaning * (WALL_M + rng.uniform(0.04, 0.08))
    goals = _joints(goals_x, -0.34 + 0.12 * free[:, 1])

    def torque(row: int, readings: Array, box: Array) -> Array:
        angles, speeds = readings[:2], readings[2:]
        return np.array([9.0, 3.5]) * (goals[row] - angles) - np.array([1.3, 0.33]) * speeds + _weight(angles)

    return torque


def _joints(x: Array, z: Array) -> Array:
    """Returns the angles that bring the finger to a point, (num_points, 2): the law of cosines, elbow behind."""
    square = np.minimum(x**2 + z**2, (0.995 * (UPPER_M + FORE_M)) ** 2)
    elbow = np.arccos(np.clip((square - UPPER_M**2 - FORE_M**2) / (2 * UPPER_M * FORE_M), -1, 1))
    shoulder = np.arctan2(x, -z) - np.arctan2(FORE_M * np.sin(elbow), UPPER_M + FORE_M * np.cos(elbow))
    return np.stack([shoulder, elbow], axis=1)


def _weight(angles: Array) -> Array:
    """Returns the torques that carry the links as the model has them."""
    fore = 9.81 * (0.5 * FORE_M / 2 + 0.1 * FORE_M) * np.sin(angles.sum())
    return np.array([9.81 * UPPER_M * (0.9 / 2 + 0.6) * np.sin(angles[0]) + fore, fore])


def push(rng: np.random.Generator, family: str, times_s: Array) -> Pilot:
    """Returns the pilot of the pusher, who sees where the box is: go around it, push it, draw back, again."""
    period_s, pending, last = float(times_s[1] - times_s[0]), [], np.full(2, np.nan)

    def target(row: int, readings: Array, box: Array) -> Array:
        if np.isnan(last[0]):
            last[:] = readings[:2]
        if not pending:
            pending.extend(_next_push(rng, family, last.copy(), box, period_s))
        last[:] = pending.pop(0)
        return last.copy()

    return target


def _next_push(rng: np.random.Generator, family: str, tip: Array, box: Array, period_s: float) -> list[Array]:
    """Returns targets from where the tip is to behind the box, through a push, and back from the box."""
    place, far = box[:2], np.linalg.norm(box[:2])
    turn = np.arctan2(-place[1], -place[0]) + rng.uniform(-0.6, 0.6) if far > 0.08 else rng.uniform(-np.pi, np.pi)
    ahead = np.array([np.cos(turn), np.sin(turn)])
    aside = rng.uniform(-0.025, 0.025) * np.array([-ahead[1], ahead[0]])
    way = _around(tip, place, np.arctan2(-ahead[1], -ahead[0]))
    behind = way[-1] + aside
    length_m = BOX_ROUND_M - 0.06 + rng.uniform(0.05, 0.12)
    found = _along(np.array([*way, behind]), 0.6, period_s)
    found += [behind + ahead * length_m * share for share in _profile(rng, family, length_m, period_s)]
    end = found[-1]
    return found + _along(np.array([end, end - 0.05 * ahead]), 0.5, period_s)


def _profile(rng: np.random.Generator, family: str, length_m: float, period_s: float) -> Array:
    """Returns how far a push is, from 0 to 1: each family has its own speed over time."""
    speed = rng.uniform(0.15, 0.3) if family in ("smooth", "moves") else rng.uniform(0.3, 0.5)
    num = max(4, int(length_m / speed / period_s))
    part = np.arange(1, num + 1) / num
    if family in ("steps", "moves"):
        return part  # at one speed, and a sudden end
    if family == "chirp":
        return np.clip(part + 0.06 * np.sin(2 * np.pi * (2 * part + 2 * part**2)), 0, None)
    return part**3 * (10 - 15 * part + 6 * part**2)


def _around(tip: Array, place: Array, goal_angle: float) -> list[Array]:
    """Returns points from the tip to the circle around the box, and along it to an angle."""
    from_box = tip - place
    angle = np.arctan2(from_box[1], from_box[0])
    sweep = (goal_angle - angle + np.pi) % (2 * np.pi) - np.pi
    angles = angle + sweep * np.linspace(0, 1, 2 + int(abs(sweep) / 0.3))
    return [tip, *(place + BOX_ROUND_M * np.array([np.cos(a), np.sin(a)]) for a in angles)]


def _along(points: Array, speed: float, period_s: float) -> list[Array]:
    """Returns targets along a polyline at one speed [m/s]."""
    gaps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    keep = np.r_[True, gaps > 1e-6]
    points, far = points[keep], np.r_[0.0, np.cumsum(gaps[gaps > 1e-6])]
    if len(points) < 2:
        return [points[0]]
    at = np.arange(1, max(2, int(far[-1] / speed / period_s)) + 1) * speed * period_s
    return [
        np.array([np.interp(d, far, points[:, 0]), np.interp(d, far, points[:, 1])]) for d in np.minimum(at, far[-1])
    ]
