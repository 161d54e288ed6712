"""Ranges about a fit, as wide as what it leaves open and what it does not explain."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from gapless.core.distribution import Correlation, Range, correlations_of
from gapless.core.interval import normal_quantile
from gapless.core.signal import Array

OF_VALUE = 0.1  # least standard deviation as a share of the fitted value: no fit is surer of reality than that
OF_RANGE = 0.01  # and as a share of the prior range, for values that may be 0
UNKNOWN = 0.15  # half width about the model's value where the logs could not tell, as a share of the prior range
MOST_WIDENED = 5.0  # times; beyond it, wider bells do not hold what the model lacks either
COMBINED = 0.7  # correlation from which two parameters are told together
CUT = 2.0  # ranges end this many standard deviations from the fit


@dataclass(frozen=True)
class Fitted:
    """One parameter of a fit, in the coordinate in which it varies evenly: its logarithm if it is never 0.

    Attributes:
        entry: The parameter as the JSON of a fit has it.
        by_factor: Whether the coordinate is the logarithm.
        value: Fitted value.
        std: Standard deviation of the fit.
        bottom: Lower end of the prior range.
        top: Upper end of the prior range.
        between: Standard deviation between runs, where each has its own; 0 where all share one.
    """

    entry: dict[str, Any]
    by_factor: bool
    value: float
    std: float
    bottom: float
    top: float
    between: float

    @classmethod
    def of(cls, entry: dict[str, Any]) -> "Fitted":
        """Reads a parameter of a fit."""
        by_factor = float(entry["prior_low"]) > 0
        names = ("value", "low", "high", "prior_low", "prior_high")
        value, low, high, bottom, top = (_bent(float(entry[name]), by_factor) for name in names)
        std = max(high - value, value - low, 0.0) / normal_quantile((1 + float(entry["level"])) / 2)
        spread = float(entry.get("spread", 0.0))
        if by_factor:
            spread = float(np.arcsinh(spread / float(entry["value"])))  # it is half of v (e^s - e^-s)
        return cls(entry, by_factor, value, std, bottom, top, spread * _for_few(len(entry.get("by_run", {}))))

    @property
    def target(self) -> str:
        """Its target."""
        return str(self.entry["target"])

    @property
    def floor(self) -> float:
        """The least standard deviation to train with."""
        return OF_VALUE if self.by_factor else max(OF_VALUE * abs(self.value), OF_RANGE * (self.top - self.bottom))

    def bell(self, std: float, widened: float) -> Range:
        """Returns a bell about the fitted value."""
        reason = f"fitted, widened {widened:.1f} times for what is unexplained"
        if std <= self.floor * (1 + 1e-9):
            of_value = self.by_factor or OF_VALUE * abs(self.value) >= OF_RANGE * (self.top - self.bottom)
            share, whole = (OF_VALUE, "value") if of_value else (OF_RANGE, "prior range")
            reason = f"fitted, at least {100 * share:.0f} % of the {whole}"
        if self.between > 0.0:
            told, unit = float(self.entry["spread"]), str(self.entry["unit"])
            apart = f"{told:.3g}{'' if unit == '1' else ' ' + unit}"
            reason = f"each run has its own: {len(self.entry['by_run'])} runs lie apart by {apart}"
        low, high = max(self.bottom, self.value - CUT * std), min(self.top, self.value + CUT * std)
        kind = "log-normal" if self.by_factor else "normal"
        ends = sorted((self._back(low), float(self.entry["value"]), self._back(high)))  # rounding must not cross them
        return Range(self.target, kind, ends[0], ends[2], ends[1], std, reason)

    def open(self) -> Range:
        """Returns what is left open about the model's value where the logs cannot tell.

        An interval narrows it, but not that of a mean: runs to come lie beside it.
        """
        nominal = min(max(_bent(float(self.entry["nominal"]), self.by_factor), self.bottom), self.top)
        reach = UNKNOWN * (self.top - self.bottom)
        low, high = max(self.bottom, nominal - reach), min(self.top, nominal + reach)
        told_low, told_high = (_bent(float(self.entry[name]), self.by_factor) for name in ("low", "high"))
        if not self.entry.get("by_run") and max(low, told_low) < min(high, told_high):  # an interval is left even so
            low, high = max(low, told_low), min(high, told_high)
        kind = "log-uniform" if self.by_factor else "uniform"
        low, high = self._back(low), self._back(high)
        return Range(
            self.target, kind, low, high, (low + high) / 2, reason="the logs cannot tell: what they leave open"
        )

    def _back(self, value: float) -> float:
        return float(np.exp(value)) if self.by_factor else value


def evidence_ranges(
    entries: Sequence[dict[str, Any]], unexplained: float, samples: Array | None = None
) -> tuple[tuple[Range, ...], tuple[Correlation, ...]]:
    """Returns the ranges of fitted parameters, and which of them go together.

    What the logs determine becomes a bell about its fitted value: the covariance of the fit, times the square of what
    is unexplained (at most `MOST_WIDENED`), with at least `OF_VALUE` of the value or `OF_RANGE` of the prior range to
    each, independently. So two parameters of which only the ratio is known vary together, as they do in the fit. To
    what each run has its own of comes how far runs lie apart.

    Args:
        entries: The parameters of a fit, as its JSON has them.
        unexplained: Ratio of residual to noise that the fit left, at least 1.
        samples: (num_samples, num_entries) of the fit's posterior, for correlations; None for none.
    """
    widened = min(unexplained, MOST_WIDENED)
    fitted = [Fitted.of(entry) for entry in entries]
    told = np.array([bool(entry["identifiable"]) for entry in entries], dtype=bool)
    moved = _correlations(fitted, samples)
    bells = [k for k in range(len(fitted)) if told[k] or _combined(moved[k])]
    std = np.array([fitted[k].std if told[k] else min(fitted[k].std, _reach(fitted[k])) for k in bells])
    between = np.array([fitted[k].between for k in bells])
    std *= np.where(between > 0, 1.0, widened)  # how sure a mean of runs is already follows from how they lie apart
    covariance = moved[np.ix_(bells, bells)] * np.outer(std, std) + np.diag(between**2)
    floors = np.array([fitted[k].floor for k in bells])
    covariance += np.diag(np.maximum(0.0, floors**2 - np.diag(covariance)))
    total = np.sqrt(np.diag(covariance))
    ranges = [fitted[k].open() for k in range(len(fitted))]
    for place, k in enumerate(bells):
        ranges[k] = fitted[k].bell(float(total[place]), widened)
    names = [fitted[k].target for k in bells]
    return tuple(ranges), correlations_of(names, covariance / np.outer(total, total))


def _for_few(num_runs: int) -> float:
    """Returns how much wider to be than the spread of few runs shows, so that 95 % of new ones are inside (Student)."""
    return float(student.ppf(0.975, num_runs - 1)) / normal_quantile(0.975) if num_runs > 1 else 1.0


def _reach(fitted: Fitted) -> float:
    return UNKNOWN * (fitted.top - fitted.bottom) / CUT


def _combined(row: Array) -> bool:
    """Tells whether a parameter goes strongly with another: then the two together are told, if not each alone."""
    return bool((np.sort(np.abs(row))[:-1] > COMBINED).any())


def _correlations(fitted: list[Fitted], samples: Array | None) -> Array:
    """Returns the correlations of a fit's samples, each in its coordinate, (num_parameters, num_parameters)."""
    if samples is None or len(fitted) < 2:
        return np.eye(len(fitted))
    bent = np.stack([np.log(v) if f.by_factor else v for f, v in zip(fitted, samples.T, strict=True)], axis=1)
    spread = bent.std(axis=0)
    centred = (bent - bent.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    found = centred.T @ centred / len(bent)
    np.fill_diagonal(found, 1.0)
    return found


def _bent(value: float, by_factor: bool) -> float:
    return float(np.log(value)) if by_factor else value
