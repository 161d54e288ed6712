import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.core.protocols import Start
from gapless.core.results import ExciteResult, from_json, to_json
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import load_stored_result, newest_result
from gapless.excite import verb
from gapless.excite.knowledge import read_knowledge
from gapless.excite.play import make_start, play, read_motion
from gapless.excite.search import ExciteConfig
from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, compile_project
from gapless.sim.simulation import Simulation
from unit.fit_file import fitted, write_fit
from unit.identify.realities import ANGLE, ANGLE_AND_RATE, CART, PENDULUM, PLACE_AND_SPEED, WHATEVER
from unit.sim.scenes import write_project

# How good the motion is, is not tested here: searches end early.
excite = partial(verb.excite, config=ExciteConfig(min_motions=8, max_motions=8, num_generations=1))

MILLIVOLT = {"u": "{actuator: motor, scale: 0.001, offset: 0.5}"}  # the motor's command is 0.001 * column + 0.5
DEGREES = {"q": "{joint: hinge, quantity: position, scale: 0.017453292519943295, offset: 0.1, noise: 0.001}"}


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pendulum")
    return write_project(folder, PENDULUM, MILLIVOLT, DEGREES, rate_hz=50, parameters=[*WHATEVER[:2]])


def test_a_project_without_logs_gets_a_motion_in_units_of_its_log(pendulum: Path) -> None:
    found = excite(pendulum, seconds=6.0)
    assert found.path == str((pendulum / "excite.csv").resolve())
    lines = Path(found.path).read_text().splitlines()
    assert lines[0] == "time_s,u"
    table = np.loadtxt(found.path, delimiter=",", skiprows=1)
    assert np.allclose(table[:, 0], np.arange(300) / 50.0)
    assert np.isclose(table[0, 1], -500.0)  # 0 N·m is what holds a hanging pendulum: (0 - 0.5) / 0.001
    assert np.allclose(read_motion(load_project(pendulum), found.path)[:, 0], 0.001 * table[:, 1] + 0.5)
    assert np.isclose(found.start["q"], -0.1 / 0.017453292519943295)  # hanging: 0 rad
    sent = next(curve for curve in found.curves if curve.kind == "command")
    assert np.allclose(sent.values, table[:, 1], atol=1e-5)


def test_the_limits_are_kept_where_it_counts(pendulum: Path) -> None:
    found = excite(pendulum, seconds=6.0, max_speed=("hinge=1.0",))
    project = load_project(pendulum)
    model = compile_project(project).model
    world = Simulation(compile_project(project), 1, EMPTY_SPACE)
    world.reset(make_start(project, found.start), np.random.default_rng(0))
    places, speeds = [], []
    for command in read_motion(project, str(found.path)):
        world.step(command[None])
        places.append(float(world.batch.bind("qpos")[0, 0]))
        speeds.append(float(world.batch.bind("qvel")[0, 0]))
    assert model.nq == 1
    assert 0.05 < np.max(np.abs(speeds)) <= 1.0
    assert np.max(np.abs(places)) <= np.pi / 2
    used = {limit.name: limit for limit in found.limits}
    assert used["joint/hinge speed"].reached_high >= np.max(speeds) - 0.05  # of all the robots considered


def test_playing_shows_what_was_expected(pendulum: Path) -> None:
    found = excite(pendulum, seconds=6.0)
    project = load_project(pendulum)
    world = Simulation(compile_project(project), 1, EMPTY_SPACE)
    episode = play(project, world, str(found.path), found.start, np.random.default_rng(0), "again")
    expected = next(curve for curve in found.curves if curve.kind == "expected")
    shown = (episode.measurements.column("q") - 0.1) / 0.017453292519943295
    assert (episode.name, episode.source) == ("again", "sim")
    assert np.allclose(shown, expected.values, atol=1e-3)  # degrees; the model as written is what was assumed


def test_the_same_seed_gives_the_same_motion_and_another_another(pendulum: Path, tmp_path: Path) -> None:
    paths = [tmp_path / f"{k}.csv" for k in range(3)]
    for path, seed in zip(paths, (0, 0, 1), strict=True):
        excite(pendulum, seconds=6.0, seed=seed, out=path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].read_bytes() != paths[2].read_bytes()


def test_the_result_is_kept_with_its_motion_and_reads_back(tmp_path: Path) -> None:
    write_project(tmp_path, PENDULUM, MILLIVOLT, DEGREES, rate_hz=50, parameters=[*WHATEVER[:2]])
    found = excite(tmp_path, seconds=6.0)
    catalogue = Catalogue.open(tmp_path)
    identity = newest_result(catalogue, "excite")
    assert identity is not None
    kept = load_stored_result(catalogue, identity)
    assert isinstance(kept, ExciteResult)
    assert from_json(json.loads(json.dumps(to_json(found)))) == found == kept
    assert catalogue.artefact_path(identity, "motion.csv").read_bytes() == Path(str(found.path)).read_bytes()


def test_what_a_fit_could_not_tell_is_asked_about(pendulum: Path, tmp_path: Path) -> None:
    parameters = [
        fitted("joint/hinge/damping", 0.2, identifiable=False),
        fitted("actuator/motor/gain", 0.7),
        fitted("joint/hinge/armature", 0.01),
    ]
    fit = write_fit(tmp_path / "fit.json", *parameters)
    known = read_knowledge(pendulum, fit, ())
    assert known.wanted == ("joint/hinge/damping",)
    space = known.space(())
    assert space.targets == ("joint/hinge/damping", "actuator/motor/gain", "joint/hinge/armature")
    assert np.allclose(known.row(space), [0.2, 0.7, 0.01])  # starts from the fit
    write_fit(fit, *parameters[1:])
    assert read_knowledge(pendulum, fit, ()).wanted == ("actuator/motor/gain", "joint/hinge/armature")  # all told: all
    assert read_knowledge(pendulum, fit, ["joint/hinge/stiffness"]).wanted == ("joint/hinge/stiffness",)


