import json
from pathlib import Path

import mujoco
import pytest
import yaml

from gapless import verbs
from gapless.cli.commands import EXPORTS
from gapless.cli.main import run
from gapless.core.distribution import ranges_from_text
from gapless.core.errors import InputError
from gapless.core.results import RandomizeResult, from_json
from gapless.randomize.export.formats import FORMATS, export_ranges
from unit.fit_file import fitted, write_fit
from unit.randomize.export.robots import EVERYTHING, arm_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = arm_folder(tmp_path / "arm")
    delay, mass = fitted("actuator/*/delay", 0.02, prior_high=0.1), fitted("body/fore/mass", 0.7, prior_high=2.0)
    write_fit(tmp_path / "fit.json", fitted("joint/elbow/damping", 0.3, prior_high=1.0), delay, mass)
    return made


def randomize(folder: Path, *options: str) -> int:
    return run(["randomize", str(folder), "--fit", str(folder.parent / "fit.json"), *options])


def test_every_format_is_written_and_says_what_it_leaves_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wishes = [part for form in FORMATS for part in ("--export", f"{form}={folder.parent / form}")]
    assert randomize(folder, *wishes, "--json", str(folder.parent / "result.json")) == 0
    shown = capsys.readouterr().out
    result = from_json(json.loads((folder.parent / "result.json").read_text()))
    assert isinstance(result, RandomizeResult)
    assert [item.format for item in result.exports] == list(FORMATS)
    for item in result.exports:
        assert Path(item.path).stat().st_size > 0
        assert f"{item.format}: {item.path}" in shown
        for note in item.notes:
            assert f"  {note}" in shown
    left = {
        item.format
        for item in result.exports
        if any(note.startswith("actuator/*/delay: left out") for note in item.notes)
    }
    assert left == {"mjlab", "isaaclab", "playground"}


def test_python_exports_as_the_command_line_does(folder: Path) -> None:
    files = {form: folder.parent / f"{form}.python" for form in FORMATS}
    result = verbs.randomize(folder, fit=folder.parent / "fit.json", export=files)
    wishes = [part for form in FORMATS for part in ("--export", f"{form}={folder.parent / form}")]
    assert randomize(folder, *wishes) == 0
    assert [item.format for item in result.exports] == list(FORMATS)
    for form, file in files.items():
        assert file.read_text() == (folder.parent / form).read_text()
    with pytest.raises(InputError, match="no format 'mjlba'"):  # before the work
        verbs.randomize(folder, method="dropo", export={"mjlba": "x.py"})


def test_the_formats_are_those_of_the_help() -> None:
    assert EXPORTS.replace(" or ", ", ").split(", ") == list(FORMATS)


def test_text_comes_back_as_it_was(folder: Path) -> None:
    (folder.parent / "all.txt").write_text(EVERYTHING)
    (made,) = export_ranges(folder, folder.parent / "all.txt", {"text": folder.parent / "again.txt"})
    assert made.notes == ()
    assert ranges_from_text((folder.parent / "again.txt").read_text()) == ranges_from_text(EVERYTHING)


def test_json_and_yaml_have_units_and_dimensions(folder: Path) -> None:
    (folder.parent / "all.txt").write_text(EVERYTHING)
    files = {"json": folder.parent / "a.json", "yaml": folder.parent / "a.yaml"}
    export_ranges(folder, folder.parent / "all.txt", files)
    first, second = json.loads(files["json"].read_text()), yaml.safe_load(files["yaml"].read_text())
    assert first == second
    entry = {item["target"]: item for item in first["ranges"]}["joint/shoulder/damping"]
    assert (entry["unit"], entry["dimension"], entry["nominal"], entry["per"]) == (
        "N·m·s/rad",
        "actuator",
        0.4,
        "robot",
    )
    assert len(first["ranges"]) == len(EVERYTHING.strip().splitlines()) - 1
    assert first["correlations"][0]["value"] == 0.5


def test_mjcf_is_the_centre(folder: Path) -> None:
    text = "joint/elbow/damping uniform 0.1 .. 0.5\nbody/fore/mass normal 0.8 +- 0.1 within 0.6 .. 1\n"
    text += "actuator/shoulder/delay fixed 0.02\nmeasurement/q_elbow/bias fixed 0.01\njoint/elbow/backlash fixed 0.01\n"
    (folder.parent / "r.txt").write_text(text)
    (made,) = export_ranges(folder, folder.parent / "r.txt", {"mjcf": folder.parent / "centre.xml"})
    model = mujoco.MjModel.from_xml_path(str(folder.parent / "centre.xml"))
    assert model.dof_damping[model.joint("elbow").dofadr[0]] == pytest.approx(0.3)
    assert model.body("fore").mass[0] == pytest.approx(0.8)
    assert model.actuator_delay[0] == pytest.approx(0.02)
    assert [note.split(":")[0] for note in made.notes] == ["measurement/q_elbow/bias", "joint/elbow/backlash", "all"]


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        ("mjlba=x.py", "no format 'mjlba'; choose from: mjlab"),
        ("mjlab", "--export mjlab: no file named; write --export mjlab=FILE"),
        ("mjlab=", "no file named"),
        ("mjlab=no/such/x.py", "no such folder"),
        ("mjlab=.", "this is a folder"),
    ],
)
def test_a_bad_wish_is_one_line(wish: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert randomize(folder, "--export", wish) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_wish_twice_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert randomize(folder, "--export", f"text={folder}/a", "--export", f"text={folder}/b") == 2
    assert randomize(folder, "--export", f"text={folder}/a", "--export", f"json={folder}/a") == 2
    shown = capsys.readouterr().err
    assert "asked for twice" in shown
    assert "two formats in one file" in shown


def test_ranges_of_another_model_are_refused(folder: Path) -> None:
    (folder.parent / "other.txt").write_text("joint/knee/damping uniform 0.1 .. 0.5\n")
    with pytest.raises(InputError, match="no joint 'knee'; choose from: "):
        export_ranges(folder, folder.parent / "other.txt", {"mjlab": folder.parent / "x.py"})
    assert not (folder.parent / "x.py").exists()


def test_no_ranges_are_refused(folder: Path) -> None:
    (folder.parent / "none.txt").write_text("# nothing\n")
    with pytest.raises(InputError, match="no ranges to write"):
        export_ranges(folder, folder.parent / "none.txt", {"mjlab": folder.parent / "x.py"})
