"""States that no column shows: predictions assume something of them, and say what; or refuse."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.check.examine import examine_data
from gapless.core.errors import InputError
from gapless.core.results import FitErrors
from gapless.fit.data import read_project_data
from gapless.fit.prediction.assumptions import find_assumptions
from gapless.identify.verdict import FitFindings, judge_fit
from gapless.project.load import load_project
from gapless.sim.blueprint import CompiledProject, compile_project
from gapless.sim.measurements import StateReader
from gapless.verbs import check, identify, measure
from unit.check.robots import BASE_POSE, MOTOR, write_base, write_servo
from unit.sim.scenes import THINGS, THINGS_VALUES, arm, write_project

VELOCITY = {"v": "{joint: elbow, quantity: velocity}"}
POSITION = {"q": "{joint: elbow, quantity: position}"}


def texts(blueprint: CompiledProject) -> list[str]:
    return [note.text for note in find_assumptions(blueprint, [])]


def warnings(folder: Path) -> list[str]:
    result = check(folder)
    assert result.sound
    return [note.text for note in result.notes if note.level == "warning" and "no column shows" in note.text]


def test_velocities_alone_of_a_position_servo_are_refused(tmp_path: Path) -> None:
    # Before: sound, and identify gave kp and delay with intervals that excluded the truth.
    folder = write_servo(tmp_path, VELOCITY)
    (fault,) = [note for note in check(folder).notes if note.level == "fault"]
    assert "joint elbow is driven by a position servo (cmd), but only its velocity is mapped (v)" in fault.text
    assert "{joint: elbow, quantity: position}" in fault.text
    for verb in (identify, measure):
        with pytest.raises(InputError, match="only its velocity is mapped"):
            verb(folder)


def test_a_position_servo_with_both_is_fine(tmp_path: Path) -> None:
    assert warnings(write_servo(tmp_path, {**POSITION, **VELOCITY})) == []


def test_the_velocity_alone_of_a_link_on_a_motor_is_an_assumption_about_where_it_hangs(tmp_path: Path) -> None:
    (text,) = warnings(write_servo(tmp_path, VELOCITY, actuator=MOTOR))
    assert "no column shows the position of joint elbow" in text
    assert "elbow at 0 rad, as in the model" in text


def test_where_a_wheel_stands_does_not_matter(tmp_path: Path) -> None:
    xml = """<mujoco><worldbody><body name="wheel" euler="90 0 0"><joint name="wheel" axis="0 0 1"/>
    <geom type="cylinder" size=".1 .02" mass="1"/></body></worldbody>
    <actuator><motor name="m" joint="wheel"/></actuator></mujoco>"""
    measured = {"v": "{joint: wheel, quantity: velocity}"}
    folder = write_servo(tmp_path, VELOCITY, actuator=MOTOR)
    write_project(folder, xml, {"cmd": "{actuator: m}"}, measured, rate_hz=50.0)
    assert read_project_data(folder).assumptions == ()


def test_a_driven_joint_that_nothing_shows_is_an_assumption(tmp_path: Path) -> None:
    blueprint = arm(tmp_path, measurements={"q1": "{joint: shoulder, quantity: position}"})
    (text,) = texts(blueprint)
    assert "no column shows the position of joint elbow" in text
    assert "elbow at 0 rad and at rest" in text


def test_joints_that_carry_a_mapped_body_are_not_shown_by_it(tmp_path: Path) -> None:
    blueprint = arm(tmp_path, measurements={"x": "{body: lower, quantity: x}"})
    (text,) = texts(blueprint)
    assert "position of joint shoulder, elbow" in text


def test_qw_and_qz_alone_are_a_rotation_about_the_vertical_and_said_so(tmp_path: Path) -> None:
    # Before: every window began unturned, in silence; the errors of qw and qz were 0.3 and 0.5.
    folder = write_base(tmp_path, ("x", "y", "z", "qw", "qz"))
    (text,) = warnings(folder)
    assert "no column shows qx, qy of body base" in text
    assert "qx = qy = 0" in text
    errors = measure(folder).columns
    assert all(errors[name].rmse is not None and errors[name].rmse < 0.002 for name in ("x", "y", "qw", "qz"))


def test_a_quaternion_that_changes_its_sign_is_the_same_rotation(tmp_path: Path) -> None:
    folder = write_base(tmp_path, ("x", "y", "qw", "qz"), num_logs=1)
    log = folder / "logs" / "run0.csv"
    names = log.read_text().splitlines()[0].split(",")
    table = np.genfromtxt(log, delimiter=",", skip_header=1)
    table[100:, [names.index("qw"), names.index("qz")]] *= -1
    np.savetxt(log, table, delimiter=",", header=",".join(names), comments="")
    errors = measure(folder).columns
    assert all(errors[name].rmse is not None and errors[name].rmse < 0.002 for name in ("qw", "qz"))


@pytest.mark.parametrize("quantities", [("x", "y", "qz"), ("x", "y", "z", "qw", "qz")], ids=["qz", "tilted"])
def test_a_part_of_a_quaternion_that_is_no_rotation_is_refused(quantities: tuple[str, ...], tmp_path: Path) -> None:
    folder = write_base(tmp_path, quantities, num_logs=1, tilt_rad=0.5)
    with pytest.raises(InputError, match=r"map .*qx, qy too, or only its yaw if it stays level"):
        read_project_data(folder)
    assert not check(folder).sound


def test_a_base_with_x_y_and_yaw_keeps_height_and_lean_of_the_model_and_says_so(tmp_path: Path) -> None:
    (text,) = warnings(write_base(tmp_path, ("x", "y", "yaw"), num_logs=1))
    assert "no column shows z, roll, pitch of body base" in text
    assert "z = 0.05 m as in the model" in text


def test_a_whole_pose_assumes_nothing(tmp_path: Path) -> None:
    assert read_project_data(write_base(tmp_path, BASE_POSE, num_logs=1)).assumptions == ()


def test_a_base_whose_rates_say_that_it_turns_needs_an_orientation(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"body base turns by .* rad.*map qw, qx, qy, qz, or yaw"):
        read_project_data(write_base(tmp_path, ("x", "y", "wz")))


def test_a_thing_that_nothing_shows_is_where_the_model_has_it(tmp_path: Path) -> None:
    xml = THINGS.format(**THINGS_VALUES)
    mapped = {f"ball_{q}": f"{{body: ball, quantity: {q}}}" for q in BASE_POSE}
    folder = write_project(tmp_path, xml, {}, mapped)
    (folder / "logs").mkdir()
    rows = "\n".join(f"{k / 100},0,0,0.5,1,0,0,0" for k in range(20))
    (folder / "logs" / "run.csv").write_text(f"time_s,{','.join(mapped)}\n{rows}\n")
    (note,) = read_project_data(folder).assumptions
    assert "no column shows x, y, z, orientation of body box" in note.text


def test_what_is_assumed_is_a_note_and_a_reason_of_every_fit(tmp_path: Path) -> None:
    found = examine_data(read_project_data(write_base(tmp_path, ("x", "y", "z", "qw", "qz"))))
    assumed = [note.text for note in found.evidence.assumptions]
    nothing = FitErrors((), {}, None, None, None)
    _, reasons = judge_fit(FitFindings("nothing moves", (), (), nothing, nothing, assumptions=assumed))
    assert (reasons[0], len(reasons)) == ("nothing moves", 2)
    assert "qx = qy = 0" in reasons[1]
    assert reasons[1] in [note.text for note in found.every_note if note.level == "warning"]


@pytest.mark.slow
def test_what_identify_assumes_is_among_its_reasons(tmp_path: Path) -> None:
    folder = write_base(tmp_path, ("x", "y", "z", "qw", "qz"), num_logs=2)
    text = (folder / "gapless.yaml").read_text()
    listed = "parameters:\n  - {target: actuator/push/gain, low: 0.5, high: 2}\n"
    (folder / "gapless.yaml").write_text(text.replace("parameters: auto\n", listed))
    result = identify(folder)
    assert any("qx = qy = 0" in reason for reason in result.reasons)
    assert any("qx = qy = 0" in note.text for note in result.notes if note.level == "warning")


def test_yaw_turns_a_body_that_leans_about_the_vertical(tmp_path: Path) -> None:
    # The model's rest leans by 0.3 rad about x; yaw 1.0 turns this about the vertical, and so does its rate.
    xml = """<mujoco><compiler angle="radian"/><worldbody><body name="base" euler="0.3 0 0"><freejoint/>
    <geom size=".1"/></body></worldbody></mujoco>"""
    folder = write_project(tmp_path, xml, {}, {"yaw": "{body: base, quantity: yaw}"})
    blueprint = compile_project(load_project(folder))
    qpos, qvel = StateReader.of(blueprint.project, blueprint.model).state(np.array([[1.0]]), np.array([[2.0]]))
    data = mujoco.MjData(blueprint.model)
    data.qpos[:], data.qvel[:] = qpos[0], qvel[0]
    mujoco.mj_forward(blueprint.model, data)
    frame = data.body("base").xmat.reshape(3, 3)
    assert np.arctan2(frame[1, 0], frame[0, 0]) == pytest.approx(1.0)
    assert frame[2, 2] == pytest.approx(np.cos(0.3))
    np.testing.assert_allclose(frame @ qvel[0, 3:], [0.0, 0.0, 2.0], atol=1e-12)
