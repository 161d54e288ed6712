from pathlib import Path

import numpy as np
import pytest

from gapless.check.verb import MAX_STEP_EFFECT, check
from gapless.verbs import copy_example, example_names
from unit.identify.realities import PENDULUM, write_csv, write_reality


@pytest.mark.parametrize("name", example_names())
def test_the_bundled_examples_are_sound(name: str, tmp_path: Path) -> None:
    result = check(copy_example(name, tmp_path))
    assert result.sound
    assert [note for note in result.notes if note.level == "fault"] == []
    assert all(share < MAX_STEP_EFFECT for share in result.numerics.values())
    assert len(result.inputs) == (12 if name == "handover" else 6)


def empty(log: Path) -> None:
    log.write_text("")


def one_row(log: Path) -> None:
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:2]))


def backwards(log: Path) -> None:
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([lines[0], *reversed(lines[1:])]))


def words(log: Path) -> None:
    log.write_text(log.read_text().replace("\n0.02,", "\n0.02,high", 1))


def no_column(log: Path) -> None:
    log.write_text(log.read_text().replace("q", "angle", 1))


def no_time(log: Path) -> None:
    log.write_text(log.read_text().replace("time_s", "t", 1))


def bad_sidecar(log: Path) -> None:
    log.with_suffix(".json").write_text('{"outcome": "maybe"}')


PLANTED = [
    (empty, "empty"),
    (one_row, "only one time stamp"),
    (backwards, "goes backwards"),
    (words, "is not a number"),
    (no_column, "no column q"),
    (no_time, "no column time_s"),
    (bad_sidecar, "write success or failure"),
]


@pytest.mark.parametrize(("plant", "text"), PLANTED, ids=[plant.__name__ for plant, _ in PLANTED])
def test_a_planted_problem_is_a_fault(plant, text: str, tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, num_logs=2)
    plant(folder / "logs" / "run1.csv")
    result = check(folder)
    assert not result.sound
    faults = [note for note in result.notes if note.level == "fault"]
    assert len(faults) == 1
    assert faults[0].where.startswith("run1")
    assert text in faults[0].text
    assert "\n" not in faults[0].text


def test_dead_and_constant_signals_are_warnings(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, num_logs=1)
    time_s, one = np.arange(200) / 50.0, np.ones(200)
    write_csv(folder / "logs" / "run0.csv", {"time_s": time_s, "u": one, "q": one, "v": np.sin(time_s)})
    result = check(folder)
    assert result.sound
    texts = " ".join(note.text for note in result.notes if note.level == "warning")
    assert "the command is constant" in texts
    assert "did nothing move" in texts


def test_a_model_outside_its_own_bounds_is_a_warning(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, num_logs=1, parameters=("{target: actuator/motor/gain, low: 1.2, high: 2}",))
    notes = check(folder).notes
    assert any(note.where == "actuator/motor/gain" and "widen it" in note.text for note in notes)


def test_a_time_step_too_coarse_for_a_stiff_system_is_a_warning(tmp_path: Path) -> None:
    # A spring of 60 N·m/rad on 0.015 kg·m2 turns 63 rad/s: at 20 ms per step that is more than one radian of phase.
    stiff = PENDULUM.replace('damping="0.05"', 'damping="0.05" stiffness="60"').replace("implicitfast", "Euler")
    folder = write_reality(tmp_path, {}, xml=stiff, num_logs=2, size=2.0)
    assert check(folder).sound
    model = folder / "robot.xml"
    model.write_text(model.read_text().replace('timestep="0.005"', 'timestep="0.02"'))
    result = check(folder)
    warned = [note for note in result.notes if note.level == "warning" and "numerics" in note.text]
    assert {note.where for note in warned} >= {"v"}
    assert result.numerics["v"] > MAX_STEP_EFFECT


def test_runs_without_a_log_are_counted(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, num_logs=2)
    for k in range(3):
        (folder / "logs" / f"trial{k}.json").write_text('{"outcome": "failure"}')
    result = check(folder)
    assert result.sound
    assert "3 runs without a log: their outcomes count, they have no signals" in [note.text for note in result.notes]
    for log in (folder / "logs").glob("*.csv"):
        log.unlink()
        log.with_suffix(".json").unlink(missing_ok=True)
    alone = check(folder)
    assert alone.sound
    assert [note.level for note in alone.notes] == ["warning"]
    assert len(alone.inputs) == 3
