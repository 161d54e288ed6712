"""Take a parcel from a person's hand, with an arm of two joints and a suction cup."""

import numpy as np

from gapless.core.protocols import Judgement, Moment, Start

LINK_M = 0.33  # length of each link
STEP_M = 0.008  # how far one action moves the cup's target: 0.2 m/s at 25 Hz
ASK_M = 0.35  # how far the hand is asked to come
CUP_M = 0.018  # radius of the cup
HALF_M = 0.045  # half of the parcel's front
OUT_M = 0.06  # a parcel this far out of the hand is taken
BUMPED_M = -0.025  # a parcel pushed this far into the hand was met too early
TUGGED_M = 0.05  # a cup this far behind its target pulls too hard


class Handover:
    """Wait for the hand, put the cup on the parcel, draw it out, and hold it at the end."""

    duration_s = 6.0
    observation_size = 10
    action_size = 2
    phases = ("wait", "grasp", "pull")

    def start(self, rng: np.random.Generator, num_worlds: int) -> Start:
        """Draws where the cup is, and at which side and angle the hand will come."""
        cup = rng.uniform([0.22, -0.08], [0.30, 0.08], (num_worlds, 2))
        angles = angles_of(cup)
        hand_y = rng.uniform(-0.06, 0.06, (num_worlds, 1))
        hand_yaw = rng.uniform(-0.2, 0.2, (num_worlds, 1))
        positions = {"shoulder": angles[:, :1], "elbow": angles[:, 1:], "hand_y": hand_y, "hand_yaw": hand_yaw}
        return Start(positions, np.zeros((num_worlds, 0)))

    def first_command(self, start: Start) -> np.ndarray:
        """Returns the command at the start: stay, suck nothing, ask for nothing."""
        arm = np.concatenate([start.positions["shoulder"], start.positions["elbow"]], axis=1)
        return np.concatenate([arm, np.zeros((len(arm), 2))], axis=1)

    def observe(self, moment: Moment) -> np.ndarray:
        """Returns where cup, parcel and hand are, in units of about their spread."""
        cup, parcel = points(moment)
        measured = moment.measured
        parts = [
            (cup - [0.4, 0.0]) / 0.1,
            (parcel - cup) / 0.1,
            (cup_of(moment.command) - cup) / 0.02,
            (measured["hand_x"][:, None] - 0.2) / 0.15,
            measured["hand_yaw"][:, None] / 0.2,
            measured["parcel_out"][:, None] / 0.03,
            np.exp(-((parcel - cup) ** 2).sum(axis=1, keepdims=True) / 0.02**2),
        ]
        return np.concatenate(parts, axis=1)

    def command(self, action: np.ndarray, moment: Moment) -> np.ndarray:
        """Moves the cup's target by up to 8 mm, sucks, and asks for the parcel."""
        arm = angles_of(cup_of(moment.command) + STEP_M * action[:, :2])
        return np.concatenate([arm, np.tile([1.0, ASK_M], (len(arm), 1))], axis=1)

    def judge(self, moment: Moment, action: np.ndarray) -> Judgement:
        """Rewards a cup on the parcel and a parcel out of the hand; a bump and a tug are failures."""
        cup, parcel = points(moment)
        out = moment.measured["parcel_out"]
        distance = np.linalg.norm(parcel - cup, axis=1)
        on = _is_on(cup - parcel, moment.measured["hand_yaw"])
        behind = cup - cup_of(moment.command)
        bumped, tugged = out < BUMPED_M, np.linalg.norm(behind, axis=1) > TUGGED_M
        success = on & (out > OUT_M)
        pull = np.where(success, 0.5, np.clip(behind[:, 0] / TUGGED_M, -0.5, 0.5))
        taken = np.clip(out / OUT_M, -0.5, 1.0) - 5.0 * np.clip(out - 2 * OUT_M, 0.0, 0.2)
        reward = 0.3 * np.exp(-distance / 0.1) + on * (0.2 + 0.3 * pull + taken + success)
        reward -= 0.01 * (action**2).sum(axis=1)
        failed = bumped | tugged
        phase = np.where(bumped, 0, np.where(tugged | (out > 0.01), 2, np.where(on, 1, 0)))
        return Judgement(reward - 10.0 * failed, success, failed, phase)


def cup_of(angles: np.ndarray) -> np.ndarray:
    """Returns where the cup is for the angles of shoulder and elbow, (num_worlds, 2) [m]."""
    shoulder, both = angles[:, 0], angles[:, 0] + angles[:, 1]
    return LINK_M * np.stack([np.cos(shoulder) + np.cos(both), np.sin(shoulder) + np.sin(both)], axis=1)


def angles_of(cup: np.ndarray) -> np.ndarray:
    """Returns the angles that bring the cup to a place, or as near as the arm reaches, (num_worlds, 2) [rad]."""
    distance = np.clip(np.linalg.norm(cup, axis=1), 0.1, 1.99 * LINK_M)
    elbow = 2 * np.arccos(distance / (2 * LINK_M))
    return np.stack([np.arctan2(cup[:, 1], cup[:, 0]) - elbow / 2, elbow], axis=1)


def _is_on(off: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Whether the cup is on the parcel's front: less than 1 cm from it, and no nearer than 1 cm to its edges."""
    ahead = off[:, 0] * np.cos(yaw) + off[:, 1] * np.sin(yaw)
    aside = off[:, 1] * np.cos(yaw) - off[:, 0] * np.sin(yaw)
    return (np.abs(ahead) < 0.01) & (np.abs(aside) < HALF_M - 0.01)


def points(moment: Moment) -> tuple[np.ndarray, np.ndarray]:
    """Returns where the cup is, and where it would sit on the middle of the parcel's front, (num_worlds, 2) [m]."""
    measured = moment.measured
    cup = cup_of(np.stack([measured["q_shoulder"], measured["q_elbow"]], axis=1))
    ahead = measured["parcel_out"] + 0.105 + CUP_M
    x = 0.95 - measured["hand_x"] - ahead * np.cos(measured["hand_yaw"])
    y = measured["hand_y"] - ahead * np.sin(measured["hand_yaw"])
    return cup, np.stack([x, y], axis=1)
