"""Records of what outcomes say."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.interval import Interval


@dataclass(frozen=True)
class FactorLevel:
    """The runs that share one value of a factor."""

    value: str  # such as `dim`; for numbers a range, for a trend a third of the time
    num_runs: int  # runs with this value
    num_failures: int  # how many of them failed
    failure: Interval  # probability of failure from the model, averaged over which factors matter
    otherwise: Interval  # the same for runs with any other known value


@dataclass(frozen=True)
class FailureFactor:
    """A circumstance that may concentrate failures: a condition, the time of day, a trend."""

    name: str  # such as `light`, `time of day` or `trend over weeks`
    probability: float  # that it matters, given all runs and all other factors
    levels: tuple[FactorLevel, ...]  # its values, in order of appearance; numbers and times in their own order
    # dimension -> chance that a gap in this dimension shows in this factor, by judgement
    speaks_for: Mapping[Dimension, float]
    known_word: bool  # whether the name is in the vocabulary
    # factors that changed together with it, so that these runs do not distinguish them
    confounded_with: tuple[str, ...]
    group_probability: float  # that it or one of these matters

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
    """A phase of the task in which runs failed."""

    name: str  # as in `failed_in`
    num_failures: int  # failures in this phase
    share: Interval  # its share of the failures whose phase is known
    expected: float  # the share that would be expected [1]
    probability: float  # that it concentrates failures beyond the expected
    speaks_for: Mapping[Dimension, float]  # dimension -> weight of the phase's name in the vocabulary [1]


@dataclass(frozen=True)
class OutcomeEvidence:
    """What outcomes say about the dimensions of the gap."""

    factors: tuple[FailureFactor, ...]  # most probable first
    phases: tuple[FailurePhase, ...]  # most probable first; empty where no failure names its phase
    # dimension -> what to add to the log odds that it takes part [nat], beside other evidence; 0 where nothing is said
    log_odds: dict[Dimension, float]
    sentences: tuple[str, ...]  # what a person can check
    suggestions: tuple[str, ...]  # which recordings would show what these do not
    # dimension -> probability that it takes part, if outcomes are all that is known: explanations exclude each other
    probabilities: dict[Dimension, float]
    no_gap: float  # probability of no gap, if outcomes are all that is known