def test_what_the_model_has_none_of_is_assumed_to_be_a_little(tmp_path: Path) -> None:
    entries = [*WHATEVER, "{target: joint/hinge/frictionloss, low: 0, high: 1}"]
    known = read_knowledge(write_project(tmp_path, PENDULUM, MILLIVOLT, ANGLE, parameters=entries), None, ())
    row = dict(zip(known.space(()).targets, known.row(known.space(())), strict=True))
    # In the solver's units, u = log(1 + 100 v) / log(101), the middle is (sqrt(101) - 1) / 100.
    assert np.isclose(row["joint/hinge/frictionloss"], (np.sqrt(101) - 1) / 100)
    assert row["joint/hinge/damping"] == pytest.approx(0.05)  # as the model has it
    assert row["measurement/q/bias"] == pytest.approx(0.0)  # nothing is not the least of its range


def test_gain_and_mass_of_a_cart_are_named_as_what_no_motion_tells_apart(tmp_path: Path) -> None:
    entries = ["{target: actuator/motor/gain}", "{target: body/cart/mass}"]
    write_project(tmp_path, CART, {"u": "{actuator: motor}"}, PLACE_AND_SPEED, rate_hz=50, parameters=entries)
    found = excite(tmp_path, seconds=6.0)
    assert [p.outlook for p in found.parameters] == ["no motion tells"] * 2
    assert not any(p.identifiable for p in found.parameters)
    assert found.inseparable == (("actuator/motor/gain", "body/cart/mass"),)
    text = "no motion separates actuator/motor/gain from body/cart/mass: measure a force, or know one of them"
    assert found.advice == (text,)
    assert found.path is not None  # it may still be recorded


def test_with_a_force_measured_they_are_told_apart(tmp_path: Path) -> None:
    entries = ["{target: actuator/motor/gain}", "{target: body/cart/mass}"]
    sensing = PLACE_AND_SPEED | {"f": "{actuator: motor, quantity: force, noise: 0.01}"}
    write_project(tmp_path, CART, {"u": "{actuator: motor}"}, sensing, rate_hz=50, parameters=entries)
    found = excite(tmp_path, seconds=6.0)
    assert [p.outlook for p in found.parameters] == ["can be told"] * 2
    assert found.inseparable == ()


def test_what_nothing_shows_is_named(tmp_path: Path) -> None:
    # A second body that nothing moves and nothing measures.
    idle = '<body pos="0 1 0"><joint name="idle"/><geom size=".1" mass="1" contype="0" conaffinity="0"/></body>'
    turning = CART.replace("</worldbody>", f"{idle}</worldbody>")
    entries = ["{target: actuator/motor/gain}", "{target: joint/idle/damping, low: 0, high: 1}"]
    write_project(tmp_path, turning, {"u": "{actuator: motor}"}, PLACE_AND_SPEED, rate_hz=50, parameters=entries)
    found = excite(tmp_path, seconds=6.0)
    assert "nothing that is measured shows joint/idle/damping" in found.advice
    assert [p.identifiable for p in found.parameters] == [True, False]


def test_a_wanted_parameter_that_identify_would_not_fit_is_pointed_out(pendulum: Path) -> None:
    found = excite(pendulum, ["joint/hinge/armature"], seconds=6.0)
    assert [p.target for p in found.parameters if p.wanted] == ["joint/hinge/armature"]
    assert {p.target for p in found.parameters} > {"joint/hinge/damping", "actuator/motor/gain"}
    assert any("identify will not fit joint/hinge/armature" in text for text in found.advice)


def test_a_robot_that_cannot_be_left_alone_gets_no_motion(tmp_path: Path) -> None:
    # Its motor is too weak for its weight: the joint falls to its stop whatever is sent.
    weak = PENDULUM.replace('fromto="0 0 0 0 0 -.3"', 'fromto="0 0 0 .3 0 0"').replace("-2 2", "-.1 .1")
    weak = weak.replace('damping="0.05"', 'damping="0.05" range="-20 20"')
    write_project(tmp_path, weak, {"u": "{actuator: motor}"}, ANGLE_AND_RATE, rate_hz=50, parameters=[*WHATEVER[:2]])
    found = excite(tmp_path, seconds=6.0, lowest_m=-1.0)
    assert found.path is None
    assert found.parameters == ()
    assert len(found.advice) == 1
    assert "left alone, it does not stay within limits: joint/hinge position" in found.advice[0]
    assert not (tmp_path / "excite.csv").exists()


def test_starts_are_what_worlds_understand(pendulum: Path) -> None:
    start = make_start(load_project(pendulum), {"q": 90.0})
    assert isinstance(start, Start)
    assert np.allclose(start.positions["hinge"], [[np.pi / 2 + 0.1]])


@pytest.mark.parametrize("seconds", [0.0, -3.0, 1.0, float("nan")])
def test_too_short_is_refused(seconds: float, pendulum: Path) -> None:
    with pytest.raises(InputError, match="seconds are too short to identify anything: ask for at least 3"):
        excite(pendulum, seconds=seconds)
