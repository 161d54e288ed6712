"""One verdict per parameter: its range beside what the logs say of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.interval import normal_quantile
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import AuditedParameter, AuditVerdict
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.summary import MAX_IDENTIFIABLE_SD
from gapless.randomize.audit.explain import WRONG, Explained, Inside, least_within
from gapless.randomize.audit.ranges import Box

CLEARLY = 0.1  # share by which the squared error must grow within the ranges, besides what it may by chance
CHANCE = 3.0  # times what fitting saves on average where all errors of a window go together
PART = 0.05  # share by which it must grow if one parameter alone keeps to its range
OF_VALUE = 0.2  # half the width of an advised range is at least this share of the value: no fit is surer of reality
OF_RANGE = 0.02  # and this share of the prior range, on the scale that fits step on
FAR_WIDER = 3.0  # times what the logs call for
LEVEL = 0.95


@dataclass(frozen=True)
class Judged:
    """What the logs say of ranges.

    Attributes:
        verdicts: All that hold, the gravest first.
        parameters: Those that are varied, and those that should be.
        together: Targets whose ranges exclude reality only together, though each on its own could be right.
    """

    verdicts: tuple[AuditVerdict, ...]
    parameters: tuple[AuditedParameter, ...]
    together: tuple[str, ...]

    @property
    def share(self) -> float:
        """The product of the shares of what is too wide."""
        return float(np.prod([p.share for p in self.parameters if p.verdict == "too wide"]))


def judge(explained: Explained, inside: Inside, box: Box, priors: Sequence[Parameter], to_noise: Array) -> Judged:
    """Returns the verdicts on ranges.

    Args:
        explained: The best row anywhere.
        inside: The best row within the ranges.
        box: What training draws.
        priors: The free parameters as the project has them.
        to_noise: (num_measurements,) what the best row anywhere leaves, in units of what noise explains.
    """
    free = list(explained.problem.free)
    growths, unexplained = single_growths(explained, box), max(1.0, float(np.sqrt(np.mean(to_noise**2))))
    narrow = inside.growth > CLEARLY + by_chance(len(free), len(explained.problem.windows), unexplained)
    alone = [k for k in range(len(free)) if narrow and growths[k] > PART]
    together = _released(explained, box) if narrow and not alone else []
    entries: list[AuditedParameter] = []
    for k, prior in enumerate(priors):
        if box.varied[free[k]] or k in (*alone, *together):
            entries.append(_entry(explained, box, k, prior, unexplained, growths[k], k in (*alone, *together)))
    return Judged(
        _all(entries, narrow, float(to_noise.max())), tuple(entries), tuple(priors[k].target for k in together)
    )


def by_chance(num_free: int, num_windows: int, unexplained: float) -> float:
    """Returns by what share the squared error may be lower anywhere though the truth lies within the ranges.

    A fit follows errors that it should not: of n independent ones it saves a share of p / n. Noise is thousands of
    them, and hardly counts. What the model lacks makes errors that last, one per window at the least; with r the ratio
    of residual to noise, it is a share of 1 - 1 / r^2 of the squared error.
    """
    return CHANCE * num_free / max(1, num_windows) * (1.0 - 1.0 / unexplained**2)


def single_growths(explained: Explained, box: Box) -> Array:
    """Returns by what share the squared error grows if one parameter keeps to its range, all others free, (num_free,).

    As far as it is a parabola: with d the way from the best value to the range, it grows by d^2 / (C^-1)_kk, where C
    is the curvature. A parameter that others make up for has a large (C^-1)_kk.
    """
    problem, unit = explained.problem, explained.solution.unit
    low, high = (problem.unit(end) for end in (box.low, box.high))
    away = np.clip(unit, low, np.maximum(low, high)) - unit
    least = 2 * max(explained.solution.cost, 1e-12)
    return away**2 / np.diag(np.linalg.inv(explained.curvature)) / least


def _released(explained: Explained, box: Box) -> list[int]:
    """Returns the fewest parameters, found one by one, that let the others keep to their ranges."""
    problem, unit = explained.problem, explained.solution.unit
    low, high = (problem.unit(end) for end in (box.low, box.high))
    found: list[int] = []
    least = 2 * max(explained.solution.cost, 1e-12)
    while len(found) < len(unit):
        growths = np.full(len(unit), np.inf)
        for k in set(range(len(unit))) - set(found):
            freed = [*found, k]
            bottom, top = low.copy(), high.copy()
            bottom[freed], top[freed] = 0.0, 1.0
            step = least_within(explained.curvature, unit, bottom, top) - unit
            growths[k] = step @ explained.curvature @ step / least
        found.append(int(np.argmin(growths)))
        if growths.min() < PART:
            break
    return found


def _entry(
    explained: Explained, box: Box, k: int, prior: Parameter, unexplained: float, growth: float, narrow: bool
) -> AuditedParameter:
    """Returns one parameter with its verdict; `k` is its place among the free ones."""
    column, solution = explained.problem.free[k], explained.solution
    low, high, varied = float(box.low[column]), float(box.high[column]), bool(box.varied[column])
    deviation, value = float(np.sqrt(solution.covariance[k, k])), float(solution.row[column])
    half, told = normal_quantile((1 + LEVEL) / 2) * deviation, deviation < MAX_IDENTIFIABLE_SD
    needed = _needed(explained, k, prior, half * unexplained)
    factor = _width(prior, low, high) / _width(prior, *needed) if told and varied else None
    verdict: AuditVerdict = "fits" if told else "cannot tell"
    advised = low, high
    if narrow:
        verdict, advised = "too narrow", (min(low, needed[0]), max(high, needed[1])) if varied else needed
    elif factor is not None and factor > FAR_WIDER:
        verdict, advised = "too wide", (max(low, needed[0]), min(high, needed[1]))
        advised = advised if advised[0] < advised[1] else needed  # others make up for what lies outside
    ends = _open(explained, k, half)
    return AuditedParameter(
        *(prior.target, prior.dimension, prior.unit, verdict, varied, low, high, value, *ends, told),
        *(*needed, *advised, max(0.0, low - value, value - high), float(growth), factor),
        share=box.share(column, *advised),
    )


def _width(prior: Parameter, low: float, high: float) -> float:
    """Returns the width of a range on the scale that fits step on, in units of the prior range."""
    ends = Scaling.of(ParameterSpace((prior,))).unit(np.array([[low], [high]]))[:, 0]
    return float(ends[1] - ends[0])


def _open(explained: Explained, k: int, half: float) -> tuple[float, float]:
    """Returns the best value of a free parameter less and plus a share of the bounds that were searched."""
    unit = explained.solution.unit
    low, high = explained.problem.rows(np.stack([unit - half, unit + half]))[:, explained.problem.free[k]]
    return float(low), float(high)


def _needed(explained: Explained, k: int, prior: Parameter, half: float) -> tuple[float, float]:
    """Returns the range that the logs call for: as wide as they leave the value open, and never narrower than a floor.

    Args:
        explained: The best row anywhere.
        k: Which of its free parameters.
        prior: It as the project has it.
        half: Half the width that is left open, as a share of the bounds that were searched.
    """
    value = float(explained.solution.row[explained.problem.free[k]])
    ends, scale = _open(explained, k, half), Scaling.of(ParameterSpace((prior,)))
    unit = float(scale.unit(np.array([value]))[0])
    floor = [float(scale.values(np.array([unit + sign * OF_RANGE]))[0]) for sign in (-1, 1)]
    low = min(ends[0], floor[0], value - OF_VALUE * abs(value))
    high = max(ends[1], floor[1], value + OF_VALUE * abs(value))
    bounds = explained.problem.space.parameters[k]
    return max(low, bounds.low), min(high, bounds.high)


def _all(entries: Sequence[AuditedParameter], narrow: bool, worst: float) -> tuple[AuditVerdict, ...]:
    found: list[AuditVerdict] = []
    if worst > WRONG:
        found.append("wrong")
    if narrow:
        found.append("too narrow")
    if any(entry.verdict == "too wide" for entry in entries):
        found.append("too wide")
    if not found:
        found.append("fits" if any(entry.told for entry in entries) else "cannot tell")
    return tuple(found)
