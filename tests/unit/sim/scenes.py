"""Small models as projects, and how to run them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.protocols import Start
from gapless.core.signal import Array
from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve

ARM = """<mujoco><option timestep="{timestep}" gravity="{gravity}" integrator="{integrator}"/><worldbody>
<body name="upper">
<joint name="shoulder" axis="0 1 0" damping="{damping}" frictionloss="{frictionloss}" armature="{armature}"
 stiffness="{stiffness}"/>
<inertial pos="{com} 0 -.15" mass="{mass}" diaginertia="{inertia}"/>
<body name="lower" pos="0 0 -.3"><joint name="elbow" axis="0 1 0" damping="{damping2}"/>
<inertial pos="0 0 -.1" mass=".4" diaginertia=".002 .002 .0005"/><site name="tip" pos="0 0 -.2"/>
</body></body>
</worldbody><actuator>
<general name="motor" joint="shoulder" gainprm="{gain}" ctrlrange="-2 2" {limit}/>
<position name="servo" joint="elbow" kp="{kp}" kv="{kd}" gear="{gear}"/>
</actuator><sensor><force name="wrist" site="tip"/><gyro name="gyro" site="tip"/></sensor></mujoco>"""
ARM_VALUES = {
    "timestep": 0.002,
    "gravity": "0 0 -9.81",
    "integrator": "Euler",
    "damping": 0.2,
    "frictionloss": 0.05,
    "armature": 0.01,
    "stiffness": 0.3,
    "com": 0.01,
    "mass": 0.8,
    "inertia": ".006 .006 .001",
    "damping2": 0.1,
    "gain": 1.5,
    "limit": 'forcerange="-2.5 2.5"',
    "kp": 8.0,
    "kd": 0.3,
    "gear": 1.0,
}
ARM_COMMANDS = {"u1": "{actuator: motor}", "u2": "{actuator: servo}"}
ARM_MEASUREMENTS = {
    "q1": "{joint: shoulder, quantity: position}",
    "q2": "{joint: elbow, quantity: position}",
    "v1": "{joint: shoulder, quantity: velocity}",
    "v2": "{joint: elbow, quantity: velocity}",
}

# A box that slides down a plane, and a ball that falls on a block.
THINGS = """<mujoco><option timestep="0.002" gravity="{gravity}"/><worldbody>
<geom name="floor" type="plane" size="5 5 .1" friction="{floor_friction}" solref="{floor_solref}"
 condim="{floor_condim}" priority="{floor_priority}"/>
<body name="box" pos="0 0 .05"><freejoint name="box"/>
<inertial pos="0 0 0" mass="{mass}" diaginertia="{inertia}"/>
<geom name="box" type="box" size=".1 .08 .05" friction="{friction}" solref="{solref}"/></body>
<body name="block" pos="2 0 .2"><geom name="block" type="box" size=".2 .2 .2"/></body>
<body name="ball" pos="2.02 0 .6"><freejoint name="ball"/>
<inertial pos="0 0 0" mass=".2" diaginertia=".001 .001 .001"/>
<geom name="ball" type="sphere" size="{radius}"/></body>
</worldbody></mujoco>"""
THINGS_VALUES = {
    "gravity": "3 0.5 -9",
    "friction": "0.2 .005 .0001",
    "floor_friction": "0.2 .005 .0001",
    "solref": ".02 1",
    "floor_solref": ".02 1",
    "floor_condim": 3,
    "floor_priority": 0,
    "mass": 0.5,
    "inertia": ".0015 .002 .003",
    "radius": 0.1,
}
POSE = ("x", "y", "z", "qw", "qx", "qy", "qz", "yaw", "vx", "vy", "vz", "wx", "wy", "wz")
THINGS_MEASUREMENTS = {f"{b}_{q}": f"{{body: {b}, quantity: {q}}}" for b in ("box", "ball") for q in POSE}


def write_project(
    folder: Path,
    xml: str,
    commands: Mapping[str, str],
    measurements: Mapping[str, str],
    *,
    rate_hz: float = 100.0,
    parameters: Sequence[str] | None = None,
) -> Path:
    """Writes a project folder and returns it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "robot.xml").write_text(xml)
    lines = ["gapless: 1", "name: tiny", "model: robot.xml", f"rate_hz: {rate_hz}", "logs: logs"]
    for title, mapping in (("commands", commands), ("measurements", measurements)):
        lines += [f"{title}:", *(f"  {column}: {text}" for column, text in mapping.items())] if mapping else []
    lines += ["parameters:", *(f"  - {text}" for text in parameters)] if parameters else ["parameters: auto"]
    (folder / "gapless.yaml").write_text("\n".join(lines) + "\n")
    return folder


