"""Searches that begin where single changes of a set do not lead."""

from dataclasses import replace

import numpy as np

from gapless.fit.mechanisms.search import MechanismSearch
from gapless.fit.mechanisms.set_fits import SetFit
from unit.fit.mechanisms.test_problem import MechanismProblem, plant, problem

__all__ = ["problem"]  # the fixture


def fit_set(search: MechanismSearch, *targets: str) -> SetFit:
    """Returns the fit of some mechanisms, with slopes of all."""
    chosen = tuple(k for k, m in enumerate(search.mechanisms) if not m.tied and m.targets[0] in targets)
    (fit,) = search.fitter.fit_all([search.fitter.begin(chosen)])
    return search.fitter.linearise(fit, range(len(search.mechanisms)))


def targets_of(search: MechanismSearch, fit: SetFit) -> set[str]:
    return {target for k in fit.chosen for target in search.mechanisms[k].targets}


def test_a_delay_is_tried_in_the_place_of_slow_drives(problem: MechanismProblem) -> None:
    search = MechanismSearch(plant(problem, **{"actuator/*/delay": 1.2}))
    slow = fit_set(search, "joint/hinge/armature", "joint/hinge/damping")
    found = search._search_delay_instead(slow)
    assert targets_of(search, found) == {"actuator/*/delay"}
    assert search.fitter.priced_cost(found) < search.fitter.priced_cost(slow) - 20.0


def test_a_delay_is_not_tried_where_nothing_is_left(problem: MechanismProblem) -> None:
    search = MechanismSearch(plant(problem, **{"joint/hinge/damping": 0.6}))
    slow = fit_set(search, "joint/hinge/damping")
    assert search._search_delay_instead(slow) is slow


def test_a_state_that_no_finer_step_betters_keeps_the_slopes_of_its_mechanisms(problem: MechanismProblem) -> None:
    # the step's effect, made 50 times the noise so that it is looked into, is not in these readings
    gap = plant(problem, **{"joint/hinge/damping": 0.6})
    effect = 50.0 * np.broadcast_to(gap.windows.noise, gap.step_effect.shape)
    search = MechanismSearch(replace(gap, step_effect=effect))
    fit = fit_set(search, "joint/hinge/damping")
    kept = search._search_with_finer_step(fit)
    assert targets_of(search, kept) == {"joint/hinge/damping"}
    assert kept.linear is not None
    assert kept.linear.rank_worth(kept.chosen) == kept.chosen
