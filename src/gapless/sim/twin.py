"""Twins: worlds that play reality in examples, tests and benchmarks.

A twin has effects that the model lacks, and shows only what a robot would show. Nothing that closes a gap may
import this module (an architecture test sees to it) or reach into a twin.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gapless.core.episode import Source
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.protocols import Start, Step
from gapless.core.signal import Array
from gapless.project.load import load_project
from gapless.realism.actuator import stribeck
from gapless.realism.sensor import drifted, quantised
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from gapless.targets import resolve


@dataclass(frozen=True)
class Imperfections:
    """What sets a twin apart from the model.

    Attributes:
        parameters: Target -> true value, for what the model has but has wrong.
        stribeck: Joint -> (height [N·m, N], speed [rad/s, m/s]) of extra friction near standstill.
        jitter_s: Standard deviation of the delay from one control interval to the next [s].
        uneven_friction: Geom -> (relative amplitude [1], wavelength [m]) of friction over the floor.
        noise: Column -> standard deviation of its readings.
        drift: Column -> standard deviation of its bias after one second [unit/sqrt(s)].
        quantum: Column -> step of its readings.
        timestep_s: The twin's physics step [s].
    """

    parameters: Mapping[str, float]
    stribeck: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    jitter_s: float = 0.0
    uneven_friction: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    noise: Mapping[str, float] = field(default_factory=dict[str, float])
    drift: Mapping[str, float] = field(default_factory=dict[str, float])
    quantum: Mapping[str, float] = field(default_factory=dict[str, float])
    timestep_s: float = 0.001


class Twin:
    """A world that plays reality. Every world of it is one more trial of the same robot."""

    source: Source = "twin"

    def __init__(self, directory: Path, imperfections: Imperfections, num_worlds: int, seed: int) -> None:
        """Builds the twin of the project in a folder."""
        project = load_project(directory)
        blueprint = compile_project(project, max_timestep_s=imperfections.timestep_s)
        space, row = _space_of(imperfections, blueprint)
        self.num_worlds = num_worlds
        self.rate_hz = project.rate_hz
        self.command_names = project.command_names
        self.measurement_names = project.measurement_names
        self.__hidden = imperfections
        self.__world = Simulation(blueprint, num_worlds, space)
        self.__world.set_parameters(np.tile(row, (num_worlds, 1)))
        self.__delay_s = self.__world.fields.delay_s.copy()
        self.__rng = np.random.default_rng(seed)
        self.__drift = np.zeros((num_worlds, len(self.measurement_names)))
        self.__phase = np.random.default_rng(seed).uniform(0, 2 * np.pi, 2)
        self.__friction = {
            geom: float(self.__world.fields.of("geom_friction")[0, blueprint.model.geom(geom).id, 0])
            for geom in imperfections.uneven_friction
        }

    def reset(self, start: Start, rng: np.random.Generator, ids: NDArray[np.intp] | None = None) -> Array:
        """Begins anew from `start`; see `World.reset`."""
        self.__rng = rng
        self.__drift[slice(None) if ids is None else ids] = 0.0
        return self.__show(self.__world.reset(start, rng, ids))

    def step(self, requested_command: Array) -> Step:
        """Advances one control interval; see `World.step`."""
        world, hidden = self.__world, self.__hidden
        applied = world.hold(requested_command)
        if hidden.jitter_s:
            jitter_s = hidden.jitter_s * self.__rng.standard_normal((self.num_worlds, 1))
            world.fields.delay_s[:] = np.clip(self.__delay_s + jitter_s, 0.0, None)
            world.plan_delays()
        rate = np.array([hidden.drift.get(name, 0.0) for name in self.measurement_names])
        self.__drift = drifted(self.__drift, rate, 1 / self.rate_hz, self.__rng)
        self.__roughen()
        controls = world.substep_controls()
        joints = [world.blueprint.model.joint(name) for name in hidden.stribeck]
        dofs = [int(joint.dofadr[0]) for joint in joints]
        shape = np.array(list(hidden.stribeck.values())).reshape(-1, 2)
        velocity, force = world.batch.bind("qvel"), world.batch.bind("qfrc_applied")
        for k in range(world.blueprint.num_substeps):
            world.batch.bind("ctrl")[:] = controls[:, k]
            force[:, dofs] = stribeck(velocity[:, dofs], shape[:, 0], shape[:, 1])
            world.batch.step()
        return Step(self.__show(world.read()), applied)

    def __roughen(self) -> None:
        """Sets the friction of each uneven contact from where its body is now."""
        world = self.__world
        for geom, (amplitude, wavelength_m) in self.__hidden.uneven_friction.items():
            index = world.blueprint.model.geom(geom).id
            joint = int(world.blueprint.model.body_jntadr[world.blueprint.model.geom_bodyid[index]])
            address = int(world.blueprint.model.jnt_qposadr[joint])
            place = world.batch.bind("qpos")[:, address : address + 2] * 2 * np.pi / wavelength_m + self.__phase
            wave = np.sin(place[:, 0]) * np.sin(place[:, 1])
            world.fields.of("geom_friction")[:, index, 0] = self.__friction[geom] * (1 + amplitude * wave)

    def __show(self, reading: Array) -> Array:
        hidden, names = self.__hidden, self.measurement_names
        noise = np.array([hidden.noise.get(name, 0.0) for name in names])
        quantum = np.array([hidden.quantum.get(name, 0.0) for name in names])
        noisy = reading + self.__drift + noise * self.__rng.standard_normal(reading.shape)
        return quantised(noisy, quantum)


def _space_of(imperfections: Imperfections, blueprint: object) -> tuple[ParameterSpace, Array]:
    project, model = blueprint.project, blueprint.model  # type: ignore[attr-defined]
    found: list[Parameter] = []
    for path, value in imperfections.parameters.items():
        target = resolve(path, project, model)
        room = 1.0 if not path.endswith("/delay") else 6 * imperfections.jitter_s + 1e-6
        found.append(Parameter(path, target.dimension, target.unit, target.nominal, value - 1.0, value + room))
    return ParameterSpace(tuple(found)), np.array([value for value in imperfections.parameters.values()])
