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
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve

# The layer's jitter is |n| times its knob, so it only ever adds: mean and standard deviation of |n|, n standard normal.
_MEAN, _DEVIATION = np.sqrt(2 / np.pi), np.sqrt(1 - 2 / np.pi)


@dataclass(frozen=True)
class Imperfections:
    """What sets a twin apart from the model."""

    # Target -> true value, for what the model has but has wrong, and for knobs of layers that it lacks, such as
    # `joint/elbow/cogging/amplitude`. The robot number of layer `spread` is the twin's seed.
    parameters: Mapping[str, float]
    # Joint -> (height [N·m, N], speed [rad/s, m/s]) of extra friction near standstill: layer `friction`.
    stribeck: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    # Standard deviation of the delay from one control interval to the next [s], the mean delay being that of
    # `parameters`: layer `jitter`.
    jitter_s: float = 0.0
    # Geom -> (relative amplitude [1], wavelength [m]) of friction over the floor, the same in all trials: layer
    # `uneven friction`.
    uneven_friction: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    noise: Mapping[str, float] = field(default_factory=dict[str, float])  # column -> deviation of readings
    drift: Mapping[str, float] = field(default_factory=dict[str, float])  # column -> that of its bias [unit/sqrt(s)]
    quantum: Mapping[str, float] = field(default_factory=dict[str, float])  # column -> step of its readings
    timestep_s: float = 0.001  # the twin's physics step [s]

    def targets(self, seed: int) -> dict[str, float]:
        """Returns everything as targets with their values; `seed` says which robot of its fleet the twin is."""
        found = dict(self.parameters)
        for joint, (height, speed) in self.stribeck.items():
            found |= {f"joint/{joint}/friction/hump": height, f"joint/{joint}/friction/speed": speed}
        if self.jitter_s:
            knob_s = self.jitter_s / _DEVIATION
            found["actuator/*/jitter/jitter_s"] = knob_s
            found["actuator/*/delay"] = max(0.0, found.get("actuator/*/delay", 0.0) - _MEAN * knob_s)
        for geom, (amplitude, wavelength_m) in self.uneven_friction.items():
            path = f"geom/{geom}/uneven-friction"
            found |= {f"{path}/amplitude": amplitude, f"{path}/wavelength_m": wavelength_m}
        readings = {"scale-and-bias/drift": self.drift, "noise/noise": self.noise, "quantisation/step": self.quantum}
        for knob, columns in readings.items():
            found |= {f"measurement/{column}/{knob}": value for column, value in columns.items()}
        spreads = {path.rpartition("/")[0] for path in found if "/spread/fleet" in path}
        return found | {f"{path}/robot": float(seed) for path in spreads if f"{path}/robot" not in found}


class Twin:
    """A world that plays reality. Every world of it is one more trial of the same robot in the same place."""

    source: Source = "twin"

    def __init__(self, directory: Path, imperfections: Imperfections, num_worlds: int, seed: int) -> None:
        """Builds the twin of the project in a folder."""
        project = load_project(directory)
        blueprint = compile_project(project, max_timestep_s=imperfections.timestep_s)
        row, parameters = imperfections.targets(seed), list[Parameter]()
        for path, value in row.items():
            room = 1e-6 if path.endswith("/delay") else 1.0
            parameters.append(resolve(path, project, blueprint.model).make_parameter(value - 1.0, value + room))
        self.num_worlds, self.rate_hz = num_worlds, project.rate_hz
        self.command_names, self.measurement_names = project.command_names, project.measurement_names
        self.__hidden = imperfections
        self.__world = Simulation(blueprint, num_worlds, ParameterSpace(tuple(parameters)), place=seed)
        self.__world.set_parameters(np.tile(list(row.values()), (num_worlds, 1)))

    def reset(self, start: Start, rng: np.random.Generator, ids: NDArray[np.intp] | None = None) -> Array:
        """Begins anew from `start`; see `World.reset`."""
        return self.__world.reset(start, rng, ids)

    def step(self, requested_command: Array) -> Step:
        """Advances one control interval; see `World.step`."""
        return self.__world.step(requested_command)
