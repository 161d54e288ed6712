"""Starts far from the model as written."""

import numpy as np

from gapless.fit.mechanisms.far_start import fit_everything, search_kinds
from gapless.fit.mechanisms.problem import MechanismProblem
from unit.fit.mechanisms.test_problem import plant, problem

__all__ = ["problem"]  # the fixture


def cost(problem: MechanismProblem, point: np.ndarray) -> float:
    """Returns the mean logarithm of squares that a point leaves: log 2 for noise alone."""
    return float(np.log(problem.mean_squares(problem.residuals(point[None])[0])).mean())


def test_kinds_are_found_that_are_far_off(problem: MechanismProblem) -> None:
    far = plant(problem, **{"actuator/motor/gain": 2.0, "actuator/*/delay": 1.2})
    written = np.zeros(len(problem.typical))
    found = search_kinds(far, ("actuator/motor/gain", "actuator/*/delay"), seed=0)
    assert cost(far, found) < 0.2 * cost(far, written)
    moved = {problem.candidates.space.targets[k] for k in np.flatnonzero(found[:-1])}
    assert {"actuator/motor/gain", "actuator/*/delay"} <= moved
    assert not any(target.endswith("/bias") for target in moved)  # offsets stay


def test_nothing_to_move_leaves_the_model_as_written(problem: MechanismProblem) -> None:
    fixed = np.zeros(len(problem.typical))
    found = search_kinds(problem, (), seed=0)
    free = [k for k in np.flatnonzero(found) if k < len(problem.candidates.space)]
    fields = {problem.candidates.space.targets[k].rsplit("/", 1)[1] for k in free}
    assert fields <= {"mass", "armature", "damping"}
    assert cost(problem, found) <= cost(problem, fixed) + 0.1


def test_everything_together_fits_down_to_the_noise(problem: MechanismProblem) -> None:
    gap = plant(problem, **{"joint/hinge/frictionloss": 0.5, "body/bob/mass": 0.6, "actuator/*/delay": 0.8})
    end = fit_everything(gap, np.zeros(len(problem.typical)))
    assert cost(gap, end) < np.log(2.0) + 0.1
