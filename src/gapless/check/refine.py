"""A brief search for the values of what is in doubt that suit some windows best."""

import numpy as np

from gapless.check.doubts import Doubts
from gapless.check.skill import MOST, Skill, measure_skill
from gapless.core.signal import Array
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows

ROUNDS = 3
ROWS = 24
ELITE = 5  # rows of a round that the next one is drawn around


def refined(predictor: Predictor, doubts: Doubts, windows: Windows, known: tuple[Array, Skill]) -> tuple[Array, Skill]:
    """Returns rows that suit the windows better than the known ones, along with those, and their skill.

    The cross-entropy method (Rubinstein, 1999), with one twist: each parameter of a joint follows the rows that suit
    that joint's own columns. So all joints are searched at once, each in the few parameters that matter to it.
    """
    rng = np.random.default_rng(0)
    rows, skill = known
    unit = rng.uniform(size=(2 * ROWS, len(doubts.space)))
    for _ in range(ROUNDS if len(doubts.space) else 0):
        trial = doubts.values(unit)
        result = measure_skill(predictor, trial, [windows])[0]
        rows, skill = np.concatenate([rows, trial]), skill.joined(result)
        unit = _next(doubts, unit, result, rng)
    return rows, skill


def _next(doubts: Doubts, unit: Array, skill: Skill, rng: np.random.Generator) -> Array:
    cost = np.log(np.nan_to_num(skill.shares, nan=MOST))
    drawn = np.empty((ROWS, unit.shape[1]))
    for k, columns in enumerate(doubts.shows_in):
        order = np.argsort(cost[:, list(columns)].mean(axis=1) if columns else cost.mean(axis=1))
        best = unit[order[:ELITE], k]
        drawn[:, k] = np.clip(rng.normal(best.mean(), best.std() + 0.01, ROWS), 0.0, 1.0)
    return drawn