def arm(
    folder: Path,
    *,
    rate_hz: float = 100.0,
    measurements: Mapping[str, str] = ARM_MEASUREMENTS,
    parameters: Sequence[str] | None = None,
    **values: object,
) -> CompiledProject:
    """Returns a two-link arm, compiled: a motor on the shoulder, a servo on the elbow."""
    xml = ARM.format(**(ARM_VALUES | values))
    place = write_project(folder, xml, ARM_COMMANDS, measurements, rate_hz=rate_hz, parameters=parameters)
    return compile_project(load_project(place))


def things(folder: Path, *, parameters: Sequence[str] | None = None, **values: object) -> CompiledProject:
    """Returns a sliding box and a falling ball, compiled; nothing is commanded."""
    xml = THINGS.format(**(THINGS_VALUES | values))
    return compile_project(load_project(write_project(folder, xml, {}, THINGS_MEASUREMENTS, parameters=parameters)))


def space_of(blueprint: CompiledProject, *targets: str, room: float = 10.0) -> ParameterSpace:
    """Returns a space of targets with bounds that do not matter, but for delays: 0.2 s."""
    found = []
    for path in targets:
        target = resolve(path, blueprint.project, blueprint.model)
        high = 0.2 if path.endswith("/delay") else target.nominal + room
        found.append(Parameter(path, target.dimension, target.unit, target.nominal, target.nominal - room, high))
    return ParameterSpace(tuple(found))


def waves(blueprint: CompiledProject, num_worlds: int = 1, num_steps: int = 60) -> Array:
    """Returns commands that reach everywhere, (num_steps, num_worlds, num_commands)."""
    time_s = np.arange(num_steps)[:, None, None] / blueprint.project.rate_hz
    place = np.arange(len(blueprint.project.commands))
    return np.broadcast_to(1.3 * np.sin((9 + 4 * place) * time_s + place), (num_steps, num_worlds, len(place)))


def run(world: Simulation, commands: Array, positions: Mapping[str, Array] | None = None) -> Array:
    """Returns the measurements of a run, (num_steps + 1, num_worlds, num_measurements)."""
    start = Start(dict(positions or {}), np.zeros((world.num_worlds, 0)))
    seen = [world.reset(start, np.random.default_rng(0))]
    return np.stack(seen + [world.step(command).measured for command in commands])


def run_plain(blueprint: CompiledProject, commands: Array | None = None) -> Array:
    """Returns the run of a model as written, (num_steps + 1, num_measurements)."""
    commands = waves(blueprint) if commands is None else commands
    return run(Simulation(blueprint, 1, EMPTY_SPACE, 1), commands)[:, 0]


def run_rows(blueprint: CompiledProject, rows: Mapping[str, float] | Mapping[str, Sequence[float]]) -> Array:
    """Returns runs with parameters, (num_steps + 1, num_worlds, num_measurements)."""
    table = np.array([np.atleast_1d(values) for values in rows.values()], dtype=float).T
    world = Simulation(blueprint, len(table), space_of(blueprint, *rows), 1)
    world.set_parameters(table)
    return run(world, waves(blueprint, len(table)))
