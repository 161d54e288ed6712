"""Masses that are carried, and bodies that stay possible whatever is written."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from gapless.sim.targets.joint_and_body import add_point_mass, find_tip
from unit.sim.scenes import (
    ARM,
    ARM_COMMANDS,
    ARM_MEASUREMENTS,
    ARM_VALUES,
    arm,
    run_plain,
    run_rows,
    space_of,
    write_project,
)
from unit.sim.test_corrected import both, corrected

CARRIED = '<body pos="{}"><inertial pos="0 0 0" mass="{}" diaginertia="1e-12 1e-12 1e-12"/></body>'


def test_a_payload_is_a_small_body_that_is_fixed_there(tmp_path: Path) -> None:
    xml = ARM.format(**ARM_VALUES).replace('<site name="tip"', CARRIED.format("0 0 -.2", 0.3) + '<site name="tip"')
    place = write_project(tmp_path / "a", xml, ARM_COMMANDS, ARM_MEASUREMENTS)
    expected = run_plain(compile_project(load_project(place)))
    seen = run_rows(arm(tmp_path / "b"), {"site/tip/payload": 0.3})[:, 0]
    np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-6)


def test_a_payload_of_a_body_sits_at_its_centre(tmp_path: Path) -> None:
    xml = ARM.format(**ARM_VALUES).replace(
        '<body name="lower"', CARRIED.format(".01 0 -.15", 0.5) + '<body name="lower"'
    )
    place = write_project(tmp_path / "a", xml, ARM_COMMANDS, ARM_MEASUREMENTS)
    expected = run_plain(compile_project(load_project(place)))
    seen = run_rows(arm(tmp_path / "b"), {"body/upper/payload": 0.5})[:, 0]
    np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-6)


LINK = "<mujoco><worldbody><body name='link'><joint axis='0 1 0' pos='0 0 .1'/>{}</body></worldbody></mujoco>"
FAR_ENDS = (
    # a rod from the joint downwards: it ends at -0.4, its round end does not count
    ("<geom type='capsule' size='.02' fromto='0 0 .1 0 0 -.4'/>", [0.0, 0.0, -0.4]),
    # a sphere of 0.05 at -0.3 that weighs nothing beside the rod: it ends at -0.35, beyond the rod
    (
        "<geom type='capsule' size='.02' fromto='0 0 .1 0 0 -.2' mass='1'/><geom size='.05' pos='0 0 -.3' mass='0'/>",
        [0.0, 0.0, -0.35],
    ),
    # a plate along x, 0.2 long and with its joint 0.1 above its face: the line goes straight down, by half its height
    ("<geom type='box' size='.1 .1 .03'/>", [0.0, 0.0, -0.03]),
)


@pytest.mark.parametrize(("geoms", "tip"), FAR_ENDS)
def test_a_far_end_is_where_the_geoms_end_along_the_link(geoms: str, tip: list[float]) -> None:
    model = mujoco.MjModel.from_xml_string(LINK.format(geoms))
    np.testing.assert_allclose(find_tip(model, 1), tip, rtol=0, atol=1e-9)


def test_a_payload_at_the_tip_is_one_at_a_site_there(tmp_path: Path) -> None:
    rod = '<geom type="capsule" size=".01" fromto="0 0 0 0 0 -.2" mass="0" contype="0" conaffinity="0"/>'
    xml = ARM.format(**ARM_VALUES).replace('<site name="tip"', rod + '<site name="tip"')
    blueprint = compile_project(load_project(write_project(tmp_path, xml, ARM_COMMANDS, ARM_MEASUREMENTS)))
    seen, expected = (run_rows(blueprint, {target: 0.3}) for target in ("body/lower/tip_payload", "site/tip/payload"))
    np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-9)


def test_a_body_that_turns_about_its_centre_has_no_far_end(tmp_path: Path) -> None:
    model = mujoco.MjModel.from_xml_string(LINK.format("<geom type='capsule' size='.02' fromto='0 0 .2 0 0 0'/>"))
    assert find_tip(model, 1) is None
    with pytest.raises(InputError, match="its centre is at its joint"):
        resolve("body/link/tip_payload", arm(tmp_path).project, model)


def test_two_parts_become_one_in_closed_form() -> None:
    # 1 kg at x = 0 with inertias (1, 2, 2), and 3 kg at x = 4: centre x = 3; about it 9 * 1 + 1 * 3 = 12 more in y, z.
    whole = add_point_mass(
        np.array([1.0]),
        np.zeros((1, 3)),
        np.array([[1.0, 0, 0, 0]]),
        np.array([[1.0, 2.0, 2.0]]),
        np.array([3.0]),
        np.array([4.0, 0, 0]),
    )
    np.testing.assert_allclose(whole[0], [4.0])
    np.testing.assert_allclose(whole[1], [[3.0, 0, 0]])
    np.testing.assert_allclose(whole[3], [[1.0, 14.0, 14.0]])


def test_a_payload_counts_on_top_of_mass_and_centre_in_any_order(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    row = {"body/lower/payload": 0.2, "site/tip/payload": 0.1, "body/lower/mass": 0.6, "body/lower/com/x": 0.02}
    first = run_rows(blueprint, row)
    np.testing.assert_allclose(run_rows(blueprint, dict(reversed(row.items()))), first, rtol=0, atol=1e-9)


def test_the_corrected_model_carries_the_payload(tmp_path: Path) -> None:
    blueprint = arm(tmp_path / "a")
    # 0.4 kg at -0.1 and 0.4 kg at -0.2: 0.8 kg at -0.15, numbers that lose nothing in XML, which has 6 digits.
    fit = {"site/tip/payload": 0.4}
    again = corrected(tmp_path / "b", blueprint, fit)
    by_row, by_model = both(blueprint, fit, again)
    np.testing.assert_allclose(by_model, by_row, rtol=0, atol=1e-6)


def test_bodies_stay_possible(tmp_path: Path) -> None:
    # Density at least 0 everywhere: no principal inertia about the centre exceeds the sum of the other two.
    blueprint = arm(tmp_path)
    targets = ("body/lower/mass", "body/lower/inertia", "body/lower/payload", "site/tip/payload", "body/lower/com/x")
    targets += ("body/lower/com/y", "body/lower/com/z")
    world = Simulation(blueprint, 200, space_of(blueprint, *targets), 1)
    rng = np.random.default_rng(0)
    low, high = [0.1, 0.3, 0.0, 0.0, -0.1, -0.1, -0.3], [2.0, 3.0, 1.0, 1.0, 0.1, 0.1, 0.1]
    world.set_parameters(rng.uniform(low, high, (200, len(targets))))
    body = blueprint.model.body("lower").id
    inertia = np.sort(world.fields.of("body_inertia")[:, body], axis=1)
    assert np.all(inertia[:, 0] > 0)
    assert np.all(inertia[:, 0] + inertia[:, 1] >= inertia[:, 2] * (1 - 1e-9))
    frame = world.fields.of("body_iquat")[:, body]
    np.testing.assert_allclose(np.linalg.norm(frame, axis=1), 1.0, rtol=1e-9)


def test_what_has_no_mass_carries_nothing(tmp_path: Path) -> None:
    xml = "<mujoco><worldbody><site name='s'/><body><joint/><geom size='.1'/></body></worldbody></mujoco>"
    model = mujoco.MjModel.from_xml_string(xml)
    with pytest.raises(InputError, match="no mass of its own"):
        resolve("site/s/payload", arm(tmp_path / "a").project, model)
