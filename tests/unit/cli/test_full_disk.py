"""A full disk: noticed before the work, and no result is lost after it."""

import errno
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from gapless.cli.main import run
from gapless.data import catalogue
from gapless.verbs import copy_example
from unit.identify.realities import write_reality


def fill(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(catalogue, "write_files", write)


def test_a_fit_that_cannot_be_kept_is_printed_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_reality(tmp_path / "arm", {"joint/hinge/damping": 0.1})
    fill(monkeypatch)
    target = tmp_path / "fit.json"
    assert run(["identify", str(folder), "--json", str(target)]) == 0
    shown = capsys.readouterr()
    assert "joint/hinge/damping" in shown.out
    assert "verdict: " in shown.out
    (line,) = [line for line in shown.err.splitlines() if line.startswith("gapless: ")]
    assert "this result of identify is not in the catalogue" in line
    assert "No space left on device" in line
    found = json.loads(target.read_text())
    assert found["model"] is None
    assert len(found["parameters"]) == 4
    monkeypatch.undo()
    assert run(["identify", str(folder)]) == 0  # with room again, and the steps that were kept
    assert "corrected model: " in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["check", "measure"])
def test_other_results_are_printed_too(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy_example("balance", tmp_path / "balance")
    fill(monkeypatch)
    assert run([verb, str(folder), "--json", str(tmp_path / "result.json")]) == 0
    shown = capsys.readouterr()
    assert shown.out
    assert f"this result of {verb} is not in the catalogue" in shown.err
    assert json.loads((tmp_path / "result.json").read_text())["verb"] == verb


@pytest.mark.parametrize("full", ["project", "elsewhere"])
def test_a_disk_without_room_is_noticed_before_the_work(
    full: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = copy_example("balance", tmp_path / "project")
    (tmp_path / "elsewhere").mkdir()

    def usage(path: Path) -> SimpleNamespace:
        return SimpleNamespace(free=1_500_000 if full in Path(path).name else 10**12)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert run(["measure", str(folder), "--json", str(tmp_path / "elsewhere" / "result.json")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "only 1.5 MB free on this disk, results need 50 MB: free some space first" in said
    assert not (folder / ".gapless").exists()
