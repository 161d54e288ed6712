"""What `auto` proposes, and the owner's list."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.project.load import load_project
from gapless.sim.auto import find_damping_servos, parameter_space
from gapless.sim.blueprint import CompiledProject, compile_project
from gapless.sim.targets import resolve
from unit.sim.scenes import arm, things, write_project

PUSH = Path(__file__).parents[3] / "src" / "gapless" / "examples" / "push"


def test_proposals_for_an_arm(tmp_path: Path) -> None:
    assert parameter_space(arm(tmp_path), []).targets == (
        "joint/shoulder/damping",
        "joint/shoulder/frictionloss",
        "joint/elbow/frictionloss",
        "actuator/servo/kd",  # it damps the elbow: only the sum shows
        "actuator/motor/gain",
        "actuator/servo/kp",
        "actuator/*/delay",
        "joint/*/creep",
        "measurement/q1/bias",
        "measurement/q2/bias",
        "world/tilt/x",
        "world/tilt/y",
    )


def test_a_servo_damps_its_joint_and_a_motor_does_not(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    assert find_damping_servos(blueprint.project, blueprint.model) == {"elbow": "servo"}


def test_proposals_for_things_that_nobody_moves(tmp_path: Path) -> None:
    # Nothing is commanded: no delay to see; a thrown body moves alike whatever it weighs.
    assert parameter_space(things(tmp_path), []).targets == (
        "geom/box/friction",
        "geom/box/restitution",
        "geom/box/stiffness",
        "body/box/com/x",
        "body/box/com/y",
        "body/box/com/z",
        "geom/ball/friction",
        "geom/ball/restitution",
        "geom/ball/stiffness",
        "body/ball/com/x",
        "body/ball/com/y",
        "body/ball/com/z",
        "world/tilt/x",
        "world/tilt/y",
    )


def test_no_tilt_without_gravity(tmp_path: Path) -> None:
    targets = parameter_space(arm(tmp_path, gravity="0 0 0"), []).targets
    assert not [target for target in targets if target.startswith("world/")]


@pytest.fixture(params=["arm", "things", "push", "tendon"])
def blueprint(request: pytest.FixtureRequest, tmp_path: Path) -> CompiledProject:
    if request.param == "push":
        return compile_project(load_project(PUSH))
    if request.param == "tendon":
        xml = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom size=".1" friction="0 0 0"/>
        <body><joint axis="0 1 0"/><geom size=".1" pos="0 0 .3"/></body></body></worldbody>
        <tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon>
        <actuator><position name="s" tendon="t" kp="3"/></actuator></mujoco>"""
        columns = {"q": "{joint: a, quantity: position}"}
        return compile_project(load_project(write_project(tmp_path, xml, {"u": "{actuator: s}"}, columns)))
    return arm(tmp_path) if request.param == "arm" else things(tmp_path)


def test_bounds_hold_the_model_as_written(blueprint: CompiledProject) -> None:
    space = parameter_space(blueprint, [])
    assert len(space) > 0
    assert np.all(space.low <= space.nominal)
    assert np.all(space.nominal <= space.high)


LISTABLE = [
    *(f"joint/{j}/{f}" for j in ("elbow", "*") for f in ("damping", "armature", "offset", "backlash")),
    *(f"actuator/{a}/{f}" for a in ("servo", "*") for f in ("gain", "kp", "kd", "delay", "lag", "limit")),
    *(f"actuator/{a}/offset" for a in ("servo", "motor")),
    *("joint/elbow/load", "body/upper/payload", "site/tip/payload"),
    *("joint/elbow/stiffness", "body/upper/mass", "body/*/mass", "body/upper/com/x", "body/upper/inertia"),
    *("world/gravity", "world/tilt/x", "measurement/q1/bias", "measurement/*/bias", "measurement/v1/scale"),
    *("measurement/*/delay",),
]


@pytest.mark.parametrize("target", LISTABLE)
def test_bounds_of_whatever_is_listed_hold_the_model(tmp_path: Path, target: str) -> None:
    blueprint = arm(tmp_path, parameters=[f'{{target: "{target}"}}'])
    (parameter,) = parameter_space(blueprint, []).parameters
    assert parameter.low <= parameter.nominal <= parameter.high
    assert parameter.nominal == resolve(target, blueprint.project, blueprint.model).nominal


def test_an_offset_of_a_command_reaches_as_far_as_its_kind_may_be_off(tmp_path: Path) -> None:
    listed = [f"{{target: actuator/{name}/offset}}" for name in ("servo", "motor")]
    servo, motor = parameter_space(arm(tmp_path, parameters=listed, gear=3.0), []).parameters
    assert (servo.low, servo.high) == pytest.approx((-0.9, 0.9))  # 0.3 rad of the joint behind a gear of 3
    assert (motor.low, motor.high) == (-0.25, 0.25)  # of commands of 1, without logs
    assert (servo.unit, servo.dimension) == ("rad", "actuator")


def test_what_the_owner_lists_wins(tmp_path: Path) -> None:
    listed = [
        "{target: joint/elbow/damping, low: 0.05, high: 0.3, dimension: contact}",
        "{target: actuator/servo/kp, high: 9}",
    ]
    first, second = parameter_space(arm(tmp_path, parameters=listed), []).parameters
    assert (first.low, first.high, first.dimension, first.nominal) == (0.05, 0.3, "contact", 0.1)
    assert (second.low, second.high, second.dimension) == (0.08, 9.0, "actuator")  # a hundredth of kp = 8


def test_a_listed_target_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    blueprint = arm(tmp_path, parameters=["{target: joint/elbo/damping}"])
    with pytest.raises(InputError, match="elbow"):
        parameter_space(blueprint, [])
