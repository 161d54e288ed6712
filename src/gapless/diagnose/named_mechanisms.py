"""Which values are wrong, and what they are instead: the mechanisms of a diagnosis with the values of the fit."""

from gapless.core.dimensions import Dimension
from gapless.core.results import CauseMechanism, IdentifyResult
from gapless.fit.mechanisms.explain import UNDECIDED, SignalEvidence

MIN_PROBABILITY = 0.1  # of a mechanism that is named


def name_mechanisms(
    signals: SignalEvidence, fitted: IdentifyResult | None
) -> dict[Dimension, tuple[CauseMechanism, ...]]:
    """Returns dimension -> its probable values, with their intervals in the fit that `identify` gives.

    A value that is not in the fit is named with what the likeliest explanation of it has, and an interval from there to
    the model's. A finer time step has no value.
    """
    known = {p.target: p for p in (fitted.parameters if fitted else ())}
    chances: dict[str, float] = {}
    for mechanism, chance in signals.probabilities.mechanisms.items():
        for target in mechanism.targets:
            chances[target] = min(1.0, chances.get(target, 0.0) + chance)
    _name_what_fit_moved(signals, fitted, chances)
    found: dict[Dimension, list[CauseMechanism]] = {}
    for p in {p.target: p for p in signals.problem.candidates.space.parameters}.values():
        if chances.get(p.target, 0.0) < MIN_PROBABILITY:
            continue
        if p.target in known:
            value, low, high = known[p.target].value, known[p.target].low, known[p.target].high
        else:
            value = signals.find_value(p.target)
            low, high = min(value, p.nominal), max(value, p.nominal)
        one = CauseMechanism(p.target, value, low, high, p.unit, chances[p.target], p.nominal)
        found.setdefault(p.dimension, []).append(one)
    return {d: tuple(sorted(some, key=lambda one: -one.probability)) for d, some in found.items()}


def _name_what_fit_moved(signals: SignalEvidence, fitted: IdentifyResult | None, chances: dict[str, float]) -> None:
    """Lets a target be likelier than not where the fit has it away from the model's value, and only there.

    A pull on a cart and a tilt of its rail look alike; among all values together the fit may choose the other one.
    """
    if fitted is None:
        return
    away = [p for p in fitted.parameters if not p.low <= p.nominal <= p.high]
    moved = {p.target for p in away}
    chances.update({target: min(chance, 0.5 - UNDECIDED) for target, chance in chances.items() if target not in moved})
    believed = [p.target for p in away if p.identifiable and p.dimension in signals.best.dimensions]
    chances.update({target: max(chances.get(target, 0.0), 0.5 + UNDECIDED) for target in believed})
