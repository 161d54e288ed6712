from pathlib import Path

import numpy as np

from gapless.excite.knowledge import read_knowledge
from gapless.excite.workspace import Workspace
from unit.sim.scenes import write_project

# A tip that slides along x, 2 cm from a wall and 10 cm from a box; a mast above a floor that nothing collides with.
SCENE = """<mujoco><worldbody>
<geom name="floor" type="plane" size="1 1 .1" contype="0" conaffinity="0"/>
<geom name="wall" type="box" size=".01 .1 .1" pos="-.04 0 .1"/>
<body name="tip" pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0" range="-1 1"/>
<geom name="tip" type="sphere" size=".01" mass=".1"/></body>
<body name="box" pos=".13 0 .1"><freejoint name="box"/><geom name="box" type="box" size=".02 .02 .02" mass=".1"/></body>
<body name="mast" pos="0 1 .3"><joint name="z" type="slide" axis="0 0 1" range="-1 1"/>
<geom name="mast" type="sphere" size=".01" mass=".1" contype="0" conaffinity="0"/></body>
</worldbody><actuator><position name="push" joint="x" kp="10"/><position name="lift" joint="z" kp="10"/></actuator>
</mujoco>"""
COMMANDS = {"ux": "{actuator: push}", "uz": "{actuator: lift}"}
MEASUREMENTS = {"x": "{joint: x, quantity: position}", "box_x": "{body: box, quantity: x}"}


def workspace(folder: Path, *wanted: str) -> tuple[Workspace, np.ndarray]:
    """Returns the workspace and the positions at rest: x, the box's pose, z."""
    known = read_knowledge(write_project(folder, SCENE, COMMANDS, MEASUREMENTS), None, wanted)
    rest = known.positions(known.rest[0][None])[0]
    return Workspace.of(known, rest), rest


def at(rest: np.ndarray, x: float, z: float = 0.0) -> np.ndarray:
    moved = rest.copy()
    moved[0], moved[-1] = x, z
    return moved[None]


def test_what_is_not_touched_at_rest_must_not_be_touched(tmp_path: Path) -> None:
    space, rest = workspace(tmp_path, "joint/x/damping")
    assert space.find_fault(at(rest, 0.0)) is None
    assert space.find_fault(at(rest, -0.014)) is None  # 6 mm from the wall
    assert space.find_fault(at(rest, -0.016)) == "what is fixed and tip would touch"  # 4 mm: nearer than the clearance
    assert space.find_fault(at(rest, 0.1)) == "tip and box would touch"
    assert space.may_touch == ()


def test_a_thing_that_is_asked_about_may_be_touched(tmp_path: Path) -> None:
    for wanted in ("body/box/mass", "geom/box/friction"):
        space, rest = workspace(tmp_path / wanted, wanted)
        assert space.find_fault(at(rest, 0.1)) is None
        assert space.find_fault(at(rest, -0.02)) == "what is fixed and tip would touch"
        assert space.may_touch == ("box",)


def test_nothing_goes_through_a_floor_that_it_does_not_collide_with(tmp_path: Path) -> None:
    space, rest = workspace(tmp_path, "joint/x/damping")
    assert space.find_fault(at(rest, 0.0, -0.284)) is None  # the sphere of 1 cm is 6 mm above it
    assert space.find_fault(at(rest, 0.0, -0.286)) == "mast would go below floor"  # 4 mm: nearer than the clearance


def test_few_frames_are_spread_over_the_motion(tmp_path: Path) -> None:
    space, rest = workspace(tmp_path, "joint/x/damping")
    motion = np.concatenate([at(rest, 0.0)] * 60 + [at(rest, 0.1)] * 40)
    assert space.find_fault(motion, 10) == "tip and box would touch"
    assert space.find_fault(motion[:60], 10) is None
