"""Intervals of fitted parameters hold the truth as often as they say, on logs of known models with random truths.

Only the last solve is repeated, from near the truth: what comes before it decides where it begins and which parameters
take part, not how sure it is.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gapless.core.episode import Episode
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Start
from gapless.core.scaling import Scaling
from gapless.core.signal import Array, TimeSeries
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.problem import FitProblem
from gapless.fit.search.config import SEARCH
from gapless.fit.solve import solve_least_squares
from gapless.fit.summary import describe_parameters
from gapless.project.load import load_project
from gapless.signals.track import Track, make_track
from gapless.sim.auto import parameter_space
from gapless.sim.blueprint import CompiledProject, compile_project
from gapless.sim.simulation import Simulation
from unit.identify.realities import PENDULUM
from unit.sim.scenes import write_project

SERVOS = """<mujoco><option timestep="0.004" integrator="implicitfast"/><worldbody><body name="upper">
<joint name="shoulder" axis="0 1 0" damping="0.3" frictionloss="0.1" armature="0.02"/>
<geom type="capsule" fromto="0 0 0 .25 0 0" size=".02" mass=".5" contype="0" conaffinity="0"/>
<body name="lower" pos=".25 0 0"><joint name="elbow" axis="0 1 0" damping="0.2" frictionloss="0.05" armature="0.01"/>
<geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".3" contype="0" conaffinity="0"/></body></body></worldbody>
<actuator><position name="s1" joint="shoulder" kp="12"/><position name="s2" joint="elbow" kp="6"/>
</actuator></mujoco>"""
NUM_LOGS, LOG_S = 3, 4.0
NEAR = 0.002  # how far from the truth a solve begins, as a share of the range: some standard errors


@dataclass(frozen=True)
class Robot:
    """A model, what is logged of it, and where the truths of its parameters lie.

    Attributes:
        xml: The model.
        rate_hz: Control rate.
        commands: Column -> actuator.
        joints: Measured joints: positions only.
        truths: Target -> bounds of the parameter, then of its truths.
        noise: Standard deviation of the readings [rad].
        quantum: Step of the readings [rad].
    """

    xml: str
    rate_hz: float
    commands: dict[str, str]
    joints: tuple[str, ...]
    truths: dict[str, tuple[float, float, float, float]]
    noise: float
    quantum: float = 0.0

    def blueprint(self, folder: Path) -> CompiledProject:
        """Returns the robot as a project, compiled."""
        commands = {column: f"{{actuator: {name}}}" for column, name in self.commands.items()}
        measurements = {f"q_{name}": f"{{joint: {name}, quantity: position}}" for name in self.joints}
        entries = [f"{{target: {name}, low: {low}, high: {high}}}" for name, (low, high, *_) in self.truths.items()]
        write_project(folder, self.xml, commands, measurements, rate_hz=self.rate_hz, parameters=entries)
        return compile_project(load_project(folder))


_PENDULUM_TRUTHS = {
    "joint/hinge/damping": (0.0, 0.3, 0.02, 0.1),
    "joint/hinge/frictionloss": (0.0, 0.3, 0.01, 0.08),
    "actuator/motor/gain": (0.3, 2.0, 0.7, 1.4),
    "actuator/*/delay": (0.0, 0.1, 0.01, 0.06),
    "measurement/q_hinge/bias": (-0.2, 0.2, -0.1, 0.1),
}
_SERVO_TRUTHS = {
    "actuator/s1/kp": (3.0, 40.0, 8.0, 20.0),
    "actuator/s2/kp": (2.0, 30.0, 4.0, 12.0),
    "joint/shoulder/damping": (0.0, 2.0, 0.15, 0.6),
    "joint/elbow/damping": (0.0, 2.0, 0.1, 0.4),
    "joint/shoulder/frictionloss": (0.0, 1.0, 0.03, 0.3),
    "joint/elbow/frictionloss": (0.0, 1.0, 0.02, 0.15),
    "actuator/*/delay": (0.0, 0.1, 0.01, 0.06),
}
ROBOTS = {
    "pendulum": Robot(PENDULUM, 50.0, {"u": "motor"}, ("hinge",), _PENDULUM_TRUTHS, 0.001),
    "servos": Robot(SERVOS, 50.0, {"u1": "s1", "u2": "s2"}, ("shoulder", "elbow"), _SERVO_TRUTHS, 0.001),
    "encoder": Robot(
        PENDULUM.replace("0.005", "0.004"),
        *(250.0, {"u": "motor"}, ("hinge",), _PENDULUM_TRUTHS),
        noise=0.0,
        quantum=2 * np.pi / 4096,
    ),
}


def record(robot: Robot, blueprint: CompiledProject, space: ParameterSpace, truths: Array, seed: int) -> list[Track]:
    """Returns `NUM_LOGS` logs of each row of truths, driven by sums of sines after a short rest."""
    rng, count, num_commands = np.random.default_rng(seed), NUM_LOGS * len(truths), len(robot.commands)
    world = Simulation(blueprint, count, space)
    world.set_parameters(np.repeat(truths, NUM_LOGS, axis=0))
    time_s = np.arange(round(LOG_S * robot.rate_hz)) / robot.rate_hz
    rate, phase = rng.uniform(1.0, 7.0, (3, count, num_commands)), rng.uniform(0.0, 6.3, (3, count, num_commands))
    wave = np.sin(rate * time_s[:, None, None, None] + phase).sum(axis=1)
    command = 0.22 * wave * np.clip((time_s - 0.3) / 0.5, 0.0, 1.0)[:, None, None]
    seen = [world.reset(Start({}, np.zeros((count, 0))), rng)] + [world.step(u).measured.copy() for u in command[:-1]]
    shown = np.stack(seen) + robot.noise * rng.standard_normal((len(time_s), count, len(robot.joints)))
    shown = np.round(shown / robot.quantum) * robot.quantum if robot.quantum else shown
    project = blueprint.project
    units = ("rad",) * max(num_commands, len(robot.joints))

    def series(values: Array, names: tuple[str, ...]) -> TimeSeries:
        return TimeSeries(time_s, values, names, units[: len(names)])

    return [
        make_track(
            project,
            Episode(
                f"run{k}",
                "real",
                series(command[:, k], project.command_names),
                series(shown[:, k], project.measurement_names),
            ),
        )
        for k in range(count)
    ]


def held(robot: Robot, folder: Path, num_fits: int, window_s: float, seed: int) -> Array:
    """Returns 1 where an interval holds its truth, 0 where not, NaN where it is not determined: one row per fit."""
    blueprint = robot.blueprint(folder)
    space, rng = parameter_space(blueprint, ()), np.random.default_rng(seed)
    low, high = np.array([limits[2:] for limits in robot.truths.values()]).T
    truths = rng.uniform(low, high, (num_fits, len(low)))
    tracks, predictor, scaling = (
        record(robot, blueprint, space, truths, seed),
        Predictor(blueprint, space),
        Scaling.of(space),
    )
    found: list[list[bool]] = []
    for k, truth in enumerate(truths):
        windows = cut_windows(blueprint.project, tracks[NUM_LOGS * k : NUM_LOGS * (k + 1)], window_s)
        start = scaling.values(np.clip(scaling.unit(truth) + NEAR * rng.standard_normal(len(truth)), 0.0, 1.0))
        problem = FitProblem(predictor, windows, tuple(range(len(space))), space.nominal, windows.noise)
        fitted = describe_parameters(space, solve_least_squares(problem.weighted_at(start), start, SEARCH.final))
        found.append(
            [float(p.low <= v <= p.high) if p.identifiable else np.nan for p, v in zip(fitted, truth, strict=True)]
        )
    return np.array(found)


@pytest.mark.slow
def test_95_percent_intervals_hold_the_truth_about_as_often(tmp_path: Path) -> None:
    # Of 136 intervals 95 % +- 1.9 % hold: within three such standard errors, at least 89.4 %, and not all of them,
    # for which the odds are 1 in 1000. If 85 % held, it would be 85 % +- 3.1 %: noticed in 12 of 13 cases.
    found = [
        held(ROBOTS[name], tmp_path / name, n, 0.3, seed=11).ravel() for name, n in (("pendulum", 16), ("servos", 8))
    ]
    whole = np.concatenate(found)
    assert 0.95 - 3 * np.sqrt(0.95 * 0.05 / whole.size) <= whole.mean() < 1.0, [part.mean() for part in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "window_s"), [("pendulum", 0.3), ("pendulum", 1.2), ("servos", 0.3), ("encoder", 0.3)]
)
def test_95_percent_intervals_cover_93_to_97_percent(name: str, window_s: float, tmp_path: Path) -> None:
    # Of about 1000 intervals the share is uncertain by 0.7 % if they are independent.
    robot = ROBOTS[name]
    found = held(robot, tmp_path, -(-1000 // len(robot.truths)), window_s, seed=12)
    assert np.mean(np.isnan(found)) < 0.01  # a pendulum that friction holds tells little
    assert 0.93 <= np.nanmean(found) <= 0.97, np.nanmean(found, axis=0)
