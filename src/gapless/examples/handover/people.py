"""What people do, in the numbers of the model. As a program it writes the ranges that they span, for `train --ranges`.

    python people.py people.json
    python people.py median.json steady

The second has no spread: the median person, every time.
"""

import json
import sys
from pathlib import Path

import numpy as np

from gapless.core.distribution import Range
from gapless.core.results import RandomizeResult, to_json
from gapless.sim.realism.human import ADULTS, Partners, Population, partners, steady

STIFFNESS_N_PER_M = 200.0  # kp of the actuator `partner`: what holds the hand at its place
LAG, DELAY = 0.19, 0.14  # of the reach time: with these the model's hand is nearest to a minimum-jerk reach


def values_of(people: Partners) -> dict[str, np.ndarray]:
    """Returns target -> (num_worlds,) value of each trial: the model's names of what a person does."""
    further_m = people.reach_m - ADULTS.reach_m.median + people.hand_m[:, 0]
    return {
        "actuator/partner/delay": people.reaction_s + DELAY * people.reach_time_s,
        "actuator/partner/lag": LAG * people.reach_time_s,
        "joint/hand_x/load": STIFFNESS_N_PER_M * further_m,
        "joint/parcel/frictionloss": people.pulled_grip_n,
    }


def ranges_of(population: Population, num_people: int = 4000) -> tuple[Range, ...]:
    """Returns the range of each target over one trial of each of many people."""
    everyone = np.arange(num_people)
    found: list[Range] = []
    for target, values in values_of(partners(population, 0, everyone, 0 * everyone)).items():
        low, high = np.quantile(values, [0.025, 0.975])
        mean, std = float(np.clip(np.mean(values), low, high)), float(np.std(values))
        found.append(Range(target, "normal", float(low), float(high), mean, std, "95 % of people and their trials"))
    return tuple(found)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["steady"]):
        sys.exit("name the file to write: python people.py people.json, or python people.py median.json steady")
    place, whom = Path(sys.argv[1]), steady(ADULTS) if sys.argv[2:] else ADULTS
    found = RandomizeResult((), ranges_of(whom), str(place), 0)
    place.write_text(json.dumps(to_json(found), indent=2) + "\n", encoding="utf-8")
