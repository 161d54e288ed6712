"""Paths of targets: the kind in front, a known field at the end, any name between them."""

import mujoco
import pytest

from gapless.core.errors import InputError
from gapless.core.target_path import FIELDS, TargetPath
from gapless.project.load import load_project
from gapless.sim.realism.registry import LAYERS, path_of
from gapless.sim.targets import resolve
from gapless.sim.targets.target import split_target

MODEL = """
<mujoco>
  <worldbody>
    <body name="left/upper">
      <joint name="left/shoulder" axis="0 1 0" damping="0.3"/>
      <geom name="left/upper/link" size="0.02" fromto="0 0 0 0 0 -0.3" type="capsule"/>
      <body name="left" pos="0 0 -0.3">
        <joint name="left" axis="0 1 0" damping="0.7"/>
        <geom name="tip" size="0.02" fromto="0 0 0 0 0 -0.3" type="capsule"/>
      </body>
    </body>
  </worldbody>
  <actuator><position name="left/shoulder" joint="left/shoulder" kp="20" kv="1"/></actuator>
</mujoco>
"""
PROJECT = """
gapless: 1
model: robot.xml
rate_hz: 100
commands: {"/cmd/left/shoulder": {actuator: left/shoulder}}
measurements:
  /joint_states.position.left: {joint: left, quantity: position}
  /q_sh: {joint: left/shoulder, quantity: position}
"""


@pytest.mark.parametrize(
    "name", ["elbow", "left/elbow", "/q_sh", "a b", "left/damping", "*", "/joint_states.position.x"]
)
@pytest.mark.parametrize("kind", sorted(set(FIELDS) - {"world"}))
def test_every_field_is_found_behind_any_name(kind: str, name: str) -> None:
    for field in FIELDS[kind]:
        assert split_target(f"{kind}/{name}/{field}") == TargetPath(kind, name, field)


def test_every_knob_of_every_layer_is_found_behind_a_name_with_a_slash() -> None:
    for layer in LAYERS:
        for knob in layer.knobs:
            field = f"{path_of(layer)}/{knob.name}"
            assert split_target(f"joint/left/elbow/{field}") == TargetPath("joint", "left/elbow", field)


def test_a_name_that_exists_wins() -> None:
    # `friction/hump` is a knob, but here `a/friction` is a joint; `hump` is no field of joints, so the knob stays.
    assert split_target("joint/a/friction/hump", {"a"}).name == "a"
    # A geom `wall/size` has a friction; nothing else ends in it.
    assert split_target("geom/wall/size/friction", {"wall/size"}) == TargetPath("geom", "wall/size", "friction")
    # Without a known field, the longest name that exists ends the name.
    assert split_target("joint/left/elbow/dmaping", {"left", "left/elbow"}) == TargetPath(
        "joint", "left/elbow", "dmaping"
    )


def test_slashes_in_names_resolve_to_their_elements(tmp_path) -> None:
    (tmp_path / "robot.xml").write_text(MODEL)
    (tmp_path / "gapless.yaml").write_text(PROJECT)
    project, model = load_project(tmp_path), mujoco.MjModel.from_xml_string(MODEL)
    assert resolve("joint/left/shoulder/damping", project, model).nominal == 0.3
    assert resolve("joint/left/damping", project, model).nominal == 0.7
    assert resolve("measurement//q_sh/bias", project, model).unit == "rad"
    assert resolve("actuator/left/shoulder/kp", project, model).nominal == 20
    assert resolve("measurement//joint_states.position.left/noise/noise", project, model).knob is not None


def test_a_wrong_field_behind_a_name_with_a_slash_names_the_fields(tmp_path) -> None:
    (tmp_path / "robot.xml").write_text(MODEL)
    (tmp_path / "gapless.yaml").write_text(PROJECT)
    project, model = load_project(tmp_path), mujoco.MjModel.from_xml_string(MODEL)
    with pytest.raises(InputError, match="nothing called 'dampin' there; write one of damping"):
        resolve("joint/left/shoulder/dampin", project, model)
    with pytest.raises(InputError, match=r"no joint 'right/shoulder'; choose from: left/shoulder"):
        resolve("joint/right/shoulder/damping", project, model)


@pytest.mark.parametrize("target", ["joint/left/shoulder/damping", "measurement//q_sh/bias"])
def test_gapless_yaml_takes_names_with_slashes(tmp_path, target: str) -> None:
    (tmp_path / "robot.xml").write_text(MODEL)
    (tmp_path / "gapless.yaml").write_text(PROJECT + f"parameters: [{{target: {target}, low: 0, high: 1}}]\n")
    (entry,) = load_project(tmp_path).parameters
    assert entry.target == target
