"""The verb `evaluate`: how often a policy succeeds."""

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np

import gapless
from gapless.core.errors import CatalogueError
from gapless.core.interval import wilson
from gapless.core.places import require_space
from gapless.core.protocols import Progress, World
from gapless.core.provenance import Provenance
from gapless.core.recording import Origin
from gapless.core.results import EvaluateResult
from gapless.core.run import Runs, run_policy
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import artefact_ids, store_result_if_possible, warn_not_kept
from gapless.learn.policy import check_fits, load_policy
from gapless.project.code import load_reality, load_task
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.sim.blueprint import EMPTY_SPACE, compile_project
from gapless.sim.simulation import Simulation

Where = Literal["reality", "simulation"]


def evaluate(
    directory: str | Path,
    policy: str | Path,
    *,
    where: Where = "reality",
    num_trials: int = 50,
    seed: int = 0,
    reality_seed: int = 0,
    progress: Progress | None = None,
) -> EvaluateResult:
    """Runs a policy and returns its success rate with a Wilson interval; every run enters the catalogue.

    The project must name a task, and a reality to evaluate there; `simulation` is the model as written. `policy` is a
    file that `train` wrote, `seed` that of the starts, `reality_seed` says which twin, where reality is one.
    """
    project = load_project(directory)
    require_space(project.directory)
    catalogue = Catalogue.open(project.directory)
    world = open_world(project, where, num_trials, reality_seed)
    name = f"{where}-{Path(policy).parent.name[:8]}-{seed}-"
    runs = run_trials(project, world, policy, num_trials, seed, name=name, progress=progress)
    parents = artefact_ids(policy)
    about = {"where": where, "reality_seed": reality_seed, "num_trials": num_trials, "project": fingerprint(project)}
    provenance = Provenance("evaluate", gapless.__version__, parents, about, seed)
    try:
        origin = _describe_origin(policy, where)
        ids = catalogue.add_episodes([(each, provenance) for each in runs.episodes], [origin] * len(runs.episodes))
    except CatalogueError as error:  # trials on a robot are dear: their outcome is not lost with the disk
        ids = ()
        warn_not_kept("what the runs measured", error)
    failures = Counter(episode.failed_in for episode in runs.episodes if episode.failed_in is not None)
    success = wilson(int(runs.success.sum()), len(runs.success))
    result = EvaluateResult((*parents, *ids), where, success, dict(failures), seed)
    return replace(result, id=store_result_if_possible(catalogue, result, provenance))


def _describe_origin(policy: str | Path, where: Where) -> Origin:
    """Returns what runs of a policy come from; in simulation the parameters are those of the model as written."""
    ids, digest = artefact_ids(policy), hashlib.sha256(Path(policy).read_bytes()).hexdigest()
    simulator, version = ("mujoco", mujoco.__version__) if where == "simulation" else (None, None)
    return Origin(
        simulator=simulator,
        simulator_version=version,
        policy=ids[0] if ids else Path(policy).name,
        policy_version=digest[:12],
    )


def open_world(project: Project, where: Where, num_trials: int, reality_seed: int) -> World:
    """Returns the world to run in: the model as written, or what the project calls reality."""
    if where == "reality":
        return load_reality(project, reality_seed, num_trials)
    return Simulation(compile_project(project), num_trials, EMPTY_SPACE, noisy=True)


def run_trials(
    project: Project,
    world: World,
    policy: str | Path,
    num_trials: int,
    seed: int,
    *,
    exploration: float = 0.0,
    name: str = "run",
    progress: Progress | None = None,
) -> Runs:
    """Runs a stored policy in a world until enough runs are finished."""

    def report(count: int) -> None:
        if progress is not None:
            progress("run", count / num_trials)

    report(0)
    task, runner = load_task(project), load_policy(policy)
    check_fits(runner, task, policy)
    units, rng = (project.command_units, project.measurement_units), np.random.default_rng(seed)
    options = {"units": units, "exploration": exploration, "name": name, "on_runs": report}
    return run_policy(world, task, runner, rng, num_trials, **options)
