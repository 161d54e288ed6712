"""Slow motors are found: on a pendulum whose truth is known, and on a real quadrotor."""

import sys
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.core.episode import Episode
from gapless.core.results import IdentifyResult
from gapless.core.signal import TimeSeries
from gapless.identify.verb import identify
from gapless.project.load import load_project
from gapless.project.log.write import write_log
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from unit.sim.scenes import run, space_of, write_project

pytestmark = pytest.mark.slow

PENDULUM = """<mujoco><option timestep="0.002"/><worldbody>
<body name="pole"><joint name="hinge" axis="0 1 0" damping=".05"/>
<geom type="capsule" fromto="0 0 0 0 0 -.4" size=".01" mass=".3"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""
READINGS = {"q": "{joint: hinge, quantity: position, noise: 0.001}"}
NUM_LOGS, SECONDS, RATE_HZ = 4, 8.0, 100.0


def make_reality(folder: Path, truth: dict[str, float], seed: int, parameters: list[str] | None = None) -> Path:
    """Returns a project whose logs come from its own model with other parameters, and noise."""
    write_project(folder, PENDULUM, {"u": "{actuator: motor}"}, READINGS, rate_hz=RATE_HZ, parameters=parameters)
    project = load_project(folder)
    blueprint = compile_project(project)
    world = Simulation(blueprint, 1, space_of(blueprint, *truth), 1, noisy=True)
    world.set_parameters(np.array([list(truth.values())]))
    time_s = np.arange(int(SECONDS * RATE_HZ)) / RATE_HZ
    for k in range(NUM_LOGS):
        rng = np.random.default_rng((seed, k))
        size, rate_hz, phase = rng.uniform(0.1, 0.3, 5), rng.uniform(0.3, 4.0, 5), rng.uniform(0, 6.3, 5)
        command = np.sin(2 * np.pi * rate_hz * time_s[:, None] + phase) @ size
        measured = run(world, command[:, None, None])[:-1, 0]
        sent = TimeSeries(time_s, command[:, None], project.command_names, project.command_units)
        seen = TimeSeries(time_s, measured, project.measurement_names, project.measurement_units)
        write_log(project, replace(Episode(f"run{k}", "sim", sent, seen), source="real"))
    return folder


def found(result: IdentifyResult) -> dict[str, float]:
    return {p.target: p.value for p in result.parameters}


TRUTH = {"actuator/motor/gain": 0.8, "actuator/*/lag": 0.05, "actuator/*/delay": 0.02, "joint/hinge/damping": 0.08}


@pytest.mark.parametrize("seed", [0, 1])
def test_lag_and_delay_are_told_apart(tmp_path: Path, seed: int) -> None:
    listed = [f"{{target: {target}}}" for target in TRUTH]
    value = found(identify(make_reality(tmp_path, TRUTH, seed, listed), seed=seed))
    for target, truth in TRUTH.items():
        assert abs(value[target] / truth - 1) < 0.1, target


def test_auto_takes_a_lag_that_is_there(tmp_path: Path) -> None:
    result = identify(make_reality(tmp_path, TRUTH, 2))
    assert [term.kept for term in result.tried if term.targets == ("actuator/*/lag",)] == [True]
    value = found(result)
    assert abs(value["actuator/*/lag"] / 0.05 - 1) < 0.2
    assert abs(value["actuator/*/delay"] / 0.02 - 1) < 0.2


def test_auto_leaves_a_lag_that_is_not_there(tmp_path: Path) -> None:
    result = identify(make_reality(tmp_path, {t: v for t, v in TRUTH.items() if not t.endswith("/lag")}, 3))
    assert [term.kept for term in result.tried if term.targets == ("actuator/*/lag",)] == [False]
    assert abs(found(result)["actuator/*/delay"] / 0.02 - 1) < 0.1


@pytest.fixture(scope="module")
def quadrotor(tmp_path_factory: pytest.TempPathFactory) -> IdentifyResult:
    crazyflie = benchmark()
    return identify(crazyflie.make_project(tmp_path_factory.mktemp("crazyflie")), [crazyflie.HELD_OUT])


def benchmark():
    """Returns the benchmark's module; skips where its data are not."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    import crazyflie

    if not (crazyflie.data_folder() / "crazyflie" / "log10.npz").is_file():
        pytest.skip("no logs of the Crazyflie: set GAPLESS_DATA to the folder that holds crazyflie/log10.npz")
    return crazyflie


def test_the_motors_of_the_crazyflie_lag_by_75_ms(quadrotor: IdentifyResult) -> None:
    (lag,) = (p for p in quadrotor.parameters if p.target == "actuator/*/lag")
    assert lag.identifiable
    assert abs(lag.value - 0.075) < 0.01  # published; the fit starts at no lag


def test_the_thrust_that_is_left_is_small(quadrotor: IdentifyResult) -> None:
    crazyflie = benchmark()
    held, value = crazyflie.parts()[crazyflie.HELD_OUT], crazyflie.values_of(quadrotor)
    by_hand_n = crazyflie.residual_by_hand(held, value["gain"], value["lag"])
    in_engine_n = crazyflie.residual_of_model(held, mujoco.MjModel.from_xml_path(str(quadrotor.model)))
    assert by_hand_n < 0.0135
    assert in_engine_n < 0.0135
    assert crazyflie.residual_by_hand(held, 1.0, 0.0) > 0.03  # as written, with motors that obey at once
