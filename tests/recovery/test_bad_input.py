"""Faults put into the bundled examples are named by `check` and `identify`; data as they are raise no finding.

Strongly wrong models count as data as they are: gains, drag and masses off by factors, late and biased readings.
"""

import copy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from architecture.tree import ROOT
from gapless.check.examine import examine_data
from gapless.check.hypotheses import shift_commands
from gapless.check.verb import check
from gapless.fit.data import ProjectData, read_project_data
from gapless.identify.verb import identify
from gapless.verbs import copy_example
from unit.check.faults import Columns, held, scaled, shifted, spoil, swapped, texts
from unit.loop.test_benchmark import load

DEGREES = 180 / np.pi
sets = load(ROOT / "benchmarks" / "sets.py")
CONTRACT = sets.data_folder().parent / "contract"

FAULTS: list[tuple[str, str, Callable[[Columns], Columns], tuple[str, ...]]] = [
    ("balance", "cart sign", scaled("cart", -1.0), ("cart", "wrong sign")),
    ("balance", "pole sign", scaled("pole", -1.0), ("pole", "wrong sign")),
    ("balance", "voltage sign", scaled("voltage", -1.0), ("voltage", "wrong sign")),
    ("balance", "cart in mm", scaled("cart", 1000.0), ("cart", "millimetres")),
    ("balance", "pole in degrees", scaled("pole", DEGREES), ("pole", "degrees")),
    ("push", "tip_x sign", scaled("tip_x", -1.0), ("tip_x", "wrong sign")),
    ("push", "cmd_y sign", scaled("cmd_y", -1.0), ("cmd_y", "wrong sign")),
    ("push", "puck_x sign", scaled("puck_x", -1.0), ("puck_x", "wrong sign")),
    ("push", "puck_y sign", scaled("puck_y", -1.0), ("puck_y", "wrong sign")),
    ("push", "tip_y in mm", scaled("tip_y", 1000.0), ("tip_y", "millimetres")),
    ("push", "cmd_x in mm", scaled("cmd_x", 1000.0), ("cmd_x", "millimetres")),
    ("push", "tips swapped", swapped("tip_x", "tip_y"), ("tip_x and tip_y are swapped",)),
    ("push", "commands swapped", swapped("cmd_x", "cmd_y"), ("cmd_x", "swapped")),
    ("push", "pucks swapped", swapped("puck_x", "puck_y"), ("puck_x and puck_y are swapped",)),
    ("push", "clock", shifted(("cmd_x", "cmd_y"), 10), ("earlier than the commands",)),
    ("push", "tip_x frozen", held("tip_x", 0, 10_000), ("tip_x stands still",)),
]


LIKE_OTHERS = ("voltage sign", "puck_y sign", "cmd_x in mm", "tip_y in mm", "commands swapped", "tip_x sign")
CASES = [
    pytest.param(*fault, id=f"{fault[0]}: {fault[1]}", marks=[pytest.mark.slow] if fault[1] in LIKE_OTHERS else [])
    for fault in FAULTS
]


@pytest.mark.parametrize(("example", "name", "fault", "words"), CASES)
def test_check_names_the_fault(
    example: str, name: str, fault: Callable[[Columns], Columns], words: tuple[str, ...], tmp_path: Path
) -> None:
    del name
    result = check(spoil(copy_example(example, tmp_path), fault))
    assert not result.sound
    said = " ".join(f"{note.where}: {note.text}" for note in result.notes if note.level == "fault")
    for word in words:
        assert word in said


@pytest.mark.slow
@pytest.mark.parametrize("example", ["balance", "push"])
def test_identify_gives_the_same_reason_first(example: str, tmp_path: Path) -> None:
    column = {"balance": "cart", "push": "tip_x"}[example]
    folder = spoil(copy_example(example, tmp_path), scaled(column, -1.0))
    fault = next(note.text for note in check(folder).notes if note.level == "fault")
    result = identify(folder)
    assert result.verdict in ("poor", "refused")
    assert result.reasons[0] == fault


def test_corrupt_samples_are_left_out_and_counted(tmp_path: Path) -> None:
    def corrupt(columns: Columns) -> Columns:
        cart, pole = columns["cart"].copy(), columns["pole"].copy()
        cart[[40, 90, 150]] += [5.0, -7.0, 1e6]
        pole[100:110] = -99.0
        pole[60] = np.inf
        return columns | {"cart": cart, "pole": pole}

    clean = read_project_data(copy_example("balance", tmp_path / "clean"))
    evidence = read_project_data(spoil(copy_example("balance", tmp_path / "spoiled"), corrupt))
    said = " ".join(note.text for note in evidence.notes)
    assert "3 of 250 values stick out" in said
    assert "10 of 250 values are one value" in said
    assert "1 of 250 values are infinite" in said
    for track, before in zip(evidence.tracks, clean.tracks, strict=True):
        assert np.isnan(track.measured[101:109, 1]).all()
        # What is bridged is off by little: the pole's own motion over two samples, not by the 5 m that were put in.
        assert np.nanmax(np.abs(track.measured[:, 0] - before.measured[:, 0])) < 0.02
        np.testing.assert_allclose(track.noise, before.noise)
    assert examine_data(evidence).findings == ()


