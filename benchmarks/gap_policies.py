"""Cases of `diagnose.py` with a policy: its logged runs, their outcomes and conditions, a simulation to try it in.

A motor lifts a pendulum to a goal in time; the policy is feedback with the weight known, and nearly always succeeds in
the model as written. Reality is plain MuJoCo. Some causes act on every run: a weak motor, a delay, a reading that is
off. Others act where a condition holds: at one site something pulls at the arm; in dim light the camera sees the goal
elsewhere; some persons move their hand, which is the goal, at the last moment. The last two cannot be switched on in
simulation, and leave signals that fit the model: conditions alone tell them.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from gap_cases import Case, Split, planted, write_truth

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array, Flags
from gapless.learn.policy import NetworkPolicy

CAUSES: dict[str, Dimension] = {
    "motor": "actuator",
    "delay": "latency",
    "bias": "sensor",
    "site": "environment",
    "light": "visual",
    "person": "human",
}
NUM_RUNS = 48
PER_CAUSE = 8  # cases of the test; of nothing as many again, twice; tuning has half
FIRST_SEED: dict[Split, int] = {"tuning": 50_000, "test": 60_000}
POLICY = "policy.npz"
NOISE = np.array([0.002, 0.02])  # of angle [rad] and rate [rad/s], as stated
RATE_HZ, DURATION_S, STEP_S = 50.0, 1.2, 0.01
EVERYDAY = 0.05  # chance to fail for no reason that is logged
ACTS = 0.75  # chance that a cause acts in a run where its condition holds
LEVELS = {"light": 2, "person": 4, "site": 2, "object": 3}

MODEL = """<mujoco><option timestep="0.01" integrator="implicitfast"/><worldbody><body name="bob">
<joint name="hinge" axis="0 1 0" damping="0.05" frictionloss="{friction}"/>
<geom name="bob" type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5" contype="0" conaffinity="0"/>
</body></worldbody><actuator><motor name="motor" joint="hinge" ctrlrange="-2 2" gear="{gain}"/></actuator></mujoco>
"""
YAML = """gapless: 1
model: robot.xml
rate_hz: 50
commands: {u: {actuator: motor}}
measurements:
  q: {joint: hinge, quantity: position, noise: 0.002}
  v: {joint: hinge, quantity: velocity, noise: 0.02}
