"""Layers inside the simulation: nothing at nominal, something away from it, the same alone and in a batch."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.protocols import Start
from gapless.core.signal import Array
from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.realism.layer import Layer
from gapless.sim.realism.registry import LAYERS, path_of
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from gapless.sim.targets.resolve import kinds_of
from unit.sim.scenes import write_project

BENCH = """<mujoco><option timestep="0.005" gravity="4 0 -9"/><worldbody><light name="lamp" diffuse=".8 .8 .8"/>
<geom name="floor" type="plane" size="5 5 .1" friction=".3 .005 .0001"/>
<body name="puck" pos=".3 0 .05"><freejoint/>
<geom name="puck" type="box" size=".05 .05 .05" mass=".2" friction=".3 .005 .0001"/></body>
<body name="link" pos="0 0 1"><joint name="hinge" axis="0 1 0" damping=".1" frictionloss=".05"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".5" contype="0" conaffinity="0"/>
<site name="tip" pos=".3 0 0"/>
<body name="hand" pos=".3 0 0"><joint name="slide" type="slide" axis="1 0 0" damping="1"/>
<geom type="sphere" size=".03" mass=".1" contype="0" conaffinity="0"/></body></body></worldbody>
<actuator><position name="servo" joint="hinge" kp="20" kv="1"/><motor name="motor" joint="slide"/></actuator>
<sensor><gyro name="gyro" site="tip"/><force name="force" site="tip"/><torque name="torque" site="tip"/></sensor>
</mujoco>"""
READINGS = {
    "q": "{joint: hinge, quantity: position}",
    "s": "{joint: slide, quantity: position}",
    "x": "{body: puck, quantity: x}",
    "z": "{body: puck, quantity: z}",
    **{f"{name}_{k}": f"{{sensor: {name}, axis: {k}}}" for name in ("gyro", "force", "torque") for k in range(3)},
}
NAMES = {"geom": "puck", "body": "hand", "measurement": "*", "joint": "*", "actuator": "*"}
SENSORS = {"inertial sensor": "gyro_0", "force-torque sensor": "force_0"}
NUM_STEPS = 40


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> CompiledProject:
    commands = {"u1": "{actuator: servo}", "u2": "{actuator: motor}"}
    return compile_project(load_project(write_project(tmp_path_factory.mktemp("b"), BENCH, commands, READINGS)))


def knob_paths(layer: Layer, kind: str) -> list[str]:
    element = SENSORS.get(layer.name, NAMES.get(kind, ""))
    where = f"{kind}/{element}/{path_of(layer)}" if kind != "world" else f"world/{path_of(layer)}"
    return [f"{where}/{knob.name}" for knob in layer.knobs if not knob.same_as]


def paths() -> list[str]:
    found = []
    for layer in LAYERS:
        for kind in kinds_of(layer):
            found += knob_paths(layer, kind)
    return found


def space(blueprint: CompiledProject, *targets: str) -> ParameterSpace:
    found = [resolve(target, blueprint.project, blueprint.model) for target in targets]
    return ParameterSpace(tuple(Parameter(t.path, t.dimension, t.unit, t.nominal, -1e9, 1e9) for t in found))


def run(world: Simulation, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    start = Start({}, np.zeros((world.num_worlds, 0)))
    seen = [world.reset(start, rng)]
    for k in range(NUM_STEPS):
        command = np.tile([np.sin(k / 4), 2 * np.cos(k / 5)], (world.num_worlds, 1))
        seen.append(world.step(command).measured)
    return np.stack(seen)


def typical(blueprint: CompiledProject, path: str) -> float:
    place = resolve(path, blueprint.project, blueprint.model).knob
    assert place is not None
    knob = place.knob
    return knob.typical if knob.typical != knob.ideal else (knob.high if knob.low == knob.ideal else knob.low)


@pytest.mark.parametrize("path", paths())
def test_a_knob_at_nominal_changes_nothing(bench: CompiledProject, path: str) -> None:
    plain = run(Simulation(bench, 1, EMPTY_SPACE, 1))
    world = Simulation(bench, 1, space(bench, path), 1)
    world.set_parameters(world.space.nominal[None])
    np.testing.assert_array_equal(run(world), plain)


ALONE = {  # knobs that change the readings of a run of 0.4 s though no other knob is named
    *(
        "torque-speed-curve/stall",
        "learned-actuator/share",
        "heating/loss",
        "battery-sag/resistance_ohm",
        "series-elasticity/rotor_inertia",
    ),
    *("friction/hump", "load-dependent-friction/share", "lugre-friction/coulomb", "cogging/amplitude", "wind/steady"),
    *("wind/gust", "rate-limit/rate", "jitter/jitter_s", "shared-bus/cycle_s", "inference-time/inference_s"),
    *("slower-sensor/period_s", "encoder-backlash/width", "scale-and-bias/drift", "noise/noise", "quantisation/step"),
    *("inertial-sensor/density", "inertial-sensor/misalignment", "force-torque-sensor/crosstalk"),
    *("force-torque-sensor/zero_per_k", "range-sensor/noise_m", "depth-camera/base_m", "temperature/warmth_k"),
    *(
        "softness/compliance",
        "size/factor",
        "uneven-friction/amplitude",
        "floor-patches/spread",
        "spread/fleet",
        "spread/trial",
    ),
}


@pytest.mark.parametrize("path", [path for path in paths() if "/".join(path.split("/")[-2:]) in ALONE])
def test_a_knob_away_from_ideal_shows(bench: CompiledProject, path: str) -> None:
    world = Simulation(bench, 1, space(bench, path), 1)
    world.set_parameters(np.array([[typical(bench, path)]]))
    assert np.abs(run(world) - run(Simulation(bench, 1, EMPTY_SPACE, 1))).max() > 1e-9


OFTEN = {
    "share": 0.4,
    "spike_share": 0.5,
    "rate_hz": 10.0,
    "flying": 0.9,
    "dropout": 0.5,
    "spread_m": 0.2,
    "clock_s": 72000.0,
}


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_a_layer_is_switched_on_by_a_path(bench: CompiledProject, layer: Layer) -> None:
    assert kinds_of(layer)
    for kind in kinds_of(layer):
        chosen = knob_paths(layer, kind)
        row = [OFTEN.get(knob.name, knob.typical) for knob in layer.knobs if not knob.same_as]
        world, plain = Simulation(bench, 1, space(bench, *chosen), 1), Simulation(bench, 1, EMPTY_SPACE, 1)
        world.set_parameters(np.array([row]))
        before, after = run(plain), run(world)
        light = np.abs(world.fields.current("light_diffuse") - bench.model.light_diffuse).max()
        assert np.abs(after - before).max() > 1e-9 or light > 1e-3


def everything(blueprint: CompiledProject, num_worlds: int) -> tuple[ParameterSpace, Array]:
    chosen = space(blueprint, *paths())
    row = np.array([typical(blueprint, path) for path in paths()])
    return chosen, np.tile(row, (num_worlds, 1))


def test_a_batch_of_one_equals_its_row_with_all_layers_on(bench: CompiledProject) -> None:
    runs = []
    for num_worlds in (1, 3):
        chosen, rows = everything(bench, num_worlds)
        world = Simulation(bench, num_worlds, chosen, 1)
        world.set_parameters(rows)
        runs.append(run(world)[:, 0])
    assert np.isfinite(runs[0]).all()
    np.testing.assert_allclose(runs[0], runs[1], rtol=1e-9, atol=1e-12)


def test_rows_leave_nothing_behind(bench: CompiledProject) -> None:
    # What a world does depends on the rows that it was given last, not on those before.
    chosen, rows = everything(bench, 2)
    qpos, qvel = np.tile(bench.model.qpos0, (2, 1)), np.zeros((2, bench.model.nv))
    runs = []
    for before in ([], [chosen.nominal[None] + np.zeros((2, 1)), 0.5 * (rows + chosen.nominal)]):
        world = Simulation(bench, 2, chosen, 1)
        for other in (*before, rows):
            world.set_parameters(other)
            seen = [world.restart(qpos, qvel, np.full((2, 20, 2), 0.1))]
            seen += [world.step(np.full((2, 2), 0.1 * k)).measured for k in range(10)]
        runs.append(np.stack(seen))
    np.testing.assert_array_equal(runs[0], runs[1])


def test_predictions_with_all_layers_on_are_of_the_median_and_repeat(bench: CompiledProject) -> None:
    chosen, rows = everything(bench, 3)
    world = Simulation(bench, 3, chosen, 1)
    world.set_parameters(rows)
    qpos, qvel = np.tile(bench.model.qpos0, (3, 1)), np.zeros((3, bench.model.nv))
    runs = []
    for _ in range(2):
        seen = [world.restart(qpos, qvel, np.full((3, 20, 2), 0.1))]
        seen += [world.step(np.full((3, 2), 0.1 * k)).measured for k in range(10)]
        runs.append(np.stack(seen))
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0][:, 0], runs[0][:, 2])  # no world has numbers of its own


def test_a_world_that_begins_anew_leaves_the_others_on_their_way(bench: CompiledProject) -> None:
    chosen, rows = everything(bench, 3)
    ends = []
    for again in (False, True):
        world = Simulation(bench, 3, chosen, 1)
        world.set_parameters(rows)
        run(world)
        if again:
            rng = np.random.default_rng(5)
            world.reset(Start({}, np.zeros((1, 0))), rng, np.array([1], dtype=np.intp))
        ends.append(np.stack([world.step(np.zeros((3, 2))).measured for _ in range(10)]))
    np.testing.assert_array_equal(ends[0][:, [0, 2]], ends[1][:, [0, 2]])
    assert np.abs(ends[0][:, 1] - ends[1][:, 1]).max() > 1e-3


def test_robots_of_a_fleet_differ_and_come_back(bench: CompiledProject) -> None:
    world = Simulation(bench, 3, space(bench, "actuator/*/spread/fleet", "actuator/*/spread/robot"), 1)
    world.set_parameters(np.array([[0.2, 7.0], [0.2, 7.0], [0.2, 8.0]]))
    first = run(world)
    np.testing.assert_array_equal(first[:, 0], first[:, 1])
    assert np.abs(first[:, 0] - first[:, 2]).max() > 1e-4
    np.testing.assert_array_equal(run(world, seed=9)[:, 0], first[:, 0])


def test_a_robot_stays_the_same_robot_when_its_world_begins_anew(bench: CompiledProject) -> None:
    world = Simulation(bench, 2, space(bench, "actuator/*/spread/fleet", "actuator/*/spread/robot"), 1)
    world.set_parameters(np.tile([0.2, 7.0], (2, 1)))
    run(world)
    before = world.fields.of("actuator_gainprm").copy()
    world.reset(Start({}, np.zeros((1, 0))), np.random.default_rng(5), np.array([1], dtype=np.intp))
    np.testing.assert_array_equal(world.fields.of("actuator_gainprm"), before)


def test_a_layer_of_noise_takes_the_place_of_the_stated_noise(tmp_path: Path) -> None:
    readings = {
        "q": "{joint: hinge, quantity: position, noise: 0.1}",
        "s": "{joint: slide, quantity: position, noise: 0.1}",
    }
    project = load_project(
        write_project(tmp_path, BENCH, {"u1": "{actuator: servo}", "u2": "{actuator: motor}"}, readings)
    )
    blueprint = compile_project(project)
    world = Simulation(blueprint, 1, space(blueprint, "measurement/q/noise/noise"), 1, noisy=True)
    world.set_parameters(np.zeros((1, 1)))
    noise = run(world) - run(Simulation(blueprint, 1, EMPTY_SPACE, 1))
    assert np.all(noise[:, 0, 0] == 0.0)
    assert np.std(noise[:, 0, 1]) > 0.05


def test_stall_cuts_the_force_of_the_drive(bench: CompiledProject) -> None:
    # The motor pulls with 2 N at most; cut at 0.5 N the slide moves as with a motor of 0.5 N from then on.
    world = Simulation(bench, 1, space(bench, "joint/slide/torque-speed-curve/stall"), 1)
    world.set_parameters(np.array([[0.5]]))
    cut = np.stack([world.step(np.array([[0.0, 2.0]])).measured for _ in range(20)])
    weak = Simulation(bench, 1, EMPTY_SPACE, 1)
    same = np.stack([weak.step(np.array([[0.0, 0.5]])).measured for _ in range(20)])
    np.testing.assert_allclose(cut[:, 0, :4], same[:, 0, :4], atol=1e-9)


REFUSED = {
    "joint/hinge/friction/viscous": "the same as joint/hinge/damping; write that",
    "world/tilt/x_rad": "nothing called 'tilt/x_rad' there; write one of tilt/x",
    "joint/hinge/cogging/ampl": "nothing called 'cogging/ampl' there; write one of cogging/amplitude",
    "world/wind/steady": "acts on a joint or a body, no world",
    "measurement/q/inertial-sensor/walk": "x, y, z of one sensor",
    "body/puck/wind/steady/q": "write one of x, y, z",
}


@pytest.mark.parametrize(("path", "text"), REFUSED.items(), ids=list(REFUSED))
def test_a_path_that_means_nothing_is_refused_in_one_line(bench: CompiledProject, path: str, text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        resolve(path, bench.project, bench.model)
    assert "\n" not in str(caught.value)


def test_a_knob_that_all_share_is_set_once(bench: CompiledProject) -> None:
    twice = space(bench, "joint/hinge/battery-sag/drop_v", "joint/slide/battery-sag/drop_v")
    with pytest.raises(InputError, match="keep one"):
        Simulation(bench, 1, twice, 1)


def test_a_drive_of_another_kind_is_refused(tmp_path: Path) -> None:
    xml = BENCH.replace(
        '<motor name="motor" joint="slide"/>', '<dcmotor name="motor" joint="slide" nominal="12 3 20"/>'
    )
    commands = {"u1": "{actuator: servo}", "u2": "{actuator: motor}"}
    blueprint = compile_project(load_project(write_project(tmp_path, xml, commands, READINGS)))
    with pytest.raises(InputError, match="motor is of another kind"):
        Simulation(blueprint, 1, space(blueprint, "joint/slide/heating/loss"), 1)
    Simulation(blueprint, 1, space(blueprint, "joint/slide/cogging/amplitude"), 1)  # this one only adds
