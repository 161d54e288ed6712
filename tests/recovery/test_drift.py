"""Changes between two fits are found, and their intervals hold as often as they say."""

import json
from pathlib import Path

import numpy as np
import pytest

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import FittedParameter, IdentifyResult
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.solution import Solution
from gapless.fit.summary import describe_parameters
from gapless.identify.drift import find_comparable, find_drifts, limits_at_level, subtract_limits
from gapless.identify.verb import identify
from unit.identify.realities import write_reality

NUM_DRAWS = 1000  # standard error of a 95 % coverage: sqrt(0.95 * 0.05 / 1000) = 0.7 %
SPACE = ParameterSpace(
    (
        Parameter("joint/j/damping", "actuator", "N·m·s/rad", 0.5, 0.05, 5.0),  # stepped in by factors
        Parameter("joint/j/frictionloss", "actuator", "N·m", 0.1, 0.0, 2.0),  # amounts near 0, factors far from it
        Parameter("actuator/m/kp", "actuator", "N·m/rad", 10.0, 5.0, 20.0),  # amounts
    )
)
BEFORE = np.array([0.4, 0.3, 8.0])
AFTER = np.array([0.56, 0.42, 8.0])  # + 40 %, + 40 %, as before


def estimate(truth: Array, sd: float, rng: np.random.Generator) -> tuple[FittedParameter, ...]:
    """Returns a fit with normal errors of a known size in the solver's coordinates."""
    unit = Scaling.of(SPACE).unit(truth) + sd * rng.standard_normal(len(SPACE))
    row = Scaling.of(SPACE).values(unit)
    covariance = sd**2 * np.eye(len(SPACE))
    return describe_parameters(SPACE, Solution(row, unit, covariance, np.linalg.inv(covariance), 0.0))


@pytest.mark.parametrize("sd", [0.005, 0.03])
def test_intervals_of_relative_changes_cover_93_to_97_percent(sd: float) -> None:
    rng = np.random.default_rng(1)
    held = np.zeros(len(SPACE))
    for _ in range(NUM_DRAWS):
        before, after = estimate(BEFORE, sd, rng), estimate(AFTER, sd, rng)
        for k, (old, new) in enumerate(zip(before, after, strict=True)):
            logs = np.log(limits_at_level(new, 0.95)), np.log(limits_at_level(old, 0.95))
            _, low, high = np.exp(subtract_limits(*logs))
            held[k] += low <= AFTER[k] / BEFORE[k] <= high
    assert np.all((held / NUM_DRAWS >= 0.93) & (held / NUM_DRAWS <= 0.97)), held / NUM_DRAWS


def test_where_nothing_changed_five_percent_of_comparisons_say_otherwise() -> None:
    rng = np.random.default_rng(2)
    alarms = sum(
        bool(find_drifts(find_comparable(estimate(BEFORE, 0.02, rng), estimate(BEFORE, 0.02, rng))))
        for _ in range(NUM_DRAWS)
    )
    assert 0.03 <= alarms / NUM_DRAWS <= 0.07  # of all three parameters together


def test_intervals_hold_together_although_only_those_without_zero_are_shown() -> None:
    rng = np.random.default_rng(3)
    right = 0
    for _ in range(NUM_DRAWS):
        shown = find_drifts(find_comparable(estimate(BEFORE, 0.03, rng), estimate(AFTER, 0.03, rng)))
        true = dict(zip(SPACE.targets, AFTER / BEFORE - 1, strict=True))
        right += all(d.relative and d.low <= true[d.target] <= d.high for d in shown)
    assert right / NUM_DRAWS >= 0.94


ENTRIES = (
    "{target: joint/hinge/damping, low: 0, high: 0.3}",
    "{target: joint/hinge/frictionloss, low: 0, high: 0.3}",
    "{target: actuator/motor/gain, low: 0.3, high: 2}",
    "{target: measurement/q/bias, low: -0.2, high: 0.2}",
)
DAYS = {"march": ("2026-03-01", 0.05), "april": ("2026-04-07", 0.05), "june": ("2026-06-02", 0.07)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns one project with logs of three days; friction is 40 % higher on the last."""
    place = tmp_path_factory.mktemp("days") / "robot"
    for number, (day, (date, friction)) in enumerate(DAYS.items()):
        truth = {"joint/hinge/frictionloss": friction, "joint/hinge/damping": 0.04}
        write_reality(place, truth, parameters=ENTRIES, seed=number)
        for path in sorted((place / "logs").glob("run*.csv")):
            moved = path.rename(path.with_stem(f"{day}-{path.stem}"))
            moved.with_suffix(".json").write_text(json.dumps({"recorded_at": f"{date}T10:00:00+00:00"}))
    return place


@pytest.fixture(scope="module")
def fits(folder: Path) -> dict[str, IdentifyResult]:
    return {day: identify(folder, logs=[f"{day}-*"]) for day in DAYS}


@pytest.mark.slow
def test_worn_friction_is_found_with_its_size_and_date(fits: dict[str, IdentifyResult]) -> None:
    june = fits["june"]
    assert june.since is not None
    assert len(june.since.compared) == 4
    (found,) = june.drift  # and nothing else
    assert (found.target, found.since) == ("joint/hinge/frictionloss", "2026-03-01T10:00:00+00:00")
    assert found.low <= 0.4 <= found.high
    assert found.high - found.low < 0.1


@pytest.mark.slow
def test_where_nothing_changed_nothing_is_reported(fits: dict[str, IdentifyResult]) -> None:
    assert fits["march"].since is None  # there was nothing to compare with
    assert fits["april"].since is not None
    assert fits["april"].drift == ()
