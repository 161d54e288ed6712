"""What signals say in sentences that a person can check, and advice on what to do next."""

from collections.abc import Mapping, Sequence

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.parameters import Parameter
from gapless.core.results import Advice, CauseMechanism
from gapless.diagnose.combine import Diagnosis
from gapless.diagnose.shares import find_best_without
from gapless.fit.mechanisms.evidence import measure_worth
from gapless.fit.mechanisms.explain import SignalEvidence
from gapless.fit.mechanisms.search import Explanation

Named = Mapping[Dimension, Sequence[CauseMechanism]]  # dimension -> its mechanisms, the most probable first
MIN_MOVED = 0.15  # of its typical error: a parameter that moved less is not named
MIN_LIKELY = 0.5  # probability of a cause, and of a mechanism whose value is named, that is put into a sentence
MAX_NAMED = 4  # columns, or parameters of a cause, that are named
SEPARATING_RECORDINGS: dict[frozenset[Dimension], str] = {
    frozenset(("sensor", "environment")): "stand still at many postures, then once with the base turned by hand: an "
    "offset of a reading stays with its joint, a tilt or a load does not",
    frozenset(("sensor", "actuator")): "move each joint against a mechanical stop or a gauge: a reading that is off "
    "is off there too",
    frozenset(("contact", "object")): "lift the object or hang it on a scale, then push it at two speeds: friction "
    "does not change with speed, inertia does",
    frozenset(("actuator", "object")): "repeat one motion with a known weight fixed to the tip: mass adds to it, "
    "weak motors do not",
    frozenset(("actuator", "latency")): "record steps and slow sweeps of the command: a delay is the same in both, "
    "a slow motor is not",
    frozenset(("actuator", "environment")): "let each joint move slowly both ways: friction changes its sign with the "
    "direction, a load does not",
    frozenset(("latency", "numerics")): "run `gapless check` and halve the time step: what changes is no delay",
    frozenset(("actuator", "numerics")): "run `gapless check` and halve the time step: what changes is no motor",
    frozenset(("object", "environment")): "stand still at many postures: a payload pulls more the further it is out",
}


def describe_signals(signals: SignalEvidence, named: Named) -> tuple[str, ...]:
    """Returns what signals say, with the values of the mechanisms that are named."""
    problem, best = signals.problem, signals.best
    project = problem.fit.predictor.blueprint.project
    before, worst = _list_errors(project.measurement_names, signals.written)
    found = [
        f"{len(problem.windows)} windows of {problem.windows.num_steps / project.rate_hz:g} s: the errors of the model "
        f"as written are {before} times the noise (root mean square; 1 is noise alone, {worst} is the worst)"
    ]
    if best.mechanisms:
        halved = "windows" if any(p.run is not None for p in problem.candidates.space.parameters) else "logs"
        after, _ = _list_errors(project.measurement_names, best)
        fitted = f"with {' and '.join(best.dimensions)} fitted on the other half of the {halved}"
        found.append(f"{fitted} {after} times the noise remain")
    believed: list[Dimension] = [d for d in best.dimensions if signals.probabilities.causes[d] > MIN_LIKELY]
    return (*found, *(_describe_cause(signals, d, named.get(d, ())) for d in believed))


def _list_errors(names: Sequence[str], fit: Explanation) -> tuple[str, str]:
    """Returns the median error over windows of the worst columns, in units of noise; and the worst column's name."""
    errors = np.sqrt(np.median(fit.held_out, axis=0) - 1.0)
    shown = sorted(zip(errors, names, strict=True), reverse=True)[:MAX_NAMED]
    return ", ".join(f"{value:.1f} ({name})" for value, name in shown), shown[0][1]


def _describe_cause(signals: SignalEvidence, dimension: Dimension, mechanisms: Sequence[CauseMechanism]) -> str:
    gain = measure_worth(signals.best) - measure_worth(find_best_without(signals, dimension))
    text = f"{dimension}: without it the best explanation of unseen windows is worth {gain:.0f} nats less"
    if dimension == "numerics":
        return f"{text}; a finer time step of the engine"
    values = [_describe_value(one) for one in mechanisms if one.probability > MIN_LIKELY][:MAX_NAMED]
    return f"{text}; {', '.join(values)}" if values else text


def _describe_value(one: CauseMechanism) -> str:
    unit = "" if one.unit == "1" else f" {one.unit}"
    return f"{one.target} {one.value:.3g}{unit} [{one.low:.3g}, {one.high:.3g}] (model {one.nominal:.3g})"


def _most_moved(signals: SignalEvidence, dimensions: Sequence[Dimension]) -> list[Parameter]:
    """Returns the parameters of some dimensions that moved: at most `MAX_NAMED`, the furthest first, a target once."""
    size = np.abs(signals.best.point / signals.problem.typical)[:-1]
    parameters = signals.problem.candidates.space.parameters
    order = [parameters[k] for k in np.argsort(-size, kind="stable") if size[k] > MIN_MOVED]
    return list({p.target: p for p in order if p.dimension in dimensions}.values())[:MAX_NAMED]


def advise(diagnosis: Diagnosis, signals: SignalEvidence | None) -> tuple[Advice, ...]:
    """Returns what to do next, each naming a verb."""
    if diagnosis.no_gap > 0.5:
        return (Advice("evaluate", "no detectable gap: measure success before changing anything"),)
    found = [Advice("measure", _advise_recording(group)) for group in diagnosis.ambiguous]
    likely = diagnosis.likely
    if "numerics" in likely:
        found.append(Advice("check", "the model's time step is too coarse: halve it until `check` calls it converged"))
    if signals is not None:
        fitted: list[Dimension] = [
            d for d in likely if d in signals.problem.dimensions and d not in ("numerics", "visual")
        ]
        targets = [parameter.target for parameter in _most_moved(signals, fitted)]
        if fitted:
            which = f" ({', '.join(targets)})" if targets else ""
            names = " and ".join(fitted)
            found.append(Advice("identify", f"fit {names}{which}, on more logs than these"))
            found.append(Advice("randomize", f"train on ranges around that fit for {names}, not on wide ones"))
    if "visual" in likely:
        found.append(Advice("measure", "record each light and camera with the same object: 10 runs per condition"))
    if "human" in likely:
        found.append(Advice("measure", "record more people: at least 5, with 5 runs each, and name them in conditions"))
    if diagnosis.unmodelled > 0.5:
        text = "errors remain that no parameter of this model can explain: look at the moments that are named"
        found.append(Advice("check", text))
    return tuple(found) or (Advice("excite", "no cause stands out: record faster and more varied motions"),)


def _advise_recording(group: Sequence[Dimension]) -> str:
    default = "record faster and more varied motions: `gapless excite` proposes one"
    how = SEPARATING_RECORDINGS.get(frozenset(group), default)
    return f"{' and '.join(group)} look alike in these logs; to separate them, {how}"
