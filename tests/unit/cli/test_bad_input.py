"""Every mistake of a user: exit status 2 and exactly one line on standard error."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gapless.cli.main import run
from gapless.verbs import copy_example

Damage = Callable[[Path], None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return copy_example("balance", tmp_path / "balance")


def one_line(arguments: list[str], capsys: pytest.CaptureFixture[str], status: int = 2) -> str:
    """Runs a command line that must fail; returns its one line."""
    assert run(arguments) == status
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1, said.err
    assert said.err.startswith("gapless: ")
    assert "Traceback" not in said.err
    assert "fault of gapless" not in said.err
    return said.err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["measur", "x"], "No such command 'measur'"),
        (["measure"], "Missing argument 'DIR'"),
        (["evaluate", "."], "Missing argument 'POLICY.npz'"),
        (["measure", ".", "--windo", "1"], "No such option: --windo"),
        (["measure", ".", "--window", "wide"], "--window"),
        (["measure", ".", "--window", "-1"], "--window"),
        (["identify", ".", "--seed", "1.5"], "--seed"),
        (["loop", ".", "--target", "85"], "--target"),
        (["excite", ".", "--seconds", "long"], "--seconds"),
        (["excite", "."], "no gapless.yaml in this folder"),
        (["train", ".", "--steps", "0"], "--steps"),
        (["measure", ".", "more"], "more"),
        (["measure", ".", "--json"], "--json"),
        (["demo", "juggle"], "no example 'juggle'; there are:"),
        (["measure", "nowhere"], "no such project folder"),
        (["measure", "."], "no gapless.yaml in this folder"),
        (["new", "a.xml", "b.csv", "made"], "a.xml"),
        (["new", "a.xml", "b.csv", "c.csv"], "the last argument is the folder to make"),
        (["new", "a.xml", "made"], "no log was given"),
    ],
)
def test_wrong_arguments(
    arguments: list[str],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert text in one_line(arguments, capsys)


def no_model(folder: Path) -> None:
    (folder / "robot.xml").unlink()


def broken_model(folder: Path) -> None:
    (folder / "robot.xml").write_text("<mujoco><worldbody>")


def empty_log(folder: Path) -> None:
    (folder / "logs" / "motion0.csv").write_text("")


def one_row(folder: Path) -> None:
    log = folder / "logs" / "motion0.csv"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:2]))


def backwards(folder: Path) -> None:
    log = folder / "logs" / "motion0.csv"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:50] + lines[10:20]))


def words(folder: Path) -> None:
    log = folder / "logs" / "motion0.csv"
    log.write_text(log.read_text().replace("\n0.02,", "\n0.02,oops", 1))


def huge(folder: Path) -> None:
    os.truncate(folder / "logs" / "motion0.csv", 2 * 10**9)  # sparse: takes no room


def no_logs(folder: Path) -> None:
    for path in (folder / "logs").iterdir():
        path.unlink()


def not_writable(folder: Path) -> None:
    (folder / ".gapless").write_text("")  # whoever runs this, no catalogue can be made here


def bad_yaml(folder: Path) -> None:
    (folder / "gapless.yaml").write_text("gapless: 1\nmodel: [")


def unknown_joint(folder: Path) -> None:
    text = (folder / "gapless.yaml").read_text().replace("joint: pole", "joint: pol")
    (folder / "gapless.yaml").write_text(text)


DAMAGES: list[tuple[Damage, str]] = [
    (no_model, "no model file robot.xml"),
    (broken_model, "robot.xml"),
    (empty_log, "the file is empty"),
    (one_row, "only one time stamp"),
    (backwards, "goes backwards in row 50"),
    (words, "is not a number"),
    (huge, "GB of CSV, more than 1 GB"),
    (no_logs, "no logs"),
    (not_writable, "no catalogue can be made here"),
    (bad_yaml, "gapless.yaml"),
    (unknown_joint, "pole"),
]


@pytest.mark.parametrize(("damage", "text"), DAMAGES, ids=[damage.__name__ for damage, _ in DAMAGES])
@pytest.mark.parametrize("verb", ["measure", "identify", "diagnose"])
def test_damaged_projects(
    verb: str, damage: Damage, text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(folder)
    assert text in one_line([verb, str(folder)], capsys)


def test_check_lists_faults_and_its_status_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words(folder)
    assert run(["check", str(folder)]) == 2
    said = capsys.readouterr()
    assert "fault" in said.out
    assert "not sound" in said.out
    assert said.err == ""


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"nonsense", "this is no JSON"),
        (b"\xff\xfe", "this is no JSON"),
        (b"[]", "this is no result of `gapless identify`"),
        (b'{"verb": "measure"}', "it says 'measure'"),
    ],
)
@pytest.mark.parametrize("verb", ["measure", "randomize", "excite"])
def test_wrong_fits(verb: str, content: bytes, text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("fit.json").write_bytes(content)
    assert text in one_line([verb, str(folder), "--fit", "fit.json"], capsys)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--seconds", "0"], "0 seconds are too short to tell anything: ask for at least 3"),
        (["--seconds", "nan"], "too short"),
        (["--parameter", "joint/car/damping"], "no joint 'car'; choose from: cart, pole"),
        (["--parameter", "damping"], "no kind 'damping'"),
        (["--max-speed", "pol=2"], "no 'pol'; choose from: cart"),
        (["--max-speed", "2"], "a share is at most 1"),
        (["--max-effort", "much"], "write a share such as 0.5, or NAME=VALUE"),
        (["--out", "none/motion.csv"], "--out: no such folder"),
        (["--out", "."], "--out: this is a folder"),
        (["--fit", "none.json"], "no such file"),
    ],
)
def test_wrong_wishes_for_a_motion(
    options: list[str], text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert text in one_line(["excite", str(folder), *options], capsys)


def test_a_project_without_commands_gets_no_motion(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    yaml = folder / "gapless.yaml"
    yaml.write_text(yaml.read_text().replace("commands:\n  voltage: {actuator: motor}\n", ""))
    said = one_line(["excite", str(folder)], capsys)
    assert "this project commands nothing, so no motion can be chosen: map commands" in said


def test_a_missing_fit_and_ranges(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no such file" in one_line(["measure", str(folder), "--fit", "none.json"], capsys)
    assert "no such file" in one_line(["train", str(folder), "--ranges", "none.json"], capsys)
    assert "there is no fit yet" in one_line(["randomize", str(folder)], capsys)
    assert "nothing to report yet" in one_line(["report", str(folder)], capsys)


@pytest.mark.parametrize("content", [b"", b"nonsense", None])
def test_wrong_policies(content: bytes | None, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path("policy.npz")
    if content is None:
        np.savez(path, a=np.zeros(3))
    else:
        path.write_bytes(content)
    for arguments in (["evaluate", str(folder), str(path)], ["train", str(folder), "--start", str(path)]):
        assert "no policy that `gapless train` wrote" in one_line(arguments, capsys)
    assert "make one with `gapless train`" in one_line(["evaluate", str(folder), "none.npz"], capsys)


def test_json_that_cannot_be_written_is_noticed_before_any_work(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no such folder" in one_line(["identify", str(folder), "--json", "none/fit.json"], capsys)
    assert "this is a folder" in one_line(["identify", str(folder), "--json", str(folder)], capsys)
    assert not (folder / ".gapless").exists()


def test_a_fault_of_ours_is_one_line_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def break_down(*_: object, **__: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("gapless.measure.verb.gather", break_down)
    assert run(["measure", str(folder)]) == 1
    said = capsys.readouterr().err
    assert said == "gapless: RuntimeError: two lines (a fault of gapless, not yours; GAPLESS_DEBUG=1 shows where)\n"


def test_json_to_a_file_and_to_standard_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["measure", str(folder), "--json", "gap.json"]) == 0
    assert "cart" in capsys.readouterr().out
    assert run(["measure", str(folder), "--json", "-"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == json.loads(Path("gap.json").read_text())
    assert json.loads(said.out)["format"] == 1
    assert "cart" in said.err  # people read there meanwhile
