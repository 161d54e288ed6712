from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.excite.knowledge import read_knowledge
from gapless.excite.limits import MotionLimit, RequestedLimits
from gapless.excite.motion import SimulatedMotions
from gapless.excite.search import Search
from gapless.excite.verb import make_search
from gapless.verbs import copy_example
from unit.identify.realities import ANGLE, COMMANDS, PENDULUM, write_reality
from unit.sim.scenes import write_project

SERVO = """<mujoco><worldbody><body name="arm"><joint name="hinge" axis="0 0 1" {joint}/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".5"/></body></worldbody>
<actuator><position name="motor" joint="hinge" kp="20" kv="1" {servo}/></actuator></mujoco>"""


def problem(folder: Path, xml: str, *, wanted: tuple[str, ...] = (), **wishes: tuple[str, ...]) -> Search:
    """Returns the setting of a project without logs."""
    return make_search(
        read_knowledge(write_project(folder, xml, COMMANDS, ANGLE, rate_hz=50), None, wanted), 10.0, **wishes
    )


def by_name(found: Search) -> dict[str, MotionLimit]:
    return {limit.name: limit for limit in found.limits}


def run_of(*values: list[float]) -> SimulatedMotions:
    """Returns runs whose first position takes these values."""
    place = np.array(values)[:, :, None]
    return SimulatedMotions(place, place, place, place, place)


def position(low: float, high: float, rest: float = 0.0, source: str = "model") -> MotionLimit:
    return MotionLimit("q", "rad", low, high, rest, source, 0, lambda run: run.qpos[:, :, 0])  # type: ignore[arg-type]


def test_a_limit_is_kept_broken_and_used() -> None:
    run = run_of([0.0, 0.5, 0.0], [0.0, 2.0, 0.0], [0.0, -4.0, 1.0])
    limit = position(-1.0, 1.0)
    assert limit.is_kept(run).tolist() == [True, False, False]
    assert np.allclose(limit.allowed_share(run), [1.0, 0.5, 0.25])  # 1 of 2 to the right, 1 of 4 to the left
    assert not limit.describe_use(run_of([0.0, 0.5])).active
    assert limit.describe_use(run_of([0.0, 0.95])).active  # 0.05 of 1 is left, less than a tenth
    assert limit.describe_use(run_of([0.0, 0.95])).reached_high == 0.95


def test_only_an_assumed_limit_gives_way_to_what_happens_anyway() -> None:
    alone = run_of([0.0, 2.0, -0.5])
    wider = position(-1.0, 1.0, source="assumed").widen_to(alone)
    assert (wider.low, wider.high) == (-1.0, 3.0)  # half as much again as was reached
    assert position(-1.0, 1.0, source="model").widen_to(alone).high == 1.0


def test_ranges_of_the_model_with_a_margin(tmp_path: Path) -> None:
    xml = SERVO.format(joint='range="-57.29577951 114.59155903"', servo='forcerange="-3 3"')  # -1 .. 2 rad
    found = by_name(problem(tmp_path, xml))
    assert np.allclose((found["joint/hinge position"].low, found["joint/hinge position"].high), (-0.85, 1.85))
    assert found["joint/hinge position"].source == "model"
    force = found["actuator/motor force over 0.5 s"]
    assert np.allclose((force.low, force.high), (-2.7, 2.7))
    assert (found["joint/hinge speed"].high, found["joint/hinge speed"].source) == (2.0, "assumed")


def test_servos_are_sent_places_that_their_joint_may_reach(tmp_path: Path) -> None:
    xml = SERVO.format(joint='range="-60 60"', servo='ctrlrange="-.5 3" gear="2"')
    limits = problem(tmp_path, xml).command_limits
    reach = 0.9 * np.pi / 3  # a margin of 5 % of the whole range at each end
    assert np.allclose((limits.low[0], limits.high[0]), (-0.5, 2 * reach))  # the gear doubles places
    assert np.allclose(limits.max_rate, 0.8 * 2 * 2.0)  # and speeds; a fifth is left for overshoot
    assert limits.is_position.tolist() == [True]


def test_a_joint_without_range_and_a_servo_without_forces(tmp_path: Path) -> None:
    found = by_name(problem(tmp_path, SERVO.format(joint="", servo="")))
    assert np.allclose((found["joint/hinge position"].low, found["joint/hinge position"].high), (-np.pi / 2, np.pi / 2))
    assert found["joint/hinge position"].source == "assumed"
    assert not [name for name in found if "force" in name]


