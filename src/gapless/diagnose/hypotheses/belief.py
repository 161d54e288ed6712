"""From scores of sets of dimensions to probabilities.

A set that predicts unseen windows better by so many nats is likelier by their exponential: in a world of white noise
and perfect fits. Here fits end a little aside of the best and errors last, so scores are divided by a temperature, the
more so the more even the best set leaves unexplained; and each further dimension has its price.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import expit

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array
from gapless.diagnose.hypotheses.trials import Trial, best_of

NOISE_LEVEL = float(np.log(2.0))  # mean logarithm of the levels where only noise is left
SURE = 0.995  # no probability is further from a half than this: cases that were never rehearsed exist
FACTORS = (1.0, 0.5, 0.7, 1.4, 2.0, 3.0, 5.0, 8.0)  # by which the values found on other robots may be off
TRUST = 10.0  # how many cases the values found on other robots count for


@dataclass(frozen=True)
class Calibration:
    """What turns scores into probabilities.

    Attributes:
        temperature: By which scores are divided [nats].
        price: Of each dimension [nats].
        doubt: How much the temperature grows per unit of what is left unexplained [1].
        strange: `strangeness` at which something unmodelled is as likely as not [1].
        strange_width: Over which that changes [1].
        num_cases: Rehearsed cases of this model behind it; 0 for the values found on other robots.
    """

    temperature: float = 2.0
    price: float = 35.0
    doubt: float = 0.6
    strange: float = 0.35
    strange_width: float = 0.1
    num_cases: int = 0


@dataclass(frozen=True)
class Belief:
    """What signals say of each dimension.

    Attributes:
        probability: Dimension -> that it takes part.
        no_gap: That nothing does.
        unmodelled: That something takes part which no parameter expresses.
        weights: (num_trials,) probability of each set that was fitted.
        unexplained: What the best set leaves: 0 for noise alone [1].
    """

    probability: dict[Dimension, float]
    no_gap: float
    unmodelled: float
    weights: Array
    unexplained: float


def unexplained(trial: Trial) -> float:
    """Returns how far residuals are above noise: the mean logarithm of their squares, 0 for noise alone [1]."""
    return max(0.0, float(np.log(trial.levels).mean()) - NOISE_LEVEL)


def strangeness(trial: Trial) -> float:
    """Returns what is left unexplained, counted by how much of it lasts from one reading to the next [1].

    Noise that is larger than stated leaves much that does not last; an effect that the model lacks leaves what does.
    """
    left = trial.residual
    lasting = float(np.sum(left[:, 1:] * left[:, :-1]) / max(float(np.sum(left**2)), 1e-12))
    return unexplained(trial) * max(0.0, lasting)


def believe(trials: Sequence[Trial], dimensions: Sequence[Dimension], calibration: Calibration) -> Belief:
    """Returns what fitted sets of dimensions say of each."""
    weights = _weights(_Case.of(trials, dimensions, ()), calibration)
    probability = {d: bounded(float(weights[[d in trial.subset for trial in trials]].sum())) for d in dimensions}
    best = trials[int(np.argmax(weights))]
    strange = float(expit((strangeness(best) - calibration.strange) / calibration.strange_width))
    nothing = float(weights[[not trial.subset for trial in trials]].sum()) * (1.0 - strange)
    return Belief(probability, bounded(nothing), bounded(strange), weights, unexplained(best))


@dataclass(frozen=True)
class _Case:
    """Scores and sizes of the sets of a case, (num_sets,), what they hold, (num_sets, num_dimensions), its truth."""

    scores: Array
    sizes: Array
    holds: Array
    unexplained: float
    strangeness: float
    truth: Array

    @classmethod
    def of(cls, trials: Sequence[Trial], dimensions: Sequence[Dimension], truth: Sequence[Dimension]) -> "_Case":
        return cls(
            np.array([trial.total for trial in trials]),
            np.array([len(trial.subset) for trial in trials]),
            np.array([[d in trial.subset for d in dimensions] for trial in trials], dtype=float),
            unexplained(best_of(trials)),
            strangeness(best_of(trials)),
            np.array([d in truth for d in dimensions], dtype=float),
        )


Rehearsed = tuple[Sequence[Trial], Sequence[Dimension]]


def calibrate(cases: Sequence[Rehearsed], dimensions: Sequence[Dimension], known: Calibration) -> Calibration:
    """Returns the calibration under which rehearsed cases are likeliest.

    Args:
        cases: The fitted sets of each case, and the dimensions that took part in it.
        dimensions: All dimensions.
        known: Values found on other robots; they count as much as `TRUST` cases.
    """
    rows = [_Case.of(trials, dimensions, truth) for trials, truth in cases]

    def cost(factors: tuple[float, ...]) -> float:
        tried = Calibration(known.temperature * factors[0], known.price * factors[1], known.doubt * factors[2])
        return sum(_surprise(row, tried) for row in rows) + 0.5 * TRUST * float(np.sum(np.log(factors) ** 2))

    hotter, dearer, warier = min(product(FACTORS, FACTORS[:-2], FACTORS[:-2]), key=cost)  # it has plateaus: no slopes
    left = np.array([row.strangeness for row in rows])
    strange = max(known.strange, float(np.quantile(left, 0.9)) + known.strange_width) if len(left) else known.strange
    return Calibration(
        known.temperature * hotter,
        known.price * dearer,
        known.doubt * warier,
        strange,
        known.strange_width,
        len(rows),
    )


def _surprise(case: _Case, calibration: Calibration) -> float:
    """Returns how unlikely a case's truth is under a calibration [nats]."""
    chance = np.clip(_weights(case, calibration) @ case.holds, 1.0 - SURE, SURE)
    return -float(np.sum(case.truth * np.log(chance) + (1.0 - case.truth) * np.log(1.0 - chance)))


def _weights(case: _Case, calibration: Calibration) -> Array:
    temperature = calibration.temperature * (1.0 + calibration.doubt * case.unexplained)
    log_weights = (case.scores - calibration.price * case.sizes) / temperature
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def bounded(probability: float) -> float:
    """Returns a probability no further from a half than `SURE`."""
    return float(np.clip(probability, 1.0 - SURE, SURE))
