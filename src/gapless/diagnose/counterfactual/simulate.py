"""Runs a policy once in each of many simulated worlds, every world with its own row of parameters."""

from dataclasses import replace
from typing import Protocol

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Policy, Task
from gapless.core.run import Runs, run_policy
from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation


class Simulate(Protocol):
    """Runs a policy once in each world of given rows."""

    def __call__(self, rows: Array, rng: np.random.Generator, *, noise_scale: float = 1.0) -> Runs:
        """Returns one run per row, in order.

        Args:
            rows: (num_rows, num_parameters).
            rng: Source of starts and noise; the same seed and number of rows give the same ones.
            noise_scale: Factor on the noise that the project states [1].
        """
        ...


def policy_simulator(
    project: Project, policy: Policy, task: Task, space: ParameterSpace, *, num_threads: int = 0
) -> Simulate:
    """Returns what runs a policy once in each simulated world of given rows.

    Runs of the same number of rows with the same seed have the same starts and noise, world by world: what then
    differs is due to the rows. Worlds are kept between calls.

    Args:
        project: The project; readings carry the noise that it states.
        policy: What chooses actions.
        task: What to do.
        space: What the rows hold.
        num_threads: Threads to step on; 0 for one per processor.
    """
    units = (project.command_units, project.measurement_units)
    worlds: dict[tuple[int, float], Simulation] = {}

    def make(num_worlds: int, noise_scale: float) -> Simulation:
        blueprint = compile_project(_noisier(project, noise_scale))
        return Simulation(blueprint, num_worlds, space, num_threads, noisy=True)

    def simulate(rows: Array, rng: np.random.Generator, *, noise_scale: float = 1.0) -> Runs:
        key = len(rows), noise_scale
        if key not in worlds:
            worlds[key] = make(*key)
        worlds[key].set_parameters(rows)
        return run_policy(worlds[key], task, policy, rng, len(rows), units=units, name="counterfactual")

    return simulate


def _noisier(project: Project, factor: float) -> Project:
    measurements = [replace(item, noise=factor * (item.noise or 0.0)) for item in project.measurements]
    return replace(project, measurements=tuple(measurements))
