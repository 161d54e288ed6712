"""Every world through the public checker, and the checker itself on worlds that break the contract."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.contract import check_world
from gapless.core.errors import InputError
from gapless.core.protocols import Start, Step
from gapless.project.code import load_reality, load_task
from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from gapless.sim.twin import Imperfections, Twin
from unit.sim.scenes import ARM, ARM_COMMANDS, ARM_VALUES, space_of, write_project

COLUMNS = {
    "q1": "{joint: shoulder, quantity: position}",
    "tau": "{joint: elbow, quantity: effort}",
    "x": "{body: lower, quantity: x}",
    "fz": "{sensor: wrist, axis: 2}",
}
PUSH = Path(__file__).parents[2] / "src" / "gapless" / "examples" / "push"


def start(rng: np.random.Generator, num_worlds: int) -> Start:
    return Start({"elbow": rng.uniform(-0.5, 0.5, (num_worlds, 1))}, np.zeros((num_worlds, 2)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    xml = ARM.format(**ARM_VALUES).replace('gear="1.0"', 'ctrlrange="-1 1"')
    return write_project(tmp_path, xml, ARM_COMMANDS, COLUMNS)


@pytest.mark.parametrize("num_worlds", [1, 3])
def test_a_simulation_is_a_world(folder: Path, num_worlds: int) -> None:
    blueprint = compile_project(load_project(folder))

    def make() -> Simulation:
        targets = ("actuator/*/delay", "measurement/q1/delay", "measurement/x/bias", "joint/elbow/backlash")
        world = Simulation(blueprint, num_worlds, space_of(blueprint, *targets), 1)
        world.set_parameters(np.tile([0.013, 0.02, 0.1, 0.05], (num_worlds, 1)))
        return world

    check_world(make, start, beyond=1e3)


LAYERS_ON = {
    "actuator/*/jitter/jitter_s": 0.01,
    "actuator/*/dropped-packets/share": 0.3,
    "actuator/*/rate-limit/rate": 5.0,
    "joint/elbow/friction/hump": 0.2,
    "joint/*/cogging/amplitude": 0.1,
    "joint/shoulder/pushes/rate_hz": 5.0,
    "body/lower/wind/gust": 0.3,
    "joint/*/spread/trial": 0.2,
    "measurement/*/noise/noise": 1e-3,
    "measurement/q1/slower-sensor/period_s": 0.03,
    "measurement/x/occlusion/share": 0.4,
}


@pytest.mark.parametrize("num_worlds", [1, 3])
def test_a_simulation_with_layers_on_is_a_world(folder: Path, num_worlds: int) -> None:
    blueprint = compile_project(load_project(folder))

    def make() -> Simulation:
        world = Simulation(blueprint, num_worlds, space_of(blueprint, *LAYERS_ON), 1)
        world.set_parameters(np.tile(list(LAYERS_ON.values()), (num_worlds, 1)))
        return world

    check_world(make, start, beyond=1e3)


@pytest.mark.parametrize("num_worlds", [1, 3])
def test_a_twin_is_a_world(folder: Path, num_worlds: int) -> None:
    imperfections = Imperfections(
        {"actuator/*/delay": 0.013, "joint/elbow/damping": 0.3, "measurement/q1/bias": 0.1},
        stribeck={"elbow": (0.1, 0.05)},
        jitter_s=0.002,
        noise={"q1": 1e-3, "x": 1e-4},
        drift={"q1": 1e-3},
        quantum={"q1": 1e-4},
    )
    check_world(lambda: Twin(folder, imperfections, num_worlds, seed=3), start, beyond=1e3)


def test_the_twin_of_a_seed_is_one_robot_of_its_fleet(folder: Path) -> None:
    imperfections = Imperfections({"actuator/*/spread/fleet": 0.3})

    def last(seed: int) -> np.ndarray:
        twin = Twin(folder, imperfections, 1, seed)
        twin.reset(start(np.random.default_rng(0), 1), np.random.default_rng(seed))
        return np.stack([twin.step(np.full((1, 2), 0.5)).measured for _ in range(10)])[-1]

    assert np.array_equal(last(3), last(3))
    assert np.abs(last(3) - last(4)).max() > 1e-6


def test_the_reality_of_the_push_example_is_a_world() -> None:
    project = load_project(PUSH)

    def begin(rng: np.random.Generator, num_worlds: int) -> Start:
        return Start({"tip_x": rng.uniform(-0.1, -0.08, (num_worlds, 1))}, np.zeros((num_worlds, 2)))

    check_world(lambda: load_reality(project, 0, 2), begin, beyond=1e3)


@pytest.mark.parametrize("num_worlds", [1, 3])
def test_the_reality_of_the_handover_example_is_a_world(num_worlds: int) -> None:
    project = load_project(PUSH.with_name("handover"))
    check_world(lambda: load_reality(project, 0, num_worlds), load_task(project).start, size=0.3, beyond=1e3)


class Robot:
    """A world that keeps the contract: positions that follow commands, cut at 1."""

    source = "real"
    rate_hz = 50.0
    command_names = ("u",)
    measurement_names = ("q",)

    def __init__(self, num_worlds: int = 2) -> None:
        self.num_worlds = num_worlds
        self._q = np.zeros((num_worlds, 1))

    def reset(self, start: Start, rng: np.random.Generator, ids: np.ndarray | None = None) -> np.ndarray:
        which = np.arange(self.num_worlds) if ids is None else ids
        self._q[which] = start.positions["elbow"] + 5.0
        return self._q.copy()

    def step(self, requested_command: np.ndarray) -> Step:
        applied = np.clip(requested_command, -1.0, 1.0)
        self._q = 0.9 * self._q + 0.1 * applied
        return Step(self._q.copy(), applied)


class NoNames(Robot):
    measurement_names = ()


class TwiceNamed(Robot):
    command_names = ("u", "u")


class UnknownSource(Robot):
    source = "hardware"


class Flat(Robot):
    def reset(self, start, rng, ids=None):
        return super().reset(start, rng, ids)[:, 0]


class Single(Robot):
    def step(self, requested_command):
        return replace(super().step(requested_command), measured=self._q.astype(np.float32))


class Unready(Robot):
    def reset(self, start, rng, ids=None):
        return super().reset(start, rng, ids) * np.nan


class Buffer(Robot):
    def step(self, requested_command):
        self._q *= 0.9
        return Step(self._q, requested_command.copy())

    def reset(self, start, rng, ids=None):
        super().reset(start, rng, ids)
        return self._q


class Unlimited(Robot):
    def step(self, requested_command):
        return replace(super().step(requested_command), applied_command=requested_command.copy())


class OtherUnit(Robot):
    def step(self, requested_command):
        return replace(super().step(requested_command), applied_command=57.3 * requested_command)


class Forgetful(Robot):
    def reset(self, start, rng, ids=None):
        self._q[:] = 5.0
        return self._q.copy()


class Random(Robot):
    def step(self, requested_command):
        step = super().step(requested_command)
        return replace(step, measured=step.measured + np.random.default_rng().normal(size=(self.num_worlds, 1)))


class Greedy(Robot):
    def step(self, requested_command):
        requested_command *= 0.5
        return super().step(requested_command)


def test_a_robot_that_keeps_the_contract_passes() -> None:
    check_world(Robot, start, beyond=10.0)
    check_world(lambda: Robot(1), start)


BREACHES = [
    (NoNames, "measures nothing"),
    (TwiceNamed, "a name twice"),
    (UnknownSource, "'hardware'"),
    (Flat, "axis 0 is num_worlds"),
    (Single, "float64"),
    (Unready, "not finite"),
    (Buffer, "return a copy"),
    (Unlimited, "after limits"),
    (OtherUnit, "applied unchanged"),
    (Forgetful, "reset ignores ids"),
    (Random, "rng of reset"),
    (Greedy, "copy before clipping"),
]


@pytest.mark.parametrize(("world", "cause"), BREACHES, ids=[w.__name__ for w, _ in BREACHES])
def test_a_breach_is_named_with_its_likely_cause(world: type[Robot], cause: str) -> None:
    with pytest.raises(InputError, match="this world breaks the protocol") as caught:
        check_world(world, start, beyond=10.0)
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_class_without_step_is_told_so() -> None:
    class Nothing:
        source = "real"
        num_worlds = 1
        rate_hz = 10.0
        command_names = ()
        measurement_names = ("q",)

    with pytest.raises(InputError, match="has no reset"):
        check_world(Nothing, start)  # type: ignore[arg-type]
