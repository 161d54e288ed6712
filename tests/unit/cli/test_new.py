"""`gapless new` on the command line: logs in between, the folder to make last."""

from pathlib import Path

import pytest

from gapless.cli.main import run
from gapless.project.load import load_project
from gapless.project.log.read import log_paths
from gapless.verbs import copy_example


def test_logs_and_folders_then_the_folder_to_make(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = copy_example("balance", tmp_path / "given")
    more = given / "logs" / "motion0.csv"
    assert (
        run(["new", str(given / "robot.xml"), str(more), str(given / "logs" / "motion3.csv"), str(tmp_path / "a")]) == 0
    )
    assert [path.stem for path in log_paths(load_project(tmp_path / "a"))] == ["motion0", "motion3"]
    assert run(["new", str(given / "robot.xml"), str(given / "logs"), str(tmp_path / "b")]) == 0
    assert len(log_paths(load_project(tmp_path / "b"))) == 6
    assert "6 files" in capsys.readouterr().out
