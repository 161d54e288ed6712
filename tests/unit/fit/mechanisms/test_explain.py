from typing import cast

from gapless.fit.mechanisms.evidence import WEIGHING, estimate_probabilities
from gapless.fit.mechanisms.explain import SignalEvidence
from gapless.fit.mechanisms.problem import MechanismProblem
from unit.fit.mechanisms.explanations import MECHANISMS, explanation


def evidence(actuator: float, sensor: float) -> SignalEvidence:
    """Returns what two dimensions explain, each alone; their mechanisms' targets are called like them."""
    found = (explanation((), 0.0), explanation(("actuator",), actuator), explanation(("sensor",), sensor))
    problem = cast(MechanismProblem, None)  # it is not looked at
    return SignalEvidence(problem, found, estimate_probabilities(found, MECHANISMS))


def test_of_what_explains_alike_that_counts_which_is_fitted_anyway() -> None:
    alike = evidence(actuator=200.0, sensor=205.0)
    assert alike.best.dimensions == ("sensor",)
    assert alike.choose_beside(["actuator"]).fitted_targets == {"actuator"}
    assert alike.choose_beside([]).fitted_targets == {"sensor"}


def test_what_explains_better_by_its_price_is_freed_beside_what_is_fitted_anyway() -> None:
    better = evidence(actuator=200.0, sensor=201.0 + WEIGHING.price)
    assert better.choose_beside(["actuator"]).fitted_targets == {"sensor"}
