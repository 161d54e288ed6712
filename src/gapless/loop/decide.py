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

    `diagnosis` is None where it was not run yet; `trials` is the success of the policy in reality; `faults` are
    mistakes in the data that `check` found; `expressed` are the dimensions that parameters of the project express.
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
        text += f", and the policy succeeds in only {success}. A fit and ranges would change little: train longer, "
        text += "change the task, or look at what the logs do not record, such as cameras and people"
        return Decision("stop", (), text)
    likely = [cause.dimension for cause in diagnosis.causes if cause.probability > LIKELY]
    closed = [dimension for dimension in likely if dimension in expressed]
    other = " and ".join(dimension for dimension in likely if dimension not in expressed)
    unmodelled = diagnosis.unmodelled.probability > LIKELY
    if unmodelled and not likely:
        text = f"the gap is unmodelled (probability {diagnosis.unmodelled.probability:.2f})"
        text += ": no parameter of this model expresses it, so neither a fit nor training on ranges closes it. Look "
        text += "at the moments that `gapless diagnose` names, and add what the model lacks"
        return Decision("stop", (), text)
    if likely and not closed:
        text = f"the gap comes from {other}, which no parameter of this project expresses, so training on ranges does "
        text += "not close it. Do what `gapless diagnose` advises, or list parameters for it in gapless.yaml"
        return Decision("stop", (), text)
    # Those that take part, most probable first, and those that look like them; all where none stands out.
    found: list[Dimension] = [c.dimension for c in diagnosis.causes if c.probability > MIN_TAKES_PART]
    found.extend(d for group in diagnosis.ambiguous if set(group) & set(found) for d in group)
    dimensions: tuple[Dimension, ...] = tuple(d for d in dict.fromkeys(found) if d in expressed) or tuple(expressed)
    left = [other] if other else []
    left += ["something unmodelled"] if unmodelled else []
    rest = f"; {' and '.join(left)} also takes part, and training does not close that part" if left else ""
    return Decision("train", dimensions, f"fit, then train on ranges of {', '.join(dimensions)}{rest}")
