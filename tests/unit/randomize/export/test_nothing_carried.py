"""Exports that would carry nothing are refused, and what is left out is said before all else."""

from pathlib import Path

import pytest

from gapless.cli.output import open_console
from gapless.cli.show import show
from gapless.core.distribution import ranges_from_text
from gapless.core.errors import InputError
from gapless.core.results import Export, RandomizeResult
from gapless.randomize.event_terms import isaaclab
from gapless.randomize.export.formats import export_ranges
from gapless.randomize.export.model_code import write_playground
from unit.randomize.export.robots import arm_folder, job

READINGS = """
measurement/q_shoulder/bias  normal 0 +- 0.01 within -0.02 .. 0.02
measurement/q_elbow/bias     normal 0 +- 0.01 within -0.02 .. 0.02
measurement/box_x/delay      uniform 0 .. 0.05
joint/elbow/backlash         uniform 0 .. 0.01
"""


def written(folder: Path, text: str, *formats: str) -> dict[str, Path]:
    """Exports ranges given as text; returns the files that were asked for."""
    project = arm_folder(folder / "arm")
    (folder / "ranges.txt").write_text(text)
    files = {form: folder / f"{form}.out" for form in formats}
    export_ranges(project, folder / "ranges.txt", files)
    return files


@pytest.mark.parametrize("form", ["mjcf", "mjlab", "isaaclab", "playground"])
def test_a_format_that_carries_nothing_is_refused_with_reasons(form: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        written(tmp_path, READINGS, "text", form)
    said = str(error.value)
    assert f"--export {form}: none of the 4 ranges has a counterpart there, so nothing was written" in said
    assert "measurement/q_shoulder/bias" in said  # with its reason
    assert "text, json, yaml, gymnasium carry some" in said
    assert "\n" not in said
    assert not list(tmp_path.glob("*.out"))  # nor of the format that would carry them: one command, one outcome


def test_lags_and_play_are_nothing_that_a_wrapper_carries(tmp_path: Path) -> None:
    text = "joint/elbow/backlash uniform 0 .. 0.01\nmeasurement/box_x/delay uniform 0 .. 0.05\n"
    with pytest.raises(InputError, match="--export gymnasium: none of the 2 ranges has a counterpart there"):
        written(tmp_path, text, "gymnasium")


def test_one_that_is_carried_is_enough(tmp_path: Path) -> None:
    files = written(tmp_path, READINGS + "body/box/mass uniform 0.3 .. 0.8\n", "mjlab", "isaaclab", "playground")
    assert all("mass" in file.read_text() for file in files.values())


def test_what_is_carried_in_part_is_not_left_out(tmp_path: Path) -> None:
    # An offset of a joint moves its zero in the model, and what its encoder reads, which Playground has not.
    text, notes = write_playground(job(tmp_path, "joint/shoulder/offset uniform 0 .. 0.01\n"), tmp_path)
    assert ("'qpos0', [" in text) == (not any(": left out: " in note for note in notes))


def test_a_restitution_is_not_dropped_in_silence(tmp_path: Path) -> None:
    text = "geom/floor/friction uniform 0.4 .. 0.8\ngeom/floor/restitution uniform 0.1 .. 0.4\n"
    _, notes = isaaclab.write(job(tmp_path, text), tmp_path)
    assert [note.split(": ")[:2] for note in notes] == [
        ["geom/floor/friction", "left out"],
        ["geom/floor/restitution", "left out"],
    ]


def test_left_out_comes_first_and_correlations_last(tmp_path: Path) -> None:
    text = "joint/shoulder/frictionloss normal 0.1 +- 0.02 within 0.04 .. 0.16\n"
    text += "geom/box/friction normal 0.5 +- 0.1 within 0.3 .. 0.7\nactuator/*/delay uniform 0 .. 0.03\n"
    text += "correlation joint/shoulder/frictionloss geom/box/friction 0.5\n"
    project = arm_folder(tmp_path / "arm")
    (tmp_path / "ranges.txt").write_text(text)
    (made,) = export_ranges(project, tmp_path / "ranges.txt", {"isaaclab": tmp_path / "events.py"})
    assert made.notes[0].startswith("actuator/*/delay: left out: ")
    assert ": changed: " in made.notes[1]
    assert made.notes[-1].startswith("correlation ")
    head = (tmp_path / "events.py").read_text()
    assert head.index("actuator/*/delay: left out") < head.index(": changed: ") < head.index("#   correlation ")


def test_many_correlations_are_one_line_on_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"joint/j{k}/damping" for k in range(7)]
    text = "".join(f"{name} normal 1 +- 0.1 within 0.5 .. 1.5\n" for name in names)
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :]]
    text += "".join(f"correlation {a} {b} {-0.9 if k == 3 else 0.1}\n" for k, (a, b) in enumerate(pairs))
    ranges, correlations = ranges_from_text(text)
    left = [f"correlation {a} {b}: left out: each term draws on its own" for a, b in pairs]
    made = Export("isaaclab", "events.py", ("joint/j0/damping: left out: no term", *left))
    show(RandomizeResult((), ranges, "r.json", 0, "evidence", correlations, (made,)), open_console(None))
    said = capsys.readouterr().out
    assert "together: 21 pairs, most of all joint/j0/damping and joint/j4/damping, -0.90; all are in r.json" in said
    assert said.count("correlation") == 1
    assert "21 correlations: left out: each term draws on its own; each is listed in events.py" in said
    assert said.index("joint/j0/damping: left out") < said.index("21 correlations")
