"""The verdict on a fit, with its reasons."""

from collections.abc import Sequence

from gapless.core.results import FitErrors, FittedParameter, Verdict


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


def add_data_findings(
    word: Verdict, reasons: Sequence[str], faults: Sequence[str], assumptions: Sequence[str]
) -> tuple[Verdict, tuple[str, ...]]:
    """Returns a verdict with what was found wrong in the data first, and what was assumed about them last.

    Args:
        word: The verdict on the fit alone.
        reasons: Its reasons.
        faults: Why no fit of these data can be called good (`Examination.reasons_not_good`).
        assumptions: What is assumed of states that no column shows: the fit holds where these do.
    """
    return ("poor" if faults and word == "good" else word), (*faults, *reasons, *assumptions)


def _why_none(parameters: Sequence[FittedParameter], found: Sequence[str]) -> str:
    """Returns why no parameter is determined, and what to do."""
    bound = [p.target for p in parameters if p.at_bound]
    if bound:
        return f"none is determined; at a bound: {', '.join(bound)}: widen its range, or something else is wrong"
    if found:
        return "these logs determine combinations only: know one parameter of each, and leave it out of `parameters`"
    return "these logs determine none of the parameters: record a motion that moves more"
