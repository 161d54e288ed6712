"""A model without actuators whose efforts are logged: `new` offers to drive its joints by them."""

import struct
from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.project.load import load_project
from gapless.project.log.inspect import read_and_inspect
from gapless.project.model import load_model
from gapless.project.new.create import new_project
from unit.project.conftest import write_csv

from .robots import moving, write_arm

JOINTS = ("shoulder_joint", "elbow_joint")
LINK = """<link name="{child}"><inertial><mass value="1"/><origin xyz="0 0 .1"/>
<inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial>
<collision><geometry><mesh filename="meshes/link.stl"/></geometry></collision></link>
<joint name="{name}" type="revolute"><origin xyz="0 0 .3"/><parent link="{parent}"/><child link="{child}"/>
<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="50" velocity="2"/></joint>"""


def write_mesh(path: Path) -> None:
    """Writes a tetrahedron as binary STL."""
    corners = 0.1 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    triangles = b"".join(struct.pack("<12f", 0, 0, 0, *corners[list(face)].ravel()) + b"\0\0" for face in faces)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\0" * 80 + struct.pack("<I", len(faces)) + triangles)


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "given" / "arm.urdf"
    write_mesh(path.parent / "meshes" / "link.stl")
    links = zip(("base", "upper"), ("upper", "lower"), JOINTS, strict=True)
    body = "".join(LINK.format(parent=parent, child=child, name=name) for parent, child, name in links)
    path.write_text(f'<robot name="arm"><link name="base"/>{body}</robot>')
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    times_s = np.arange(0, 4, 0.01)
    columns = {f"/joint_states.position.{name}": moving(k, times_s) for k, name in enumerate(JOINTS)}
    columns |= {f"/joint_states.effort.{name}": moving(k + 2, times_s) for k, name in enumerate(JOINTS)}
    return write_csv(tmp_path / "given" / "run.csv", {"time_s": times_s, **columns})


def test_new_and_check_say_that_nothing_drives_the_joints(urdf: Path, log: Path, tmp_path: Path) -> None:
    made = new_project(urdf, log, tmp_path / "made")
    assert any(note.level == "warning" and "--drive-by-effort" in note.text for note in made.notes)
    notes = read_and_inspect(load_project(tmp_path / "made"))[1]
    (said,) = [note for note in notes if "--drive-by-effort" in note.text]
    assert said.level == "warning"
    assert "nothing drives" in said.text


def test_joints_driven_by_the_logged_efforts(urdf: Path, log: Path, tmp_path: Path) -> None:
    made = new_project(urdf, log, tmp_path / "made", drive_by_effort=True)
    project = load_project(tmp_path / "made")
    assert {item.column: item.actuator for item in project.commands} == {
        f"/joint_states.effort.{name}": name for name in JOINTS
    }
    assert {item.quantity for item in project.measurements} == {"position"}
    assert [item.unit for item in project.commands] == ["N·m", "N·m"]
    model, original = load_model(project.model_path), load_model(urdf)
    assert model.nu == 2
    assert (model.nmesh, model.ngeom) == (original.nmesh, original.ngeom) == (1, 2)
    np.testing.assert_allclose(model.body_mass, original.body_mass)
    assert list(model.actuator_trnid[:, 0]) == [mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, n) for n in JOINTS]
    assert any(note.where == "model" and "motor" in note.text for note in made.notes)
    assert not [note for note in read_and_inspect(project)[1] if "--drive-by-effort" in note.text]


def test_driving_by_effort_needs_efforts_and_a_model_without_actuators(urdf: Path, tmp_path: Path) -> None:
    times_s = np.arange(0, 4, 0.01)
    columns = {f"q_{name}": moving(k, times_s) for k, name in enumerate(JOINTS)}
    bare = write_csv(tmp_path / "bare.csv", {"time_s": times_s, **columns})
    with pytest.raises(InputError, match="no effort"):
        new_project(urdf, bare, tmp_path / "made", drive_by_effort=True)
    driven = write_arm(tmp_path / "arm.xml", JOINTS)
    with pytest.raises(InputError, match=r"has actuators.*shoulder_joint"):
        new_project(driven, bare, tmp_path / "made", drive_by_effort=True)
    assert not (tmp_path / "made").exists()