def spoiled_model(evidence: ProjectData, rng: np.random.Generator) -> ProjectData:
    """Returns a project whose model is far off: gains, drag, friction and masses by factors."""
    model = copy.deepcopy(evidence.blueprint.model)
    gains = rng.choice([0.33, 1.0, 3.0], model.nu)[:, None]
    model.actuator_gainprm *= gains
    model.actuator_biasprm *= gains
    model.dof_damping *= rng.choice([0.1, 1.0, 10.0], model.nv).reshape(model.dof_damping.shape)
    model.dof_frictionloss *= rng.choice([0.1, 1.0, 5.0], model.nv)
    masses = rng.uniform(0.6, 1.6, model.nbody)
    model.body_mass *= masses
    model.body_inertia *= masses[:, None]
    return replace(evidence, blueprint=replace(evidence.blueprint, model=model))


def spoiled_readings(evidence: ProjectData, rng: np.random.Generator) -> ProjectData:
    """Returns a project whose readings come 60 ms later and whose angles are biased by 0.1 rad."""
    bias = np.array([rng.choice([-0.1, 0.1]) if m.unit == "rad" else 0.0 for m in evidence.project.measurements])
    tracks = shift_commands(evidence.tracks, -round(0.06 * evidence.project.rate_hz))
    tracks = [replace(track, measured=track.measured + bias, smooth=track.smooth + bias) for track in tracks]
    return replace(evidence, tracks=tuple(tracks))


def assert_sound(evidence: ProjectData, *, allow: str = "", seeds: range = range(3)) -> None:
    """Checks that data as they are raise no finding, nor do strongly wrong models of them."""
    known = {note for note in examine_data(evidence).notes if allow and allow in note.text}
    assert [note for note in examine_data(evidence).notes if note not in known] == []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        for case in (spoiled_model(evidence, rng), spoiled_readings(spoiled_model(evidence, rng), rng)):
            found = examine_data(case)
            assert [note for note in found.notes if not (allow and allow in note.text)] == [], texts(found)
            assert found.refusal is None


@pytest.mark.parametrize("example", ["balance", "push"])
def test_the_examples_raise_no_finding(example: str, tmp_path: Path) -> None:
    assert_sound(
        read_project_data(copy_example(example, tmp_path)), allow="no column shows z, orientation of body puck"
    )


@pytest.mark.slow
@pytest.mark.skipif(not CONTRACT.is_dir(), reason="no folder shared/contract beside the repository")
@pytest.mark.parametrize("name", ["arm", "toss", "servo"])
def test_the_contract_projects_raise_no_finding(name: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, CONTRACT / "make_projects.py", tmp_path], check=True, capture_output=True)
    assert_sound(read_project_data(tmp_path / name))


@pytest.mark.slow
@pytest.mark.skipif(not sets.data_folder().is_dir(), reason="no folder of real logs: set GAPLESS_DATA")
@pytest.mark.parametrize("name", ["so101", "qube", "cartpole"])
def test_real_logs_raise_no_finding(name: str, tmp_path: Path) -> None:
    if name == "so101":
        assert_sound(read_project_data(sets.so101(tmp_path, sets.so101_motions()[::4])))
    elif name == "qube":
        assert_sound(read_project_data(sets.qube(tmp_path, sets.runs("qube", "qq_chrip*"))))
    else:  # its motor is off for the first half second
        assert_sound(
            read_project_data(sets.cartpole(tmp_path, sets.runs("cartpole", "qcp*"))), allow="does not respond to volt"
        )


@pytest.mark.slow
@pytest.mark.skipif(not sets.data_folder().is_dir(), reason="no folder of real logs: set GAPLESS_DATA")
def test_the_real_cart_whose_motor_is_off_at_first_is_found(tmp_path: Path) -> None:
    found = examine_data(read_project_data(sets.cartpole(tmp_path, sets.runs("cartpole", "qcp*"))))
    assert len(found.notes) == 1
    assert "q_x does not respond to volt" in found.notes[0].text
    for track in found.evidence.tracks:  # about 130 samples
        off = np.flatnonzero(~track.usable)
        assert off.min() <= 25
        assert 125 <= off.max() <= 180
