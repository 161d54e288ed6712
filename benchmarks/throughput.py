"""Physics steps per second: gapless with 12 randomised parameters, with all layers on, a bare engine loop, Gymnasium.

    python benchmarks/throughput.py [--quick]

All contenders step the same model with the same physics steps per control interval, from the same start,
under the same kind of commands, for the same time. `bare` is `mujoco.batch` on its own: write controls,
step, read positions, with the same model fields expanded and set per world; it has no delays, no biases, no
mapping. `gapless` is `Simulation.step` with 12 parameters, a command delay and a sensor bias among them.
Gymnasium has an MjModel with one row of the same parameters and an MjData per environment, and returns
positions and velocities: 64 environments in one process (sync), and 2 or 4 processes (async, one
environment per process, as that class works). Contenders take turns and each keeps its best turn. That
evens out what else a machine does only among contenders on as many cores: one that uses a single core
suffers less. So run this on a machine that is otherwise idle; the share of the processors that was free is
printed.

`all layers` is `Simulation.step` with every layer switched on that fits the model, at typical values, on all joints,
actuators, readings and geoms that move: commands, efforts in every physics step, readings, fields of the model. It
and the bare batch, with the same model fields, take turns of a fraction of a second; the median of the ratios of
neighbouring turns is printed, with the range of the middle half. Layers change the motion too, so part of the
difference is the engine's: its share is printed.
"""

import argparse
import datetime
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
from mujoco.batch import Batch

from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.protocols import Start
from gapless.project.load import load_project
from gapless.sim.blueprint import CompiledProject, compile_project
from gapless.sim.realism.registry import LAYERS, path_of
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from gapless.sim.targets.resolve import kinds_of

NUM_WORLDS = 512
PUSH = Path(__file__).parents[1] / "src" / "gapless" / "examples" / "push"
PENDULUM_XML = """<mujoco><option timestep=".002"/><worldbody>
<body name="pole"><joint name="hinge" axis="0 1 0" damping=".1" frictionloss=".01" armature=".001"/>
<geom type="capsule" fromto="0 0 0 0 0 -.5" size=".02" mass=".5"/></body></worldbody>
<actuator><motor name="motor" joint="hinge" ctrlrange="-1 1" forcerange="-1 1"/></actuator></mujoco>"""
PENDULUM_YAML = """gapless: 1
model: robot.xml
rate_hz: 50
commands: {u: {actuator: motor}}
measurements: {q: {joint: hinge, quantity: position}, v: {joint: hinge, quantity: velocity}}
"""
TARGETS = {
    "pendulum": (
        *("joint/hinge/damping", "joint/hinge/frictionloss", "joint/hinge/armature", "actuator/motor/gain"),
        *("actuator/motor/limit", "actuator/motor/delay", "body/pole/mass", "body/pole/inertia"),
        *("body/pole/com/x", "world/tilt/x", "world/tilt/y", "measurement/q/bias"),
    ),
    "push": (
        *(
            "joint/tip_x/damping",
            "joint/tip_y/damping",
            "joint/tip_x/frictionloss",
            "joint/tip_y/frictionloss",
        ),
        *("actuator/servo_x/kp", "actuator/servo_y/kp", "actuator/*/delay", "body/puck/mass"),
        *("geom/puck/friction", "world/tilt/x", "world/tilt/y", "measurement/puck_x/bias"),
    ),
}
QUADRUPED = Path(__file__).parent / "robots" / "quadruped.xml"
TIP_M = -0.1  # where the pusher starts: beside the puck, which it will meet


@dataclass(frozen=True)
class Contender:
    """What takes part: `begin` goes back to the start, `advance` takes commands for one control interval."""

    name: str
    num_worlds: int
    begin: Callable[[], object]
    advance: Callable[[np.ndarray], object]
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    model: str
    name: str
    num_worlds: int
    steps_per_s: float


