"""What is tried in place of an explanation that single changes do not lead away from."""

from dataclasses import replace

import numpy as np

from gapless.fit.mechanisms.alternatives import list_alternatives
from gapless.fit.mechanisms.search import MechanismSearch
from gapless.fit.mechanisms.set_fits import SetFit
from unit.fit.mechanisms.test_problem import MechanismProblem, plant, problem

__all__ = ["problem"]  # the fixture
MUCH_LEFT = 1.0


def fit_set(search: MechanismSearch, *targets: str) -> SetFit:
    """Returns the fit of some mechanisms, with slopes of all."""
    chosen = tuple(k for k, m in enumerate(search.mechanisms) if not m.tied and m.targets[0] in targets)
    (fit,) = search.fitter.fit_all([search.fitter.begin(chosen)])
    return search.fitter.linearise(fit, range(len(search.mechanisms)))


def targets_of(search: MechanismSearch, chosen: tuple[int, ...]) -> set[str]:
    return {target for k in chosen for target in search.mechanisms[k].targets}


def sets_tried(search: MechanismSearch, fit: SetFit, left: float) -> list[set[str]]:
    return [targets_of(search, chosen) for chosen, _ in list_alternatives(search.fitter, fit, left)]


def test_a_delay_takes_the_place_of_slow_drives(problem: MechanismProblem) -> None:
    search = MechanismSearch(plant(problem, **{"actuator/*/delay": 1.2}))
    slow = fit_set(search, "joint/hinge/armature", "joint/hinge/damping")
    assert {"actuator/*/delay"} in sets_tried(search, slow, MUCH_LEFT)
    best = search._fit_alternatives(slow)[0]
    assert targets_of(search, best.chosen) == {"actuator/*/delay"}
    assert search.fitter.priced_cost(best) < search.fitter.priced_cost(slow) - 20.0


def test_a_delay_is_not_tried_where_nothing_is_left(problem: MechanismProblem) -> None:
    search = MechanismSearch(plant(problem, **{"joint/hinge/damping": 0.6}))
    slow = fit_set(search, "joint/hinge/damping")
    assert sets_tried(search, slow, left=0.0) == []


def test_one_load_takes_the_place_of_several_masses(problem: MechanismProblem) -> None:
    search = MechanismSearch(plant(problem, **{"body/bob/tip_payload": 0.8}))
    pieces = fit_set(search, "body/bob/mass", "body/bob/inertia")
    assert {"body/bob/tip_payload"} in sets_tried(search, pieces, left=0.0)


def test_a_finer_step_is_tried_where_it_moves_readings(problem: MechanismProblem) -> None:
    # the step's effect, made 50 times the noise so that it is looked into, is not in these readings
    gap = plant(problem, **{"joint/hinge/damping": 0.6})
    effect = 50.0 * np.broadcast_to(gap.windows.noise, gap.step_effect.shape)
    search = MechanismSearch(replace(gap, step_effect=effect))
    fit = fit_set(search, "joint/hinge/damping")
    assert sets_tried(search, fit, left=0.0) == [{"joint/hinge/damping", "numerics"}]


def test_the_same_motion_with_other_forces_needs_fewer_numbers(problem: MechanismProblem) -> None:
    search = MechanismSearch(plant(problem, **{"joint/hinge/damping": 0.6}))
    space, damping = problem.candidates.space, fit_set(search, "joint/hinge/damping")
    row = problem.rows(damping.point[None])[0]
    forces = [space.index(target) for target in ("joint/hinge/damping", "actuator/motor/gain", "body/bob/mass")]
    row[forces] *= 1.3  # as a fit of everything may end
    chosen = tuple(k for k, m in enumerate(search.mechanisms) if not m.tied and set(m.entries) <= set(forces))
    assert len(chosen) == 3
    everything = search.fitter.linearise(
        search.fitter.begin(chosen, problem.point_of(row)), range(len(search.mechanisms))
    )
    assert {"joint/hinge/damping"} in sets_tried(search, everything, left=0.0)
    assert targets_of(search, search._fit_alternatives(everything)[0].chosen) == {"joint/hinge/damping"}
