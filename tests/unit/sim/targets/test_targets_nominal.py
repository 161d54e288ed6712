"""A parameter at its nominal value changes nothing; what rows set does not outlive them."""

from pathlib import Path

import numpy as np
import pytest

from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from unit.sim.scenes import arm, run, run_plain, run_rows, space_of, things, waves

ARM_TARGETS = (
    *(f"joint/shoulder/{f}" for f in ("damping", "frictionloss", "armature", "stiffness", "load", "offset")),
    *(f"joint/elbow/{f}" for f in ("damping", "frictionloss", "armature", "stiffness", "offset", "backlash")),
    *(f"joint/*/{f}" for f in ("damping", "frictionloss", "armature", "stiffness", "offset", "backlash")),
    *(f"actuator/motor/{f}" for f in ("gain", "delay", "lag", "limit", "offset")),
    *(f"actuator/servo/{f}" for f in ("gain", "kp", "kd", "delay", "lag", "limit", "offset")),
    *(f"actuator/*/{f}" for f in ("gain", "kp", "kd", "delay", "lag", "limit")),
    *(f"body/upper/{f}" for f in ("mass", "inertia", "com/x", "com/y", "com/z", "payload")),
    "site/tip/payload",
    *("body/*/mass", "body/*/inertia", "world/gravity", "world/tilt/x", "world/tilt/y"),
    *(f"measurement/{c}/{f}" for c in ("q1", "*") for f in ("bias", "scale", "delay")),
)
THING_TARGETS = (
    *(f"geom/{g}/friction" for g in ("box", "floor", "ball", "*")),
    *(
        "geom/box/size/x",
        "geom/box/size/z",
        "geom/ball/size/x",
        "geom/*/size/x",
        "body/box/mass",
        "body/*/mass",
    ),
    *("body/box/com/x", "body/ball/inertia", "body/ball/payload", "world/gravity", "world/tilt/y"),
    *("geom/box/restitution", "geom/ball/restitution"),
)


def nominal(blueprint, target: str) -> float:
    return resolve(target, blueprint.project, blueprint.model).nominal


@pytest.mark.parametrize("target", ARM_TARGETS)
def test_nominal_leaves_the_arm_exactly_as_written(tmp_path: Path, target: str) -> None:
    blueprint = arm(tmp_path)
    with_target = run_rows(blueprint, {target: nominal(blueprint, target)})[:, 0]
    assert np.array_equal(with_target, run_plain(blueprint))


@pytest.mark.parametrize("target", THING_TARGETS)
def test_nominal_leaves_things_exactly_as_written(tmp_path: Path, target: str) -> None:
    blueprint = things(tmp_path)
    with_target = run_rows(blueprint, {target: nominal(blueprint, target)})[:, 0]
    assert np.array_equal(with_target, run_plain(blueprint))


@pytest.mark.parametrize("target", ["geom/box/stiffness", "geom/*/stiffness"])
@pytest.mark.parametrize("solref", [".02 1", ".06 .4", "-300 -25"])
def test_nominal_stiffness_leaves_contacts_as_written(tmp_path: Path, target: str, solref: str) -> None:
    blueprint = things(tmp_path, solref=solref, floor_solref=solref)
    with_target = run_rows(blueprint, {target: nominal(blueprint, target)})[:, 0]
    np.testing.assert_allclose(with_target, run_plain(blueprint), rtol=0, atol=1e-9)


@pytest.mark.parametrize("target", ["geom/box/friction", "geom/box/stiffness"])
def test_nominal_surface_keeps_what_the_other_geom_decided(tmp_path: Path, target: str) -> None:
    floor = {"floor_condim": 6, "floor_friction": "0.3 .02 .001", "floor_solref": ".01 1.5"}
    blueprint = things(tmp_path, **floor)
    boxes = [k for k, name in enumerate(blueprint.project.measurement_names) if name.startswith("box")]
    with_target = run_rows(blueprint, {target: nominal(blueprint, target)})[:, 0]
    np.testing.assert_allclose(with_target[:, boxes], run_plain(blueprint)[:, boxes], rtol=0, atol=1e-9)


def test_going_back_to_nominal_leaves_nothing_behind(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    targets = [t for t in ARM_TARGETS if "/elbow/" not in t]
    space = space_of(blueprint, *targets)
    world = Simulation(blueprint, 2, space, 1)
    before = run(world, waves(blueprint, 2))
    world.set_parameters(np.tile(space.nominal + 0.05, (2, 1)))
    assert np.abs(run(world, waves(blueprint, 2)) - before).max() > 0.01
    world.set_parameters(np.tile(space.nominal, (2, 1)))
    assert np.array_equal(run(world, waves(blueprint, 2)), before)


def test_things_go_back_to_nominal_too(tmp_path: Path) -> None:
    blueprint = things(tmp_path)
    space = space_of(blueprint, "geom/box/friction", "geom/ball/size/x", "body/box/mass", "body/box/com/x")
    world = Simulation(blueprint, 1, space, 1)
    before = run(world, waves(blueprint))
    world.set_parameters(space.nominal[None] + 0.02)
    assert np.abs(run(world, waves(blueprint)) - before).max() > 1e-3
    world.set_parameters(space.nominal[None])
    assert np.array_equal(run(world, waves(blueprint)), before)


def test_parameters_of_some_worlds_leave_the_others_untouched(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    targets = (
        "joint/shoulder/damping",
        "actuator/*/delay",
        "body/upper/mass",
        "measurement/q1/delay",
        "joint/elbow/backlash",
        "actuator/*/lag",
        "site/tip/payload",
    )
    space = space_of(blueprint, *targets)
    world = Simulation(blueprint, 4, space, 1)
    rows = np.tile([0.5, 0.013, 1.1, 0.017, 0.05, 0.03, 0.2], (4, 1))
    world.set_parameters(rows)
    before = run(world, waves(blueprint, 4))
    world.set_parameters(np.tile(space.nominal, (2, 1)), np.array([3, 1]))
    after = run(world, waves(blueprint, 4))
    assert np.array_equal(after[:, [0, 2]], before[:, [0, 2]])
    plain = run_plain(blueprint)
    assert np.array_equal(after[:, 1], plain)
    assert np.array_equal(after[:, 3], plain)


def test_a_batch_of_different_rows_is_as_many_single_worlds(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    targets = (
        "joint/shoulder/damping",
        "body/upper/mass",
        "actuator/servo/kp",
        "actuator/*/delay",
        "measurement/q2/delay",
        "joint/elbow/backlash",
        "world/tilt/y",
        "joint/elbow/offset",
        "actuator/*/lag",
        "actuator/motor/offset",
    )
    rng = np.random.default_rng(0)
    low, high = [0, 0.5, 3, 0, 0, 0, -0.1, -0.1, 0, -0.1], [1, 2, 12, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    rows = rng.uniform(low, high, (6, 10))
    rows[2, [3, 4, 5, 8]] = 0.0  # one world without any delay, lag or play among those that have them
    space = space_of(blueprint, *targets)
    batch = Simulation(blueprint, 6, space, 2)
    batch.set_parameters(rows)
    together = run(batch, waves(blueprint, 6))
    for k in range(6):
        single = Simulation(blueprint, 1, space, 1)
        single.set_parameters(rows[k : k + 1])
        assert np.array_equal(run(single, waves(blueprint))[:, 0], together[:, k])
