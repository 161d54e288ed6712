"""The real sets: which logs are fitted, which are scored and how, what the peer does, and what the bars are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import floors
import mujoco
import numpy as np
import score
import sets
from score import Run, Score

Say = Callable[[str], None]


@dataclass(frozen=True)
class Case:
    """One real set."""

    name: str
    title: str
    fitted: Sequence
    """Logs to fit: names of motions or paths."""
    held: Sequence
    """Logs to score."""
    joints: tuple[str, ...]
    """Scored joints."""
    units: tuple[str, ...]
    """Unit of each joint's error."""
    window_s: float
    """Length of the scored windows [s]; 0: each run once, open-loop from its first sample."""
    project: Callable[[Path, Sequence], Path]
    """Makes the project folder of some logs."""
    read: Callable[..., Run]
    """Reads a log as it is scored."""
    fit_peer: Callable[[Sequence, Say], object]
    """Fits the peer on some logs; returns its `peer.Fit`."""
    floor: Callable[[mujoco.MjModel, dict[str, float], list[Run]], np.ndarray]
    """The error that no model gets below, per joint, given the best model that there is."""
    floor_means: str
    to_stock: float | None
    """Bar: mean error as a share of the stock model's; None where there is none."""
    to_peer: float
    """Bar: error as a share of the peer's."""
    every_joint: bool
    """Whether the bar against the peer holds for every joint, or for their mean."""
    limit_rounds: int
    """How often the class limit is polished on the scored number, `limit.ROUND_ITERS` steps each."""
    notes: tuple[str, ...] = ()
    later_s: float = 0.0
    """Windows that start after this are scored on their own as well [s]; 0: none."""

    def held_runs(self) -> list[Run]:
        """Returns the logs that are scored."""
        return [self.read(item) for item in self.held]

    def score(self, model: mujoco.MjModel, biases: dict[str, float], runs: list[Run]) -> Score:
        """Returns the errors of a plain MuJoCo model, which knows nothing of how it was found."""
        if self.window_s == 0:
            return score.score_so101(model, biases, runs)
        return score.score_windows(model, biases, runs, self.window_s)

    def score_later(self, model: mujoco.MjModel, biases: dict[str, float], runs: list[Run]) -> Score:
        """Returns the errors of windows that start after `later_s`."""
        return score.score_windows(model, biases, runs, self.window_s, after_s=self.later_s)

    def one_number(self, rmse: np.ndarray, stock: np.ndarray) -> float:
        """Returns one error for all joints: their mean, or the mean share of the stock's where units differ."""
        return float(np.mean(rmse if len(set(self.units)) == 1 else rmse / stock))

    @property
    def one_number_means(self) -> str:
        """What `one_number` is, as the label of a row."""
        return f"mean [{self.units[0]}]" if len(set(self.units)) == 1 else "mean of error / stock [1]"


def _fit_so101(logs: Sequence, say: Say) -> object:
    import peer_so101  # here and below: only who runs the peer needs its extra

    return peer_so101.fit(list(logs), say)


def _fit_pendulum(name: str, logs: Sequence, say: Say) -> object:
    import peer_pendulum

    fit = peer_pendulum.fit_qube if name == "qube" else peer_pendulum.fit_cartpole
    return fit(list(logs), say)


def so101() -> Case:
    """Fitted on every fourth motion; the first 40 s of the others, open-loop from their first sample."""
    motions = sets.so101_motions()
    return Case(
        name="so101",
        title="SO-101 arm: motions not fitted, first 40 s open-loop from the first sample; mean over runs of the RMSE",
        fitted=motions[::4],
        held=[name for name in motions if name not in motions[::4]],
        joints=score.SO101_SCORED,
        units=("rad",) * 5,
        window_s=0.0,
        project=sets.so101,
        read=score.so101_run,
        fit_peer=_fit_so101,
        floor=lambda model, biases, runs: floors.quantisation_floor(score.SO101_QUANTUM),
        floor_means="rounding of the readings alone (no motion was repeated)",
        to_stock=0.43,
        to_peer=0.85,
        every_joint=False,
        limit_rounds=1,
        notes=("The peer fits the first 40 s of each motion, ours is given whole logs and picks windows itself.",),
    )


def qube() -> Case:
    """Fitted on chirps; swing-ups up to the catch, in windows of 0.5 s."""
    return Case(
        name="qube",
        title="Qube: swing-ups up to the catch in windows of 0.5 s, fitted on chirps; RMSE over all windows",
        fitted=sets.runs("qube", "qq_chrip*"),
        held=sets.runs("qube", "qq-su*"),
        joints=score.QUBE_JOINTS,
        units=("rad", "rad"),
        window_s=0.5,
        project=sets.qube,
        read=score.qube_run,
        fit_peer=partial(_fit_pendulum, "qube"),
        floor=lambda model, biases, runs: floors.start_floor(model, biases, runs, score.QUBE_QUANTUM),
        floor_means="start states and rounding (the class limit plays the robot and predicts its own rounded readings)",
        to_stock=None,
        to_peer=0.85,
        every_joint=True,
        limit_rounds=4,
    )


def cartpole() -> Case:
    """Fitted on three repeats of each chirp; the other two, in windows of 0.5 s."""
    runs = sets.runs("cartpole", "qcp*")
    fitted = runs[:3] + runs[5:8]
    return Case(
        name="cartpole",
        title="Cart-pole: repeats of the chirps that were not fitted, in windows of 0.5 s; RMSE over all windows",
        fitted=fitted,
        held=[path for path in runs if path not in fitted],
        joints=score.CARTPOLE_JOINTS,
        units=("m", "rad"),
        window_s=0.5,
        project=sets.cartpole,
        read=score.cartpole_run,
        fit_peer=partial(_fit_pendulum, "cartpole"),
        floor=floors.repeat_floor,
        floor_means="what differs between repeats of the same commands",
        to_stock=None,
        to_peer=0.85,
        every_joint=True,
        limit_rounds=4,
        later_s=0.52,
        notes=(
            "In the first half second of every run the cart does not follow its motor: no model here predicts that.",
        ),
    )


CASES: dict[str, Callable[[], Case]] = {"so101": so101, "qube": qube, "cartpole": cartpole}
