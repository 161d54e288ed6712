import json
import xml.etree.ElementTree as Tree
from pathlib import Path

import numpy as np
import pytest

from gapless.cli.main import run
from gapless.core.errors import InputError
from gapless.core.results import SensorResult, from_json, to_json
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import load_stored_result
from gapless.verbs import copy_example, identify_sensor, noise, randomize
from unit.signals.noise.simulated import column

NUM = 6000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    write("imu.csv", gyro_x_rad_s=1e-3 * rng.standard_normal(NUM), accel_x_g=1e-3 * column(rng, NUM, flicker=0.1))
    return tmp_path


def write(name: str, **columns: np.ndarray) -> None:
    columns.setdefault("time_s", np.arange(len(next(iter(columns.values())))) / 100)
    np.savetxt(name, np.stack(list(columns.values()), axis=1), delimiter=",", header=",".join(columns), comments="")


def one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = [line for line in said.err.splitlines() if not line.startswith("  ")]  # progress of a slow machine
    return line


def test_a_file_that_stands_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["noise", "imu.csv", "--json", "noise.json", "--svg", "noise.svg"]) == 0
    shown = capsys.readouterr().out
    assert "angle random walk" in shown
    assert "gyro_x_rad_s: {..., noise: 0.00" in shown
    written = json.loads(Path("noise.json").read_text())
    assert (written["format"], written["verb"]) == (1, "identify")
    assert written["columns"]["accel_x_g"]["terms"]["velocity_random_walk"]["unit"] == "m/s/√h"
    assert Tree.parse("noise.svg").getroot().tag.endswith("svg")


def test_results_can_be_read_back(folder: Path) -> None:
    found = noise("imu.csv")
    again = from_json(json.loads(json.dumps(to_json(found))))
    assert isinstance(again, SensorResult)
    assert to_json(again) == to_json(found)


def test_the_names_before_it_was_a_verb_still_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert identify_sensor is noise
    shown = [capsys.readouterr().out for words in (["noise"], ["identify", "--sensor"]) if not run([*words, "imu.csv"])]
    assert shown[0] == shown[1]
    assert run(["identify", "--help"]) == 0
    assert "deprecated: use `gapless noise LOG" in capsys.readouterr().out


def test_a_project(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = copy_example("balance", folder / "balance")
    rng = np.random.default_rng(1)
    write("rest.csv", cart=0.1 + 1e-3 * rng.standard_normal(NUM), pole=2e-3 * rng.standard_normal(NUM))
    found = noise("rest.csv", project)
    assert list(found.columns) == ["cart", "pole"]
    assert found.columns["pole"].unit == "rad"
    catalogue = Catalogue.open(project)
    assert load_stored_result(catalogue, catalogue.artefacts("identify-sensor")[-1].id) == found
    with pytest.raises(InputError, match="there is no fit yet"):  # noise is no fit of the model
        randomize(project)
    assert run(["noise", "motion0", str(project)]) == 0  # a refusal is a result
    assert "the log is not at rest: cart, pole moved" in capsys.readouterr().out


def test_noise_is_no_earlier_fit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    project = copy_example("balance", folder / "balance")
    assert run(["noise", "imu.csv", "--json", "noise.json"]) == 0
    capsys.readouterr()
    assert "noise of sensors, not a fit" in one_line(["identify", str(project), "--since", "noise.json"], capsys)
    assert run(["measure", str(project), "--fit", "noise.json"]) == 2


def test_accelerometers_in_g(folder: Path) -> None:
    (folder / "imu").mkdir()
    (folder / "imu" / "robot.xml").write_text(
        '<mujoco><worldbody><body name="b"><freejoint/><geom size=".1"/><site name="s"/></body></worldbody>'
        '<sensor><accelerometer name="acc" site="s"/></sensor></mujoco>'
    )
    maps = "".join(f"  a{axis}: {{sensor: acc, axis: {axis}}}\n" for axis in range(3))
    (folder / "imu" / "gapless.yaml").write_text(f"gapless: 1\nmodel: robot.xml\nrate_hz: 100\nmeasurements:\n{maps}")
    rng = np.random.default_rng(2)
    write("rest.csv", **{f"a{axis}": (axis == 2) + 1e-3 * rng.standard_normal(NUM) for axis in range(3)})
    found = noise("rest.csv", folder / "imu")
    assert "If in g, write scale: 9.80665" in found.notes[0].text


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["identify"], "Missing argument 'DIR'"),
        (["noise"], "Missing argument 'LOG'"),
        (["noise", "none.csv"], "No such file"),
        (["noise", "."], "this is a folder: name a log, or for a project `gapless noise LOG DIR`"),
        (["noise", "imu.csv", "--column", "gyro_y"], "--column gyro_y, which the log does not have"),
        (["identify", "--sensor", "imu.csv", "--window", "1"], "--window does nothing beside --sensor"),
        (["noise", "imu.csv", "--svg", "no/where.svg"], "--svg: no such folder"),
        (["noise", "imu.csv", "imu.csv"], "write `gapless noise imu.csv`"),
        (["identify", ".", "--column", "gyro_y"], "--column does nothing"),
        (["noise", "late.csv"], "no column time_s"),
        (["noise", "words.csv"], "or choose columns with --column NAME"),
        (["noise", "broken.npz"], "columns of different length"),
        (["noise", "broken.npz"], "or choose columns with --column NAME"),
        (["noise", "text.npz"], "column label holds string, not numbers"),
        (["noise", "still.npz"], "rate_hz is 0: save the readings per second, above 0, or time_s"),
        (["noise", "imu.csv", "balance"], "no column cart, which gapless.yaml maps"),
        (["noise", "motion9", "balance"], "no such log of the project; choose from: motion"),
    ],
)
def test_bad_input(folder: Path, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]) -> None:
    copy_example("balance", folder / "balance")
    Path("late.csv").write_text("t,a\n0,1\n1,2\n")
    Path("words.csv").write_text("time_s,a\n0,x\n1,y\n")
    np.savez("broken.npz", time_s=np.arange(5.0), a=np.arange(4.0))
    np.savez("text.npz", time_s=np.arange(2.0), label=np.array(["x", "y"]))
    np.savez("still.npz", a=np.arange(4.0), rate_hz=0.0)
    assert text in one_line(arguments, capsys)


def test_arrays_of_npz_files_are_taken_apart(folder: Path) -> None:
    rng = np.random.default_rng(3)
    np.savez("imu.npz", gyro_deg_s=rng.standard_normal((NUM, 3)), rate_hz=200.0)
    found = noise("imu.npz")
    assert list(found.columns) == [f"gyro_deg_s_{k}" for k in range(3)]
    assert found.rate_hz == pytest.approx(200)
    assert found.columns["gyro_deg_s_0"].unit == "deg/s"
