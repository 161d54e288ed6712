"""Records of what outcomes say."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.interval import Interval


@dataclass(frozen=True)
class FactorLevel:
    """The runs that share one value of a factor.

    Attributes:
        value: Such as `dim`; for numbers a range, for a trend a third of the time.
        num_runs: Runs with this value.
        num_failures: How many of them failed.
        failure: Probability of failure from the model, averaged over which factors matter.
        otherwise: The same for runs with any other known value.
    """

    value: str
    num_runs: int
    num_failures: int
    failure: Interval
    otherwise: Interval


@dataclass(frozen=True)
class FailureFactor:
    """A circumstance that may concentrate failures: a condition, the time of day, a trend.

    Attributes:
        name: Such as `light`, `time of day` or `trend over weeks`.
        probability: That it matters, given all runs and all other factors.
        levels: Its values, in order of appearance; numbers and times in their own order.
        speaks_for: Dimension -> chance that a gap in this dimension shows in this factor, by judgement.
        known_word: Whether the name is in the vocabulary.
        confounded_with: Factors that changed together with it, so that these runs do not distinguish them.
        group_probability: That it or one of these matters.
    """

    name: str
    probability: float
    levels: tuple[FactorLevel, ...]
    speaks_for: Mapping[Dimension, float]
    known_word: bool
    confounded_with: tuple[str, ...]
    group_probability: float

    @property
    def strongest_level(self) -> FactorLevel:
        """The level that differs most from the others, in units of the two intervals' widths."""

        def distance(level: FactorLevel) -> tuple[float, float]:
            width = np.hypot(level.failure.high - level.failure.low, level.otherwise.high - level.otherwise.low)
            apart = abs(level.failure.value - level.otherwise.value) / max(width, 1e-9)
            return round(float(apart), 6), level.failure.value  # of two levels, the one that fails more

        return max(self.levels, key=distance)


@dataclass(frozen=True)
class FailurePhase:
    """A phase of the task in which runs failed.

    Attributes:
        name: As in `failed_in`.
        num_failures: Failures in this phase.
        share: Its share of the failures whose phase is known.
        expected: The share that would be expected [1].
        probability: That it concentrates failures beyond the expected.
        speaks_for: Dimension -> weight of the phase's name in the vocabulary [1].
    """

    name: str
    num_failures: int
    share: Interval
    expected: float
    probability: float
    speaks_for: Mapping[Dimension, float]


@dataclass(frozen=True)
class OutcomeEvidence:
    """What outcomes say about the dimensions of the gap.

    Attributes:
        factors: Most probable first.
        phases: Most probable first; empty where no failure names its phase.
        log_odds: Dimension -> what to add to the log odds that it takes part [nat]; 0 where nothing is said.
        sentences: What a person can check.
        suggestions: Which recordings would show what these do not.
    """

    factors: tuple[FailureFactor, ...]
    phases: tuple[FailurePhase, ...]
    log_odds: dict[Dimension, float]
    sentences: tuple[str, ...]
    suggestions: tuple[str, ...]
