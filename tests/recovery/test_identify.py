"""Identification finds what is known: the balance model with other parameters and noise plays reality."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.protocols import Start
from gapless.core.signal import Array
from gapless.examples.record import record
from gapless.identify.verb import identify
from gapless.project.load import load_project
from gapless.project.log.write import write_log
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from gapless.verbs import copy_example
from unit.sim.scenes import space_of

TRUTH = {
    "actuator/motor/gain": 0.8,
    "actuator/*/delay": 0.02,
    "joint/cart/damping": 1.1,
    "body/pole/mass": 0.2,
}
NUM_SEEDS, NUM_LOGS = 3, 4


@pytest.fixture(scope="module")
def relative_errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {target: [] for target in TRUTH}
    for seed in range(NUM_SEEDS):
        folder = make_reality(tmp_path_factory.mktemp(f"reality{seed}"), seed)
        for p in identify(folder, seed=seed).parameters:
            if p.identifiable:
                found[p.target].append(p.value / TRUTH[p.target] - 1)
    return found


def make_reality(folder: Path, seed: int) -> Path:
    """Returns a copy of the example whose logs come from its own model, with rates measured too."""
    copy_example("balance", folder)
    for path in (folder / "logs").iterdir():
        path.unlink()
    entries = "".join(f"  - {{target: {target}}}\n" for target in TRUTH)
    rates = "".join(f"  {j}_rate: {{joint: {j}, quantity: velocity, noise: 0.005}}\n" for j in ("cart", "pole"))
    text = (folder / "gapless.yaml").read_text().replace("parameters: auto\n", f"parameters:\n{entries}")
    (folder / "gapless.yaml").write_text(text.replace("logs: logs\n", f"{rates}logs: logs\n"))
    project = load_project(folder)
    blueprint = compile_project(project)
    world = Simulation(blueprint, 1, space_of(blueprint, *TRUTH), 1, noisy=True)
    world.set_parameters(np.array([list(TRUTH.values())]))

    for k in range(NUM_LOGS):
        episode = record(project, world, rouse, 5.0, 10 * seed + k)
        write_log(project, replace(episode, source="real"))
    return folder


def rouse(rng: np.random.Generator, start: Start) -> Callable[[float, Array], Array]:
    """Returns a motion that lets the pole lean far before it catches it, so that the pole's weight shows."""
    del start
    size, rate_hz, phase = rng.uniform(0.1, 0.25, 3), rng.uniform(0.3, 2.0, 3), rng.uniform(0, 6.3, 3)

    def command(time_s: float, measured: Array) -> Array:
        push = float(measured[0] @ [0.6, 5.0, 0.8, 0.9])  # cart, pole, and their rates
        return np.array([[push + float(np.sum(size * np.sin(2 * np.pi * rate_hz * time_s + phase)))]])

    return command


@pytest.mark.parametrize("target", sorted(TRUTH))
def test_the_truth_is_found_within_five_percent(target: str, relative_errors: dict[str, list[float]]) -> None:
    errors = relative_errors[target]
    assert len(errors) >= 2, "not identifiable in most seeds"
    assert abs(np.median(errors)) < 0.05
