"""A fit that was stopped goes on, and ends where it would have ended."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import Interrupted
from gapless.core.results import to_json
from gapless.data.catalogue import FOLDER
from gapless.fit.prediction.predict import Predictor
from gapless.fit.search.checkpoint import Checkpoint
from gapless.fit.search.terms import Structure
from gapless.identify.verb import identify
from unit.identify.realities import write_reality


def stop_at(share: float) -> Callable[[str, float], None]:
    def report(label: str, done: float) -> None:
        if label.startswith("fit") and done >= share:
            raise KeyboardInterrupt

    return report


def notes(folder: Path) -> list[Path]:
    return list((folder / FOLDER / "temporary").glob("identify-*.json"))


@pytest.fixture
def num_simulated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts the windows that are simulated."""
    counts, plain = [0], Predictor._each

    def counted(self: Predictor, windows, rows, which, forces=None):
        counts[0] += len(which)
        return plain(self, windows, rows, which, forces)

    monkeypatch.setattr(Predictor, "_each", counted)
    return counts


def test_a_fit_that_was_stopped_goes_on_with_less_work_and_the_same_result(
    tmp_path: Path, num_simulated: list[int]
) -> None:
    truth = {"joint/hinge/damping": 0.1}
    stopped, whole = (write_reality(tmp_path / name, truth, parameters=None) for name in ("stopped", "whole"))
    with pytest.raises(Interrupted, match="the same command goes on from there"):
        identify(stopped, progress=stop_at(0.6))
    assert len(notes(stopped)) == 1
    num_simulated[0], labels = 0, set[str]()
    resumed = identify(stopped, progress=lambda label, _: labels.add(label))
    with_notes, num_simulated[0] = num_simulated[0], 0
    plain = identify(whole)
    assert "fit, from where it was stopped" in labels  # it says so
    assert with_notes < 0.6 * num_simulated[0]
    assert notes(stopped) == []
    apart = ("inputs", "model", "posterior")  # paths, and ids that the name of the folder is no part of
    first, second = (
        {key: value for key, value in to_json(one).items() if key not in apart} for one in (resumed, plain)
    )
    assert first == second
    assert resumed.inputs == plain.inputs
    assert Path(resumed.model or "").parent.name == Path(plain.model or "").parent.name  # the same id


def test_other_options_or_logs_begin_anew(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {})
    with pytest.raises(Interrupted):
        identify(folder, progress=stop_at(0.3))
    labels: set[str] = set()
    for options in ({"seed": 1}, {"window_s": 0.4}, {"hold_out": ["run0"]}, {"logs": ["run[012]"]}):
        with pytest.raises(KeyboardInterrupt):
            identify(folder, progress=lambda label, done: labels.add(label) or stop_at(0.02)(label, done), **options)
    assert "fit" in labels
    assert not any("stopped" in label for label in labels)


def test_a_fit_stopped_before_its_first_step_keeps_nothing(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {})

    def at_once(label: str, share: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        identify(folder, progress=at_once)
    assert not isinstance(stop.value, Interrupted)
    assert notes(folder) == []


def test_notes_give_back_exactly_what_was_found(tmp_path: Path) -> None:
    path, rng = tmp_path / "notes.json", np.random.default_rng(3)
    row = np.array([0.1, 1 / 3, np.inf])
    journal = Checkpoint(path)
    drawn = journal.step(lambda: rng.random(3), rng)
    chosen = journal.step(lambda: Structure((np.int64(1), 2), row, ()))
    assert journal.step(lambda: 0.1) == 0.1
    again, other = Checkpoint(path), np.random.default_rng(4)
    assert again.goes_on
    np.testing.assert_array_equal(again.step(lambda: np.zeros(3), other), drawn)
    assert other.random() == rng.random()  # random numbers go on where they were
    found = again.step(lambda: Structure((), np.zeros(3), ()))
    assert found.free == chosen.free
    np.testing.assert_array_equal(found.row, row)
    assert again.step(lambda: 7.0) == 0.1
    assert again.step(lambda: 7.0) == 7.0  # new


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"free": [1]}]', '[{"array": "x"}, {}]'])
def test_notes_that_are_damaged_are_no_notes(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.json"
    path.write_text(text)
    journal = Checkpoint(path)
    assert not journal.goes_on
    assert journal.step(lambda: 2.0) == 2.0


def test_where_nothing_can_be_noted_the_fit_goes_on(tmp_path: Path) -> None:
    journal = Checkpoint(tmp_path / "nowhere" / "notes.json")
    assert journal.step(lambda: 2.0) == 2.0
    journal.close()
