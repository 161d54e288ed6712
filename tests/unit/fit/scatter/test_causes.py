"""What acts by chance is found with its size; plain noise and ordinary wrong parameters are not taken for it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gapless.core.results import ScatterCause
from gapless.core.signal import Array
from gapless.fit.data import read_project_data
from gapless.fit.scatter.causes import weigh_scatter
from gapless.fit.search.structure import build_problem
from gapless.fit.solve import descend
from unit.identify.realities import WHATEVER, write_csv, write_reality

STEP = 0.02  # rad: rounding of 0.02 / sqrt(12) = 5.8 times the stated noise of 0.001


def weigh_twin(
    folder: Path, truth: dict[str, float], spoil: Callable[[Array], Array] | None = None
) -> dict[str, ScatterCause]:
    """Returns target -> cause of logs of a pendulum whose angle is spoiled on its way into the log."""
    write_reality(folder, truth, parameters=WHATEVER[:3], num_logs=4, duration_s=5.0)
    for path in sorted((folder / "logs").glob("*.csv")) if spoil else ():
        names = path.read_text().splitlines()[0].split(",")
        columns = dict(zip(names, np.loadtxt(path, delimiter=",", skiprows=1).T, strict=True))
        write_csv(path, columns | {"q": spoil(columns["q"])})
    data = read_project_data(folder)
    problem = build_problem(data, data.space, range(len(data.tracks)), 0.3, np.random.default_rng(0))
    row = descend(problem.weighted_at(data.space.nominal), data.space.nominal, ((0.1, 3), (0.03, 2)))
    return {cause.target: cause for cause in weigh_scatter(data, problem, row)}


def hold_some(values: Array) -> Array:
    """Returns readings of which one in twelve, and the two after it, repeat the last."""
    held = values.copy()
    for first in np.random.default_rng(1).choice(len(values) - 4, len(values) // 36, replace=False) + 1:
        held[first : first + 3] = held[first - 1]
    return held


def test_a_coarse_encoder_is_found_with_its_step(tmp_path: Path) -> None:
    causes = weigh_twin(tmp_path, {}, lambda q: STEP * np.round(q / STEP))
    found = causes["measurement/q/quantisation/step"]
    assert found.probability > 0.9
    assert found.value.value == pytest.approx(STEP)
    assert max(c.probability for target, c in causes.items() if target != found.target) < 0.1


def test_held_readings_are_found_with_their_share(tmp_path: Path) -> None:
    causes = weigh_twin(tmp_path, {}, hold_some)
    found = causes["measurement/q/occlusion/share"]
    assert found.probability > 0.9
    assert found.value.low < 1 / 12 < found.value.high + 0.02
    assert max(c.probability for target, c in causes.items() if target != found.target) < 0.1


def test_pushes_are_found_with_their_joint(tmp_path: Path) -> None:
    truth = {"joint/hinge/pushes/rate_hz": 1.0, "joint/hinge/pushes/strength": 0.5}
    causes = weigh_twin(tmp_path, truth)
    assert causes["joint/hinge/pushes/strength"].probability > 0.9
    assert causes["actuator/*/jitter/jitter_s"].probability < 0.1


@pytest.mark.parametrize(
    "truth",
    [
        {},
        {"joint/hinge/damping": 0.15, "actuator/motor/gain": 0.7},
        {"joint/hinge/load-dependent-friction/share": 0.3},
    ],
)
def test_nothing_by_chance_is_claimed_of_other_gaps(tmp_path: Path, truth: dict[str, float]) -> None:
    causes = weigh_twin(tmp_path, truth)
    assert max(cause.probability for cause in causes.values()) < 0.1


def test_an_encoder_whose_steps_are_the_stated_noise_is_no_cause(tmp_path: Path) -> None:
    # a step of 0.003 rad rounds by 0.003 / sqrt(12) = 0.0009: the noise of 0.001 that the project states
    causes = weigh_twin(tmp_path, {}, lambda q: 0.003 * np.round(q / 0.003))
    assert causes["measurement/q/quantisation/step"].probability < 0.1
