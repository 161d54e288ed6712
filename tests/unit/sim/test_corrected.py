"""The corrected model is the fitted row, without any parameters."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.corrected import corrected_xml
from gapless.sim.simulation import Simulation
from gapless.sim.targets.geom import restitution
from unit.sim.scenes import (
    ARM_COMMANDS,
    ARM_MEASUREMENTS,
    THINGS_MEASUREMENTS,
    arm,
    run,
    space_of,
    things,
    waves,
    write_project,
)


def both(blueprint: CompiledProject, fit: dict[str, float], again: CompiledProject) -> tuple[np.ndarray, np.ndarray]:
    """Returns the run of the fitted row and that of the corrected model, started away from 0."""
    space, row = space_of(blueprint, *fit), np.array(list(fit.values()))
    fitted = Simulation(blueprint, 1, space, 1)
    fitted.set_parameters(row[None])
    start = {"elbow": np.array([[0.4]])} if blueprint.model.nu else {}
    return (
        run(fitted, waves(blueprint), start),
        run(Simulation(again, 1, EMPTY_SPACE, 1), waves(again), start),
    )


def corrected(
    folder: Path, blueprint: CompiledProject, fit: dict[str, float], rate_hz: float = 100.0
) -> CompiledProject:
    space, row = space_of(blueprint, *fit), np.array(list(fit.values()))
    xml = corrected_xml(blueprint, space, row, folder)
    assert mujoco.MjModel.from_xml_string(xml).nu == blueprint.model.nu
    maps = (ARM_COMMANDS, ARM_MEASUREMENTS) if blueprint.model.nu else ({}, THINGS_MEASUREMENTS)
    return compile_project(load_project(write_project(folder, xml, *maps, rate_hz=rate_hz)))


ARM_FIT = {
    "joint/shoulder/damping": 0.6,
    "joint/elbow/frictionloss": 0.07,
    "joint/shoulder/armature": 0.02,
    "actuator/servo/kp": 5.0,
    "actuator/servo/kd": 0.2,
    "actuator/motor/gain": 0.8,
    "actuator/motor/limit": 1.2,
    "actuator/*/delay": 0.027,
    "body/upper/mass": 1.1,
    "body/upper/com/x": 0.03,
    "world/tilt/y": 0.08,
}


def test_the_corrected_arm_is_the_fitted_row(tmp_path: Path) -> None:
    blueprint = arm(tmp_path / "a")
    again = corrected(tmp_path / "b", blueprint, ARM_FIT)
    by_row, by_model = both(blueprint, ARM_FIT, again)
    # XML holds about 6 digits less than a double where it rounds; delays are as exact as the engine's clock.
    np.testing.assert_allclose(by_model, by_row, rtol=0, atol=1e-6)


def test_offsets_of_commands_are_in_the_corrected_arm(tmp_path: Path) -> None:
    blueprint = arm(tmp_path / "a")
    fit = {"actuator/motor/offset": 0.2, "actuator/motor/gain": 0.8, "actuator/servo/offset": -0.1}
    fit |= {"actuator/servo/kp": 5.0}
    by_row, by_model = both(blueprint, fit, corrected(tmp_path / "b", blueprint, fit))
    np.testing.assert_allclose(by_model, by_row, rtol=0, atol=1e-6)
    plain = run(Simulation(blueprint, 1, EMPTY_SPACE, 1), waves(blueprint), {"elbow": np.array([[0.4]])})
    assert np.abs(by_row - plain).max() > 0.01


def test_a_time_step_that_does_not_divide_the_interval_keeps_its_delay(tmp_path: Path) -> None:
    blueprint = arm(tmp_path / "a", timestep=0.003)
    fit = {"actuator/*/delay": 0.031, "joint/shoulder/damping": 0.5}
    again = corrected(tmp_path / "b", blueprint, fit)
    by_row, by_model = both(blueprint, fit, again)
    np.testing.assert_allclose(by_model, by_row, rtol=0, atol=1e-6)


def test_a_corrected_model_restarts_with_the_commands_of_before(tmp_path: Path) -> None:
    blueprint = arm(tmp_path / "a")
    fit = {"actuator/*/delay": 0.027}
    again = corrected(tmp_path / "b", blueprint, fit)
    fitted = Simulation(blueprint, 1, space_of(blueprint, *fit), 1)
    fitted.set_parameters(np.array([[0.027]]))
    model = Simulation(again, 1, EMPTY_SPACE, 1)
    history = np.random.default_rng(0).uniform(-1, 1, (1, 25, 2))
    for world in (fitted, model):
        world.restart(np.array([[0.1, 0.2]]), np.array([[1.0, -1.0]]), history)
    for command in waves(blueprint)[:20]:
        expected, seen = fitted.step(command).measured, model.step(command).measured
        np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("timestep", [0.002, 0.003])  # the second does not divide the interval: 2.5 ms are used
def test_a_lag_in_the_corrected_model_is_the_fitted_one(tmp_path: Path, timestep: float) -> None:
    blueprint = arm(tmp_path / "a", timestep=timestep)
    step_s = blueprint.model.opt.timestep
    lag_s = step_s / np.expm1(step_s / 0.05)  # the filter's time constant is then 0.05 s, without rounding in XML
    fit = {"actuator/*/lag": lag_s, "actuator/*/delay": 0.027, "joint/shoulder/damping": 0.5}
    again = corrected(tmp_path / "b", blueprint, fit)
    assert again.model.na == 2
    by_row, by_model = both(blueprint, fit, again)
    np.testing.assert_allclose(by_model, by_row, rtol=0, atol=1e-6)


def test_a_corrected_model_restarts_with_its_lag_filled(tmp_path: Path) -> None:
    blueprint = arm(tmp_path / "a")
    fit = {"actuator/*/delay": 0.027, "actuator/*/lag": 0.002 / np.expm1(0.002 / 0.05)}
    again = corrected(tmp_path / "b", blueprint, fit)
    fitted = Simulation(blueprint, 1, space_of(blueprint, *fit), 1)
    fitted.set_parameters(np.array([list(fit.values())]))
    model = Simulation(again, 1, EMPTY_SPACE, 1)
    history = np.random.default_rng(0).uniform(-1, 1, (1, 25, 2))
    for world in (fitted, model):
        world.restart(np.array([[0.1, 0.2]]), np.array([[1.0, -1.0]]), history)
    for command in waves(blueprint)[:20]:
        expected, seen = fitted.step(command).measured, model.step(command).measured
        np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-6)


def test_corrected_surfaces_are_the_fitted_row(tmp_path: Path) -> None:
    floor = {"floor_condim": 4, "floor_friction": "0.3 .02 .001"}
    blueprint = things(tmp_path / "a", **floor)
    fit = {
        "geom/box/friction": 0.15,
        "geom/box/stiffness": 900.0,
        "geom/ball/restitution": float(restitution(0.3)),  # a damping of 2 * 0.3 * 50 / s: no rounding in XML
        "geom/ball/size/x": 0.12,
        "body/box/mass": 0.9,
    }
    again = corrected(tmp_path / "b", blueprint, fit)
    by_row, by_model = both(blueprint, fit, again)
    np.testing.assert_allclose(by_model, by_row, rtol=0, atol=1e-6)


def test_the_model_as_written_stays_as_it_is(tmp_path: Path) -> None:
    blueprint = arm(tmp_path / "a")
    nominal = {t: p for t, p in zip(ARM_FIT, space_of(blueprint, *ARM_FIT).nominal, strict=True)}
    again = corrected(tmp_path / "b", blueprint, nominal)
    by_row, by_model = both(blueprint, nominal, again)
    np.testing.assert_allclose(by_model, by_row, rtol=0, atol=1e-9)


MESHED = """<mujoco><compiler meshdir="assets"/><asset><mesh file="wedge.obj"/></asset>
  <worldbody><body name="link"><joint name="hinge" axis="0 1 0"/><geom type="mesh" mesh="wedge"/></body></worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""
WEDGE = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def test_a_corrected_model_in_another_folder_finds_its_meshes(tmp_path: Path) -> None:
    (tmp_path / "model" / "assets").mkdir(parents=True)
    (tmp_path / "model" / "assets" / "wedge.obj").write_text(WEDGE)
    (tmp_path / "model" / "arm.xml").write_text(MESHED)
    write_project(tmp_path, "", {"cmd": "{actuator: motor}"}, {"q": "{joint: hinge, quantity: position}"})
    text = (tmp_path / "gapless.yaml").read_text().replace("robot.xml", "model/arm.xml")
    (tmp_path / "gapless.yaml").write_text(text)
    blueprint = compile_project(load_project(tmp_path))
    far = tmp_path / "results" / "fit"
    far.mkdir(parents=True)
    xml = corrected_xml(blueprint, space_of(blueprint, "joint/hinge/damping"), np.array([0.5]), far)
    (far / "model.xml").write_text(xml)
    assert mujoco.MjModel.from_xml_path(str(far / "model.xml")).dof_damping[0] == 0.5