def test_wishes_change_limits(tmp_path: Path) -> None:
    xml = SERVO.format(joint="", servo='forcerange="-3 3"')
    half = by_name(problem(tmp_path, xml, max_speed=("0.5",), max_effort=("0.5",)))
    assert half["joint/hinge speed"].high == 1.0
    assert half["actuator/motor force over 0.5 s"].high == 1.5
    named = by_name(problem(tmp_path, xml, max_speed=("hinge=4",), max_effort=("motor=2.5",)))
    assert (named["joint/hinge speed"].high, named["joint/hinge speed"].source) == (4.0, "asked for")
    assert (named["actuator/motor force"].high, named["actuator/motor force"].source) == (2.5, "asked for")


def test_a_force_limit_that_is_asked_about_may_be_reached(tmp_path: Path) -> None:
    xml = SERVO.format(joint="", servo='forcerange="-3 3"')
    assert not [name for name in by_name(problem(tmp_path, xml, wanted=("actuator/motor/limit",))) if "force" in name]


def test_a_servo_may_cut_its_own_peaks_but_not_push_for_long(tmp_path: Path) -> None:
    limit = by_name(problem(tmp_path, SERVO.format(joint="", servo='forcerange="-3 3"')))[
        "actuator/motor force over 0.5 s"
    ]
    force = np.zeros((2, 100, 1))  # at 50 Hz: half a second is 25 steps
    force[0, 10:32] = 3.0  # 22 of 25 steps: a mean of 2.64, below 2.7
    force[1, 10:33] = 3.0  # 23 of 25 steps: a mean of 2.76
    assert limit.is_kept(SimulatedMotions(force, force, force, force, force)).tolist() == [True, False]


def test_logs_say_how_fast_and_how_far(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, measurements=ANGLE, noise=(0.001,))
    known = read_knowledge(folder, None, ())
    found = by_name(make_search(known, 10.0))
    places = np.concatenate([track.smooth[:, 0] for track in known.tracks])
    fastest = max(np.abs(track.slope[:, 0]).max() for track in known.tracks)
    assert found["joint/hinge position"].source == found["joint/hinge speed"].source == "logs"
    assert np.isclose(found["joint/hinge position"].high, places.max() + 0.25 * np.ptp(places))
    assert 1.2 * fastest < found["joint/hinge speed"].high <= 1.5 * fastest


def test_a_motor_of_unknown_strength_must_be_told(tmp_path: Path) -> None:
    xml = PENDULUM.replace('ctrlrange="-2 2"', "")
    with pytest.raises(InputError, match="how hard motor may push: give it a ctrlrange, or --max-effort motor="):
        problem(tmp_path, xml)
    assert problem(tmp_path, xml, max_effort=("motor=1.5",)).command_limits.high[0] == 1.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fast", "write a share such as 0.5, or NAME=VALUE, above 0"),
        ("0", "above 0"),
        ("-1", "above 0"),
        ("nan", "above 0"),
        ("hinge=inf", "above 0"),
        ("2", "a share is at most 1"),
        ("hing=2", "no 'hing'; choose from: hinge"),
        ("=2", "no ''; choose from: hinge"),
    ],
)
def test_wishes_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(InputError, match=f"--max-speed {text}: .*{message}"):
        RequestedLimits.parse("--max-speed", [text], ["hinge"], 1.0)


def test_the_rest_of_an_example_is_where_its_first_log_begins(tmp_path: Path) -> None:
    known = read_knowledge(copy_example("push", tmp_path / "push"), None, ())
    readings, command = known.rest
    assert np.allclose(readings, known.tracks[0].measured[0], atol=0.003)  # three times the noise of the puck
    assert np.allclose(command, known.tracks[0].commands[0])


def test_a_motor_at_rest_holds_its_load(tmp_path: Path) -> None:
    # A keyframe puts the pendulum at 90 degrees; its centre is 0.15 m out: 0.5 kg * 9.81 m/s^2 * 0.15 m = 0.73575 N·m.
    xml = PENDULUM.replace("</mujoco>", '<keyframe><key qpos="1.570796327" ctrl="0.5"/></keyframe></mujoco>')
    known = read_knowledge(write_project(tmp_path / "key", xml, COMMANDS, ANGLE, rate_hz=50), None, ())
    assert np.allclose(np.concatenate(known.rest), [np.pi / 2, 0.5])  # a keyframe's command is taken as it is
    turned = PENDULUM.replace('fromto="0 0 0 0 0 -.3"', 'fromto="0 0 0 .3 0 0"')
    known = read_knowledge(write_project(tmp_path / "out", turned, COMMANDS, ANGLE, rate_hz=50), None, ())
    assert np.allclose(np.abs(known.rest[1]), 0.73575)
