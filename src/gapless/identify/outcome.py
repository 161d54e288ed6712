"""From a solution to what people read: intervals, combinations, errors, verdict."""

from collections.abc import Sequence

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.results import FitErrors, FittedParameter, Verdict
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.solver.problem import Problem
from gapless.solver.solution import AT_BOUND, Solution

LEVEL = 0.95
DETERMINED = 0.1  # a parameter is determined if its standard deviation is below this share of its range


def fitted_parameters(space: ParameterSpace, solution: Solution) -> tuple[FittedParameter, ...]:
    """Returns each parameter with its interval, clipped to its bounds."""
    half, scaling = solution.half_width(LEVEL), Scaling.of(space)
    values = scaling.values(solution.unit)
    lows, highs = (scaling.values(np.clip(solution.unit + sign * half, 0.0, 1.0)) for sign in (-1, 1))
    found: list[FittedParameter] = []
    for k, parameter in enumerate(space.parameters):
        identifiable = bool(np.sqrt(solution.covariance[k, k]) < DETERMINED)
        beyond = solution.unit[k] < AT_BOUND or solution.unit[k] > 1 - AT_BOUND
        physical = parameter.low == 0.0 and solution.unit[k] < AT_BOUND  # no friction, no delay: a value, not a limit
        physical |= parameter.target.endswith("/creep")  # as soft as the engine's friction, or not at all
        found.append(
            FittedParameter(
                parameter.target,
                parameter.dimension,
                parameter.unit,
                parameter.nominal,
                float(values[k]),
                float(lows[k]),
                float(highs[k]),
                LEVEL,
                identifiable,
                bool(beyond and not physical),
                parameter.low,
                parameter.high,
            )
        )
    return tuple(found)


def combinations(space: ParameterSpace, solution: Solution, most: int = 6) -> tuple[str, ...]:
    """Returns the directions that are determined although the parameters in them are not, one by one.

    Eigenvectors of the information about the undetermined parameters (the determined ones marginalised) whose
    standard deviation is below `DETERMINED`, in units of each parameter's range.
    """
    loose = [k for k in range(len(space)) if np.sqrt(solution.covariance[k, k]) >= DETERMINED]
    if len(loose) < 2:
        return ()
    covariance = solution.covariance[np.ix_(loose, loose)]
    slopes = Scaling.of(space).slope(solution.unit)
    values, vectors = np.linalg.eigh(covariance)
    found: list[str] = []
    for variance, vector in zip(values, vectors.T, strict=True):
        heavy = [k for k in np.argsort(-np.abs(vector)) if abs(vector[k]) > 0.25]
        if np.sqrt(max(variance, 0.0)) < DETERMINED and len(heavy) > 1:
            sign = np.sign(vector[heavy[0]])
            terms = []
            for k in heavy:
                parameter = space.parameters[loose[k]]
                factor = sign * vector[k] / slopes[loose[k]]
                terms.append(f"{factor:+.3g}*{parameter.target}")
            found.append("only " + " ".join(terms).lstrip("+") + " is determined")
    return tuple(found[:most])


def fit_errors(problem: Problem, names: Sequence[str], row: Array) -> FitErrors:
    """Returns the errors of a problem's windows before and after a fit."""
    if not len(problem.windows):
        return FitErrors(tuple(names), {}, None, None, None)
    error = problem.errors(np.stack([problem.base, row]))
    rms = np.sqrt(np.nanmean(error**2, axis=(1, 2)))
    columns = problem.predictor.blueprint.project.measurement_names
    noise = problem.windows.noise
    weighted = np.sqrt(np.nanmean((error / noise) ** 2, axis=(1, 2, 3)))
    return FitErrors(
        tuple(names),
        {name: {"before": float(rms[0, k]), "after": float(rms[1, k])} for k, name in enumerate(columns)},
        float(weighted[0]),
        float(weighted[1]),
        problem.to_noise(row),
    )


def verdict(
    parameters: Sequence[FittedParameter], found: Sequence[str], train: FitErrors, held_out: FitErrors
) -> tuple[Verdict, list[str]]:
    """Returns the verdict on a fit, with its reasons.

    Args:
        parameters: The fitted parameters.
        found: The combinations that are determined.
        train: Errors on the episodes that were fitted.
        held_out: Errors on the others.
    """
    judged = held_out if held_out.after is not None else train
    reasons: list[str] = []
    determined = [p for p in parameters if p.identifiable]
    if not determined:
        return "refused", [_why_none(parameters, found)]
    poor = False
    if judged.before is not None and judged.after is not None:
        change = judged.after / judged.before
        where = "held-out" if judged is held_out else "fitted"
        reasons.append(f"{where} error is {change:.2f} of the model's as written")
        if change > 1.0:
            poor = True
            reasons.append("the fit predicts new motions worse than the model as written")
    if judged.residual_to_noise is not None and judged.residual_to_noise > 3.0:
        poor = True
        reasons.append(
            f"what is left is {judged.residual_to_noise:.1f} times what noise explains: the model lacks something"
        )
    bound = [p.target for p in parameters if p.at_bound and p.identifiable]
    if bound:
        poor = True
        reasons.append(f"at a bound: {', '.join(bound)}: widen its range, or something else is wrong")
    loose = [p.target for p in parameters if not p.identifiable]
    if loose:
        reasons.append(f"cannot be told from these logs: {', '.join(loose)}")
    if held_out.after is None:
        poor = True
        reasons.append("nothing was held out: record at least two logs")
    return ("poor" if poor else "good"), reasons


def _why_none(parameters: Sequence[FittedParameter], found: Sequence[str]) -> str:
    """Returns why no parameter is determined, and what to do."""
    bound = [p.target for p in parameters if p.at_bound]
    if bound:
        return f"none is determined; at a bound: {', '.join(bound)}: widen its range, or something else is wrong"
    if found:
        return "these logs determine combinations only: know one parameter of each, and leave it out of `parameters`"
    return "these logs determine none of the parameters: record a motion that moves more"
