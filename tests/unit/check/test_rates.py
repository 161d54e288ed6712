"""Positions and velocities that contradict each other."""

from pathlib import Path

import numpy as np
import pytest

from gapless.check.agreement import find_rate_contradictions
from gapless.core.episode import Episode
from gapless.core.signal import TimeSeries
from gapless.project.load import load_project
from gapless.signals.track import make_track
from unit.sim.scenes import THINGS, THINGS_VALUES, arm, write_project

TIMES_S = np.arange(300) / 100.0
ANGLE = {"q1": "{joint: shoulder, quantity: position}", "v1": "{joint: shoulder, quantity: velocity}"}


def said(folder: Path, velocity: np.ndarray) -> list[str]:
    project = arm(folder, measurements=ANGLE).project
    noise = 1e-4 * np.random.default_rng(0).standard_normal(300)
    read = np.stack([np.sin(3 * TIMES_S) + noise, velocity], axis=1)
    sent = TimeSeries(TIMES_S, np.zeros((300, 2)), project.command_names, project.command_units)
    shown = TimeSeries(TIMES_S, read, project.measurement_names, project.measurement_units)
    return [
        m.text for m in find_rate_contradictions(project, [make_track(project, Episode("run", "real", sent, shown))])
    ]


RATE = 3 * np.cos(3 * TIMES_S)  # of sin(3 t)


@pytest.mark.parametrize(
    ("velocity", "word"),
    [
        (-RATE, "wrong sign"),
        (57.3 * RATE, "degrees"),
        (RATE / 57.3, "degrees"),
        (5 * RATE, "units"),
        (np.sin(11 * TIMES_S), "another's column"),
    ],
)
def test_a_velocity_that_is_not_the_slope_is_named(velocity: np.ndarray, word: str, tmp_path: Path) -> None:
    (text,) = said(tmp_path, velocity)
    assert word in text
    assert "v1" in text
    assert "q1" in text


@pytest.mark.parametrize("velocity", [RATE, 1.3 * RATE, 3 * np.cos(3 * (TIMES_S - 0.05)), RATE + 0.5])
def test_a_filtered_late_or_biased_velocity_is_none(velocity: np.ndarray, tmp_path: Path) -> None:
    assert said(tmp_path, velocity) == []


def test_turning_rates_are_compared_with_the_quaternion(tmp_path: Path) -> None:
    # A body that turns about its z axis at 2 + sin(5 t) rad/s: the angle is 2 t + (1 - cos(5 t)) / 5.
    quantities = ("qw", "qx", "qy", "qz", "wz")
    measurements = {q: f"{{body: box, quantity: {q}}}" for q in quantities}
    project = load_project(write_project(tmp_path, THINGS.format(**THINGS_VALUES), {}, measurements))
    half = (2 * TIMES_S + (1 - np.cos(5 * TIMES_S)) / 5) / 2
    rate = 2 + np.sin(5 * TIMES_S)
    for factor, count in ((1.0, 0), (-1.0, 1), (57.3, 1)):
        read = np.stack([np.cos(half), 0 * half, 0 * half, np.sin(half), factor * rate], axis=1)
        shown = TimeSeries(TIMES_S, read, project.measurement_names, project.measurement_units)
        sent = TimeSeries(TIMES_S, np.zeros((300, 0)), (), ())
        track = make_track(project, Episode("run", "real", sent, shown))
        assert len(find_rate_contradictions(project, [track])) == count