task: task.py:Lift
"""
TASK = '''"""Bring the bob to the goal and be there, at rest, after 1.2 s; never swing far past it."""

import numpy as np

from gapless.core.protocols import Judgement, Start


class Lift:
    duration_s = 1.2
    observation_size = 3
    action_size = 1
    phases = ("swing", "settle")

    def start(self, rng, num_worlds):
        return Start({"hinge": rng.uniform(-0.2, 0.2, (num_worlds, 1))}, rng.uniform(0.6, 1.0, (num_worlds, 1)))

    def first_command(self, start):
        return np.zeros((len(start.goal), 1))

    def observe(self, moment):
        return np.stack([moment.measured["q"], moment.measured["v"], moment.goal[:, 0]], axis=1)

    def command(self, action, moment):
        return 2.0 * action

    def judge(self, moment, action):
        off = moment.measured["q"] - moment.goal[:, 0]
        success = (np.abs(off) < 0.08) & (np.abs(moment.measured["v"]) < 0.8)
        return Judgement(-np.abs(off), success, off > 0.25, np.where(moment.time_s < 0.8, 0, 1))
'''


def policy() -> NetworkPolicy:
    """Returns torque / 2 = 0.5 * 9.81 * 0.15 sin(q) / 2 + (goal - q) - 0.15 v as a network; sin(q) is 1.08 tanh(q)."""
    small = 0.02  # tanh is straight here
    first = np.array([[1.0, 0, 0, 0], [-small, -0.15 * small, small, 0]])
    last = np.array([[1.08 * 0.5 * 9.81 * 0.15 / 2, 1 / small]])
    return NetworkPolicy((first, last), (np.zeros(2), np.zeros(1)), history=1)


@dataclass(frozen=True)
class Reality:
    """What differs from the model in one run: the motor's gain [1], friction [N·m], delay [s], bias of the angle [rad],
    a load [N·m], where the goal seems to be, and where it is in the end, beside where it should be [rad].
    """

    gain: float = 1.0
    friction: float = 0.0
    delay_s: float = 0.0
    bias_rad: float = 0.0
    load_nm: float = 0.0
    seen_rad: float = 0.0
    moved_rad: float = 0.0


@dataclass(frozen=True)
class Run:
    """One run: (num_rows,) commands [N·m], (num_rows, 2) readings of angle and rate, success, phase at its end."""

    commands: Array
    readings: Array
    success: bool
    phase: str


def cases(split: Split) -> list[Case]:
    """Returns the cases of a split, always the same."""
    part = 1 if split == "test" else 2
    listed = [cause for cause in CAUSES for _ in range(PER_CAUSE // part)] + ["nothing"] * (2 * PER_CAUSE // part)
    return [planted("lift", cause, CAUSES, FIRST_SEED[split] + k, split, "policy") for k, cause in enumerate(listed)]


def run(reality: Reality, rng: np.random.Generator) -> Run:
    """Plays the policy once."""
    model = mujoco.MjModel.from_xml_string(MODEL.format(gain=reality.gain, friction=reality.friction))
    data, brain = mujoco.MjData(model), policy()
    data.qpos[0] = rng.uniform(-0.2, 0.2)
    goal, action = rng.uniform(0.6, 1.0), 0.0
    data.qfrc_applied[0] = reality.load_nm
    sent = [0.0] * round(reality.delay_s / STEP_S)
    commands, readings, won, failed, phase = list[float](), list[Array](), False, False, "swing"
    for k in range(round(DURATION_S * RATE_HZ) + 1):
        mujoco.mj_forward(model, data)
        read = np.array([data.qpos[0] + reality.bias_rad, data.qvel[0]]) + NOISE * rng.standard_normal(2)
        readings.append(read)
        time_s = k / RATE_HZ
        if k:
            off = read[0] - goal - (reality.moved_rad if time_s > 0.8 else 0.0)
            won, failed = abs(off) < 0.08 and abs(read[1]) < 0.8, off > 0.25
            phase = "swing" if time_s < 0.8 else "settle"
        if failed or k == round(DURATION_S * RATE_HZ):
            break
        action = float(brain.act(np.array([[*read, goal + reality.seen_rad, action]]))[0, 0])
        commands.append(2.0 * action)
        for _ in range(round(1 / RATE_HZ / STEP_S)):
            sent.append(commands[-1])
            data.ctrl[0] = sent.pop(0)
            mujoco.mj_step(model, data)
    return Run(np.array([*commands, commands[-1]]), np.array(readings), bool(won and not failed), phase)


def severity(cause: str, rng: np.random.Generator) -> Reality:
    """Draws how wrong reality is where a cause acts: enough to make runs fail."""
    sign = rng.choice([-1.0, 1.0])
    return {
        "motor": Reality(gain=rng.uniform(0.6, 0.75), friction=rng.uniform(0.0, 0.05)),
        "delay": Reality(delay_s=round(rng.uniform(0.06, 0.09), 2)),
        "bias": Reality(bias_rad=rng.uniform(0.1, 0.16) * sign),
        "site": Reality(load_nm=rng.uniform(0.2, 0.35) * sign),
        "light": Reality(seen_rad=rng.uniform(0.12, 0.25) * sign),
        "person": Reality(moved_rad=rng.uniform(0.12, 0.25) * sign),
        "nothing": Reality(),
    }[cause]


def draw(case: Case) -> tuple[list[Run], dict[str, Array], Flags]:
    """Returns the runs of a case, condition -> (num_runs,) its values, and (num_runs,) which are exposed."""
    rng, cause = np.random.default_rng([case.seed, 1]), case.detail.rpartition("/")[2]
    levels = {name: rng.permutation(np.arange(NUM_RUNS) % number) for name, number in LEVELS.items()}
    exposed = levels[cause] == 0 if cause in levels else np.ones(NUM_RUNS, dtype=bool)
    wrong = severity(cause, rng)
    acts = exposed & (rng.random(NUM_RUNS) < (ACTS if cause in levels else 1.0))
    runs = [run(wrong if there else Reality(), rng) for there in acts]
    return runs, levels, exposed


def write(case: Case, folder: Path) -> Path:
    """Writes a case as a project folder with its policy, and its truth beside it as FOLDER.truth.json; returns it."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "robot.xml").write_text(MODEL.format(gain=1.0, friction=0.0), encoding="utf-8")
    (folder / "gapless.yaml").write_text(YAML, encoding="utf-8")
    (folder / "task.py").write_text(TASK, encoding="utf-8")
    (folder / POLICY).write_bytes(policy().to_bytes())
    runs, levels, _ = draw(case)
    rng = np.random.default_rng([case.seed, 2])
    for k, one in enumerate(runs):
        rows = np.column_stack([np.arange(len(one.readings)) / RATE_HZ, one.commands, one.readings])
        path = folder / "logs" / f"run{k:02d}.csv"
        np.savetxt(path, rows, fmt="%.8g", delimiter=",", header="time_s,u,q,v", comments="")
        won = one.success and rng.random() > EVERYDAY
        note = {"outcome": "success"} if won else {"outcome": "failure", "failed_in": one.phase}
        conditions = {name: f"{name}{int(values[k])}" for name, values in levels.items()}
        path.with_suffix(".json").write_text(json.dumps({**note, "conditions": conditions}), encoding="utf-8")
    write_truth(case, folder)
    return folder
