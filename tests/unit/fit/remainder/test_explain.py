"""An effect that no fitted parameter has is found again: at its joint, as a function of what it is one of."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.results import RemainderForm
from gapless.fit.data import ProjectData, read_project_data
from gapless.fit.problem import FitProblem
from gapless.fit.remainder.explain import explain_remainder
from gapless.fit.remainder.gather import gather_remainder, shorten_windows
from gapless.fit.remainder.shapes import list_shapes
from gapless.fit.search.structure import build_problem
from gapless.fit.solve import descend
from gapless.sim.targets import resolve
from unit.identify.realities import WHATEVER, write_reality


def explain_twin(folder: Path, truth: dict[str, float], window_s: float = 0.3) -> tuple[RemainderForm, ...]:
    """Returns what remains of logs after damping, gain and delay are fitted to them."""
    data, problem = make_problem(folder, truth, window_s)
    first = problem.weighted_at(data.space.nominal)
    row = descend(first, data.space.nominal, ((0.1, 3), (0.03, 3)))
    return explain_remainder(problem, row)


def make_problem(folder: Path, truth: dict[str, float], window_s: float = 0.3) -> tuple[ProjectData, FitProblem]:
    write_reality(folder, truth, parameters=WHATEVER[:3], size=0.6, duration_s=5.0)
    data = read_project_data(folder)
    return data, build_problem(data, data.space, range(len(data.tracks)), window_s, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("truth", "variable", "target"),
    [
        ({"cogging/amplitude": 0.1, "cogging/poles": 9.0}, "position", "cogging/amplitude"),
        ({"load-dependent-friction/share": 0.3}, "load", "load-dependent-friction/share"),
        ({"lugre-friction/coulomb": 0.15, "lugre-friction/stiffness": 1.0}, "history", "lugre-friction/coulomb"),
    ],
)
def test_a_layer_is_found_again_and_its_target_offered(
    tmp_path: Path, truth: dict[str, float], variable: str, target: str
) -> None:
    forms = explain_twin(tmp_path, {f"joint/hinge/{knob}": value for knob, value in truth.items()})
    assert (forms[0].kind, forms[0].name, forms[0].variable) == ("joint", "hinge", variable)
    assert forms[0].target == f"joint/hinge/{target}"
    assert forms[0].share.low <= forms[0].share.value <= forms[0].share.high


def test_nothing_is_said_of_logs_that_the_fit_explains(tmp_path: Path) -> None:
    assert explain_twin(tmp_path, {"joint/hinge/damping": 0.12, "actuator/motor/gain": 0.8}) == ()


def test_long_windows_are_explained_like_short_ones(tmp_path: Path) -> None:
    forms = explain_twin(tmp_path, {"joint/hinge/cogging/amplitude": 0.1, "joint/hinge/cogging/poles": 9.0}, 1.0)
    assert forms[0].variable == "position"


def test_shortened_windows_hold_the_same_readings(tmp_path: Path) -> None:
    _, problem = make_problem(tmp_path, {}, window_s=0.9)
    short, whole = shorten_windows(problem), problem.windows
    assert short.num_steps == whole.num_steps // 3
    first = np.flatnonzero((short.track == whole.track[0]) & (short.first_row == whole.first_row[0] + short.num_steps))
    again = whole.measured[0, short.num_steps : 2 * short.num_steps + 1]
    np.testing.assert_array_equal(short.measured[first[0]], again)


def test_every_target_that_is_offered_exists(tmp_path: Path) -> None:
    data, problem = make_problem(tmp_path, {})
    remainder = gather_remainder(problem, data.space.nominal)
    targets = {shape.target for place in remainder.places for shape in list_shapes(remainder.motion, place)}
    for target in targets - {None}:
        assert resolve(str(target), data.project, data.blueprint.model).path == target