def pendulum() -> CompiledProject:
    """Returns the pendulum, compiled."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "robot.xml").write_text(PENDULUM_XML)
        (Path(folder) / "gapless.yaml").write_text(PENDULUM_YAML)
        return compile_project(load_project(folder))


def quadruped() -> CompiledProject:
    """Returns a quadruped with 12 servos on a floor, compiled."""
    model = mujoco.MjModel.from_xml_path(str(QUADRUPED))
    servos = [model.actuator(a).name for a in range(model.nu)]
    commands = "".join(f"  u_{name}: {{actuator: {name}}}\n" for name in servos)
    joints = "".join(f"  {name}: {{joint: {name}, quantity: position}}\n" for name in servos)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "robot.xml").write_text(QUADRUPED.read_text())
        text = f"gapless: 1\nmodel: robot.xml\nrate_hz: 50\ncommands:\n{commands}measurements:\n{joints}"
        (Path(folder) / "gapless.yaml").write_text(text + "  z: {body: trunk, quantity: z}\n")
        return compile_project(load_project(folder))


def all_layers(blueprint: CompiledProject) -> tuple[ParameterSpace, np.ndarray]:
    """Returns every knob of every layer that fits the model, and a row of typical values."""
    model = blueprint.model
    geoms = [g for g in range(model.ngeom) if model.geom_bodyid[g] and model.geom_contype[g]]
    free = [b for b in range(1, model.nbody) if model.jnt_type[model.body_jntadr[b]] == mujoco.mjtJoint.mjJNT_FREE]
    names = {"geom": [model.geom(g).name for g in geoms], "body": [model.body(b).name for b in free]}
    found, values = [], []
    for layer in LAYERS:
        for kind in kinds_of(layer):
            places = [f"world/{path_of(layer)}"]
            if kind != "world":
                places = [f"{kind}/{name}/{path_of(layer)}" for name in names.get(kind, ["*"])]
            for place, knob in ((place, knob) for place in places for knob in layer.knobs):
                if layer.name == "spread" and not knob.per_column and place != places[0]:
                    continue  # which robot it is: one number for all that is named
                try:
                    target = resolve(f"{place}/{knob.name}", blueprint.project, model)
                except InputError:
                    continue  # this model has nothing to act on, or another target is the same
                found.append(Parameter(target.path, target.dimension, target.unit, target.nominal, -1e9, 1e9))
                values.append(knob.typical)
    return ParameterSpace(tuple(found)), np.array(values)


def spread(
    blueprint: CompiledProject, targets: tuple[str, ...], rng: np.random.Generator
) -> tuple[ParameterSpace, np.ndarray]:
    """Returns a space of parameters and a row per world, about a fifth around what the model says."""
    found = []
    for path in targets:
        target = resolve(path, blueprint.project, blueprint.model)
        low, high = (0.0, 0.06) if path.endswith("/delay") else (0.8 * target.nominal, 1.2 * target.nominal)
        if low == high:
            low, high = (0.0, 0.2) if path.endswith("/frictionloss") else (-0.02, 0.02)
        low, high = min(low, high), max(low, high)
        found.append(Parameter(path, target.dimension, target.unit, target.nominal, low, high))
    space = ParameterSpace(tuple(found))
    return space, rng.uniform(space.low, space.high, (NUM_WORLDS, len(space)))


def commands_of(model: mujoco.MjModel, num_worlds: int, num_steps: int) -> np.ndarray:
    """Returns slow random walks within the model's limits, (num_steps, num_worlds, num_actuators)."""
    low, high = model.actuator_ctrlrange.T
    steps = np.random.default_rng(1).uniform(-1, 1, (num_steps, num_worlds, model.nu))
    return np.clip(np.cumsum(0.03 * (high - low) * steps, axis=0), low, high)


def start_of(model: mujoco.MjModel) -> np.ndarray:
    """Returns the positions to start from, (nq,)."""
    qpos = model.qpos0.copy()
    if "tip_x" in [model.joint(j).name for j in range(model.njnt)]:
        qpos[model.joint("tip_x").qposadr[0]] = TIP_M
    return qpos


