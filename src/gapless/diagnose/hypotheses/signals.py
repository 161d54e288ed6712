"""What the signals of some logs say, from windows to probabilities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.errors import Interrupted
from gapless.core.protocols import Progress
from gapless.core.results import CauseMechanism, TellingMoment
from gapless.core.signal import Array
from gapless.diagnose.hypotheses.probability import (
    CauseProbabilities,
    GapShare,
    SignalCalibration,
    estimate_probabilities,
    estimate_shares,
)
from gapless.diagnose.hypotheses.problem import DiagnosisProblem
from gapless.diagnose.hypotheses.rehearsal import load_or_rehearse
from gapless.diagnose.hypotheses.search import MechanismSearch, SetFit, find_best_without
from gapless.diagnose.hypotheses.values import describe_mechanisms
from gapless.fit.data import ProjectData

REHEARSING, FITTING = "rehearsing on this model, once", "fitting causes"
MAX_MOMENTS = 3  # of each cause


@dataclass(frozen=True)
class SignalEvidence:
    """What signals say."""

    problem: DiagnosisProblem  # the windows that were looked at
    fits: tuple[SetFit, ...]  # the sets of mechanisms that were fitted, the best first
    best: SetFit  # the likeliest one
    probabilities: CauseProbabilities  # what they say of each dimension
    shares: dict[Dimension, GapShare]  # dimension -> its share of the gap, for the most probable ones
    moments: tuple[TellingMoment, ...]  # the stretches of the logs that show each likely cause best
    calibration: SignalCalibration  # what turned scores into probabilities
    mechanisms: dict[Dimension, tuple[CauseMechanism, ...]]  # dimension -> its probable mechanisms, with their values

    @property
    def values(self) -> dict[str, Array]:
        """Target -> its value in the best set, (1,), or for per-run parameters that of each run, (num_runs,)."""
        row, targets = self.problem.rows(self.best.point[None])[0], np.array(self.problem.candidates.space.targets)
        return {str(target): row[targets == target] for target in dict.fromkeys(targets)}

    @property
    def row(self) -> Array:
        """The parameters of the best set, (num_parameters,), each target once: of per-run parameters the mean."""
        return np.array([np.mean(values) for values in self.values.values()], dtype=np.float64)


def weigh_signals(
    data: ProjectData,
    problem: DiagnosisProblem,
    rng: np.random.Generator,
    progress: Progress | None,
    fitted: Mapping[str, float] | None = None,
) -> SignalEvidence:
    """Returns what the signals of some logs say; the first time for a model, it rehearses gaps of that model.

    `fitted` has target -> value of an earlier fit, at which fits of sets begin as well.
    """
    calibration = load_or_rehearse(problem, progress and partial(progress, REHEARSING))
    near = problem.point_near(fitted) if fitted else None
    try:
        fits = MechanismSearch(problem, near=near).run(progress and partial(progress, FITTING))
    except KeyboardInterrupt:
        raise Interrupted("the rehearsal on this model is kept; the same command fits the causes anew") from None
    found = estimate_probabilities(fits, problem.dimensions, calibration)
    ranked = sorted(found.causes, key=lambda d: -found.causes[d])
    best = fits[int(np.argmax(found.weights))]
    likely: list[Dimension] = [d for d in ranked if found.causes[d] > 0.5 and d in best.dimensions]
    moments = tuple(moment for cause in likely for moment in _find_moments(data, problem, fits, best, cause))
    shares = estimate_shares(fits, ranked, rng)
    named = describe_mechanisms(problem, fits, found.weights)
    return SignalEvidence(problem, fits, best, found, shares, moments, calibration, named)


def _find_moments(
    data: ProjectData, problem: DiagnosisProblem, fits: Sequence[SetFit], best: SetFit, cause: Dimension
) -> list[TellingMoment]:
    """Returns the windows whose prediction a cause improves most."""
    without = find_best_without(fits, best, cause)
    gain = np.log(without.mean_squares) - np.log(best.mean_squares)
    project, windows = data.project, problem.windows
    found: list[TellingMoment] = []
    for window in np.argsort(-gain.max(axis=1), kind="stable")[:MAX_MOMENTS]:
        column = int(np.argmax(gain[window]))
        if gain[window, column] < np.log(2.0):
            break
        found.append(
            TellingMoment(
                data.episodes[int(windows.track[window])].name,
                float(windows.first_row[window] / project.rate_hz),
                float(windows.num_steps / project.rate_hz),
                project.measurement_names[column],
                cause,
                float(np.sqrt(without.mean_squares[window, column] - 1.0)),
                float(np.sqrt(best.mean_squares[window, column] - 1.0)),
            )
        )
    return found
