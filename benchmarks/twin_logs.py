"""Logs of twins whose parameters are known: of the bundled examples, and of the SO-101 model.

`exact` twins differ from the model in parameters only, in noise and rounding of readings, and in a time step of 1 ms;
`bundled` ones, as users meet them, also have effects that the model lacks. Nothing that is benchmarked sees more than
the logs.
"""

import importlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import score
import sets

from gapless.core.episode import Episode
from gapless.core.protocols import Start
from gapless.core.signal import TimeSeries
from gapless.examples.record import MOTIONS, record
from gapless.project.load import load_project
from gapless.project.log.write import write_log
from gapless.sim.blueprint import compile_project
from gapless.sim.twin import Imperfections, Twin
from gapless.verbs import copy_example

NUM_LOGS = 6  # of an example's twin
ARM_SECONDS = 20.0
LINKS = ("shoulder", "upper_arm", "lower_arm", "wrist", "gripper")
FAMILIES = ("balance exact", "balance bundled", "push exact", "push bundled", "so101 exact")


@dataclass(frozen=True)
class Twins:
    """A project folder with logs of one twin, and the truth."""

    place: Path
    truth: Mapping[str, float]
    """Target -> true value, where it is not the model's."""


def make(family: str, seed: int, place: Path, amount: int = 1) -> Twins:
    """Writes logs of one twin of a family; `amount` 4 gives about four times as much."""
    name, kind = family.split()
    if name == "so101":
        return _arm(seed, place, amount)
    hidden = importlib.import_module(f"gapless.examples.{name}.twin").make(seed)._Twin__hidden  # only a referee may
    if kind == "exact":
        hidden = replace(hidden, stribeck={}, jitter_s=0.0, uneven_friction={}, drift={})
    copy_example(name, place)
    shutil.rmtree(place / "logs")
    project, twin = load_project(place), Twin(place, hidden, 1, seed)
    motion, duration_s = MOTIONS[name]
    for k in range(amount * NUM_LOGS):
        write_log(project, replace(record(project, twin, motion, duration_s, 1000 * seed + k), source="real"))
    return Twins(place, hidden.parameters)


def _arm(seed: int, place: Path, amount: int) -> Twins:
    """Plays recorded commands of the arm to a twin of its model, whose servos are far softer than it says."""
    motions, seconds = sets.so101_motions(), ARM_SECONDS if amount == 1 else 2 * ARM_SECONDS
    runs = [score.so101_run(name, seconds) for name in motions[:: 4 if amount == 1 else 2]]
    project = load_project(sets.so101(place, []))
    quantum = dict.fromkeys(project.measurement_names, score.SO101_QUANTUM[0])
    truth = _arm_truth(place, np.random.default_rng([3215, seed]))
    noise = dict.fromkeys(quantum, 0.0003)
    twin = Twin(place, Imperfections(truth, noise=noise, quantum=quantum, timestep_s=0.001), len(runs), seed)
    rows = max(len(run.commands) for run in runs)
    commands = np.stack([run.commands[np.minimum(np.arange(rows), len(run.commands) - 1)] for run in runs])
    positions = {joint: commands[:, :1, k] for k, joint in enumerate(sets.SO101_JOINTS)}
    seen = [twin.reset(Start(positions, np.zeros((len(runs), 0))), np.random.default_rng([seed, amount]))]
    seen += [twin.step(commands[:, row]).measured for row in range(rows - 1)]
    readings = np.stack(seen, axis=1)
    for k, run in enumerate(runs):
        times_s = np.arange(len(run.commands)) / run.rate_hz
        sent = TimeSeries(times_s, run.commands, project.command_names, project.command_units)
        shown = TimeSeries(times_s, readings[k, : len(times_s)], project.measurement_names, project.measurement_units)
        write_log(project, Episode(run.name, "real", sent, shown))
    return Twins(place, truth)


def _arm_truth(place: Path, rng: np.random.Generator) -> dict[str, float]:
    """Draws the arm's true parameters."""
    model = compile_project(load_project(place)).model
    truth = {"actuator/*/delay": rng.uniform(0.01, 0.05)}
    for name in sets.SO101_JOINTS:
        joint = model.joint(name)
        softer = np.exp(rng.uniform(np.log(0.02), np.log(0.5)))
        truth[f"actuator/{name}/kp"] = float(-model.actuator(name).biasprm[1] * softer)
        for field in ("damping", "frictionloss", "armature"):
            truth[f"joint/{name}/{field}"] = float(np.ravel(getattr(joint, field))[0]) * rng.uniform(0.5, 2.0)
        truth[f"measurement/q_{name}/bias"] = rng.uniform(-0.05, 0.05)
    for name in LINKS:
        truth[f"body/{name}/mass"] = float(model.body(name).mass[0]) * rng.uniform(0.8, 1.25)
    return truth
