"""People as partners in handover and collaboration: a population, the people in it, and the trials of each.

Two levels, because they matter differently: a policy must suit people it never met, and the same person twice. Draws
are pure functions of (seed, person, trial): the same person comes back by number.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws


@dataclass(frozen=True)
class Trait:
    """How one quantity varies: x = median exp(person n_p + trial n_t), or median + person n_p + trial n_t.

    `person` and `trial` are standard deviations: of the logarithm [1], or in the quantity's unit where `signed`.
    """

    median: float  # of all people and trials, in the quantity's unit
    person: float  # between people
    trial: float  # between the trials of one person
    signed: bool = False  # whether it is a sum that may be negative; otherwise a product that stays positive


@dataclass(frozen=True)
class Population:
    """Who the robot will meet."""

    reach_m: Trait  # how far from the shoulder the hand is offered [m]
    reaction_s: Trait  # from the robot's cue to the start of the reach [s]
    reach_time_s: Trait  # from the start of the reach to the hand at rest [s]
    hesitation_share: Trait  # chance that a trial has a pause in it [1]; between people it varies on the logit scale
    hesitation_s: Trait  # length of a pause [s]
    grip_n: Trait  # force with which the object is held [N]
    grip_change: Trait  # factor on the grip once the robot pulls [1]
    hand_m: Trait  # error of the hand about the meeting place, per axis [m]
    hand_rad: Trait  # error of the hand's orientation, rotation vector, per axis [rad]


ADULTS = Population(
    reach_m=Trait(0.55, 0.08, 0.08),
    reaction_s=Trait(0.35, 0.2, 0.25),
    reach_time_s=Trait(0.9, 0.2, 0.15),
    hesitation_share=Trait(0.1, 1.0, 0.0),
    hesitation_s=Trait(0.5, 0.3, 0.5),
    grip_n=Trait(8.0, 0.3, 0.2),
    grip_change=Trait(1.0, 0.15, 0.1),
    hand_m=Trait(0.0, 0.02, 0.02, signed=True),
    hand_rad=Trait(0.0, 0.15, 0.1, signed=True),
)  # all of them rules of thumb: see docs/realism/human.md; measure your own people


@dataclass(frozen=True)
class Partners:
    """What a partner does in each trial: quantities as in `Population`, (num_worlds,) each."""

    person: NDArray[np.int64]
    reach_m: Array
    reaction_s: Array
    reach_time_s: Array
    pause_s: Array  # hesitation; 0 where there is none [s]
    pause_at: Array  # share of the reach after which the pause comes [1]
    grip_n: Array
    pulled_grip_n: Array  # grip once the robot pulls [N]
    hand_m: Array  # (num_worlds, 3) [m]
    hand_rad: Array  # (num_worlds, 3) rotation vector [rad]


def steady(population: Population) -> Population:
    """Returns the ideal population: everyone is the median person, without hesitation, in every trial."""
    still = {item.name: replace(getattr(population, item.name), person=0.0, trial=0.0) for item in fields(population)}
    return replace(population, **still | {"hesitation_share": Trait(0.0, 0.0, 0.0)})


def partners(population: Population, seed: int, person: NDArray[np.int64], trial: NDArray[np.int64]) -> Partners:
    """Returns what people of a population do: in each world one person, by number, in one of their trials.

    `person` and `trial` are (num_worlds,); another seed, other people.
    """
    if person.shape != trial.shape or person.ndim != 1:
        raise InputError(f"give a person and a trial for each world, found shapes {person.shape} and {trial.shape}")
    people = Draws(seed, person.astype(np.uint64))
    trials = Draws(people.named("trials").seed, person.astype(np.uint64))
    counter = trial.astype(np.int64)[:, None]

    def draw_trait(name: str, width: int = 1) -> Array:
        trait: Trait = getattr(population, name)
        column = counter * 8 + np.arange(width)
        change = trait.person * people.normal(name, width) + trait.trial * trials.normal(name, column)
        return trait.median + change if trait.signed else trait.median * np.exp(change)

    odds = draw_trait("hesitation_share")[:, 0]
    share = odds / (1 - population.hesitation_share.median + odds)
    pauses = trials.uniform("pauses", counter)[:, 0] < share
    plain = {name: draw_trait(name)[:, 0] for name in ("reach_m", "reaction_s", "reach_time_s", "grip_n")}
    return Partners(
        **plain,
        person=person.astype(np.int64),
        pause_s=np.where(pauses, draw_trait("hesitation_s")[:, 0], 0.0),
        pause_at=trials.uniform("pause at", counter)[:, 0],
        pulled_grip_n=plain["grip_n"] * draw_trait("grip_change")[:, 0],
        hand_m=draw_trait("hand_m", 3),
        hand_rad=draw_trait("hand_rad", 3),
    )


def reach_share(people: Partners, time_s: float | Array) -> Array:
    """Returns how far along the reach each hand is at a time after the cue, (num_worlds,) from 0 to 1.

    Minimum jerk (Flash, Hogan 1985): s = 10 x^3 - 15 x^4 + 6 x^5 of the share x of the reach time that has passed;
    a pause holds x at `pause_at` for `pause_s`.
    """
    since_s = time_s - people.reaction_s
    until_pause_s = people.pause_at * people.reach_time_s
    moving_s = np.where(since_s > until_pause_s, np.maximum(since_s - people.pause_s, until_pause_s), since_s)
    x = np.clip(moving_s / people.reach_time_s, 0.0, 1.0)
    return x**3 * (10 - 15 * x + 6 * x**2)
