import numpy as np

from gapless.fit.mechanisms.set_fits import SetFitter, correct_slopes
from unit.fit.mechanisms.test_problem import MechanismProblem, plant, problem

__all__ = ["problem"]  # the fixture


def test_corrected_slopes_say_of_a_step_what_it_did_and_of_others_what_they_said() -> None:
    rng = np.random.default_rng(0)
    slopes, typical = rng.standard_normal((3, 4, 2)), np.array([1.0, 0.1, 2.0])
    step, change = np.array([0.5, -0.2, 0.0]), rng.standard_normal((4, 2))
    corrected = correct_slopes(slopes, step, change, typical)
    np.testing.assert_allclose(np.tensordot(step, corrected, axes=1), change)
    across = np.array([0.2 * 1.0**2, 0.5 * 0.1**2, 1.0])  # in units of the typical errors at right angles to the step
    np.testing.assert_allclose(np.tensordot(across, corrected, axes=1), np.tensordot(across, slopes, axes=1))


def test_what_is_left_out_of_a_set_is_as_written(problem: MechanismProblem) -> None:
    """Also where a short step was the best one: nothing of a mechanism stays in a set without it."""
    gap = plant(problem, **{"actuator/motor/gain": 0.6, "measurement/q/bias": 0.6})
    fitter, targets = SetFitter(gap), [mechanism.targets[0] for mechanism in gap.mechanisms]
    gain, bias = (targets.index(target) for target in ("actuator/motor/gain", "measurement/q/bias"))
    both = fitter.linearise(fitter.begin(tuple(sorted((gain, bias)))), range(len(targets)))
    (both,) = fitter.fit_all([both])
    (only,) = fitter.fit_all([fitter.change(fitter.linearise(both, range(len(targets))), (bias,))])
    moved = set(np.flatnonzero(only.point))
    assert moved == set(gap.mechanisms[bias].entries)
    assert only.cost > both.cost + 10.0
