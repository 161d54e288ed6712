"""What each run has its own of: fitted in each, and told as a mean with how far runs lie apart."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.episode import Episode
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.signal import TimeSeries
from gapless.fit.per_run import summarize_runs
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.fit.problem import FitProblem
from gapless.fit.solution import Solution
from gapless.identify.verb import identify
from gapless.project.load import load_project
from gapless.project.log.write import write_log
from gapless.sim.blueprint import EMPTY_SPACE, compile_project
from gapless.sim.simulation import Simulation
from unit.sim.scenes import arm, run, space_of, waves, write_project
from unit.sim.test_predict import recorded

BOX = """<mujoco><option timestep=".005" gravity="0 0 0"/><worldbody>
<body name="box"><joint name="x" type="slide" axis="1 0 0" damping="2" stiffness="30"/>
<geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody>
<actuator><motor name="motor" joint="x" gear="10"/></actuator></mujoco>"""
LOADS_N = (4.0, -3.0, 1.0, 6.0, -2.0, 3.0, 0.5, 2.0)
DAMPING = 5.0


def record_loads(folder: Path, listed: str, loads_n: tuple[float, ...] = LOADS_N) -> Path:
    """Writes a project whose logs have another load each, and all another damping than the model."""
    parameters = [
        f"{{target: joint/x/load, low: -10, high: 10{listed}}}",
        "{target: joint/x/damping, low: 0, high: 20}",
    ]
    readings = {"q": "{joint: x, quantity: position, noise: 0.0005}"}
    write_project(folder, BOX, {"u": "{actuator: motor}"}, readings, rate_hz=50, parameters=parameters)
    project = load_project(folder)
    blueprint = compile_project(project, max_timestep_s=0.002)
    space = space_of(blueprint, "joint/x/load", "joint/x/damping")
    world = Simulation(blueprint, len(loads_n), space, 1, noisy=True)
    world.set_parameters(np.array([[load, DAMPING] for load in loads_n]))
    commands = np.repeat(waves(blueprint, num_steps=200)[:, :1], len(loads_n), axis=1)
    measured = run(world, commands)
    times_s = np.arange(len(measured)) / project.rate_hz
    sent = np.concatenate([commands, commands[-1:]])
    for k in range(len(loads_n)):
        told = TimeSeries(times_s, sent[:, k], project.command_names, project.command_units)
        seen = TimeSeries(times_s, measured[:, k], project.measurement_names, project.measurement_units)
        write_log(project, Episode(f"run{k}", "real", told, seen))
    return folder


def test_each_run_has_its_own_load_and_all_share_the_damping(tmp_path: Path) -> None:
    result = identify(record_loads(tmp_path, ", per: episode"))
    load, damping = result.parameters
    for name, value in load.by_run.items():
        assert value == pytest.approx(LOADS_N[int(name[3:])], abs=0.1)
    held = set(result.held_out.episodes)
    fitted = [LOADS_N[k] for k in range(len(LOADS_N)) if f"run{k}" not in held]
    assert len(load.by_run) == len(fitted) == 6
    assert load.identifiable
    assert load.spread == pytest.approx(np.std(fitted, ddof=1), rel=0.05)
    assert load.low < np.mean(fitted) < load.high
    assert load.high - load.low > np.std(fitted)  # of six runs no mean is known well
    assert damping.low < DAMPING < damping.high
    assert damping.by_run == {}
    assert damping.high - damping.low < 0.5
    assert result.held_out.residual_to_noise is not None
    assert result.held_out.residual_to_noise < 1.3  # held-out runs have their own as well
    assert any("values of their own" in reason for reason in result.reasons)


def test_without_it_one_load_must_do_and_does_not(tmp_path: Path) -> None:
    result = identify(record_loads(tmp_path, ""))
    assert result.parameters[0].by_run == {}
    assert result.held_out.residual_to_noise is not None
    assert result.held_out.residual_to_noise > 3.0


def solved(tmp_path: Path, values: np.ndarray, std: np.ndarray) -> tuple[FitProblem, Solution]:
    blueprint = arm(tmp_path)
    shared = Parameter("joint/shoulder/damping", "actuator", "1", 0.5, -1.0, 1.0)
    own = Parameter("joint/elbow/damping", "actuator", "1", 0.5, -1.0, 1.0, "episode")
    space = ParameterSpace((shared, own)).for_runs(range(len(values)))
    windows = cut_windows(blueprint.project, [recorded(blueprint, EMPTY_SPACE, np.zeros(0))], 0.2)
    problem = FitProblem(Predictor(blueprint, space), windows, tuple(range(len(space))), space.nominal, np.ones(1))
    unit = np.array([0.5, *values])
    covariance = np.diag(np.array([0.02, *std]) ** 2)
    return problem, Solution(np.zeros(len(space)), unit, covariance, np.linalg.inv(covariance), 0.0)


def test_runs_that_tell_little_count_little(tmp_path: Path) -> None:
    # weights 1 / (s^2 + 0.02^2): 1250 for the first three, 24.5 for the last
    problem, solution = solved(tmp_path, np.array([0.3, 0.4, 0.5, 0.9]), np.array([0.02, 0.02, 0.02, 0.2]))
    found = summarize_runs(problem, solution)
    weights = np.array([1250.0, 1250.0, 1250.0, 1 / (0.2**2 + 0.02**2)])
    weights /= weights.sum()
    mean = weights @ solution.unit[1:]
    assert found.space.targets == ("joint/shoulder/damping", "joint/elbow/damping")
    assert found.solution.unit == pytest.approx([0.5, mean])
    expected = np.sqrt(weights @ (solution.unit[1:] - mean) ** 2 / (1 - np.sum(weights**2)))
    assert found.spread == pytest.approx([0.0, expected])
    assert np.sqrt(found.solution.covariance[1, 1]) == pytest.approx(expected * np.sqrt(np.sum(weights**2)))
    assert found.solution.row[1] == pytest.approx(-1.0 + 2.0 * mean)


def test_together_runs_tell_what_none_tells_alone(tmp_path: Path) -> None:
    # 0.15 each is more than a tenth of the range; 0.15 / sqrt(4) is less, 0.15 / sqrt(2) is not
    for count, told in ((4, True), (2, False)):
        found = summarize_runs(*solved(tmp_path, np.full(count, 0.4), np.full(count, 0.15)))
        assert found.told.tolist() == [True, told]
        assert found.spread[1] == pytest.approx(0.0)


def test_neural_samples_are_of_what_all_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gapless.identify.verb._import_neural", lambda _: object())
    with pytest.raises(InputError, match="per: episode"):
        identify(record_loads(tmp_path, ", per: episode", LOADS_N[:2]), posterior="sbi")


def test_a_level_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'step' must be 'robot' or 'episode': write per: robot if all runs share"):
        load_project(record_loads(tmp_path, ", per: step", ()))
