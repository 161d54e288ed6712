"""The real sets: which logs are fitted, which are scored and how, what the peer does, and what the bars are."""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import floors
import mujoco
import numpy as np
import score
import score_cube
import sets
from score import Run, Score

Say = Callable[[str], None]
HORIZON_S = 0.5  # of the bars [s]


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
    project: Callable[[Path, Sequence], Path]
    """Makes the project folder of some logs."""
    read: Callable[..., Run]
    """Reads a log as it is scored."""
    peer: str
    """Module and function of the peer's set-up, `peer.Task` of some logs: only who runs the peer needs its extra."""
    peer_iters: int
    """Steps of the peer at most."""
    floor: Callable[[mujoco.MjModel, dict[str, float], list[Run]], np.ndarray] | None
    """The error at `HORIZON_S` that no model gets below, per joint, given the best model that there is."""
    floor_means: str
    limit_rounds: int
    """How often the class limit is polished on the scored number, `limit.ROUND_ITERS` steps each."""
    to_stock: float | None = None
    """Bar: mean error of whole runs as a share of the stock model's; None where there is none."""
    notes: tuple[str, ...] = ()
    after_s: float = 0.0
    """Predictions start no sooner in a run than this [s]."""
    every_s: float = 0.1
    """A window starts each so often [s]."""
    from_rest: bool = False
    """Whether whole runs begin at rest, at their first sample."""

    def held_runs(self) -> list[Run]:
        """Returns the logs that are scored."""
        return [self.read(item) for item in self.held]

    @property
    def free_body(self) -> bool:
        """Whether poses of a thrown body are scored, not joints."""
        return self.joints == ("position", "rotation")

    def score(
        self, model: mujoco.MjModel, biases: dict[str, float], runs: list[Run], horizon_s: float | None = HORIZON_S
    ) -> Score:
        """Returns the errors of a plain MuJoCo model, which knows nothing of how it was found; None: whole runs."""
        if self.free_body:
            return score_cube.score(model, runs, horizon_s)
        if horizon_s is not None:
            found = score.score_windows(model, biases, runs, horizon_s, self.every_s, self.after_s)
        elif self.from_rest:
            found = score.score_from_rest(model, biases, runs)
        else:
            found = score.score_whole(model, biases, runs, self.after_s)
        return score.keep_joints(found, [runs[0].joints.index(joint) for joint in self.joints])

    def peer_task(self) -> object:
        """Returns the peer's set-up on the fitted logs."""
        module, function = self.peer.split(":")
        return getattr(importlib.import_module(module), function)(list(self.fitted))

    def one_number(self, rmse: np.ndarray, stock: np.ndarray) -> float:
        """Returns one error for all joints: their mean, or the mean share of the stock's where units differ."""
        return float(np.mean(rmse if len(set(self.units)) == 1 else rmse / stock))

    @property
    def one_number_means(self) -> str:
        """What `one_number` is, as the label of a row."""
        return f"mean [{self.units[0]}]" if len(set(self.units)) == 1 else "mean of error / stock [1]"


def so101() -> Case:
    """Fitted on every fourth motion; the first 40 s of the others."""
    motions = sets.so101_motions()
    return Case(
        name="so101",
        title="SO-101 arm: motions not fitted, first 40 s",
        fitted=motions[::4],
        held=[name for name in motions if name not in motions[::4]],
        joints=score.SO101_SCORED,
        units=("rad",) * 5,
        project=sets.so101,
        read=score.so101_run,
        peer="peer_so101:task",
        peer_iters=12,
        floor=lambda model, biases, runs: floors.quantisation_floor(score.SO101_QUANTUM),
        floor_means="rounding of the readings alone (no motion was repeated)",
        to_stock=0.43,
        limit_rounds=1,
        every_s=1.0,
        from_rest=True,
        notes=("The peer fits the first 40 s of each motion, ours is given whole logs and picks windows itself.",),
    )


def qube() -> Case:
    """Fitted on chirps; swing-ups up to the catch."""
    return Case(
        name="qube",
        title="Qube: swing-ups up to the catch, fitted on chirps",
        fitted=sets.runs("qube", "qq_chrip*"),
        held=sets.runs("qube", "qq-su*"),
        joints=score.QUBE_JOINTS,
        units=("rad", "rad"),
        project=sets.qube,
        read=score.qube_run,
        peer="peer_pendulum:qube_task",
        peer_iters=20,
        floor=lambda model, biases, runs: floors.start_floor(model, biases, runs, score.QUBE_QUANTUM),
        floor_means="start states and rounding (the class limit plays the robot and predicts its own rounded readings)",
        limit_rounds=4,
    )


def cartpole() -> Case:
    """Fitted on three repeats of each chirp; the other two, from where the motor is on."""
    runs = sets.runs("cartpole", "qcp*")
    fitted = runs[:3] + runs[5:8]
    return Case(
        name="cartpole",
        title="Cart-pole: repeats of the chirps that were not fitted, from 0.52 s on",
        fitted=fitted,
        held=[path for path in runs if path not in fitted],
        joints=score.CARTPOLE_JOINTS,
        units=("m", "rad"),
        project=sets.cartpole,
        read=score.cartpole_run,
        peer="peer_pendulum:cartpole_task",
        peer_iters=20,
        floor=floors.repeat_floor,
        floor_means="what differs between repeats of the same commands",
        limit_rounds=4,
        after_s=0.52,
        notes=("In the first half second of every run the cart does not follow its motor: it is not scored.",),
    )


def double_pendulum() -> Case:
    """Fitted on forced, released and slow motions; three swing-ups under feedback."""
    folder = sets.data_folder() / "double_pendulum"
    return Case(
        name="double_pendulum",
        title="Double pendulum: swing-ups under feedback, fitted on open-loop, released and slow motions",
        fitted=sorted((folder / "logs").glob("*.csv")),
        held=sorted((folder / "logs_closed_loop").glob("*.csv")),
        joints=score.DOUBLE_JOINTS,
        units=("rad", "rad"),
        project=partial(sets.ready_project, "double_pendulum"),
        read=score.double_pendulum_run,
        peer="peer_double:task",
        peer_iters=20,
        floor=lambda model, biases, runs: floors.start_floor(model, biases, runs, score.DOUBLE_QUANTUM),
        floor_means="start states and rounding (the class limit plays the robot and predicts its own rounded readings)",
        limit_rounds=4,
    )


def cube() -> Case:
    """Fitted on every other toss; the others, from free flight on."""
    tosses = sorted((sets.data_folder() / "cube" / "logs").glob("*.csv"))
    return Case(
        name="cube",
        title="Tossed cube: tosses not fitted, from free flight on",
        fitted=tosses[::2],
        held=tosses[1::2],
        joints=("position", "rotation"),
        units=("m", "rad"),
        project=partial(sets.ready_project, "cube"),
        read=score_cube.cube_run,
        peer="peer_cube:task",
        peer_iters=20,
        floor=None,
        floor_means="not known: no toss was repeated",
        limit_rounds=0,
    )


CASES: dict[str, Callable[[], Case]] = {
    "so101": so101,
    "qube": qube,
    "cartpole": cartpole,
    "double_pendulum": double_pendulum,
    "cube": cube,
}