class PlainEnv(gymnasium.Env):
    """One robot, one MjModel, one MjData."""

    def __init__(self, model: mujoco.MjModel, num_substeps: int) -> None:
        self.model, self.data, self.num_substeps = model, mujoco.MjData(model), num_substeps
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (model.nq + model.nv,), np.float64)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (model.nu,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[:] = start_of(self.model)
        return np.concatenate([self.data.qpos, self.data.qvel]), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.data.ctrl[:] = action
        mujoco.mj_step(self.model, self.data, nstep=self.num_substeps)
        return np.concatenate([self.data.qpos, self.data.qvel]), 0.0, False, False, {}


def gapless_contender(blueprint: CompiledProject, world: Simulation) -> Contender:
    """Returns the simulation itself."""
    moved = {"tip_x": np.full((NUM_WORLDS, 1), TIP_M)} if "tip_x" in world.measurement_names else {}
    start, rng = Start(moved, np.zeros((NUM_WORLDS, 0))), np.random.default_rng(0)
    return Contender(f"gapless, {len(world.space)} parameters", NUM_WORLDS, lambda: world.reset(start, rng), world.step)


def bare_contender(blueprint: CompiledProject, world: Simulation) -> Contender:
    """Returns a bare batch whose worlds have the model fields of a simulation."""
    batch = Batch(blueprint.model, NUM_WORLDS)
    for name in world.fields.expanded:
        batch.expand(name)[:] = world.fields.of(name)
    batch.set_const()
    control, qpos = batch.bind("ctrl"), batch.bind("qpos")

    def begin() -> None:
        batch.reset()
        qpos[:] = start_of(blueprint.model)

    def advance(command: np.ndarray) -> np.ndarray:
        control[:] = command
        batch.step(nstep=blueprint.num_substeps)
        return qpos.copy()

    return Contender("bare mujoco.batch", NUM_WORLDS, begin, advance)


def gymnasium_contender(blueprint: CompiledProject, world: Simulation, num_envs: int, kind: str) -> Contender:
    """Returns a vector environment with the models of a simulation's first worlds."""
    models = [world.batch.get_model(k) for k in range(num_envs)]
    makers = [partial(PlainEnv, model, blueprint.num_substeps) for model in models]
    vector = gymnasium.vector.AsyncVectorEnv if kind == "async" else gymnasium.vector.SyncVectorEnv
    envs = vector(makers)
    return Contender(f"gymnasium {kind}", num_envs, lambda: envs.reset(seed=0), envs.step, envs.close)


def compare(model: str, blueprint: CompiledProject, num_steps: int, num_turns: int) -> list[Row]:
    """Returns the best turn of every contender, which take turns."""
    space, rows = spread(blueprint, TARGETS[model], np.random.default_rng(2))
    world = Simulation(blueprint, NUM_WORLDS, space)
    world.set_parameters(rows)
    contenders = [bare_contender(blueprint, world), gapless_contender(blueprint, world)]
    for kind, num_envs in (("sync", 64), ("async", 2), ("async", 4)):
        contenders.append(gymnasium_contender(blueprint, world, num_envs, kind))
    best = [0.0] * len(contenders)
    for turn in range(num_turns + 1):  # the first warms up
        for k, contender in enumerate(contenders):
            rate = _rate(contender, commands_of(blueprint.model, contender.num_worlds, num_steps))
            best[k] = max(best[k], rate * blueprint.num_substeps) if turn else 0.0
    for contender in contenders:
        contender.close()
    return [Row(model, c.name, c.num_worlds, rate) for c, rate in zip(contenders, best, strict=True)]


@dataclass(frozen=True)
class Turns:
    """All layers against the bare batch of one model."""

    model: str
    num_layers: int
    num_joints: int
    ratios: np.ndarray
    engine_share: float

    @property
    def median(self) -> float:
        """Steps/s with all layers on, as a share of the bare batch's [1]."""
        return float(np.median(self.ratios))


def compare_layers(model: str, blueprint: CompiledProject, num_turns: int, seconds: float = 0.3) -> Turns:
    """Returns how fast a simulation with all layers on is against the bare batch, which take turns."""
    space, row = all_layers(blueprint)
    world = Simulation(blueprint, NUM_WORLDS, space)
    world.set_parameters(np.tile(row, (NUM_WORLDS, 1)))
    contenders = bare_contender(blueprint, world), gapless_contender(blueprint, world)
    commands = commands_of(blueprint.model, NUM_WORLDS, 5)
    rate = _rate(contenders[0], commands)
    commands = commands_of(blueprint.model, NUM_WORLDS, max(5, int(seconds * rate / NUM_WORLDS)))
    _rate(contenders[1], commands[:5])
    pairs = []
    for turn in range(num_turns):
        order = contenders if turn % 2 else contenders[::-1]
        rates = {contender.name: _rate(contender, commands) for contender in order}
        pairs.append(rates[contenders[1].name] / rates[contenders[0].name])
    joints = int(np.sum(blueprint.model.jnt_type != mujoco.mjtJoint.mjJNT_FREE))
    share = _engine_share(world, contenders[1], commands)
    return Turns(
        model, len({one.layer.name for one in world.fields.active_layers.values()}), joints, np.array(pairs), share
    )


def _engine_share(world: Simulation, contender: Contender, commands: np.ndarray) -> float:
    """Returns the share of a turn that the engine takes [1]."""
    spent_s, step = 0.0, world.batch.step

    def timed(*args: object, **options: object) -> object:
        nonlocal spent_s
        begin_s = time.perf_counter()
        result = step(*args, **options)
        spent_s += time.perf_counter() - begin_s
        return result

    world.batch.step = timed
    whole_s = commands.shape[0] * commands.shape[1] / _rate(contender, commands)
    world.batch.step = step
    return spent_s / whole_s


def _rate(contender: Contender, commands: np.ndarray) -> float:
    """Returns control steps of all worlds per second [1/s]."""
    contender.begin()
    begin_s = time.perf_counter()
    for command in commands:
        contender.advance(command)
    return commands.shape[0] * commands.shape[1] / (time.perf_counter() - begin_s)


def free_share(seconds: float = 1.0) -> float:
    """Returns the share of the processors that nobody uses, in [0, 1], from /proc/stat; NaN elsewhere."""
    try:
        before = np.array(Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9], dtype=float)
        time.sleep(seconds)
        after = np.array(Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9], dtype=float)
    except OSError:
        return float("nan")
    spent = after - before
    return float((spent[3] + spent[4]) / spent.sum())


