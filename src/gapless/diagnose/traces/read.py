"""What the signals of some logs say, from windows to probabilities."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.results import TellingMoment
from gapless.core.signal import Array
from gapless.data.catalogue import FOLDER
from gapless.diagnose.traces.belief import Belief, Calibration, believe
from gapless.diagnose.traces.frame import Frame, make_frame
from gapless.diagnose.traces.moments import telling_moments
from gapless.diagnose.traces.rehearse import rehearse
from gapless.diagnose.traces.shares import Share, shares
from gapless.diagnose.traces.trials import Trial, Trials
from gapless.project.fingerprint import fingerprint
from gapless.sim.evidence import Evidence

CALIBRATIONS = "calibration"  # in the catalogue's folder
VERSION = 1  # of what a calibration holds and of what it is for
LIKELY = 0.5
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
    def row(self) -> Array:
        """The parameters of the best set, (num_parameters,)."""
        return self.frame.rows(self.best.point[None])[0]


def read_traces(evidence: Evidence, seed: int, progress: Progress | None) -> TraceEvidence:
    """Returns what the signals of some logs say; the first time for a model, it rehearses cases of that model."""
    rng = np.random.default_rng(seed)
    frame = make_frame(evidence, rng)
    calibration = _calibration(frame, progress)
    trials = Trials(frame, frame.windows.measured).run(_teller(progress, "fitting causes"))
    belief = believe(trials, frame.dimensions, calibration)
    ranked = sorted(belief.probability, key=lambda d: -belief.probability[d])
    best = trials[int(np.argmax(belief.weights))]
    likely = [d for d in ranked if belief.probability[d] > LIKELY]
    moments = telling_moments(frame, trials, best, likely)
    return TraceEvidence(frame, trials, best, belief, shares(trials, ranked, rng), moments, calibration)


def _calibration(frame: Frame, progress: Progress | None) -> Calibration:
    """Returns the calibration of a model: kept from the first time, or rehearsed now."""
    place = _place(frame.evidence)
    try:
        return Calibration(**json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        pass
    found = rehearse(frame, np.random.default_rng(0), _teller(progress, "rehearsing on this model, once"))
    try:
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(asdict(found)), encoding="utf-8")
    except OSError:
        pass  # a folder that cannot be written to: rehearsed again next time
    return found


def _place(evidence: Evidence) -> Path:
    key = hashlib.sha256(f"{VERSION} {fingerprint(evidence.project)}".encode()).hexdigest()[:16]
    return evidence.project.directory / FOLDER / CALIBRATIONS / f"{key}.json"


def _teller(progress: Progress | None, label: str) -> Callable[[float], None] | None:
    return None if progress is None else lambda done: progress(label, done)
