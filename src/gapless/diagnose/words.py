"""A diagnosis in sentences: what was seen, what to do, and which recording would tell."""

from collections.abc import Sequence

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.parameters import Parameter
from gapless.core.results import Advice
from gapless.diagnose.hypotheses.read import TraceEvidence
from gapless.diagnose.hypotheses.trials import Trial
from gapless.diagnose.verdict import Verdict

MOVED = 0.15  # of its typical severity: a parameter that moved less is not named
NAMED = 4  # parameters of a cause that are named
# What parts two dimensions that look alike.
TELLS: dict[frozenset[Dimension], str] = {
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


def trace_sentences(traces: TraceEvidence) -> tuple[str, ...]:
    """Returns what signals say, in sentences that a person can check."""
    none = next(trial for trial in traces.trials if not trial.subset)
    frame = traces.frame
    names = frame.evidence.project.measurement_names
    before, after = _times(none), _times(traces.best)
    worst = int(np.argmax(before))
    found = [
        f"{len(frame.windows)} windows of {frame.windows.num_steps / frame.evidence.project.rate_hz:g} s: the model as "
        f"written misses them by {_list(names, before)} times the noise (root mean square; 1 is noise alone, "
        f"{names[worst]} is the worst)"
    ]
    if traces.best.subset:
        halved = "windows" if any(p.run is not None for p in frame.space.parameters) else "logs"
        found.append(
            f"with {' and '.join(traces.best.subset)} fitted on the other half of the {halved} "
            f"{_list(names, after)} times remain"
        )
    for dimension in traces.best.subset:
        found.append(_cause_sentence(traces, dimension))
    return tuple(found)


def _times(trial: Trial) -> list[float]:
    """Returns the median error of each column over windows, in units of noise."""
    return [float(value) for value in np.sqrt(np.median(trial.levels, axis=0) - 1.0)]


def _list(names: Sequence[str], values: Sequence[float]) -> str:
    shown = sorted(zip(values, names, strict=True), reverse=True)[:NAMED]
    return ", ".join(f"{value:.1f} ({name})" for value, name in shown)


def _cause_sentence(traces: TraceEvidence, dimension: Dimension) -> str:
    rest = [trial for trial in traces.trials if set(trial.subset) <= set(traces.best.subset) - {dimension}]
    gain = traces.best.total - max(trial.total for trial in rest)
    values = _values(traces, dimension)
    text = f"{dimension}: without it the best of the others predicts unseen windows worse by {gain:.0f} nats"
    rivals = [trial for trial in traces.trials if len(trial.subset) == 1 and dimension not in trial.subset]
    if rivals and len(traces.best.subset) == 1:
        rival = max(rivals, key=lambda trial: trial.total)
        text += f", {rival.subset[0]} in its place by {traces.best.total - rival.total:.0f}"
    return text + (f"; it is fitted as {values}" if values else "")


def _values(traces: TraceEvidence, dimension: Dimension) -> str:
    """Returns the parameters of a cause that moved, with their values and what the model has."""
    if dimension == "numerics":
        return "a finer time step of the engine"
    values, parts = traces.values, list[str]()
    for p in _most_moved(traces, [dimension]):
        least, most = float(values[p.target].min()), float(values[p.target].max())
        unit = "" if p.unit == "1" else " " + p.unit
        shown = f"{least:.3g}{unit}" if p.run is None else f"{least:.3g} to {most:.3g}{unit} from run to run"
        parts.append(f"{p.target} {shown} (model {p.nominal:.3g})")
    return ", ".join(parts)


def _most_moved(traces: TraceEvidence, dimensions: Sequence[Dimension]) -> list[Parameter]:
    """Returns the parameters of some dimensions that moved: at most `NAMED`, the furthest first, each target once."""
    size = np.abs(traces.best.point[:-1]) / traces.frame.severities.typical
    parameters = traces.frame.space.parameters
    order = [parameters[k] for k in np.argsort(-size, kind="stable") if size[k] > MOVED]
    return list({p.target: p for p in order if p.dimension in dimensions}.values())[:NAMED]


def advice(verdict: Verdict, traces: TraceEvidence | None) -> tuple[Advice, ...]:
    """Returns what to do next, each naming a verb."""
    if verdict.no_gap > 0.5:
        return (Advice("evaluate", "no detectable gap: measure success before changing anything"),)
    found = [Advice("measure", _telling(group)) for group in verdict.ambiguous]
    likely = verdict.likely
    if "numerics" in likely:
        found.append(Advice("check", "the model's time step is too coarse: halve it until `check` calls it converged"))
    listed = traces.frame.dimensions if traces is not None else ()
    fitted = [d for d in likely if d in listed and d not in ("numerics", "visual")]
    if fitted and traces is not None:
        targets = [parameter.target for parameter in _most_moved(traces, fitted)]
        which = f" ({', '.join(targets)})" if targets else ""
        found.append(Advice("identify", f"fit {' and '.join(fitted)}{which}, on more logs than these"))
        found.append(
            Advice("randomize", f"train on ranges about that fit for {' and '.join(fitted)}, not on wide ones")
        )
    if "visual" in likely:
        found.append(Advice("measure", "record each light and camera with the same object: 10 runs per condition"))
    if "human" in likely:
        found.append(Advice("measure", "record more people: at least 5, with 5 runs each, and name them in conditions"))
    if verdict.unmodelled > 0.5:
        found.append(
            Advice("check", "something is left that no parameter of this model expresses: look at the moments named")
        )
    return tuple(found) or (Advice("excite", "nothing stands out: record faster and more varied motions"),)


def _telling(group: Sequence[Dimension]) -> str:
    how = TELLS.get(frozenset(group), "record faster and more varied motions: `gapless excite` proposes one")
    return f"{' and '.join(group)} look alike in these logs; to tell them apart, {how}"
