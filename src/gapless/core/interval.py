"""Intervals: the form in which every measured number is reported."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist


@dataclass(frozen=True)
class Interval:
    """A number with the range that covers it."""

    value: float  # the estimate
    low: float  # lower end of the interval
    high: float  # upper end of the interval
    level: float  # share of such intervals that cover the truth, in (0, 1)
    n: int  # how many independent observations stand behind it
    method: str  # name of the estimator, such as `wilson`

    def percent(self) -> str:
        """Returns the interval as people read it: `41 % [28, 56]`."""
        return f"{100 * self.value:.0f} % [{100 * self.low:.0f}, {100 * self.high:.0f}]"


def normal_quantile(probability: float) -> float:
    """Returns z with P(Z <= z) = probability for a standard normal Z."""
    if not 0.0 < probability < 1.0:
        raise ValueError(f"give a probability strictly between 0 and 1, got {probability}")
    return NormalDist().inv_cdf(probability)


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Returns the Wilson score interval of a success probability.

    With p = successes / trials and z the normal quantile of (1 + level) / 2:
    centre = (p + z^2/2n) / (1 + z^2/n), half width = z sqrt(p(1-p)/n + z^2/4n^2) / (1 + z^2/n).
    (E. B. Wilson, 1927.) Without trials the interval is all of [0, 1].
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes in {trials} trials: give at most as many successes as trials")
    if trials == 0:
        return Interval(float("nan"), 0.0, 1.0, level, 0, "wilson")
    z = normal_quantile((1 + level) / 2)
    share = successes / trials
    shrink = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / shrink
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / shrink
    return Interval(share, max(0.0, centre - half), min(1.0, centre + half), level, trials, "wilson")
