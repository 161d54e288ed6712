"""Tiny projects whose reality is their own model with other parameters: the truth is known exactly."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.protocols import Start
from gapless.core.signal import Array
from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from unit.sim.scenes import write_project

# A motor turns a pendulum: gravity shows the true angle, so that a biased reading can be told.
PENDULUM = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody><body name="bob">
<joint name="hinge" axis="0 1 0" damping="0.05"/>
<geom name="bob" type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5" contype="0" conaffinity="0"/>
</body></worldbody><actuator><motor name="motor" joint="hinge" ctrlrange="-2 2"/></actuator></mujoco>"""
# A motor pushes a free cart: x'' = gain * u / mass, so that gain and mass show as one number only.
CART = """<mujoco><option timestep="0.005" gravity="0 0 0" integrator="implicitfast"/><worldbody><body name="cart">
<joint name="rail" type="slide" axis="1 0 0"/>
<geom name="cart" type="box" size=".1 .1 .1" mass="1" contype="0" conaffinity="0"/>
</body></worldbody><actuator><motor name="motor" joint="rail" ctrlrange="-2 2"/></actuator></mujoco>"""
COMMANDS = {"u": "{actuator: motor}"}
ANGLE = {"q": "{joint: hinge, quantity: position, noise: 0.001}"}
ANGLE_AND_RATE = {**ANGLE, "v": "{joint: hinge, quantity: velocity, noise: 0.01}"}
NOISE = (0.001, 0.01)  # of angle [rad] and rate [rad/s], as stated
PLACE_AND_SPEED = {
    "x": "{joint: rail, quantity: position, noise: 0.0001}",
    "v": "{joint: rail, quantity: velocity, noise: 0.001}",
}
REST_S = 0.3  # what was commanded before a log began nobody knows: here the robot rested, and rests a little longer
WHATEVER = (
    "{target: joint/hinge/damping, low: 0, high: 0.3}",
    "{target: actuator/motor/gain, low: 0.3, high: 2}",
    "{target: actuator/*/delay, low: 0, high: 0.1}",
    "{target: measurement/q/bias, low: -0.2, high: 0.2}",
)


def write_reality(
    folder: Path,
    truth: Mapping[str, float],
    *,
    xml: str = PENDULUM,
    measurements: Mapping[str, str] = ANGLE_AND_RATE,
    parameters: Sequence[str] | None = WHATEVER,
    noise: Sequence[float] = NOISE,
    num_logs: int = 4,
    duration_s: float = 4.0,
    size: float = 0.2,
    outcomes: Sequence[str] = (),
    seed: int = 0,
) -> Path:
    """Writes a project and the logs of its model with the true parameters; returns the folder.

    Args:
        folder: Where.
        truth: Target -> value in reality; the others are as modelled.
        xml: The model.
        measurements: Column -> mapping.
        parameters: Entries of `parameters`; None for auto.
        noise: Standard deviation of each column's readings.
        num_logs: How many logs, named run0 and so on.
        duration_s: Of each log [s].
        size: Amplitude of each of three sines in the commands.
        outcomes: Outcome of each log's sidecar; none are written without.
        seed: Seed of motions and noise.
    """
    write_project(folder, xml, COMMANDS, measurements, rate_hz=50.0, parameters=parameters)
    world = _world(folder, truth)
    rng = np.random.default_rng(seed)
    time_s = np.arange(round(duration_s * 50)) / 50.0
    for k in range(num_logs):
        rate, phase = rng.uniform(1.0, 7.0, 3), rng.uniform(0.0, 6.3, 3)
        command = size * np.sin(rate * time_s[:, None] + phase).sum(axis=1) * np.clip((time_s - REST_S) / 0.5, 0.0, 1.0)
        seen = [world.reset(Start({}, np.zeros((1, 0))), rng)]
        seen += [world.step(np.array([[u]])).measured for u in command[:-1]]
        shown = np.concatenate(seen) + np.asarray(noise) * rng.standard_normal((len(command), len(measurements)))
        write_csv(
            folder / "logs" / f"run{k}.csv",
            {"time_s": time_s, "u": command, **dict(zip(measurements, shown.T, strict=True))},
        )
        if outcomes:
            about = json.dumps({"source": "real", "outcome": outcomes[k]})
            (folder / "logs" / f"run{k}.json").write_text(about)
    return folder


def write_csv(path: Path, columns: Mapping[str, Array]) -> None:
    """Writes columns as a log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = np.stack(list(columns.values()), axis=1)
    np.savetxt(path, table, fmt="%.12g", delimiter=",", header=",".join(columns), comments="")


def rewrite(folder: Path, change: Mapping[str, str] | None = None, shuffle: str | None = None) -> None:
    """Spoils every log: column -> the column whose values it gets, or one column in random order."""
    rng = np.random.default_rng(0)
    for path in sorted((folder / "logs").glob("*.csv")):
        names = path.read_text().splitlines()[0].split(",")
        columns = dict(zip(names, np.loadtxt(path, delimiter=",", skiprows=1).T, strict=True))
        spoiled = columns | {name: columns[other] for name, other in (change or {}).items()}
        if shuffle:
            spoiled[shuffle] = rng.permutation(columns[shuffle])
        write_csv(path, spoiled)


def _world(folder: Path, truth: Mapping[str, float]) -> Simulation:
    blueprint = compile_project(load_project(folder))
    found: list[Parameter] = []
    for path, value in truth.items():
        target = resolve(path, blueprint.project, blueprint.model)
        found.append(Parameter(path, target.dimension, target.unit, target.nominal, value - 1.0, value + 0.1))
    world = Simulation(blueprint, 1, ParameterSpace(tuple(found)), 1)
    world.set_parameters(np.array([list(truth.values())]))
    return world
