import json
from pathlib import Path

import pytest

from gapless.cli.main import run
from gapless.core.results import ExciteResult, from_json
from gapless.excite.search import ExciteConfig
from unit.identify.realities import ANGLE, COMMANDS, PENDULUM, WHATEVER
from unit.sim.scenes import write_project


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    brief = ExciteConfig(min_motions=8, max_motions=8, num_generations=1)
    monkeypatch.setattr("gapless.excite.verb.ExciteConfig", lambda: brief)
    return write_project(tmp_path / "robot", PENDULUM, COMMANDS, ANGLE, rate_hz=50, parameters=WHATEVER[:2])


def test_what_people_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["excite", str(folder), "--seconds", "6", "--out", "motion.csv", "--json", "motion.json"]
    assert run([*arguments, "--parameter", "actuator/motor/gain", "--max-speed", "hinge=1.5"]) == 0
    said = capsys.readouterr()
    assert "actuator/motor/gain" in said.out
    assert "can be told" in said.out
    assert "joint/hinge/damping" not in said.out  # fitted along, not asked about
    assert "joint/hinge speed" in said.out
    assert "asked for" in said.out
    assert "motion.csv" in said.out
    assert "next: " in said.out

    found = from_json(json.loads(Path("motion.json").read_text()))
    assert isinstance(found, ExciteResult)
    assert found.path == str(Path("motion.csv").resolve())
    assert Path("motion.csv").read_text().startswith("time_s,u\n")


def test_no_motion_is_a_result_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weak = PENDULUM.replace('fromto="0 0 0 0 0 -.3"', 'fromto="0 0 0 .3 0 0"').replace("-2 2", "-.1 .1")
    (folder / "robot.xml").write_text(weak.replace('damping="0.05"', 'damping="0.05" range="-20 20"'))
    assert run(["excite", str(folder), "--seconds", "6"]) == 0
    said = capsys.readouterr().out
    assert "left alone, it does not stay within limits" in said
    assert "no motion was written" in said
