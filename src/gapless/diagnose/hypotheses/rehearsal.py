"""The rehearsal: simulated gaps of this very model, put through the same fits as the real logs, and kept.

What it finds is a calibration of the model, kept in the project and, for other folders of that robot, in the user's
cache. Its key covers all that it depends on but the windows of the logs that were there at the time: with these, every
new log would cost a rehearsal. So a diagnosis names the content of the calibration that it used (`digest_calibration`).
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import mujoco
import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array
from gapless.data.catalogue import FOLDER
from gapless.data.stored_results import code_version
from gapless.diagnose.hypotheses.probability import RehearsedCase, SignalCalibration, calibrate_probabilities
from gapless.diagnose.hypotheses.problem import DiagnosisProblem
from gapless.diagnose.hypotheses.search import MechanismSearch
from gapless.fit.start_errors import shift_starts
from gapless.project.fingerprint import fingerprint_model

CALIBRATIONS = "calibration"  # in the catalogue's folder
FORMAT = 3  # of a calibration's file
NUM_WINDOWS = 14
NUM_CASES = (2, 6, 5)  # with no cause, one, and two
MIN_VISIBLE = 1.5  # a cause is visible if it moves some column by this many times the noise
MAX_DRAWS = 20  # of a cause until it is visible
Report = Callable[[float], None]


@dataclass(frozen=True)
class SimulatedGap:
    """What took part, and the readings of the windows, (num_windows, num_steps + 1, num_measurements)."""

    causes: tuple[Dimension, ...]
    measured: Array


def load_or_rehearse(problem: DiagnosisProblem, report: Report | None = None) -> SignalCalibration:
    """Returns the calibration of a model: kept from the first time, here or in another folder, or rehearsed now."""
    places = _calibration_files(problem)
    found = next((kept for kept in map(_read_calibration, places) if kept is not None), None)
    if found is None:
        found = rehearse(problem, np.random.default_rng(0), report)
    for place in places:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.write_text(json.dumps(asdict(found)), encoding="utf-8")
        except OSError:
            pass  # where nothing can be written it is rehearsed again next time
    return found


def digest_calibration(calibration: SignalCalibration) -> str:
    """Returns 16 hex digits over the content of a calibration: equal digests, equal calibrations."""
    return hashlib.sha256(json.dumps(asdict(calibration), sort_keys=True).encode()).hexdigest()[:16]


def _calibration_files(problem: DiagnosisProblem) -> tuple[Path, Path]:
    """Returns where the calibration of a model is kept: in the project, and for other folders of that robot."""
    project = problem.fit.predictor.blueprint.project
    targets = problem.candidates.space.shared.targets
    about = (FORMAT, code_version(), mujoco.__version__, fingerprint_model(project), targets)
    name = f"{hashlib.sha256(repr(about).encode()).hexdigest()[:16]}.json"
    shared = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gapless"
    return project.directory / FOLDER / CALIBRATIONS / name, shared / CALIBRATIONS / name


def _read_calibration(place: Path) -> SignalCalibration | None:
    try:
        return SignalCalibration(**json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def rehearse(problem: DiagnosisProblem, rng: np.random.Generator, report: Report | None = None) -> SignalCalibration:
    """Returns the calibration of a model, from gaps that are drawn and fitted here."""
    small = draw_fewer_windows(problem, NUM_WINDOWS, rng)
    slopes = small.slopes_as_written()
    gaps = draw_gaps(small, rng)
    cases: list[RehearsedCase] = []
    for gap in gaps:
        cases.append(RehearsedCase(MechanismSearch(small.with_measured(gap.measured), slopes).run(), gap.causes))
        if report is not None:
            report(len(cases) / len(gaps))
    return calibrate_probabilities(cases, problem.dimensions, SignalCalibration())


def draw_fewer_windows(problem: DiagnosisProblem, most: int, rng: np.random.Generator) -> DiagnosisProblem:
    """Returns a problem on some of its windows, as many of one half as of the other."""
    chosen = np.zeros(len(problem.windows), dtype=np.bool_)
    for half in (0, 1):
        there = np.flatnonzero(problem.half == half)
        chosen[rng.choice(there, min(len(there), most // 2), replace=False)] = True
    return problem.keep_windows(chosen)


def draw_gaps(problem: DiagnosisProblem, rng: np.random.Generator) -> list[SimulatedGap]:
    """Returns gaps with no cause, one and two; every dimension that can be visible takes its turn."""
    able: list[Dimension] = [d for d in problem.dimensions if _draw_point(problem, d, rng) is not None]
    turns = Counter[Dimension]()
    gaps: list[SimulatedGap] = []
    for size, number in enumerate(NUM_CASES):
        for _ in range(number):
            causes = tuple(sorted(able, key=lambda d: (turns[d], rng.random()))[:size])
            turns.update(causes)
            gaps.append(_simulate_gap(problem, causes, rng))
    return gaps


def _simulate_gap(problem: DiagnosisProblem, causes: tuple[Dimension, ...], rng: np.random.Generator) -> SimulatedGap:
    drawn = [_draw_point(problem, cause, rng) for cause in causes]
    point = np.sum([np.zeros(len(problem.typical)), *(one for one in drawn if one is not None)], axis=0)
    windows = problem.windows
    off = rng.standard_normal((2, len(windows), windows.start.shape[1]))
    started = shift_starts(windows, off[0] * windows.start_sd, off[1] * windows.slope_sd)
    measured = problem.fit.predictor.predict(started, problem.rows(point[None]))[0]
    measured[:, 1:] += point[-1] * problem.step_effect
    measured += windows.noise * rng.standard_normal(measured.shape)
    return SimulatedGap(causes, measured)


def _draw_point(problem: DiagnosisProblem, dimension: Dimension, rng: np.random.Generator) -> Array | None:
    """Draws a point in which one dimension is off so far that it is visible; None if it never is in these windows."""
    as_written = problem.with_measured(problem.written)
    for _ in range(MAX_DRAWS):
        if dimension == "numerics":
            point = problem.point_of(problem.candidates.space.nominal, rng.uniform(0.8, 1.1))
        else:
            point = problem.point_of(problem.candidates.draw(dimension, rng))
        residual = as_written.residuals(point[None])[0]
        if np.sqrt(np.mean(residual**2, axis=(0, 1))).max() > MIN_VISIBLE:
            return point
    return None
