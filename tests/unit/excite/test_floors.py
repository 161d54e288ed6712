"""How low a motion may go where the model has no floor, and that true extents count."""

from functools import partial
from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.cli.main import run
from gapless.core.errors import InputError
from gapless.core.results import ExciteResult
from gapless.excite import verb
from gapless.excite.knowledge import read_knowledge
from gapless.excite.play import make_start, read_motion
from gapless.excite.search import ExciteConfig
from gapless.excite.workspace import Workspace, measure_distance
from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, compile_project
from gapless.sim.simulation import Simulation
from unit.sim.scenes import write_project

# How good the motion is, is not tested here: searches end early.
excite = partial(verb.excite, config=ExciteConfig(min_motions=8, max_motions=8, num_generations=1))

# Three links of 0.3 m on a base that stands on z = 0, bent over so that the last one is 0.1 m above the table.
ARM = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody>{world}
<body name="base" pos="0 0 {height}"><geom name="base" type="cylinder" fromto="0 0 0 0 0 .1" size=".06"/>
<body name="upper" pos="0 0 .12"><joint name="shoulder" axis="0 1 0" damping="1"/>
<geom name="upper" type="capsule" fromto="0 0 0 0 0 .3" size=".03" mass="1"/>
<body name="fore" pos="0 0 .3"><joint name="elbow" axis="0 1 0" damping="1"/>
<geom name="fore" type="capsule" fromto=".05 0 0 .3 0 0" size=".03" mass=".6"/>
<body name="hand" pos=".3 0 0"><joint name="wrist" axis="0 1 0" damping=".5"/>
<geom name="hand" type="capsule" fromto="0 0 -.05 0 0 -.29" size=".02" mass=".2"/>
</body></body></body></body></worldbody><actuator>
<position name="shoulder" joint="shoulder" kp="300" kv="20"/><position name="elbow" joint="elbow" kp="200" kv="10"/>
<position name="wrist" joint="wrist" kp="50" kv="2"/></actuator></mujoco>"""
LINKS = ("shoulder", "elbow", "wrist")
COMMANDS = {f"u_{name}": f"{{actuator: {name}}}" for name in LINKS}
MEASUREMENTS = {f"q_{name}": f"{{joint: {name}, quantity: position, noise: 0.001}}" for name in LINKS}
WANTED = [f"{{target: joint/{name}/damping, low: 0, high: 5}}" for name in LINKS]


def write_arm(folder: Path, world: str = "", height: float = 0.0, xml: str = ARM) -> Path:
    model = xml.format(world=world, height=height)
    return write_project(folder, model, COMMANDS, MEASUREMENTS, rate_hz=50, parameters=WANTED)


def lowest_reached(folder: Path, found: ExciteResult) -> float:
    """Returns the lowest height of the capsules' surfaces over all control steps, from their ends: closed form."""
    project = load_project(folder)
    blueprint = compile_project(project)
    world = Simulation(blueprint, 1, EMPTY_SPACE)
    world.reset(make_start(project, found.start), np.random.default_rng(0))
    model, data = blueprint.model, mujoco.MjData(blueprint.model)
    least = np.inf
    for command in read_motion(project, str(found.path)):
        world.step(command[None])
        data.qpos[:] = world.batch.bind("qpos")[0]
        mujoco.mj_kinematics(model, data)
        for name in ("upper", "fore", "hand"):
            geom = model.geom(name).id
            radius, half = model.geom_size[geom, :2]
            drop = half * abs(data.geom_xmat[geom].reshape(3, 3)[2, 2])
            least = min(least, float(data.geom_xpos[geom, 2] - drop - radius))
    return least


@pytest.mark.parametrize("height", [0.0, 0.8])
def test_without_a_floor_nothing_goes_below_the_base(height: float, tmp_path: Path) -> None:
    folder = write_arm(tmp_path, height=height)
    found = excite(folder, seconds=6.0)
    assert found.path is not None
    assert lowest_reached(folder, found) > height
    text = f"nothing below z = {height:.2f} m, the lowest point of its base (no floor in the model; --lowest sets it)"
    assert found.assumed[0] == text


def test_the_lowest_height_may_be_given(tmp_path: Path) -> None:
    folder = write_arm(tmp_path)
    found = excite(folder, seconds=6.0, lowest_m=0.08)
    assert lowest_reached(folder, found) > 0.08
    assert found.assumed[0] == "nothing below z = 0.08 m, as asked for (no floor in the model)"


def test_a_floor_of_the_model_is_said_and_kept_by_what_does_not_collide_with_it(tmp_path: Path) -> None:
    world = '<geom name="table" type="plane" size="1 1 .1" contype="0" conaffinity="0"/>'
    folder = write_arm(tmp_path, world)
    found = excite(folder, seconds=6.0)
    assert lowest_reached(folder, found) > 0.0
    assert found.assumed[0] == "nothing below what the model has as a floor: table"


def test_a_wall_is_no_floor(tmp_path: Path) -> None:
    world = '<geom name="wall" type="plane" size="1 1 .1" pos="2 0 0" zaxis="-1 0 0"/>'
    space = workspace(write_arm(tmp_path, world))[0]
    assert space.assumed[0].startswith("nothing below z = 0.00 m")


def test_a_robot_that_hangs_below_its_base_is_asked_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_arm(
        tmp_path / "arm", height=1.0, xml=ARM.replace('name="base" pos', 'name="base" euler="180 0 0" pos')
    )
    assert run(["excite", str(folder), "--seconds", "6"]) == 2
    error = capsys.readouterr().err
    # The base reaches down to 0.9 m; the elbow is 0.12 + 0.3 m below its flange, and the forearm 3 cm thick around it.
    assert "the model has no floor, and at rest fore (0.55 m) is lower than the base (0.90 m)" in error
    assert "give the height that nothing may go below: --lowest METRES" in error
    assert len(error.splitlines()) == 1
    assert not (folder / "excite.csv").exists()
    found = excite(folder, seconds=6.0, lowest_m=0.3)
    assert lowest_reached(folder, found) > 0.3


