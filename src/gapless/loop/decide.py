"""Decides from real trials, the findings of `check` and the diagnosis whether training can close the gap."""

from collections.abc import Collection, Sequence

from gapless.core.dimensions import DIMENSIONS, Dimension
from gapless.core.interval import Interval
from gapless.core.results import Decision, DiagnoseResult

LIKELY = 0.5  # a cause above this probability takes part more probably than not
MIN_TAKES_PART = 0.1  # a dimension below this probability is not randomised; `diagnose` calls it decided there too


def decide(
    diagnosis: DiagnoseResult | None,
    trials: Interval,
    target: float,
    *,
    faults: Sequence[str] = (),
    expressed: Collection[Dimension] = DIMENSIONS,
) -> Decision:
    """Returns whether to fit, randomise and train, and for which dimensions; or why training is not the answer.

    Args:
        diagnosis: What `diagnose` found; None where it was not run yet.
        trials: Success of the policy in reality.
        target: Success asked for [1].
        faults: Mistakes in the data that `check` found.
        expressed: Dimensions that the parameters of the project express.
    """
    success = f"{trials.percent()} of {trials.n} real trials"
    if trials.value >= target:
        return Decision("done", (), f"the policy succeeds in {success}: the target of {100 * target:.0f} % is met")
    if faults:
        text = f"the data has mistakes, and no fit of such data can be trusted: {'; '.join(faults)}"
        return Decision("stop", (), f"{text}. Correct them, then run the loop again")
    if diagnosis is None:
        return Decision("train", tuple(expressed), f"the policy succeeds in {success}: the cause is not known yet")
    if diagnosis.no_gap.probability > LIKELY:
        text = f"no gap between model and logs is found (probability {diagnosis.no_gap.probability:.2f})"
        return Decision(
            "stop",
            (),
            f"{text}, and the policy succeeds in only {success}. A fit and ranges would change little: train longer, "
            "change the task, or look at what the logs do not record, such as cameras and people",
        )
    likely = [cause.dimension for cause in diagnosis.causes if cause.probability > LIKELY]
    closed = [dimension for dimension in likely if dimension in expressed]
    other = " and ".join(dimension for dimension in likely if dimension not in expressed)
    unmodelled = diagnosis.unmodelled.probability > LIKELY
    if unmodelled and not likely:
        text = f"the gap is unmodelled (probability {diagnosis.unmodelled.probability:.2f})"
        return Decision(
            "stop",
            (),
            f"{text}: no parameter of this model expresses it, so neither a fit nor training on ranges closes it. Look "
            "at the moments that `gapless diagnose` names, and add what the model lacks",
        )
    if likely and not closed:
        return Decision(
            "stop",
            (),
            f"the gap comes from {other}, which no parameter of this project expresses, so training on ranges does not "
            "close it. Do what `gapless diagnose` advises, or list parameters for it in gapless.yaml",
        )
    dimensions = _find_taking_part(diagnosis, expressed)
    left = [other] if other else []
    left += ["something unmodelled"] if unmodelled else []
    rest = f"; {' and '.join(left)} also takes part, and training does not close that part" if left else ""
    return Decision("train", dimensions, f"fit, then train on ranges of {', '.join(dimensions)}{rest}")


def _find_taking_part(diagnosis: DiagnoseResult, expressed: Collection[Dimension]) -> tuple[Dimension, ...]:
    """Returns the dimensions to randomise, most probable first: those that take part, and those that look like them.

    Where none stands out, these are all that the project expresses.
    """
    found: list[Dimension] = []
    found.extend(cause.dimension for cause in diagnosis.causes if cause.probability > MIN_TAKES_PART)
    found.extend(d for group in diagnosis.ambiguous if set(group) & set(found) for d in group)
    return tuple(d for d in dict.fromkeys(found) if d in expressed) or tuple(expressed)
