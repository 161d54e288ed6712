"""The order of a list of parameters does not matter, and a name wins over `*`."""

from itertools import combinations

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.signal import Array
from gapless.sim.blueprint import CompiledProject
from gapless.sim.simulation import Simulation
from gapless.sim.targets import Target, resolve
from unit.randomize.export.robots import job

FIELDS = {
    "joint": ("elbow", "damping frictionloss armature stiffness load offset backlash creep cogging/amplitude"),
    "actuator": ("shoulder", "gain kp kd delay lag limit speed offset"),
    "body": ("upper", "mass inertia length com/x spread/x payload"),
    "geom": ("box", "friction stiffness restitution size/x"),
    "measurement": ("q_shoulder", "bias scale delay noise/noise"),
}
# Where an element has both, the one adds to the other or multiplies it; of all others the named one wins.
BOTH = {"gain", "delay", "lag", "offset", "inertia", "length", "bias", "scale"}


@pytest.fixture(scope="module", name="robot")
def robot_fixture(tmp_path_factory: pytest.TempPathFactory) -> CompiledProject:
    return job(tmp_path_factory.mktemp("order"), "joint/elbow/damping uniform 0.2 .. 0.8\n").blueprint


def targets(robot: CompiledProject, kind: str) -> dict[str, Target]:
    """Returns path -> target of one element and of all, as far as there are any."""
    name, fields = FIELDS[kind]
    found: dict[str, Target] = {}
    for path in [f"{kind}/{who}/{field}" for field in fields.split() for who in (name, "*")]:
        try:
            found[path] = resolve(path, robot.project, robot.model)
        except InputError:
            assert "*" in path  # some belong to one element only
    return found


def value(target: Target) -> float:
    times = 1.3 if target.shared else 1.7
    if target.path.endswith("speed"):
        return 3.0 * times
    return times * (target.nominal or 0.05)


def written(robot: CompiledProject, those: list[Target], times: dict[Target, float] | None = None) -> dict[str, Array]:
    """Returns every number of a world, and of its signal path, with targets listed in this order.

    Args:
        robot: The robot.
        those: The targets.
        times: Target -> factor on its value.
    """
    space = ParameterSpace(tuple(Parameter(t.path, t.dimension, t.unit, t.nominal, -1, 1) for t in those))
    world = Simulation(robot, 1, space, num_threads=1)
    world.set_parameters(np.array([[value(t) * (times or {}).get(t, 1.0) for t in those]]))
    fields = world.fields
    found = {name: fields.of(name).copy() for name in fields.expanded}
    found |= {name: one.copy() for name, one in vars(fields).items() if isinstance(one, np.ndarray)}
    for key, layer in fields.active_layers.items():
        found |= {f"{key} {knob}": one.copy() for knob, one in layer.values.items()}
    return found


def differ(one: dict[str, Array], other: dict[str, Array]) -> list[str]:
    assert one.keys() == other.keys()
    return [name for name in one if not np.allclose(one[name], other[name], rtol=1e-9, atol=1e-12)]


@pytest.mark.parametrize("kind", FIELDS)
def test_two_targets_do_the_same_in_both_orders(robot: CompiledProject, kind: str) -> None:
    for pair in combinations(targets(robot, kind).values(), 2):
        wrong = differ(written(robot, list(pair)), written(robot, list(reversed(pair))))
        assert wrong == [], [target.path for target in pair]


def test_tilts_do_the_same_in_both_orders(robot: CompiledProject) -> None:
    tilts = [resolve(f"world/tilt/{axis}", robot.project, robot.model) for axis in "xy"]
    assert differ(written(robot, tilts), written(robot, tilts[::-1])) == []


@pytest.mark.parametrize("kind", FIELDS)
def test_where_a_name_sets_a_number_all_does_not(robot: CompiledProject, kind: str) -> None:
    known = targets(robot, kind)
    shared = [t for t in known.values() if t.shared and t.path.split("/", 2)[2] not in BOTH]
    assert shared
    for everyone in shared:
        named = known[everyone.path.replace("*", FIELDS[kind][0])]
        assert differ(written(robot, [everyone]), written(robot, [everyone], {everyone: 1.1})), everyone.path
        base = written(robot, [named, everyone])
        by_name, by_all = (written(robot, [named, everyone], {target: 1.1}) for target in (named, everyone))
        assert differ(base, by_name), named.path
        both = {name: (by_name[name] != base[name]) & (by_all[name] != base[name]) for name in base}
        assert [name for name, places in both.items() if places.any()] == [], named.path


def test_a_gain_multiplies_the_kp_that_is_set(robot: CompiledProject) -> None:
    gain, kp = (resolve(f"actuator/shoulder/{field}", robot.project, robot.model) for field in ("gain", "kp"))
    for those in ([gain, kp], [kp, gain]):
        # kp of 60 times 1.7 by its own range, times a gain of 1.7.
        assert written(robot, those)["actuator_gainprm"][0, 0, 0] == pytest.approx(60 * 1.7 * 1.7)


def test_damping_of_one_joint_and_of_all(robot: CompiledProject) -> None:
    paths = ["joint/elbow/damping", "joint/*/damping"]  # 0.2 in the model, and 0.4 and 0.1 of the others
    one, every = (resolve(path, robot.project, robot.model) for path in paths)
    for those in ([one, every], [every, one]):
        damping = written(robot, those)["dof_damping"][0, :3]
        assert damping == pytest.approx([0.4 * 1.3, 0.2 * 1.7, 0.1 * 1.3])
