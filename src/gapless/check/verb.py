"""The verb `check`: is this project sound?"""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

import gapless
from gapless.check.examine import examine_data
from gapless.core.errors import InputError
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import CheckResult, Note
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import store_result_if_possible
from gapless.fit.data import READING, ProjectData, read_project_data
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.project.log.inspect import read_and_inspect
from gapless.signals.track import spread_indices, subtract_readings
from gapless.sim.blueprint import EMPTY_SPACE, with_finer_step

WINDOW_S = 0.3
MAX_WINDOWS = 64
MAX_STEP_EFFECT = 0.1  # share of their travel by which halving the time step may move predictions


def check(directory: str | Path, *, progress: Progress | None = None) -> CheckResult:
    """Says what is wrong with a project, or that it is sound.

    The model must compile and the mapping must hold, else this raises InputError; logs that cannot be used become
    faults. The simulation is converged if halving its time step changes its predictions little.
    """
    project = load_project(directory)
    logs, found = read_and_inspect(project, progress and partial(progress, READING))
    notes, numerics, inputs = list(found), dict[str, float](), tuple[str, ...]()
    if not any(note.level == "fault" for note in notes):
        try:
            evidence = read_project_data(project, with_unlogged=True, logs=logs, purpose="test", progress=progress)
        except InputError as error:
            notes.append(Note("fault", "gapless.yaml", str(error)))
        else:
            inputs = evidence.ids
            for p in evidence.space.parameters:
                if not p.low <= p.nominal <= p.high:
                    text = f"the model's own value {p.nominal:g} is outside [{p.low:g}, {p.high:g}]: widen it"
                    notes.append(Note("warning", p.target, text))
            if evidence.tracks:
                found, numerics = _check_signals(evidence, progress)
                notes += found
    rank = {"fault": 0, "warning": 1, "info": 2}
    notes.sort(key=lambda note: rank[note.level])
    result = CheckResult(inputs, not any(note.level == "fault" for note in notes), tuple(notes), numerics)
    provenance = Provenance("check", gapless.__version__, inputs, {"project": fingerprint(project)})
    return replace(result, id=store_result_if_possible(Catalogue.open(project.directory), result, provenance))


def _check_signals(evidence: ProjectData, progress: Progress | None) -> tuple[list[Note], dict[str, float]]:
    """Returns what is wrong with the logs, and how far predictions move when the time step is halved."""
    examination = examine_data(evidence, progress)
    notes = list(examination.notes)
    if examination.refusal and not examination.findings:  # findings are notes already
        notes.append(Note("fault", "logs", examination.refusal))
    found, numerics = _measure_convergence(examination.evidence)
    return notes + found, numerics


def _measure_convergence(evidence: ProjectData) -> tuple[list[Note], dict[str, float]]:
    """Returns per column how far predictions move when the time step is halved, as a share of their travel.

    The notes before it say which move far, or that nothing can be predicted, or that the simulation is unstable.
    """
    windows = cut_windows(evidence.project, evidence.tracks, WINDOW_S)
    if not len(windows):
        text = f"no stretch of {WINDOW_S:g} s in which every mapped column is present: nothing can be predicted"
        return [Note("fault", "logs", text)], {}
    windows = windows.pick(spread_indices(len(windows), MAX_WINDOWS))
    row = np.zeros((1, 0))
    written = Predictor(evidence.blueprint, EMPTY_SPACE)
    coarse = written.predict(windows, row)[0]
    fine = Predictor(with_finer_step(evidence.blueprint, 2), EMPTY_SPACE).predict(windows, row)[0]
    moved = np.sqrt(np.mean(subtract_readings(evidence.project, coarse, fine) ** 2, axis=(0, 1)))
    travel = np.sqrt(np.mean((fine - fine[:, :1]) ** 2, axis=(0, 1)))
    names = evidence.project.measurement_names
    shares = {name: float(moved[k] / travel[k]) if travel[k] > 0 else 0.0 for k, name in enumerate(names)}
    if written.num_diverged:
        count = f"{written.num_diverged} of {len(windows)} windows"
        text = f"the simulation is unstable from the measured states in {count}: look at units, scale and the time step"
        return [Note("fault", "simulation", text)], shares
    text = "numerics: halving the simulation's time step moves its prediction by {:.0f} % of its travel; {}"
    advice = "use a smaller timestep in the model"
    large = {name: 100 * share for name, share in shares.items() if share > MAX_STEP_EFFECT}
    return [Note("warning", name, text.format(share, advice)) for name, share in large.items()], shares
