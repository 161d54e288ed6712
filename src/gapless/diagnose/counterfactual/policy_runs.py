"""Runs of a policy in many simulated worlds, each with its own parameters; which repair would recover most success."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.interval import Interval, wilson
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Policy, Task
from gapless.core.run import Runs, run_policy
from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation

# (num_rows, num_parameters) rows, a source of randomness, a factor of the noise that the project states -> one run per
# row, in order. The same seed and number of rows give the same starts and noise, world by world.
SimulatePolicy = Callable[[Array, np.random.Generator, float], Runs]


def make_policy_simulator(
    project: Project, policy: Policy, task: Task, space: ParameterSpace, *, num_threads: int = 0
) -> SimulatePolicy:
    """Returns what runs a policy once in each simulated world of given rows of a space. Worlds are kept between calls.

    `num_threads` of 0 takes one thread per processor.
    """
    units = (project.command_units, project.measurement_units)
    worlds: dict[tuple[int, float], Simulation] = {}

    def simulate(rows: Array, rng: np.random.Generator, noise_scale: float = 1.0) -> Runs:
        key = len(rows), noise_scale
        if key not in worlds:
            noisy = [replace(item, noise=noise_scale * (item.noise or 0.0)) for item in project.measurements]
            blueprint = compile_project(replace(project, measurements=tuple(noisy)))
            worlds[key] = Simulation(blueprint, len(rows), space, num_threads, noisy=True)
        worlds[key].set_parameters(rows)
        return run_policy(worlds[key], task, policy, rng, len(rows), units=units, name="counterfactual")

    return simulate


@dataclass(frozen=True)
class Repair:
    """What simulation says of correcting one dimension and leaving the others as fitted."""

    dimension: Dimension
    success: Interval  # success with this dimension as the model has it, all others as fitted
    before: Interval  # success with all as fitted, from runs with the same starts and noise


def rank_repairs(
    simulate: SimulatePolicy, fitted_row: Array, space: ParameterSpace, rng: np.random.Generator, num_runs: int = 96
) -> tuple[Repair, ...]:
    """Returns every repair, the one that recovers most success first: that is not always the largest cause.

    Only dimensions that the fit moved are tried. Cost: `num_runs` runs for each of them, and once more.
    """
    seed = int(rng.integers(2**32))

    def measure_success(row: Array) -> Interval:
        runs = simulate(np.tile(row, (num_runs, 1)), np.random.default_rng(seed), 1.0)
        return wilson(int(runs.success.sum()), num_runs)

    before = measure_success(fitted_row)
    found: list[Repair] = []
    for dimension in space.dimensions:
        here = np.array([p.dimension == dimension for p in space.parameters])
        repaired = np.where(here, space.nominal, fitted_row)
        if not np.array_equal(repaired, fitted_row):
            found.append(Repair(dimension, measure_success(repaired), before))
    return tuple(sorted(found, key=lambda repair: -repair.success.value))