@pytest.mark.parametrize(
    ("lowest", "says"),
    [
        (0.3, "--lowest 0.3: at rest hand is at 0.11 m, lower than that: give a lower height, or begin elsewhere"),
        (float("nan"), "--lowest nan: write a height in metres, such as 0"),
        (float("inf"), "--lowest inf: write a height in metres, such as 0"),
    ],
)
def test_a_height_that_cannot_be_kept(lowest: float, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=says.replace("(", r"\(")):
        excite(write_arm(tmp_path), seconds=6.0, lowest_m=lowest)


@pytest.mark.slow
def test_the_first_line_says_what_was_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_arm(tmp_path / "arm")
    assert run(["excite", str(folder), "--seconds", "6", "--lowest", "0.02"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        "assumed: nothing below z = 0.02 m, as asked for (no floor in the model)"
    )


def workspace(folder: Path) -> tuple[Workspace, np.ndarray]:
    known = read_knowledge(folder, None, ())
    rest = known.positions(known.rest[0][None])[0]
    return Workspace.of(known, rest), rest


def test_a_first_link_that_reaches_below_its_joint_may_stay_as_low_as_at_rest(tmp_path: Path) -> None:
    base = '<geom name="base" type="cylinder" fromto="0 0 0 0 0 .1" size=".06"/>'
    low = ARM.replace(base, "").replace("0 0 .12", "0 0 0").replace("-.29", "-.2")
    space, rest = workspace(write_arm(tmp_path, xml=low))
    flat = rest + np.array([1.6, 0.0, 0.0])
    assert space.find_fault(rest[None]) is None  # the round end of the first capsule reaches 3 cm below z = 0
    assert (
        space.find_fault(flat[None]) == "upper would go below z = 0.00 m (--lowest sets it)"
    )  # its other end is 9 mm lower than that


def test_links_that_do_not_collide_in_the_model_are_named(tmp_path: Path) -> None:
    assert len(workspace(write_arm(tmp_path / "all"))[0].assumed) == 1
    blind = ARM.replace('size=".02" mass=".2"', 'size=".02" mass=".2" contype="0" conaffinity="0"')
    text = workspace(write_arm(tmp_path / "hand", xml=blind))[0].assumed[1]
    assert text.startswith("the model lets these pass through each other, so nothing keeps them apart: ")
    assert text.endswith("what is fixed and hand, upper and hand")
    none = ARM.replace("<worldbody>", '<default><geom contype="0" conaffinity="0"/></default><worldbody>')
    text = workspace(write_arm(tmp_path / "none", xml=none))[0].assumed[1]
    assert text.startswith("no two parts collide in the model, so nothing keeps the robot clear of itself")


def test_what_floats_is_not_held_to_a_height_that_was_assumed(tmp_path: Path) -> None:
    thing = '<body name="box" pos="1 0 .5"><freejoint/><geom type="box" size=".02 .02 .02" mass=".1"/></body>'
    found = excite(write_arm(tmp_path, thing), seconds=6.0)
    assert found.path is not None  # though it falls without end
    assert "box floats freely and is not held to it" in found.assumed[0]


SHAPES = """<mujoco><asset><mesh name="wedge" vertex="0 0 0  .3 0 0  0 .2 0  0 0 .1"/></asset><worldbody>
<body mocap="true"><geom type="plane" size="1 1 1"/></body><body><freejoint/>
<geom type="sphere" size=".05" pos=".1 0 0" mass="1"/><geom type="capsule" size=".02 .1" mass="1"/>
<geom type="cylinder" size=".04 .1" mass="1"/><geom type="ellipsoid" size=".1 .05 .02" mass="1"/>
<geom type="box" size=".1 .05 .02" mass="1"/><geom type="mesh" mesh="wedge" mass="1"/></body></worldbody></mujoco>"""


def surface(model: mujoco.MjModel, geom: int, rng: np.random.Generator) -> np.ndarray:
    """Returns many points of a geom's surface in its own frame, without a support function."""
    size, kind = model.geom_size[geom], mujoco.mjtGeom(model.geom_type[geom])
    ball = rng.standard_normal((200_000, 3))
    ball /= np.linalg.norm(ball, axis=1, keepdims=True)
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return size[0] * ball
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return size[0] * ball + np.sign(ball[:, 2:]) * [0, 0, size[1]]
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:
        rim = ball[:, :2] / np.linalg.norm(ball[:, :2], axis=1, keepdims=True)
        return np.column_stack([size[0] * rim, size[1] * np.sign(ball[:, 2])])
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        return size * ball
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return size * np.sign(ball)
    return model.mesh_vert


@pytest.mark.parametrize("geom", range(1, 7))
def test_the_lowest_point_of_each_shape_is_that_of_its_surface(geom: int) -> None:
    model = mujoco.MjModel.from_xml_string(SHAPES)
    data, rng = mujoco.MjData(model), np.random.default_rng(geom)
    for _ in range(5):
        data.qpos[3:] = rng.standard_normal(4)
        normal = rng.standard_normal(3)
        normal /= np.linalg.norm(normal)
        mujoco.mju_quatZ2Vec(data.mocap_quat[0], normal)  # a plane through the origin, with this normal
        mujoco.mj_kinematics(model, data)
        points = surface(model, geom, rng) @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
        found = measure_distance(model, data, geom, 0)
        assert found == pytest.approx(float((points @ normal).min()), abs=1e-3)
        assert found <= (points @ normal).min() + 1e-12
