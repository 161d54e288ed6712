"""One verdict on a fit, with its reasons, from everything that was found about it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gapless.core.results import FitErrors, FittedParameter, HorizonErrors, Verdict
from gapless.fit.scatter.estimate import ScatterEstimate

MAX_RESIDUAL_TO_NOISE = 3.0  # what a good fit may leave, in multiples of what noise explains,
MAX_ERROR_SHARE = 0.05  # or of how far each column moves within the project's horizon; judgement, not measured


@dataclass(frozen=True)
class FitFindings:
    """What was found about a fit and its data."""

    refusal: str | None  # why no parameter was fitted to predictions; None where some were
    parameters: Sequence[FittedParameter]  # the fitted parameters
    combinations: Sequence[str]  # what is determined where single parameters are not
    train: FitErrors  # errors on the episodes that were fitted
    held_out: FitErrors  # errors on the others
    scatter: Sequence[ScatterEstimate] = ()  # parameters that were estimated from how runs scatter
    faults: Sequence[str] = ()  # mistakes in the data: no fit of these data can be called good
    remarks: Sequence[str] = ()  # what the fitted values rest on
    assumptions: Sequence[str] = ()  # what predictions assume of states that no column shows
    # errors of predictions as long as the project asks for, or of whole runs where none is that long
    horizon: HorizonErrors | None = None


def judge_fit(found: FitFindings) -> tuple[Verdict, tuple[str, ...]]:
    """Returns the verdict on a fit and its reasons: mistakes in the data first, assumptions near the end."""
    about_scatter = _describe_scatter(found.scatter)
    identified = [one for one in found.scatter if one.parameter.identifiable]
    if found.refusal is None:
        word, reasons = _judge_predictions(found)
    elif identified:
        word, reasons = "good", []
    else:
        word, reasons = "refused", [] if found.scatter else [found.refusal]
    if word == "good" and (found.faults or not all(one.explains_logs for one in identified)):
        word = "poor"
    return word, (*found.faults, *reasons, *found.remarks, *found.assumptions, *about_scatter)


def _judge_predictions(found: FitFindings) -> tuple[Verdict, list[str]]:
    """Returns the verdict on parameters that were fitted to predictions."""
    parameters, held_out = found.parameters, found.held_out
    if not any(p.identifiable for p in parameters):
        return "refused", [_why_none_is_identifiable(parameters, found.combinations)]
    judged, where = (held_out, "held-out") if held_out.after is not None else (found.train, "fitted")
    reasons: list[str] = []
    faults: list[str] = []
    if judged.before is not None and judged.after is not None:
        change = judged.after / judged.before
        reasons.append(f"{where} error is {change:.2f} of the model's as written")
        if change > 1.0:
            faults.append("the fit predicts new motions worse than the model as written")
    left = judged.residual_to_noise
    if left is not None and left > MAX_RESIDUAL_TO_NOISE:
        text = f"what is left is {left:.1f} times what noise explains"
        share = None if found.horizon is None else found.horizon.worst_share
        if share is not None and share <= MAX_ERROR_SHARE and found.horizon is not None:
            after = f"{found.horizon.horizon_s:g} s" if found.horizon.horizon_s else "whole runs"
            reasons.append(f"{text}, yet at most {100 * share:.2g} % of how far each column moves in {after}")
        else:
            faults.append(f"{text}: the model lacks something")
    at_bound = [p.target for p in parameters if p.at_bound and p.identifiable]
    if at_bound:
        faults.append(f"at a bound: {', '.join(at_bound)}: widen its range, or something else is wrong")
    reasons += faults
    open_ones = [p.target for p in parameters if not p.identifiable]
    if open_ones:
        reasons.append(f"not identifiable from these logs: {', '.join(open_ones)}")
    if held_out.after is None:
        reasons.append("nothing was held out: record at least two logs")
    return ("poor" if faults or held_out.after is None else "good"), reasons


def _why_none_is_identifiable(parameters: Sequence[FittedParameter], combinations: Sequence[str]) -> str:
    """Returns why no parameter is identifiable, and what to do."""
    at_bound = [p.target for p in parameters if p.at_bound]
    if at_bound:
        return f"none is identifiable; at a bound: {', '.join(at_bound)}: widen its range, or something else is wrong"
    if combinations:
        return "these logs determine combinations only: know one parameter of each, and leave it out of `parameters`"
    return "these logs determine none of the parameters: record a motion that moves more"


def _describe_scatter(estimates: Sequence[ScatterEstimate]) -> list[str]:
    """Returns what is known of the parameters that show only in how runs scatter."""
    known = [one for one in estimates if one.parameter.identifiable]
    texts = {
        "estimated from how runs scatter: {}": known,
        "not identifiable from how these logs scatter: {}": [one for one in estimates if one not in known],
        "runs simulated with it do not look like the logs: {}": [one for one in known if not one.explains_logs],
        "at a bound: {}: widen its range": [one for one in known if one.parameter.at_bound],
    }
    return [text.format(", ".join(one.parameter.target for one in some)) for text, some in texts.items() if some]