def ratios(rows: list[Row], model: str) -> tuple[float, float]:
    """Returns gapless against bare, and against the fastest Gymnasium vector environment [1]."""
    of = {(row.name, row.num_worlds): row.steps_per_s for row in rows if row.model == model}
    ours = next(rate for (name, _), rate in of.items() if name.startswith("gapless"))
    bare = next(rate for (name, _), rate in of.items() if name.startswith("bare"))
    return ours / bare, ours / max(rate for (name, _), rate in of.items() if name.startswith("gymnasium"))


def measure(quick: bool) -> list[Row]:
    """Returns all rows: a few seconds if quick, else about a minute."""
    num_steps, num_turns = (20, 3) if quick else (60, 6)
    models = {"pendulum": pendulum(), "push": compile_project(load_project(PUSH))}
    return [row for name, blueprint in models.items() for row in compare(name, blueprint, num_steps, num_turns)]


def measure_layers(quick: bool) -> list[Turns]:
    """Returns all layers against the bare batch, on two models."""
    models = {"push": compile_project(load_project(PUSH)), "quadruped": quadruped()}
    return [compare_layers(name, blueprint, 9 if quick else 31) for name, blueprint in models.items()]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few seconds; noisier")
    parser.add_argument("--layers", action="store_true", help="only all layers against the bare batch")
    given, free = parser.parse_args(), free_share()
    rows = [] if given.layers else measure(given.quick)
    turns = measure_layers(given.quick)
    today = datetime.datetime.now(datetime.UTC).date()
    print(f"python {' '.join(sys.argv)}   {today}   mujoco {mujoco.__version__}")
    print(f"{os.cpu_count()} cores, {100 * free:.0f} % free before the run, {100 * free_share():.0f} % after it")
    print(f"{'model':10}{'contender':28}{'worlds':>7}{'physics steps/s':>18}{'/ bare':>9}")
    for row in rows:
        bare = next(r.steps_per_s for r in rows if r.model == row.model and r.name.startswith("bare"))
        share = row.steps_per_s / bare
        print(f"{row.model:10}{row.name:28}{row.num_worlds:7d}{row.steps_per_s:18,.0f}{share:9.2f}")
    for model in TARGETS if rows else ():
        to_bare, to_gymnasium = ratios(rows, model)
        print(f"{model}: gapless is {to_bare:.2f} of bare and {to_gymnasium:.1f} x the faster Gymnasium env")
    for found in turns:
        low, high = np.quantile(found.ratios, [0.25, 0.75])
        what = f"{found.model}, {found.num_joints} joints, {found.num_layers} layers on: {found.median:.2f} of bare"
        print(
            f"{what}, middle half {low:.2f} to {high:.2f} of {len(found.ratios)} turns; {found.engine_share:.0%} engine"
        )


if __name__ == "__main__":
    main()
