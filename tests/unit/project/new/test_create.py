"""`new` maps what it can, says what it guessed, and writes a project that loads."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapless.core.errors import LogError, ProjectError
from gapless.project.load import load_project
from gapless.project.log.read import read_logs
from gapless.project.new.create import new_project
from unit.project.conftest import ARM, table, write_csv


def test_arm_round_trip(arm: Path, tmp_path: Path) -> None:
    made = new_project(arm / "robot.xml", arm / "logs" / "run0.csv", tmp_path / "made")
    project = load_project(tmp_path / "made")
    assert made.project == str(tmp_path / "made")
    assert len(made.inputs) == 2
    assert [(c.column, c.actuator) for c in project.commands] == [("u1", "m1"), ("u2", "m2")]
    measured = [(m.column, m.name, m.quantity) for m in project.measurements]
    assert measured == [("q1", "shoulder", "position"), ("q2_deg", "elbow", "position")]
    assert project.measurements[1].scale == pytest.approx(np.pi / 180)
    assert project.rate_hz == 100.0
    assert len(read_logs(project)) == 1
    assert {"model", "logs", "rate_hz", "u1", "u2", "q1", "q2_deg"} == {note.where for note in made.notes}
    with pytest.raises(ProjectError, match="already"):
        new_project(arm / "robot.xml", arm / "logs" / "run0.csv", tmp_path / "made")


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_box_round_trip_converts_time(box_files: tuple[Path, Path], tmp_path: Path, ending: str) -> None:
    model, log = box_files
    data = np.genfromtxt(log, delimiter=",", names=True)
    columns = {name: data[name] for name in data.dtype.names or ()}
    other = log.with_suffix(f".{ending}")
    if ending == "parquet":
        pq.write_table(pa.table(columns), other)
    if ending == "npz":
        np.savez(other, **columns)
    made = new_project(model, other, tmp_path / "toss")
    project = load_project(tmp_path / "toss")
    assert project.commands == ()
    assert project.rate_hz == 50.0
    assert {(m.name, m.column) for m in project.measurements} == {("box", m.quantity) for m in project.measurements}
    assert len(project.measurements) == 13
    (read,) = read_logs(project)
    assert read.episode.duration_s == pytest.approx(99 * 0.020)
    np.testing.assert_allclose(read.episode.measurements.column("vz"), columns["vz"])
    assert any(note.where == "timestamp" and "0.001 s" in note.text for note in made.notes)


@pytest.mark.parametrize(
    ("column", "element", "name", "quantity"),
    [
        ("q_shoulder", "joint", "shoulder", "position"),
        ("elbow_angle", "joint", "elbow", "position"),
        ("elbow", "joint", "elbow", "position"),
        ("dq_elbow", "joint", "elbow", "velocity"),
        ("sliderVel", "joint", "slider", "velocity"),
        ("tau_shoulder", "joint", "shoulder", "effort"),
        ("box_x", "body", "box", "x"),
        ("box_qw", "body", "box", "qw"),
        ("tip_force_z", "sensor", "tip_force", "value"),
    ],
)
def test_names(tmp_path: Path, column: str, element: str, name: str, quantity: str) -> None:
    (tmp_path / "robot.xml").write_text(ARM)
    log = write_csv(tmp_path / "log.csv", {"time_s": [0, 0.01, 0.02], column: [0, 0.1, 0.2]})
    new_project(tmp_path / "robot.xml", log, tmp_path / "made")
    (found,) = load_project(tmp_path / "made").measurements
    assert (found.column, found.element, found.name, found.quantity) == (column, element, name, quantity)
    assert found.axis == (2 if element == "sensor" else 0)


def test_degrees_by_range_only_where_the_joint_has_one(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(ARM)
    values = [-80.0, 10.0, 80.0]
    columns = {"time_s": [0, 0.01, 0.02], "q_shoulder": values, "elbow_angle": values, "weather": values}
    made = new_project(tmp_path / "robot.xml", write_csv(tmp_path / "l.csv", columns), tmp_path / "made")
    scales = {m.name: m.scale for m in load_project(tmp_path / "made").measurements}
    assert scales == {"shoulder": pytest.approx(np.pi / 180), "elbow": 1.0}
    texts = {note.where: note.text for note in made.notes}
    assert "so degrees" in texts["q_shoulder"]
    assert "not mapped" in texts["weather"]


def test_nothing_to_map_lists_both_sides(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(ARM)
    log = write_csv(tmp_path / "log.csv", {"time_s": [0, 1], "weather": [0, 1]})
    with pytest.raises(ProjectError) as caught:
        new_project(tmp_path / "robot.xml", log, tmp_path / "made")
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert "weather" in text
    assert "shoulder" in text
    assert "box" in text
    assert not (tmp_path / "made").exists()
    with pytest.raises(LogError, match=r"no time column.*weather"):
        new_project(tmp_path / "robot.xml", write_csv(log, {"weather": [0, 1]}), tmp_path / "made")


def test_model_with_assets_is_referred_to(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.mkdir()
    (given / "part.xml").write_text(ARM)
    (given / "robot.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    log = write_csv(given / "run.csv", table())
    (given / "run.json").write_text('{"outcome": "success"}')
    made = new_project(given / "robot.xml", log, tmp_path / "made")
    project = load_project(tmp_path / "made")
    assert not (tmp_path / "made" / "robot.xml").exists()
    assert project.model_path.resolve() == (given / "robot.xml").resolve()
    assert any(note.where == "model" and "part.xml" in note.text for note in made.notes)
    assert read_logs(project)[0].episode.outcome == "success"


def test_files_in_place_are_used_and_others_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(ARM)
    log = write_csv(tmp_path / "logs" / "run.csv", table())
    new_project(tmp_path / "robot.xml", log, tmp_path)
    assert load_project(tmp_path).model_path == tmp_path / "robot.xml"
    other = tmp_path / "other"
    other.mkdir()
    (other / "robot.xml").write_text("mine")
    with pytest.raises(ProjectError, match="not overwritten"):
        new_project(tmp_path / "robot.xml", log, other)
    assert (other / "robot.xml").read_text() == "mine"


def test_awkward_names_survive(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(ARM)
    columns = {"time [ms]": [0, 10, 20, 20], "q: elbow #1, {rad}": [0, 1, 2, 3], "on": [1, 2, 3, 4]}
    new_project(tmp_path / "robot.xml", write_csv(tmp_path / "l.csv", columns), tmp_path / "no")
    project = load_project(tmp_path / "no")
    assert project.measurement_names == ("q: elbow #1, {rad}",)
    assert project.name == "no"
    assert project.rate_hz == 100.0
    assert list(read_logs(project)[0].episode.measurements.times_s) == pytest.approx([0, 0.01, 0.02])


CART = """<mujoco><worldbody><body name="cart"><joint name="cart" type="slide" axis="1 0 0"/>
<geom name="cart" size=".1" mass="1"/></body></worldbody>
<actuator><motor name="drive" joint="cart"/>{more}</actuator></mujoco>"""


def test_the_only_column_left_commands_the_only_actuator_left(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(CART.format(more=""))
    log = write_csv(tmp_path / "run.csv", {"time_s": [0, 1, 2], "voltage": [0, 1, 0], "cart": [0, 0, 1]})
    result = new_project(tmp_path / "robot.xml", log, tmp_path / "made")
    assert [command.actuator for command in load_project(tmp_path / "made").commands] == ["drive"]
    assert not [note for note in result.notes if note.level == "warning"]


def test_an_actuator_without_a_column_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "robot.xml").write_text(CART.format(more='<motor name="brake" joint="cart"/>'))
    log = write_csv(tmp_path / "run.csv", {"time_s": [0, 1, 2], "voltage": [0, 1, 0], "cart": [0, 0, 1]})
    result = new_project(tmp_path / "robot.xml", log, tmp_path / "made")
    warned = [note.where for note in result.notes if note.level == "warning"]
    assert warned == ["actuator drive", "actuator brake"]
