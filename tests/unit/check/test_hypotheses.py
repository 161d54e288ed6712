"""Changes to data that predictions can test."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.check.hypotheses import (
    ColumnChange,
    MappingHypothesis,
    list_clock_hypotheses,
    list_column_hypotheses,
    shift_commands,
)
from gapless.fit.data import read_project_data
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.project.records import Project
from unit.identify.realities import write_reality


@pytest.fixture
def made(tmp_path: Path) -> tuple[Project, Windows]:
    evidence = read_project_data(write_reality(tmp_path, {}, num_logs=1))
    return evidence.project, cut_windows(evidence.project, evidence.tracks, 0.3)


def test_a_sign_turned_twice_is_the_same(made: tuple[Project, Windows]) -> None:
    project, windows = made
    turns = (ColumnChange("measurement", 0, 0, -1.0), ColumnChange("command", 0, 0, -1.0))
    hypothesis = MappingHypothesis("q", "", turns)
    once = hypothesis.apply(project, windows)
    twice = hypothesis.apply(project, once)
    np.testing.assert_array_equal(once.measured[..., 0], -windows.measured[..., 0])
    np.testing.assert_array_equal(once.commands, -windows.commands)
    np.testing.assert_array_equal(twice.measured, windows.measured)
    np.testing.assert_array_equal(once.noise, windows.noise)


def test_a_swap_is_of_columns_before_scale_and_offset(made: tuple[Project, Windows]) -> None:
    # q = 2 a + 1 and v = 3 b - 1 from columns a and b. Swapped: q = 2 b + 1 with b = (v + 1) / 3, v = 3 a - 1.
    project, windows = made
    q, v = project.measurements
    project = replace(project, measurements=(replace(q, scale=2.0, offset=1.0), replace(v, scale=3.0, offset=-1.0)))
    swap = (ColumnChange("measurement", 0, 1, 1.0), ColumnChange("measurement", 1, 0, 1.0))
    swapped = MappingHypothesis("", "", swap).apply(project, windows)
    np.testing.assert_allclose(swapped.measured[..., 0], 2 * (windows.measured[..., 1] + 1) / 3 + 1)
    np.testing.assert_allclose(swapped.measured[..., 1], 3 * (windows.measured[..., 0] - 1) / 2 - 1)
    np.testing.assert_allclose(swapped.slope[:, 0], 2 * windows.slope[:, 1] / 3)
    np.testing.assert_allclose(swapped.noise, [2 * windows.noise[1] / 3, 3 * windows.noise[0] / 2])


def test_a_unit_is_tested_only_where_it_could_be_mistaken(tmp_path: Path) -> None:
    evidence = read_project_data(write_reality(tmp_path, {}, num_logs=1))
    texts = {one.text for one in list_column_hypotheses(evidence.blueprint, [0, 1], set())}
    assert "q is in degrees, not radians" in texts
    assert "u has the wrong sign" in texts
    assert not any("already" in text for text in texts)  # nothing is converted
    assert not any("u is in" in text for text in texts)  # a motor's command has no unit to mistake
    shifts = {one.shift_rows for one in list_clock_hypotheses(evidence.blueprint)}
    assert shifts == {-1, -2, -4, -6, -10, 10, 15, 25, 50}


def test_shifted_commands_hold_what_is_not_known(tmp_path: Path) -> None:
    track = read_project_data(write_reality(tmp_path, {}, num_logs=1)).tracks[0]
    later, earlier = (shift_commands([track], rows)[0].commands for rows in (3, -3))
    np.testing.assert_array_equal(later[3:], track.commands[:-3])
    np.testing.assert_array_equal(later[:3], np.broadcast_to(track.commands[0], (3, 1)))
    np.testing.assert_array_equal(earlier[:-3], track.commands[3:])
