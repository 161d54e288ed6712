from dataclasses import fields, replace

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.sim.realism.human import ADULTS, Trait, partners, reach_share, steady


def crowd(num_people: int = 200, num_trials: int = 50, seed: int = 0):
    person = np.repeat(np.arange(num_people), num_trials)
    return partners(ADULTS, seed, person, np.tile(np.arange(num_trials), num_people))


def levels(values: np.ndarray) -> tuple[float, float]:
    """Returns the standard deviations between people and between the trials of one."""
    rows = values.reshape(200, 50)
    return float(rows.mean(axis=1).std()), float(rows.std(axis=1).mean())


@pytest.mark.parametrize("name", ["reach_m", "reaction_s", "reach_time_s", "grip_n"])
def test_people_and_trials_are_two_levels(name: str) -> None:
    trait = getattr(ADULTS, name)
    between, within = levels(np.log(getattr(crowd(), name) / trait.median))
    np.testing.assert_allclose(between, trait.person, rtol=0.15)
    np.testing.assert_allclose(within, trait.trial, rtol=0.05)


def test_hands_are_off_in_every_direction_on_both_levels() -> None:
    hands = crowd().hand_m
    assert hands.shape == (10000, 3)
    between, within = levels(hands[:, 1])
    np.testing.assert_allclose(between, np.hypot(0.02, 0.02 / np.sqrt(50)), rtol=0.15)
    np.testing.assert_allclose(within, 0.02, rtol=0.05)


def test_some_people_hesitate_more_than_others() -> None:
    shares = (crowd().pause_s > 0).reshape(200, 50).mean(axis=1)
    assert 0.08 < np.median(shares) < 0.13
    assert shares.std() > 2 * np.sqrt(0.1 * 0.9 / 50)  # more than chance alone would do


def test_the_same_person_and_trial_come_back_alone_and_in_a_crowd() -> None:
    whole = crowd()
    one = partners(ADULTS, 0, np.array([7]), np.array([12]))
    row = 7 * 50 + 12
    for item in fields(one):
        assert np.array_equal(getattr(one, item.name)[0], getattr(whole, item.name)[row]), item.name
    assert partners(ADULTS, 1, np.array([7]), np.array([12])).reach_m != one.reach_m


def test_the_steady_population_is_the_median_person_every_time() -> None:
    found = partners(steady(ADULTS), 0, np.arange(5), np.arange(5))
    assert np.all(found.reach_m == ADULTS.reach_m.median)
    assert np.all(found.pause_s == 0)
    assert np.all(found.hand_m == 0)
    assert np.all(found.pulled_grip_n == found.grip_n)


def test_a_reach_starts_after_the_reaction_is_half_way_in_the_middle_and_waits_in_a_pause() -> None:
    certain = replace(steady(ADULTS), hesitation_share=Trait(1.0, 0.0, 0.0))
    calm = partners(steady(ADULTS), 0, np.zeros(1, int), np.zeros(1, int))
    assert reach_share(calm, 0.35)[0] == 0.0
    np.testing.assert_allclose(reach_share(calm, 0.35 + 0.45), 0.5)
    assert reach_share(calm, 0.35 + 0.9)[0] == 1.0
    pausing = replace(partners(certain, 0, np.zeros(1, int), np.zeros(1, int)), pause_at=np.array([0.5]))
    for time_s in (0.85, 1.25):  # half way from 0.8 s on, for half a second
        np.testing.assert_allclose(reach_share(pausing, time_s), 0.5)
    assert reach_share(pausing, 1.4)[0] > 0.5
    np.testing.assert_allclose(reach_share(pausing, 1.75), 1.0)


def test_a_person_without_a_trial_is_refused() -> None:
    with pytest.raises(InputError, match="a person and a trial for each world"):
        partners(ADULTS, 0, np.arange(3), np.arange(2))
