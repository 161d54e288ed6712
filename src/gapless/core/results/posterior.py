"""What sampling the posterior found, besides the samples themselves."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SampledParameter:
    """One parameter as the samples of a neural posterior have it.

    Attributes:
        target: Which parameter.
        median: Median of the samples, in the parameter's unit.
        low: Lower end of the central interval of the samples.
        high: Upper end of the central interval of the samples.
        level: Level of the interval.
        rank_p: P-value of the test that ranks of the truth are uniform in simulated cases; None where these logs
            do not show the parameter at all and its samples are those of its range.
    """

    target: str
    median: float
    low: float
    high: float
    level: float
    rank_p: float | None


@dataclass(frozen=True)
class NeuralPosterior:
    """Samples of the posterior by neural estimation, and whether to trust them.

    Attributes:
        path: File of the samples; None before they are kept.
        num_simulations: Simulated cases that the network learned from.
        num_checks: Simulated cases that it was checked with.
        num_effective: How many independent samples those given the logs are worth.
        calibrated: Whether the ranks of the truth were uniform in those, for every parameter.
        parameters: Each parameter's median and interval.
        disagrees: Parameters for which it differs strongly from the intervals of the fit.
    """

    path: str | None
    num_simulations: int
    num_checks: int
    num_effective: int
    calibrated: bool
    parameters: tuple[SampledParameter, ...]
    disagrees: tuple[str, ...]
