"""Runs of which only the outcome is known: NAME.json without a log beside it."""

import json
from pathlib import Path

import pytest

from gapless.core.errors import LogError
from gapless.project.load import load_project
from gapless.project.log.inspect import read_and_inspect
from gapless.project.log.read import read_unlogged

from .conftest import table, write_csv


def say(arm: Path, name: str, **about: object) -> Path:
    path = arm / "logs" / f"{name}.json"
    path.write_text(json.dumps(about))
    return path


def test_a_sidecar_without_a_log_is_a_run_without_signals(arm: Path) -> None:
    say(arm, "run0", outcome="success")  # of run0.csv: no run of its own
    say(arm, "b", outcome="failure", failed_in="grasp", conditions={"light": "dim"}, recorded_at="2026-03-01T14:05")
    say(arm, "a", outcome="success", source="twin")
    say(arm, ".hidden", outcome="success")
    a, b = (run.episode for run in read_unlogged(load_project(arm)))
    assert (a.name, a.outcome, a.source) == ("a", "success", "twin")
    assert (b.name, b.outcome, b.failed_in, b.conditions) == ("b", "failure", "grasp", {"light": "dim"})
    assert b.duration_s == 0.0
    assert b.measurements.names == ("q1", "q2_deg")
    assert len(b.measurements.times_s) == len(b.commands.times_s) == 0


def test_whatever_the_ending_of_the_log_its_sidecar_is_no_run(arm: Path) -> None:
    write_csv(arm / "logs" / "a.CSV", table())
    (arm / "logs" / "b.npz").write_bytes(b"")
    say(arm, "a", outcome="success")
    say(arm, "b", outcome="success")
    assert read_unlogged(load_project(arm)) == ()


def test_what_is_not_about_a_run_is_left_alone(arm: Path) -> None:
    say(arm, "fit", format=1, verb="diagnose", conditions=[])
    say(arm, "calibration", camera="left", fx=612.0)
    assert read_unlogged(load_project(arm)) == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"outcome": "fail', "not JSON"),
        ("[]", "not a JSON object"),
        ('{"outcome": "maybe"}', 'outcome is "maybe": write success or failure'),
        ('{"conditions": {"light": "dim"}}', "no log beside it and no outcome"),
        ('{"outcome": null}', "no log beside it and no outcome"),
    ],
)
def test_what_says_nothing_gets_one_line(arm: Path, content: str, words: str) -> None:
    path = arm / "logs" / "odd.json"
    path.write_text(content)
    with pytest.raises(LogError) as caught:
        read_unlogged(load_project(arm))
    text = str(caught.value)
    assert words in text
    assert text.endswith(f"({path})")
    assert len(text.splitlines()) == 1
    assert [note.level for note in read_and_inspect(load_project(arm))[1]] == ["fault"]


def test_check_counts_them(arm: Path) -> None:
    for name in "abc":
        say(arm, name, outcome="failure", mood="bad")
    found = {note.text for note in read_and_inspect(load_project(arm))[1] if note.level == "info"}
    assert "3 runs without a log: their outcomes count, they have no signals" in found
    assert any(text.startswith("mood not used") and text.endswith("(and 2 more logs)") for text in found)


def test_a_folder_with_outcomes_alone_is_not_empty(arm: Path) -> None:
    (arm / "logs" / "run0.csv").unlink()
    say(arm, "a", outcome="failure")
    (note,) = read_and_inspect(load_project(arm))[1]
    assert note.level == "warning"
    assert note.text == "1 run without a log, and no logs: outcomes alone count, there are no signals to compare"
