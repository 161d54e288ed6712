"""A pendulum that a motor must lift to a goal in time, with a hand-written policy: small, and fails in known ways."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.episode import Episode
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.protocols import Judgement, Moment, Start
from gapless.core.signal import Array
from gapless.diagnose.counterfactual.policy_runs import SimulatePolicy, make_policy_simulator
from gapless.project.load import load_project
from unit.sim.scenes import write_project

XML = """<mujoco><option timestep="0.01" integrator="implicitfast"/><worldbody><body name="bob">
<joint name="hinge" axis="0 1 0" damping="0.05"/>
<geom name="bob" type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5" contype="0" conaffinity="0"/>
</body></worldbody><actuator><motor name="motor" joint="hinge" ctrlrange="-2 2"/></actuator></mujoco>"""
COMMANDS = {"u": "{actuator: motor}"}
MEASUREMENTS = {
    "q": "{joint: hinge, quantity: position, noise: 0.002}",
    "v": "{joint: hinge, quantity: velocity, noise: 0.02}",
}
SPACE = ParameterSpace(
    (
        Parameter("actuator/*/delay", "latency", "s", 0.0, 0.0, 0.12),
        Parameter("actuator/motor/gain", "actuator", "1", 1.0, 0.4, 1.6),
        Parameter("joint/hinge/frictionloss", "actuator", "N·m", 0.0, 0.0, 0.3),
        Parameter("measurement/q/bias", "sensor", "rad", 0.0, -0.3, 0.3),
    )
)
PLANTED: dict[Dimension, Mapping[str, float]] = {
    "latency": {"actuator/*/delay": 0.07},
    "actuator": {"actuator/motor/gain": 0.7},
    "sensor": {"measurement/q/bias": 0.14},
}


class Lift:
    """Bring the bob to the goal and be there, at rest, after 1.2 s; never swing far past it.

    The camera of the task sees the angle through the sensor: what the sensor has wrong, success has wrong too,
    but the goal stands in the world, and gravity shows.
    """

    duration_s = 1.2
    observation_size = 3
    action_size = 1
    phases = ("swing", "settle")

    def start(self, rng: np.random.Generator, num_worlds: int) -> Start:
        return Start({"hinge": rng.uniform(-0.2, 0.2, (num_worlds, 1))}, rng.uniform(0.6, 1.0, (num_worlds, 1)))

    def first_command(self, start: Start) -> Array:
        return np.zeros((len(start.goal), 1))

    def observe(self, moment: Moment) -> Array:
        return np.stack([moment.measured["q"], moment.measured["v"], moment.goal[:, 0]], axis=1)

    def command(self, action: Array, moment: Moment) -> Array:
        del moment
        return 2.0 * action

    def judge(self, moment: Moment, action: Array) -> Judgement:
        del action
        off = moment.measured["q"] - moment.goal[:, 0]
        failed = off > 0.25
        success = (np.abs(off) < 0.08) & (np.abs(moment.measured["v"]) < 0.8)
        phase = np.where(moment.time_s < 0.8, 0, 1)
        return Judgement(-np.abs(off), success, failed, phase)


class Lifter:
    """Feedback on angle and rate, with the weight of the bob known."""

    history = 1

    def act(self, observation: Array) -> Array:
        angle, rate, goal = observation[:, 0], observation[:, 1], observation[:, 2]
        torque = 0.5 * 9.81 * 0.15 * np.sin(angle) + 2.0 * (goal - angle) - 0.3 * rate
        return np.clip(torque / 2.0, -1.0, 1.0)[:, None]


def draw(dimension: Dimension, rng: np.random.Generator, count: int) -> Array:
    """Draws rows in which one dimension is wrong: each of its parameters anywhere between nominal and a bound."""
    rows = np.tile(SPACE.nominal, (count, 1))
    for k, parameter in enumerate(SPACE.parameters):
        if parameter.dimension == dimension:
            rows[:, k] = rng.uniform(parameter.low, parameter.high, count)
    return rows


def row_of(values: Mapping[str, float]) -> Array:
    """Returns the nominal row with some values changed."""
    row = SPACE.nominal
    for target, value in values.items():
        row[SPACE.index(target)] = value
    return row


def make_simulate(folder: Path) -> SimulatePolicy:
    """Writes the project and returns what runs the policy in it."""
    write_project(folder, XML, COMMANDS, MEASUREMENTS, rate_hz=50.0)
    return make_policy_simulator(load_project(folder), Lifter(), Lift(), SPACE, num_threads=1)


def real_runs(simulate: SimulatePolicy, values: Mapping[str, float], seed: int, count: int = 12) -> tuple[Episode, ...]:
    """Returns runs of a stand-in for reality: the same simulation with values that the model does not have."""
    rng = np.random.default_rng([99, seed])
    return simulate(np.tile(row_of(values), (count, 1)), rng).episodes
