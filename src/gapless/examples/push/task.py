"""Push a puck to a goal on a table, with a tip that two servos move."""

import numpy as np

from gapless.core.protocols import Judgement, Moment, Start

REACH_M = 0.012  # how far one action moves the servos' targets: 0.3 m/s at 25 Hz
TOLERANCE_M = 0.03  # how near the goal counts
PUCK_AND_TIP_M = 0.052  # distance of the centres when they touch


class Push:
    """Bring the puck within 3 cm of the goal, and leave it there at the end."""

    duration_s = 6.0
    observation_size = 10
    action_size = 2
    phases = ("reach", "push", "settle")

    def start(self, rng: np.random.Generator, num_worlds: int) -> Start:
        """Draws where tip, puck and goal are."""
        tip = rng.uniform([-0.16, -0.05], [-0.10, 0.05], (num_worlds, 2))
        puck = np.zeros((num_worlds, 7))
        puck[:, :2] = rng.uniform([-0.03, -0.06], [0.03, 0.06], (num_worlds, 2))
        puck[:, 2], puck[:, 3] = 0.015, 1.0
        goal = rng.uniform([0.15, -0.08], [0.22, 0.08], (num_worlds, 2))
        return Start({"tip_x": tip[:, :1], "tip_y": tip[:, 1:], "puck": puck}, goal)

    def first_command(self, start: Start) -> np.ndarray:
        """Returns the servos' targets at the start: where the tip is."""
        return np.concatenate([start.positions["tip_x"], start.positions["tip_y"]], axis=1)

    def observe(self, moment: Moment) -> np.ndarray:
        """Returns where tip, puck, goal and targets are, in units of about their spread."""
        tip, puck = _points(moment)
        parts = [tip / 0.15, puck / 0.15, (moment.goal - puck) / 0.1, (puck - tip) / 0.1, (moment.command - tip) / 0.05]
        return np.concatenate(parts, axis=1)

    def command(self, action: np.ndarray, moment: Moment) -> np.ndarray:
        """Moves the servos' targets by up to 12 mm."""
        return np.clip(moment.command + REACH_M * action, -0.4, 0.4)

    def judge(self, moment: Moment, action: np.ndarray) -> Judgement:
        """Rewards a puck near the goal, and a tip behind the puck until it is there."""
        tip, puck = _points(moment)
        to_goal = moment.goal - puck
        distance = np.linalg.norm(to_goal, axis=1)
        heading = to_goal / np.maximum(distance, 1e-6)[:, None]
        behind = np.linalg.norm(tip - (puck - PUCK_AND_TIP_M * heading), axis=1)
        near = distance < TOLERANCE_M
        there = np.exp(-((distance / 0.02) ** 2))
        reward = -3.0 * distance - (1 - there) * behind + 0.4 * there - 0.01 * (action**2).sum(axis=1)
        moved = np.linalg.norm(puck - tip, axis=1) < PUCK_AND_TIP_M + 0.015
        phase = np.where(near, 2, np.where(moved, 1, 0))
        lost = np.abs(puck).max(axis=1) > 0.45
        return Judgement(reward - 5.0 * lost, near, lost, phase)


def _points(moment: Moment) -> tuple[np.ndarray, np.ndarray]:
    measured = moment.measured
    tip = np.stack([measured["tip_x"], measured["tip_y"]], axis=1)
    puck = np.stack([measured["puck_x"], measured["puck_y"]], axis=1)
    return tip, puck
