"""The cases of `audit.py`: robots whose true parameters are known, and ranges planted about them.

Reality is played by plain MuJoCo (`gap_world`) with true parameters that are drawn for each case; the model is as
written, but for a time step of 5 ms, and the torque arm has no wall: so predictions cost little. Ranges of ordinary
width hold the truth somewhere in their middle. Then one thing is planted:

- `too narrow`: one or two ranges of ordinary width lie beside the truth;
- `too wide`: two or more ranges are many times as wide as ordinary ones, and hold the truth;
- `wrong`: reality has an effect that no parameter expresses (`gap_unmodelled`), strong enough to show;
- `fits`: nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np
from gap_cases import scene_of, write_logs
from gap_causes import Edit
from gap_robots import ROBOTS, Robot
from gap_unmodelled import UNMODELLED
from gap_world import Log, Reality, play, visibility

from gapless.core.distribution import Range, ranges_to_text

Kind = Literal["too narrow", "too wide", "wrong", "fits"]
KINDS: tuple[Kind, ...] = ("too narrow", "too wide", "wrong", "fits")
NUM_LOGS = 4
SECONDS = 5.0  # of a log
STEP_S = 0.005  # of the model, and of reality where no effect needs a finer one
SHOWS = 6.0  # an effect is planted if predictions of 0.3 s with the model as written are off by this many times noise
TRIES = 12
ORDINARY = (0.2, 0.4)  # half width of an ordinary range, as a share of the true value
BESIDE = (0.2, 0.6)  # how far a range that is too narrow ends from the truth, as a share of it
MANY = (3.0, 8.0)  # by which factor the ends of a range that is too wide are off the truth

TRUTH: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "cartpole": {
        "joint/cart/damping": (0.8, 3.0),
        "joint/cart/frictionloss": (0.3, 0.9),
        "joint/pole/damping": (0.002, 0.01),
        "actuator/motor/gain": (0.7, 1.3),
        "actuator/*/delay": (0.01, 0.04),
        "body/pole/mass": (0.12, 0.35),
    },
    "arm": {
        "actuator/yaw/kp": (50.0, 120.0),
        "actuator/shoulder/kp": (50.0, 120.0),
        "actuator/elbow/kp": (30.0, 80.0),
        "joint/yaw/frictionloss": (0.3, 1.2),
        "joint/elbow/frictionloss": (0.2, 0.8),
        "actuator/*/delay": (0.01, 0.04),
        "body/fore/mass": (0.45, 1.1),
    },
    "torquearm": {
        "actuator/shoulder/gain": (0.75, 1.3),
        "actuator/elbow/gain": (0.75, 1.3),
        "joint/shoulder/damping": (0.1, 0.4),
        "joint/elbow/damping": (0.06, 0.25),
        "joint/elbow/frictionloss": (0.03, 0.15),
        "actuator/*/delay": (0.006, 0.03),
    },
}
"""Robot -> target -> where its true value is drawn."""
FAINT = ("joint/pole/damping",)
"""What the logs show too little of to plant something there."""


@dataclass(frozen=True)
class Case:
    """Ranges whose verdict is known.

    Attributes:
        seed: Of truth, motions, noise and ranges.
        kind: The verdict that is right.
    """

    seed: int
    robot: str
    kind: Kind

    @property
    def name(self) -> str:
        """A name that no other case has."""
        return f"{self.seed:03d}-{self.robot}-{self.kind.replace(' ', '-')}"


@dataclass(frozen=True)
class Planted:
    """A case as it was written.

    Attributes:
        folder: The project.
        ranges: The file of its ranges.
        planted: Targets of the ranges that were planted; none for `wrong` and `fits`.
        detail: What was planted, for the reader.
    """

    folder: Path
    ranges: Path
    planted: tuple[str, ...]
    detail: str


def cases(first_seed: int, count: int, kinds: tuple[Kind, ...] = KINDS[:3]) -> list[Case]:
    """Returns cases of these kinds in turn, each over the robots in turn, always the same."""
    robots = list(TRUTH)
    return [Case(first_seed + k, robots[k // len(kinds) % len(robots)], kinds[k % len(kinds)]) for k in range(count)]


def write(case: Case, root: Path) -> Planted:
    """Writes a case: a project folder with logs, and a file of ranges beside it."""
    robot, folder = ROBOTS[case.robot], root / case.name
    rng = np.random.default_rng([case.seed, 17])
    truth = {target: float(rng.uniform(*bounds)) for target, bounds in TRUTH[case.robot].items()}
    reality, detail = reality_of(robot, truth), ""
    if case.kind == "wrong":
        reality, detail = _with_effect(case, robot, reality)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "robot.xml").write_text(quick(robot.text()), encoding="utf-8")
    listed = "".join(f"  - {{target: {target}}}\n" for target in truth)
    text = robot.yaml().replace("parameters: auto\n", f"parameters:\n{listed}")
    (folder / "gapless.yaml").write_text(text, encoding="utf-8")
    write_logs(robot, folder, _played(robot, reality, case.seed), np.random.default_rng([case.seed, 9]))
    ranges, planted = plant(case.kind, truth, rng)
    path = root / f"{case.name}.txt"
    path.write_text(ranges_to_text(ranges), encoding="utf-8")
    return Planted(folder, path, planted, detail or ", ".join(planted) or "nothing")


def plant(kind: Kind, truth: Mapping[str, float], rng: np.random.Generator) -> tuple[list[Range], tuple[str, ...]]:
    """Returns ranges about true values, and the targets of those that were planted."""
    told = [target for target in truth if target not in FAINT]
    count = {"too narrow": int(rng.integers(1, 3)), "too wide": int(rng.integers(2, len(told) + 1))}.get(kind, 0)
    planted = tuple(str(target) for target in rng.choice(told, count, replace=False))
    ranges: list[Range] = []
    for target, value in truth.items():
        half = value * rng.uniform(*ORDINARY)
        low = value - half * rng.uniform(0.6, 1.4)
        high = low + 2 * half
        if target in planted and kind == "too narrow":
            off = value * rng.uniform(*BESIDE)
            below = rng.random() < 0.5
            low = max(0.0, value - off - 2 * half) if below else value + off
            high = value - off if below else value + off + 2 * half
        if target in planted and kind == "too wide":
            low, high = value / rng.uniform(*MANY), value * rng.uniform(*MANY)
        ranges.append(Range(target, "uniform", low, high, (low + high) / 2))
    return ranges, planted


def quick(text: str) -> str:
    """Returns a model with a time step of `STEP_S` and nothing to touch."""
    return text.replace('timestep="0.002"', f'timestep="{STEP_S:g}"').replace('contype="1" conaffinity="1"', "")


def reality_of(robot: Robot, truth: Mapping[str, float]) -> Reality:
    """Returns the reality whose parameters are these."""
    edits = tuple(_edit(target, value) for target, value in truth.items() if not target.endswith("/delay"))
    return Reality(edits=(_untouched, *edits), command_delay_s=truth["actuator/*/delay"], timestep_s=STEP_S)


def _untouched(spec: mujoco.MjSpec) -> None:
    """Takes all contacts out of a model."""
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 0, 0


def _edit(target: str, value: float) -> Edit:
    """Returns the change of a model that gives a target its value."""
    element, name, field = target.split("/")

    def edit(spec: mujoco.MjSpec) -> None:
        if element == "body":
            spec.geom(name).mass = value
        elif field == "kp":
            spec.actuator(name).gainprm[0], spec.actuator(name).biasprm[1] = value, -value
        elif field == "gain":
            spec.actuator(name).gainprm[0] *= value
        elif field == "damping":
            spec.joint(name).damping[0] = value
        else:
            setattr(spec.joint(name), field, value)

    return edit


def _with_effect(case: Case, robot: Robot, reality: Reality) -> tuple[Reality, str]:
    """Returns a reality with an effect that no parameter expresses, and what it is.

    Raises:
        RuntimeError: If no draw of `TRIES` shows.
    """
    plain = _played(robot, reality, case.seed)
    scene, names = scene_of(robot, plain), list(UNMODELLED)
    written = mujoco.MjModel.from_xml_string(quick(robot.text()))
    for attempt in range(TRIES):
        rng = np.random.default_rng([case.seed, 8, attempt])
        name = names[(case.seed // 3 + attempt) % len(names)]
        seed = int(rng.integers(2**32))
        alone, _ = UNMODELLED[name](Reality(edits=(_untouched,)), robot, np.random.default_rng(seed), scene)
        if max(visibility(robot, written, _played(robot, alone, case.seed)).values()) >= SHOWS:
            changed, text = UNMODELLED[name](reality, robot, np.random.default_rng(seed), scene)
            return changed, text
    raise RuntimeError(f"{case.name}: no effect shows")


def _played(robot: Robot, reality: Reality, seed: int) -> list[Log]:
    return play(robot, reality, "test", seed, np.full(NUM_LOGS, SECONDS))
