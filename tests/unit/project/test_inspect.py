"""Static findings in logs: each is found where it is, and not where it is not."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.results import Note
from gapless.project.load import load_project
from gapless.project.log.inspect import read_and_inspect

from .conftest import table, write_csv


def notes(arm: Path, **columns: object) -> tuple[Note, ...]:
    write_csv(arm / "logs" / "run0.csv", {**table(), **columns})  # type: ignore[dict-item]
    return read_and_inspect(load_project(arm))[1]


TIMES_S = np.arange(200) / 100
RAMP = np.linspace(0, 1, 200)


def test_sound_log_has_no_notes(arm: Path) -> None:
    assert notes(arm) == ()


@pytest.mark.parametrize(
    ("column", "values", "level", "words"),
    [
        ("time_s", TIMES_S + 0.5 * (TIMES_S > 1), "warning", ["1 gap(s)", "0.51 s at 1 s"]),
        ("time_s", TIMES_S * 1.2, "warning", ["83.33 Hz", "rate_hz is 100"]),
        ("time_s", TIMES_S / 2, "warning", ["200 Hz", "rate_hz is 100", "averaged", "write rate_hz: 200"]),
        # Intervals alternate between 11 and 9 ms, 11 more often: deviation 1 ms of 11 ms.
        ("time_s", TIMES_S + 0.001 * (np.arange(200) % 2), "info", ["intervals scatter by 9 %"]),
        ("u1", np.ones(200), "warning", ["constant at 1", "nothing can be identified"]),
        ("u1", np.sign(RAMP - 0.5), "info", ["two values only, -1 and 1"]),
        ("q1", np.zeros(200), "warning", ["constant at 0 rad"]),
        ("q1", np.minimum(RAMP, 0.8), "warning", ["20 % of the samples", "largest value, 0.8"]),
        ("q1", 170 * RAMP, "warning", ["far outside joint shoulder's range", "scale: 0.01745"]),
        ("q2_deg", 100 * RAMP, "warning", ["more than three turns", "is scale: 0.5 right?"]),
        ("q1", [""] * 200, "warning", ["no value at all"]),
    ],
)
def test_finding(arm: Path, column: str, values: object, level: str, words: list[str]) -> None:
    found = [note for note in notes(arm, **{column: values}) if all(word in note.text for word in words)]
    assert [(note.level, note.where) for note in found] == [(level, f"run0.csv: {column}")]


def test_time_in_milliseconds_is_a_fault(arm: Path) -> None:
    (found,) = notes(arm, time_s=TIMES_S * 1000)
    assert found.level == "fault"
    assert "time_s looks like milliseconds, it must be seconds" in found.text


def test_a_copy_of_a_log_is_a_fault_and_names_both(arm: Path) -> None:
    write_csv(arm / "logs" / "run1.csv", {**table(), "time_s": list(TIMES_S + 1.7e9)})
    (found,) = read_and_inspect(load_project(arm))[1]
    assert (found.level, found.text) == ("fault", "run0.csv and run1.csv hold the same recording: delete one")


def test_lost_samples_are_not_jitter_and_the_gap_is_not_a_rate(arm: Path) -> None:
    found = notes(arm, time_s=TIMES_S + 0.02 * (TIMES_S > 0.5) + 0.03 * (TIMES_S > 1))
    assert len(found) == 1
    assert "gap(s)" in found[0].text


def test_same_finding_in_many_logs_is_one_note(arm: Path) -> None:
    for k in range(1, 4):
        write_csv(arm / "logs" / f"run{k}.csv", {**table(), "u1": [float(k)] * 200})
    write_csv(arm / "logs" / "bad.csv", {"time_s": [0, 1]})
    found = read_and_inspect(load_project(arm))[1]
    assert [note.level for note in found] == ["fault", "warning"]
    assert found[0].where == "bad.csv"
    assert found[1].where == "run1.csv: u1"
    assert found[1].text.endswith("(and 2 more logs)")
