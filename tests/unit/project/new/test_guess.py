"""`new` understands names as people have them, and units whatever way a column was mapped."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from gapless.project.load import load_project
from gapless.project.new.create import new_project
from gapless.project.records import Project
from unit.project.conftest import write_csv

from .robots import UR_JOINTS, moving, ros_log, speed, write_arm

TIMES_S = np.arange(0, 8, 0.01)
DEGREE = float(np.pi / 180)
Columns = Mapping[str, Sequence[float]]


def make(folder: Path, model: Path, columns: Mapping[str, object]) -> tuple[Project, dict[str, str]]:
    """Makes a project; returns it and the notes by column."""
    written = {"time_s": TIMES_S, **columns} if not any("time" in name for name in columns) else columns
    made = new_project(model, write_csv(folder / "run.csv", written), folder / "made")
    return load_project(folder / "made"), {note.where: note.text for note in made.notes}


def measured(project: Project) -> dict[str, tuple[str, str]]:
    return {item.column: (item.name, item.quantity) for item in project.measurements}


def commanded(project: Project) -> dict[str, str]:
    return {item.column: item.actuator for item in project.commands}


def test_states_and_commands_of_a_ros_arm(tmp_path: Path) -> None:
    joints = [f"{name}_joint" for name in UR_JOINTS]
    model = write_arm(tmp_path / "ur.xml", joints, UR_JOINTS)
    project, notes = make(tmp_path, model, ros_log(TIMES_S, joints))
    wanted = {
        f"/joint_states.{kind}.{name}": (name, kind) for kind in ("position", "velocity", "effort") for name in joints
    }
    assert measured(project) == wanted
    controller = "/forward_position_controller/commands.data"
    assert commanded(project) == {f"{controller}[{k}]": name for k, name in enumerate(UR_JOINTS)}
    assert "'position' says position" in notes["/joint_states.position.elbow_joint"]
    assert "names agree" in notes["/joint_states.position.elbow_joint"]


def test_numbered_commands_in_another_order_are_found_by_what_they_move(tmp_path: Path) -> None:
    joints = [f"{name}_joint" for name in UR_JOINTS]
    model = write_arm(tmp_path / "ur.xml", joints, UR_JOINTS)
    order = [2, 1, 0, 3, 4, 5]  # joint_trajectory_controller of many UR drivers: elbow first
    project, notes = make(tmp_path, model, ros_log(TIMES_S, joints, order))
    controller = "/forward_position_controller/commands.data"
    assert commanded(project) == {f"{controller}[{k}]": UR_JOINTS[joint] for k, joint in enumerate(order)}
    assert "/joint_states.position.elbow_joint" in notes[f"{controller}[0]"]


@pytest.mark.parametrize("prefix", ["", "/joint_states.position.", "position_", "robot0_pos_"])
def test_left_and_right_are_never_mixed(tmp_path: Path, prefix: str) -> None:
    joints = ("wheel_left_joint", "wheel_right_joint")
    model = write_arm(tmp_path / "base.xml", joints, ())
    columns = {f"{prefix}{name}": moving(k, TIMES_S) for k, name in enumerate(joints)}
    project, _ = make(tmp_path, model, columns)
    assert measured(project) == {f"{prefix}{name}": (name, "position") for name in joints}


def test_a_side_that_the_model_lacks_is_not_mapped(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "base.xml", ("wheel_right_joint", "arm_1", "arm_2"), ())
    columns = {"q_wheel_left_joint": moving(0, TIMES_S), "q_arm_1": moving(1, TIMES_S), "q_arm_3": moving(2, TIMES_S)}
    project, notes = make(tmp_path, model, columns)
    assert measured(project) == {"q_arm_1": ("arm_1", "position")}
    assert "not mapped" in notes["q_wheel_left_joint"]


@pytest.mark.parametrize(
    ("column", "name", "quantity"),
    [
        ("observation.state.elbow.pos", "elbow", "position"),
        ("robot0_elbow_velocity", "elbow", "velocity"),
        ("Elbow Torque [Nm]", "elbow", "effort"),
        ("left/elbow/position", "elbow", "position"),
        ("actual_position_elbow", "elbow", "position"),
        ("elb_pos", "elbow", "position"),
        ("/controller/state.feedback.positions.elbow", "elbow", "position"),
        ("kElbow", "elbow", "position"),
    ],
)
def test_names_of_measurements(tmp_path: Path, column: str, name: str, quantity: str) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow", "wrist"), ())
    project, _ = make(tmp_path, model, {column: moving(0, TIMES_S)})
    assert measured(project) == {column: (name, quantity)}


@pytest.mark.parametrize(
    "column", ["action.elbow.pos", "elbow_setpoint", "target_position_elbow", "cmd/elbow", "elbow_goal_pos"]
)
def test_names_of_commands_also_by_the_joint_that_the_actuator_drives(tmp_path: Path, column: str) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"), ("m1", "m2"))
    project, _ = make(tmp_path, model, {column: moving(0, TIMES_S), "q_shoulder": moving(1, TIMES_S)})
    assert commanded(project) == {column: "m2"}


def test_other_languages_have_letters_too(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("épaule", "coude", "手首"), ())
    columns = {f"position.{name}": moving(k, TIMES_S) for k, name in enumerate(("épaule", "coude", "手首"))}
    project, _ = make(tmp_path, model, columns)
    assert [name for name, _ in measured(project).values()] == ["épaule", "coude", "手首"]


def test_what_is_no_signal_of_the_robot_is_left_alone(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"), ("m1", "m2"))
    columns = {
        "q_shoulder": moving(0, TIMES_S),
        "q_elbow": moving(1, TIMES_S),
        "/joint_states.header.seq": TIMES_S,
        "frame_index": TIMES_S,
        "elbow_position_error": moving(2, TIMES_S),
        "elbow_temperature": moving(2, TIMES_S),
        "/cmd_vel.linear.x": moving(3, TIMES_S),
        "/cmd_vel.angular.z": moving(4, TIMES_S),
    }
    project, _ = make(tmp_path, model, columns)
    assert list(measured(project)) == ["q_shoulder", "q_elbow"]
    assert commanded(project) == {}


def test_torques_that_are_applied_and_torques_that_are_measured(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"), kp="0")
    model.write_text(model.read_text().replace("<position", "<motor").replace('kp="0"', ""))
    columns = {f"{kind}{k}": moving(k + len(kind), TIMES_S) for kind in ("tau", "q", "tau_meas") for k in (1, 2)}
    project, _ = make(tmp_path, model, columns)
    assert commanded(project) == {"tau1": "shoulder", "tau2": "elbow"}
    assert [measured(project)[f"tau_meas{k}"] for k in (1, 2)] == [("shoulder", "effort"), ("elbow", "effort")]


def test_a_joint_called_as_the_column_comes_before_a_body_that_is_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(
        """<mujoco><worldbody><body name="hand"><joint name="hand_x" type="slide"/><geom size=".1"/></body></worldbody>
        <actuator><adhesion name="suction" body="hand" ctrlrange="0 1"/><motor name="push" joint="hand_x"/></actuator>
        </mujoco>"""
    )
    columns = {"hand_x": moving(0, TIMES_S), "suction": 1.0 * (moving(1, TIMES_S) > 0), "u_push": moving(2, TIMES_S)}
    project, _ = make(tmp_path, tmp_path / "robot.xml", columns)
    assert measured(project) == {"hand_x": ("hand_x", "position")}
    assert commanded(project) == {"suction": "suction", "u_push": "push"}


def test_a_row_number_commands_nothing(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("elbow",))
    project, _ = make(tmp_path, model, {"q_elbow": moving(0, TIMES_S), "Unnamed: 0": np.arange(len(TIMES_S))})
    assert commanded(project) == {}


def test_a_name_that_fits_two_joints_is_not_guessed(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder_pan", "shoulder_lift", "elbow"), ())
    project, notes = make(tmp_path, model, {"q_shoulder": moving(0, TIMES_S), "q_elbow": moving(1, TIMES_S)})
    assert list(measured(project)) == ["q_elbow"]
    assert "shoulder_pan" in notes["q_shoulder"]
    assert "shoulder_lift" in notes["q_shoulder"]


def test_numbers_that_begin_at_0_while_the_joints_begin_at_1(tmp_path: Path) -> None:
    joints = [f"joint_{k}" for k in range(1, 7)]
    model = write_arm(tmp_path / "arm.xml", joints, ())
    project, _ = make(tmp_path, model, {f"observation.state_{k}": moving(k, TIMES_S) for k in range(6)})
    assert [name for name, _ in measured(project).values()] == joints


def test_a_name_that_says_no_quantity_is_not_mapped(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"), ("m1", "m2"))
    columns = {
        "elbow": moving(1, TIMES_S),
        "elbow_d": speed(1, TIMES_S),
        "elbow_sp": moving(1, TIMES_S + 0.04),
        "elbow_noise": np.sin(31 * TIMES_S),
    }
    project, notes = make(tmp_path, model, columns)
    assert measured(project) == {"elbow": ("elbow", "position")}
    assert commanded(project) == {"elbow_sp": "m2"}
    assert "not mapped" in notes["elbow_d"]


def test_degrees_of_commands_that_are_mapped_in_order(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"), ("m1", "m2"))
    columns = {
        "q_shoulder_deg": moving(0, TIMES_S) / DEGREE,
        "q_elbow_deg": moving(1, TIMES_S) / DEGREE,
        "cmd_first_deg": np.sin(3 * TIMES_S) / DEGREE,
        "cmd_second_deg": np.cos(3 * TIMES_S) / DEGREE,
    }
    project, notes = make(tmp_path, model, columns)
    assert commanded(project) == {"cmd_first_deg": "m1", "cmd_second_deg": "m2"}
    assert [item.scale for item in (*project.commands, *project.measurements)] == pytest.approx([DEGREE] * 4)
    assert "0.0174533" in notes["cmd_first_deg"]


def test_commands_and_speeds_follow_positions_that_are_degrees_by_value(tmp_path: Path) -> None:
    model = write_arm(tmp_path / "arm.xml", ("shoulder", "elbow"), ("m1", "m2"))
    small = 0.1 * moving(1, TIMES_S)  # at most 4 degrees, which could be radians too
    columns = {
        "q_shoulder": moving(0, TIMES_S) / DEGREE,
        "q_elbow": small / DEGREE,
        "dq_shoulder": speed(0, TIMES_S) / DEGREE,
        "dq_elbow": 0.1 * speed(1, TIMES_S),  # rad/s beside degrees: people do that
        "cmd_shoulder": moving(0, TIMES_S + 0.05) / DEGREE,
        "cmd_elbow": 0.1 * moving(1, TIMES_S + 0.05) / DEGREE,
    }
    project, notes = make(tmp_path, model, columns)
    scales = {item.column: item.scale for item in (*project.commands, *project.measurements)}
    wanted = dict.fromkeys(columns, DEGREE) | {"dq_elbow": 1.0}
    assert scales == pytest.approx(wanted)
    assert "degrees" in notes["cmd_elbow"]
