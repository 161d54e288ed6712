"""What the signals of some logs say, from windows to probabilities."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.errors import Interrupted
from gapless.core.results import TellingMoment
from gapless.core.signal import Array
from gapless.data.catalogue import FOLDER
from gapless.diagnose.hypotheses.belief import Belief, Calibration, believe
from gapless.diagnose.hypotheses.frame import Frame, make_frame
from gapless.diagnose.hypotheses.moments import telling_moments
from gapless.diagnose.hypotheses.rehearse import rehearse
from gapless.diagnose.hypotheses.shares import Share, shares
from gapless.diagnose.hypotheses.suspects import Severities
from gapless.diagnose.hypotheses.trials import Trial, Trials
from gapless.fit.data import ProjectData
from gapless.project.records import Project

CALIBRATIONS = "calibration"  # in the catalogue's folder
VERSION = 2  # of what a calibration holds and of what it is for
LIKELY = 0.5
REHEARSING, FITTING = "rehearsing on this model, once", "fitting causes"
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class TraceEvidence:
    """What signals say.

    Attributes:
        frame: The windows that were looked at.
        trials: The sets of dimensions that were fitted, the best first.
        best: The likeliest one.
        belief: What they say of each dimension.
        shares: Dimension -> its share of the gap, for the most probable ones.
        moments: The stretches that speak most.
        calibration: What turned scores into probabilities.
    """

    frame: Frame
    trials: tuple[Trial, ...]
    best: Trial
    belief: Belief
    shares: dict[Dimension, Share]
    moments: tuple[TellingMoment, ...]
    calibration: Calibration

    @property
    def values(self) -> dict[str, Array]:
        """Target -> its value in the best set, (1,), or that of each run, (num_runs,)."""
        row, targets = self.frame.rows(self.best.point[None])[0], np.array(self.frame.space.targets)
        return {str(target): row[targets == target] for target in dict.fromkeys(targets)}

    @property
    def row(self) -> Array:
        """The parameters of the best set, (num_parameters,), each once: of what runs have their own, the mean."""
        return np.array([np.mean(values) for values in self.values.values()])


def read_traces(
    evidence: ProjectData,
    severities: Severities,
    seed: int,
    progress: Progress | None,
    fitted: Mapping[str, float] | None = None,
) -> TraceEvidence:
    """Returns what the signals of some logs say; the first time for a model, it rehearses cases of that model.

    Args:
        evidence: The logs.
        severities: What is suspected.
        seed: Seed of windows and draws.
        progress: Called with what is being done and how far it is, in [0, 1].
        fitted: Target -> value of an earlier fit, at which fits of sets begin as well.
    """
    rng = np.random.default_rng(seed)
    frame = make_frame(evidence, severities, rng)
    calibration = _calibration(frame, progress)
    near = frame.near(fitted) if fitted else None
    try:
        trials = Trials(frame, frame.windows.measured, near=near).run(_teller(progress, FITTING))
    except KeyboardInterrupt:
        raise Interrupted("the rehearsal on this model is kept; the same command fits the causes anew") from None
    belief = believe(trials, frame.dimensions, calibration)
    ranked = sorted(belief.probability, key=lambda d: -belief.probability[d])
    best = trials[int(np.argmax(belief.weights))]
    likely = [d for d in ranked if belief.probability[d] > LIKELY]
    moments = telling_moments(frame, trials, best, likely)
    return TraceEvidence(frame, trials, best, belief, shares(trials, ranked, rng), moments, calibration)


def _calibration(frame: Frame, progress: Progress | None) -> Calibration:
    """Returns the calibration of a model: kept from the first time, here or in another folder, or rehearsed now."""
    places = _places(frame.evidence.project)
    for place in places:
        try:
            found = Calibration(**json.loads(place.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            continue
        break
    else:
        found = rehearse(frame, np.random.default_rng(0), _teller(progress, REHEARSING))
    for place in places:
        _keep(place, found)
    return found


def _keep(place: Path, calibration: Calibration) -> None:
    """Writes a calibration unless it is there; where nothing can be written it is rehearsed again next time."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists():
            place.write_text(json.dumps(asdict(calibration)), encoding="utf-8")
    except OSError:
        pass


def _places(project: Project) -> tuple[Path, Path]:
    """Returns where the calibration of a model is kept: in the project, and for other folders of that robot."""
    about = (VERSION, project.rate_hz, project.commands, project.measurements, project.parameters)
    digest = hashlib.sha256(repr(about).encode() + project.model_path.read_bytes())
    name = f"{digest.hexdigest()[:16]}.json"
    shared = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gapless"
    return project.directory / FOLDER / CALIBRATIONS / name, shared / CALIBRATIONS / name


def _teller(progress: Progress | None, label: str) -> Callable[[float], None] | None:
    return None if progress is None else lambda done: progress(label, done)
