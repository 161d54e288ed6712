from dataclasses import replace
from pathlib import Path

import numpy as np

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.signal import Array
from gapless.excite.information import (
    MAX_REPEATS,
    expected_information,
    find_inseparable,
    find_unidentifiable,
    identification_cost,
    rescale_information,
)
from gapless.excite.knowledge import PriorKnowledge, read_knowledge
from gapless.excite.motion import record_motion, simulate_motions
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import cut_windows
from unit.identify.realities import CART, COMMANDS, PLACE_AND_SPEED
from unit.sim.scenes import write_project

NOISE = np.array([0.0001, 0.001])  # as PLACE_AND_SPEED states


def space(*names: str, low: float = -1.0, high: float = 1.0) -> ParameterSpace:
    return ParameterSpace(tuple(Parameter(name, "actuator", "1", 0.0, low, high) for name in names))


def test_the_cost_counts_wanted_parameters_only_and_the_worst_most() -> None:
    # With the prior, 1, the variance is 1 / (information + 1).
    def cost(*deviations: float) -> float:
        return identification_cost(np.diag(1.0 / np.square(deviations) - 1.0), [0, 1])

    assert np.isclose(cost(0.3, 0.02, 0.5), (np.log(0.31) + np.log(0.03)) / 2)
    assert np.isclose(cost(0.3, 0.02, 0.5), cost(0.3, 0.02, 0.1))
    assert cost(0.15, 0.02, 0.5) < cost(0.3, 0.01, 0.5) < cost(0.3, 0.02, 0.5)


def test_a_direction_without_information_is_a_group() -> None:
    # Only a + b shows, and c; nothing shows d.
    slopes = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]) * 1e3
    pooled = slopes.T @ slopes
    groups = find_inseparable(space("a", "b", "c", "d"), pooled)
    assert set(groups) == {("a", "b"), ("d",)}
    assert find_unidentifiable(pooled).tolist() == [True, True, False, True]
    assert find_inseparable(space("a", "b", "c", "d"), pooled + 1e3 * np.eye(4)) == ()


def test_what_ten_times_the_motion_would_tell_is_not_given_up() -> None:
    # A standard deviation of 0.2 of the range from one motion: 1 / (n I + 1) < 0.1^2 for n = MAX_REPEATS = 10.
    information = np.array([[1 / 0.2**2 - 1]])
    assert MAX_REPEATS * information[0, 0] + 1 > 100
    assert not find_unidentifiable(information)[0]
    assert find_unidentifiable(information / 10)[0]


def test_information_in_other_units() -> None:
    # Half the range: one unit is half as much, so that the same reading says a quarter about it.
    before, after = space("a", low=-1.0, high=1.0), space("a", low=-0.5, high=0.5)
    assert np.allclose(rescale_information(np.array([[8.0]]), before, after, np.zeros(1)), 2.0)


def cart(folder: Path, *targets: str) -> PriorKnowledge:
    entries = [f"{{target: {target}}}" for target in targets]
    return read_knowledge(
        write_project(folder, CART, COMMANDS, PLACE_AND_SPEED, rate_hz=50, parameters=entries), None, ()
    )


def information(known: PriorKnowledge, size: float) -> Array:
    """Returns what a sine of the cart's motor tells."""
    space = known.space(())
    row = known.row(space)
    time_s = np.arange(200) / 50.0
    sent = (size * np.cos(6.0 * time_s))[None, :, None]
    run = simulate_motions(known, space, sent, row)
    track = record_motion(known.project, run, 0, known.noise(), np.random.default_rng(0))
    windows = cut_windows(known.project, [track], 0.3)
    windows = replace(windows, start_sd=NOISE, slope_sd=10 * NOISE)  # whatever the smoother makes of the noise drawn
    return expected_information(Predictor(known.blueprint, space), windows, row, np.zeros(2))


def test_a_stronger_push_tells_more_by_its_square(tmp_path: Path) -> None:
    # Without friction x'' = gain u / mass is linear in u: twice the push, four times the information about the gain.
    known = cart(tmp_path, "actuator/motor/gain")
    assert np.allclose(information(known, 1.0) / information(known, 0.5), 4.0, rtol=0.02)


def test_gain_and_mass_of_a_cart_show_as_one_number_however_hard_it_is_pushed(tmp_path: Path) -> None:
    known = cart(tmp_path, "actuator/motor/gain", "body/cart/mass")
    for size in (0.2, 2.0):
        told = information(known, size)
        assert np.diag(told).min() > 1e4  # each on its own, to better than 1 % of its range
        assert find_inseparable(known.space(()), told) == (("actuator/motor/gain", "body/cart/mass"),)
