"""What the model may have wrong before the data are blamed: gains, delays, damping and friction.

A column counts as faulty only if no values of these parameters make the model predict it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapless.check.columns import joint_columns, list_drives
from gapless.check.skill import MAX_SHARE, PredictionSkill, measure_skill
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows
from gapless.signals.track import Track
from gapless.sim.auto import moving_joints, parameters_of
from gapless.sim.blueprint import CompiledProject

GAINS = (0.3, 1.0, 3.0)  # factors on the strength of all actuators
DELAYS_S = (0.0, 0.04, 0.08, 0.12)
GAIN_OFF = 1e-3  # gain of a drive that does as good as nothing
HEAVY_DAMPING_SHARE = 0.3  # of the largest damping that efforts and speeds allow
SCALE_POWER = {"gain": 0.0, "delay": 1.0}  # value = low + range * unit^power; 0: low * (high / low)^unit
DRAG_SCALE_POWER = 3.0  # drag may be next to nothing or much
NUM_ROUNDS, NUM_ROWS, NUM_ELITE = 3, 24, 5  # of the search; the next round is drawn around the elite


@dataclass(frozen=True)
class ModelTolerance:
    """The parameters that the model may have wrong."""

    space: ParameterSpace  # shared delay and strength of each actuator, damping and friction of each joint
    shows_in: tuple[tuple[int, ...], ...]  # per parameter, the measured columns of its joint; empty for all

    def grid(self, gains: Sequence[float] = GAINS, delays_s: Sequence[float] = DELAYS_S) -> Array:
        """Returns rows for all gains and delays, with damping as written and heavy; the last has the drives off."""
        heavy = self.space.nominal
        damping = self._columns("/damping")
        heavy[damping] = np.maximum(HEAVY_DAMPING_SHARE * self.space.high, heavy)[damping]
        pairs = [(gain, delay_s) for gain in gains for delay_s in delays_s]
        rows = [self.set_drives(row, *pair) for row in (self.space.nominal, heavy) for pair in pairs]
        return np.stack([*rows, self.set_drives(self.space.nominal, GAIN_OFF, 0.0)])

    def set_drives(self, row: Array, gain: float, delay_s: float) -> Array:
        """Returns a row with another gain of all actuators and another delay."""
        row = row.copy()
        row[self._columns("/gain")], row[self._columns("/delay")] = gain, delay_s
        return row

    def delays_s(self, rows: Array) -> Array:
        """Returns the delay of each row, (num_rows,) [s]; 0 where nothing is commanded."""
        return rows[:, self._columns("/delay")].sum(axis=-1)

    def rows_from_unit(self, unit: Array) -> Array:
        """Returns rows for numbers in [0, 1], (num_rows, num_parameters)."""
        low, high, rows = self.space.low, self.space.high, np.empty_like(unit)
        for k, parameter in enumerate(self.space.parameters):
            power = SCALE_POWER.get(parameter.target.rpartition("/")[2], DRAG_SCALE_POWER)
            linear = low[k] + (high[k] - low[k]) * unit[:, k] ** max(power, 1.0)
            rows[:, k] = linear if power else low[k] * (high[k] / low[k]) ** unit[:, k]
        return rows

    def _columns(self, ending: str) -> list[int]:
        return [k for k, parameter in enumerate(self.space.parameters) if parameter.target.endswith(ending)]


def make_tolerance(blueprint: CompiledProject, tracks: Sequence[Track]) -> ModelTolerance:
    """Returns what the model of a project may have wrong."""
    project = blueprint.project
    joints = {f"actuator/{project.commands[d.command].actuator}/gain": d.joint for d in list_drives(blueprint)}
    for name in moving_joints(project, blueprint.model):
        joints |= {f"joint/{name}/damping": name, f"joint/{name}/frictionloss": name}
    joints |= {"actuator/*/delay": ""} if project.commands else {}
    space = ParameterSpace(parameters_of(blueprint, tracks, list(joints)))
    return ModelTolerance(space, tuple(joint_columns(project, name) for name in joints.values()))


def search_best_skill(
    predictor: Predictor, tolerance: ModelTolerance, windows: Windows, rows: Array
) -> PredictionSkill:
    """Returns the skill under some rows and under others, drawn to suit the windows better.

    The cross-entropy method (Rubinstein, 1999), with one twist: each parameter of a joint follows the rows that suit
    that joint's own columns. So all joints are searched at once, each in the few parameters that matter to it.
    """
    rng = np.random.default_rng(0)
    skill = measure_skill(predictor, rows, [windows])[0]
    unit = rng.uniform(size=(2 * NUM_ROWS, len(tolerance.space)))
    for _ in range(NUM_ROUNDS if len(tolerance.space) else 0):
        drawn = measure_skill(predictor, tolerance.rows_from_unit(unit), [windows])[0]
        skill = skill.append_rows(drawn)
        unit = _draw_around_best(tolerance, unit, drawn, rng)
    return skill


def _draw_around_best(
    tolerance: ModelTolerance, unit: Array, skill: PredictionSkill, rng: np.random.Generator
) -> Array:
    cost = np.log(np.nan_to_num(skill.shares, nan=MAX_SHARE))
    drawn = np.empty((NUM_ROWS, unit.shape[1]))
    for k, columns in enumerate(tolerance.shows_in):
        order = np.argsort(cost[:, list(columns)].mean(axis=1) if columns else cost.mean(axis=1))
        best = unit[order[:NUM_ELITE], k]
        drawn[:, k] = np.clip(rng.normal(best.mean(), best.std() + 0.01, NUM_ROWS), 0.0, 1.0)
    return drawn
