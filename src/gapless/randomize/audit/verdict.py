"""The verdicts of an audit: each range beside what the logs say of it, and the sentences that say why."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.interval import normal_quantile
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import AuditedParameter, AuditResult, AuditVerdict
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.summary import MAX_IDENTIFIABLE_SD
from gapless.randomize.audit.predictions import NUM_DRAWS, WRONG_MODEL_RATIO, BestFit, TrainingBox, minimize_quadratic


@dataclass(frozen=True)
class VerdictConfig:
    """The limits of verdicts; set on planted ranges, docs/results.md."""

    min_growth: float = 0.1  # of the squared error within the ranges, besides what it may grow by chance
    chance_factor: float = 3.0  # times what fitting saves on average where all errors of a window go together
    min_single_growth: float = 0.05  # if one parameter alone keeps to its range
    min_half_width_of_value: float = 0.2  # of an advised range: no fit is more certain of reality
    min_half_width_of_prior: float = 0.02  # the same as a share of the prior range, in the solver's units
    max_width_factor: float = 3.0  # times what the logs call for
    level: float = 0.95  # of the intervals of values


CONFIG = VerdictConfig()


def find_verdicts(
    best: BestFit, growth: float, box: TrainingBox, priors: Sequence[Parameter], to_noise: Array
) -> tuple[tuple[AuditVerdict, ...], tuple[AuditedParameter, ...], list[str]]:
    """Returns all verdicts that hold, the gravest first; the parameters that are varied, and those that should be.

    Last come the targets whose ranges exclude reality only together, though each on its own could be right. `growth` is
    that of `fit_inside`, `priors` the free parameters of the project; `to_noise` is what the best row anywhere leaves,
    in units of what noise explains, (num_measurements,).
    """
    free = list(best.problem.free)
    growths, unexplained = single_growths(best, box), max(1.0, float(np.sqrt(np.mean(to_noise**2))))
    chance = chance_growth(len(free), len(best.problem.windows), unexplained)
    narrow = growth > CONFIG.min_growth + chance
    alone = [k for k in range(len(free)) if narrow and growths[k] > CONFIG.min_single_growth]
    together = _find_fewest_outside(best, box) if narrow and not alone else []
    outside = {*alone, *together}
    parameters = tuple(
        _audit_parameter(best, box, k, prior, unexplained, growths[k], k in outside)
        for k, prior in enumerate(priors)
        if box.varied[free[k]] or k in outside
    )
    holds: dict[AuditVerdict, bool] = {
        "wrong": float(to_noise.max()) > WRONG_MODEL_RATIO,
        "too narrow": narrow,
        "too wide": any(p.verdict == "too wide" for p in parameters),
    }
    verdicts: list[AuditVerdict] = [verdict for verdict, is_so in holds.items() if is_so]
    if not verdicts:
        verdicts.append("fits" if any(p.told for p in parameters) else "cannot tell")
    return tuple(verdicts), parameters, [priors[k].target for k in together]


def chance_growth(num_free: int, num_windows: int, unexplained: float) -> float:
    """Returns by what share the squared error may be lower anywhere though the truth lies within the ranges.

    A fit follows errors that it should not: of n independent ones it saves a share of p / n. Noise is thousands of
    them, and hardly counts. What the model lacks makes errors that last, one per window at the least; with r the ratio
    of residual to noise, it is a share of 1 - 1 / r^2 of the squared error.
    """
    return CONFIG.chance_factor * num_free / max(1, num_windows) * (1.0 - 1.0 / unexplained**2)


def single_growths(best: BestFit, box: TrainingBox) -> Array:
    """Returns by what share the squared error grows if one parameter keeps to its range, all others free, (num_free,).

    With a quadratic model of the squared error and d the distance from the best value to the range, it grows by
    d^2 / (C^-1)_kk, where C is the curvature. A parameter that others compensate has a large (C^-1)_kk.
    """
    distance = np.clip(best.solution.unit, *best.unit_box(box)) - best.solution.unit
    return distance**2 / np.diag(np.linalg.inv(best.curvature)) / (2 * max(best.solution.cost, 1e-12))


def _find_fewest_outside(best: BestFit, box: TrainingBox) -> list[int]:
    """Returns the fewest parameters, found one by one, that let the others keep to their ranges."""
    unit, (low, high) = best.solution.unit, best.unit_box(box)
    found: list[int] = []
    while len(found) < len(unit):
        growths = np.full(len(unit), np.inf)
        for k in set(range(len(unit))) - set(found):
            bottom, top = low.copy(), high.copy()
            bottom[[*found, k]], top[[*found, k]] = 0.0, 1.0
            step = minimize_quadratic(best.curvature, unit, bottom, top) - unit
            growths[k] = step @ best.curvature @ step / (2 * max(best.solution.cost, 1e-12))
        found.append(int(np.argmin(growths)))
        if growths.min() < CONFIG.min_single_growth:
            break
    return found


def _audit_parameter(
    best: BestFit, box: TrainingBox, k: int, prior: Parameter, unexplained: float, growth: float, narrow: bool
) -> AuditedParameter:
    """Returns one parameter with its verdict; `k` is its place among the free ones."""
    column, solution = best.problem.free[k], best.solution
    low, high, varied = float(box.low[column]), float(box.high[column]), bool(box.varied[column])
    std, value = float(np.sqrt(solution.covariance[k, k])), float(solution.row[column])
    half, identified = normal_quantile((1 + CONFIG.level) / 2) * std, std < MAX_IDENTIFIABLE_SD
    needed = _find_needed_range(best, k, prior, half * unexplained)
    scale = Scaling.of(ParameterSpace((prior,)))
    ends = scale.unit(np.array([[low], [high], [needed[0]], [needed[1]]]))[:, 0]
    factor = float((ends[1] - ends[0]) / (ends[3] - ends[2])) if identified and varied else None
    verdict: AuditVerdict = "fits" if identified else "cannot tell"
    advised = low, high
    if narrow:
        verdict, advised = "too narrow", (min(low, needed[0]), max(high, needed[1])) if varied else needed
    elif factor is not None and factor > CONFIG.max_width_factor:
        verdict, advised = "too wide", (max(low, needed[0]), min(high, needed[1]))
        advised = advised if advised[0] < advised[1] else needed  # others compensate for what lies outside
    value_low, value_high = _find_interval(best, k, half)
    drawn = box.drawn[:, column]
    return AuditedParameter(
        target=prior.target,
        dimension=prior.dimension,
        unit=prior.unit,
        verdict=verdict,
        varied=varied,
        low=low,
        high=high,
        value=value,
        value_low=value_low,
        value_high=value_high,
        told=identified,
        needed_low=needed[0],
        needed_high=needed[1],
        advised_low=advised[0],
        advised_high=advised[1],
        outside=max(0.0, low - value, value - high),
        growth=float(growth),
        factor=factor,
        share=float(np.mean((drawn >= advised[0]) & (drawn <= advised[1]))),
    )


def _find_interval(best: BestFit, k: int, half: float) -> tuple[float, float]:
    """Returns the best value of a free parameter less and plus a share of the bounds that were searched."""
    unit = best.solution.unit
    low, high = best.problem.rows(np.stack([unit - half, unit + half]))[:, best.problem.free[k]]
    return float(low), float(high)


def _find_needed_range(best: BestFit, k: int, prior: Parameter, half: float) -> tuple[float, float]:
    """Returns the range that the logs call for: as wide as they leave the value open, with a smallest width.

    `half` is half the width that is left open, as a share of the bounds that were searched.
    """
    value = float(best.solution.row[best.problem.free[k]])
    low, high = _find_interval(best, k, half)
    scale, reach = Scaling.of(ParameterSpace((prior,))), CONFIG.min_half_width_of_value * abs(value)
    unit = float(scale.unit(np.array([value]))[0])
    floor = [float(scale.values(np.array([unit + s * CONFIG.min_half_width_of_prior]))[0]) for s in (-1, 1)]
    bounds = best.problem.space.parameters[k]
    return max(min(low, floor[0], value - reach), bounds.low), min(max(high, floor[1], value + reach), bounds.high)


def write_reasons(result: AuditResult, together: Sequence[str]) -> tuple[str, ...]:
    """Returns why an audit says what it says, and what to do, the gravest first."""
    found: list[str] = []
    best, inside = f"{result.residual_to_noise or 0:.2g}", f"{result.residual_in_ranges or 0:.2g}"
    compared = f"the best values within the ranges leave {inside} times what noise explains, the best anywhere {best}"
    if "wrong" in result.verdicts:
        columns = sorted(result.columns.items(), key=lambda item: -item[1].residual_to_noise)
        left = [(name, c.residual_to_noise) for name, c in columns if c.residual_to_noise > WRONG_MODEL_RATIO]
        found.append(
            "no values explain the logs, within the ranges or beyond: what is left, in units of what noise explains, "
            f"is {', '.join(f'{name} {ratio:.1f}' for name, ratio in left)}: the model lacks something; `gapless "
            "diagnose` says which cause is likely"
        )
    if "too narrow" in result.verdicts:
        found += [f"{compared}: reality is outside"]
        found += [_advise_widening(p) for p in result.parameters if p.verdict == "too narrow"]
        if together:
            found.append(f"the logs only show that {' and '.join(together)} together lie outside; others may, too")
    if "too wide" in result.verdicts:
        found += [
            f"narrow {p.target} from {p.low:.3g} .. {p.high:.3g} to {p.advised_low:.3g} .. {p.advised_high:.3g}: it is "
            f"{p.factor:.1f} times as wide as the logs call for"
            for p in result.parameters
            if p.verdict == "too wide"
        ]
        count = f"1 in {1 / result.share:.0f}" if result.share > 0 else f"none of {NUM_DRAWS}"
        found.append(f"what it costs: of the worlds drawn for training, {count} lies within what the logs call for")
    if result.verdict == "fits":
        found.append(compared)
    unidentified = [p.target for p in result.parameters if p.verdict == "cannot tell"]
    if unidentified:
        names = ", ".join(unidentified)
        found.append(f"these logs do not identify {names}: `gapless excite` proposes a motion that does")
    return tuple(found)


def _advise_widening(p: AuditedParameter) -> str:
    value, needed = f"the logs say {_with_unit(p.value, p.unit)}", f"{p.needed_low:.3g} .. {p.needed_high:.3g}"
    if not p.varied:
        return f"add {p.target}, {needed}: training keeps it at {p.low:.3g}, and {value}"
    width = p.high - p.low
    share = f", {100 * p.outside / width:.0f} % of its width" if width > 0 else ""
    spans = f"from {p.low:.3g} .. {p.high:.3g} to {p.advised_low:.3g} .. {p.advised_high:.3g}"
    move = f", or move it to {needed}" if p.told else ""
    return f"widen {p.target} {spans}{move}: {value}, outside by {_with_unit(p.outside, p.unit)}{share}"


def _with_unit(value: float, unit: str) -> str:
    return f"{value:.3g}" if unit == "1" else f"{value:.3g} {unit}"
