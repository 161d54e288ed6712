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
        (["demo", "juggle"], "no example 'juggle'; choose from:"),
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


def dangling_link(folder: Path) -> None:
    (folder / "logs" / "motion0.csv").unlink()
    (folder / "logs" / "motion0.csv").symlink_to("archive/motion0.csv")


def folder_for_a_log(folder: Path) -> None:
    (folder / "logs" / "motion9.csv").mkdir()


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def list_parameter(folder: Path, line: str) -> None:
    replace_in(folder / "gapless.yaml", "parameters: auto", f"parameters:\n- {line}")


def negative_damping(folder: Path) -> None:
    list_parameter(folder, "{target: joint/pole/damping, low: -5, high: 2}")


def endless_bound(folder: Path) -> None:
    list_parameter(folder, "{target: joint/pole/damping, low: 0, high: 1e300}")


def endless_ratio(folder: Path) -> None:
    list_parameter(folder, "{target: actuator/motor/gain, low: 1e-300, high: 10}")


def negative_size(folder: Path) -> None:
    list_parameter(folder, "{target: geom/pole/size/x, low: -1, high: 1}")


def impossible_share(folder: Path) -> None:
    list_parameter(folder, "{target: measurement/pole/outliers/share, low: 0, high: 7}")


def mass_nan(folder: Path) -> None:
    replace_in(folder / "robot.xml", 'mass=".15"', 'mass="nan"')


def mass_infinite(folder: Path) -> None:
    replace_in(folder / "robot.xml", 'mass=".15"', 'mass="inf"')


def armature_nan(folder: Path) -> None:
    replace_in(folder / "robot.xml", '<joint name="pole"', '<joint name="pole" armature="nan"')


def armature_infinite(folder: Path) -> None:
    replace_in(folder / "robot.xml", '<joint name="pole"', '<joint name="pole" armature="inf"')


def huge_command(folder: Path) -> None:
    replace_in(folder / "logs" / "motion0.csv", "\n0.02,1,", "\n0.02,1e308,")


def huge_scale(folder: Path) -> None:
    replace_in(folder / "gapless.yaml", "{actuator: motor}", "{actuator: motor, scale: 1e308}")


def rate_of_a_gigahertz(folder: Path) -> None:
    replace_in(folder / "gapless.yaml", "rate_hz: 50", "rate_hz: 1e9")


def rate_of_a_year(folder: Path) -> None:
    replace_in(folder / "gapless.yaml", "rate_hz: 50", "rate_hz: 3e-8")


def rate_far_above_the_logs(folder: Path) -> None:
    replace_in(folder / "gapless.yaml", "rate_hz: 50", "rate_hz: 20000")


def time_in_nanoseconds(folder: Path) -> None:
    for log in (folder / "logs").glob("*.csv"):
        rows = [line.partition(",") for line in log.read_text().splitlines()]
        log.write_text("\n".join(["".join(rows[0]), *(f"{float(t) * 1e9:.0f},{rest}" for t, _, rest in rows[1:])]))


def endless_pause(folder: Path) -> None:
    log = folder / "logs" / "motion0.csv"
    log.write_text(log.read_text() + "1e15,0,0,0\n")


EXTREMES: list[tuple[Damage, str]] = [
    (dangling_link, "it is a link to archive/motion0.csv, which is not there: restore that file, or delete the link"),
    (folder_for_a_log, "it has the name of a log but is no file"),
    (negative_damping, "joint/pole/damping: it cannot be -5: write low: 0 or more"),
    (endless_bound, "'1e300' must be less than or equal to 1000000000000"),
    (endless_ratio, "a factor of more than 1e+12: write low: 0, or bounds that are closer"),
    (negative_size, "geom/pole/size/x: it cannot be -1: write low: 0 or more"),
    (impossible_share, "write bounds from 0 to 1"),
    (mass_nan, '<geom name="pole"'),
    (mass_infinite, "'pole'"),
    (armature_infinite, "has armature inf: write a finite number"),
    (armature_nan, "has armature nan: write a finite number"),
    (huge_command, "column voltage: 1 of"),
    (huge_scale, "times scale 1e+308: correct the log, or leave the cells empty"),
    (rate_of_a_gigahertz, "rate_hz: '1e9' must be less than or equal to 100000"),
    (rate_of_a_year, "rate_hz: '3e-8' must be greater than or equal to 0.1"),
    (
        rate_far_above_the_logs,
        "recorded at 50 Hz while rate_hz is 20000, more than 20 times as fast: correct one of them; write rate_hz: ",
    ),
    (time_in_nanoseconds, "time_s looks like nanoseconds, it must be seconds"),
    (endless_pause, "split the file, or correct time_s"),
]


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
    *EXTREMES,
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


@pytest.mark.parametrize(("damage", "text"), EXTREMES, ids=[damage.__name__ for damage, _ in EXTREMES])
def test_check_finds_extremes(damage: Damage, text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(folder)
    assert run(["check", str(folder)]) == 2
    said = capsys.readouterr()
    assert text in said.out + said.err
    assert "fault of gapless" not in said.err


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"nonsense", "this is no JSON"),
        (b"\xff\xfe", "this is no text"),
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
        (["--seconds", "0"], "0 seconds are too short to identify anything: ask for at least 3"),
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

    monkeypatch.setattr("gapless.measure.verb.read_project_data", break_down)
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
