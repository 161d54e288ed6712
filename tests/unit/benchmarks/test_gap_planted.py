"""What is planted on real logs is what the truth says; without the logs, which are not part of the project."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unit.benchmarks.parts import part

MODEL = """<mujoco><worldbody><body name="bob"><joint name="hinge" axis="0 1 0" frictionloss="0.1"/>
<geom name="bob" type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""
YAML = """gapless: 1
model: model.xml
rate_hz: 50
commands: {u: {actuator: motor}}
measurements: {q: {joint: hinge, quantity: position, scale: 2.0}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    (tmp_path / "logs").mkdir()
    (tmp_path / "model.xml").write_text(MODEL)
    (tmp_path / "gapless.yaml").write_text(YAML)
    time_s = np.arange(100) / 50.0
    np.savez(tmp_path / "logs" / "a.npz", time_s=time_s, u=np.sin(3 * time_s), q=np.cos(time_s))
    return part("gap_plants").Folder(tmp_path)


def columns(folder: Any) -> dict[str, np.ndarray]:
    with np.load(folder.logs()[0]) as data:
        return {name: data[name] for name in data.files}


def test_every_machine_has_enough_cases_with_nulls_and_pairs() -> None:
    planted = part("gap_planted")
    cases = {split: planted.cases(split) for split in ("tuning", "test")}
    assert set(Counter(case.robot for case in cases["test"]).values()) == {14}
    assert len(planted.MACHINES) == 6
    assert set(Counter(case.robot for case in cases["test"] if not case.causes).values()) == {3}
    assert set(Counter(case.robot for case in cases["test"] if len(case.causes) == 2).values()) == {2}
    seeds = [case.seed for split in cases.values() for case in split]
    assert len(seeds) == len(set(seeds))


def test_nulls_of_a_machine_have_other_logs_and_the_splits_share_none(folder: Any, tmp_path: Path) -> None:
    planted = part("gap_planted")
    kept = {}
    for case in (c for split in ("tuning", "test") for c in planted.cases(split) if c.robot == "qube" and not c.causes):
        for k in range(8):
            (tmp_path / "logs" / f"run{k}.npz").write_bytes(b"")
        (tmp_path / "logs" / "a.npz").unlink(missing_ok=True)
        planted.leave_out_logs(folder, case)
        kept[case.split, case.seed] = frozenset(path.stem for path in folder.logs())
    assert len(set(kept.values())) == len(kept) == 4
    used = {
        split: set().union(*(names for (s, _), names in kept.items() if s == split)) for split in ("tuning", "test")
    }
    assert not used["tuning"] & used["test"]


def test_a_gain_that_is_too_high_has_its_inverse_as_truth(folder: Any) -> None:
    _, places = part("gap_plants").weaker(("motor",))(folder, np.random.default_rng(0))
    factor = float(folder.model().actuator("motor").gainprm[0])
    assert factor != 1.0
    assert places == {"actuator/motor/gain": pytest.approx(1 / factor)}


def test_mass_and_friction_have_the_value_before_as_truth(folder: Any) -> None:
    rng = np.random.default_rng(0)
    assert part("gap_plants").rubbing({"hinge": 0.2})(folder, rng)[1] == {"joint/hinge/frictionloss": 0.1}
    assert part("gap_plants").heavier(("bob",))(folder, rng)[1] == {"body/bob/mass": pytest.approx(0.5)}
    assert folder.model().body("bob").mass[0] != pytest.approx(0.5)


def test_a_tilt_is_undone_by_its_truth(folder: Any) -> None:
    # The model leans towards x; turning its floor about y by the truth makes gravity upright again.
    _, places = part("gap_plants").tilted("x")(folder, np.random.default_rng(1))
    x, _, z = folder.model().opt.gravity
    angle = places["world/tilt/y"]
    assert abs(x) > 0.3
    assert np.cos(angle) * x - np.sin(angle) * z == pytest.approx(0.0, abs=1e-9)


def test_late_commands_are_logged_before_they_act(folder: Any) -> None:
    before = columns(folder)
    _, places = part("gap_plants").late(("u",), 0.04, 0.04)(folder, np.random.default_rng(0))
    after = columns(folder)
    assert places["actuator/*/delay"] == pytest.approx(0.04)
    assert after["u"] == pytest.approx(before["u"][2:])  # two rows of 20 ms; the end has no command any more
    assert after["q"] == pytest.approx(before["q"][:-2])


def test_a_bias_is_in_units_of_the_model(folder: Any) -> None:
    before = columns(folder)
    _, places = part("gap_plants").shifted({"q": 0.1})(folder, np.random.default_rng(0))
    shift = (columns(folder)["q"] - before["q"])[0]
    assert places == {"measurement/q/bias": pytest.approx(2.0 * shift)}  # the mapping's scale


def test_play_is_used_up_before_anything_moves() -> None:
    passed = part("gap_planted").pass_play(np.array([0.0, 0.4, 1.0, 0.6, -1.0]), 1.0)
    assert passed == pytest.approx([0.0, 0.0, 0.5, 0.5, -0.5])


def test_what_does_not_show_is_planted_more_strongly(folder: Any) -> None:
    plants = part("gap_plants")
    weak = plants.late(("u",), 0.04, 0.04)(folder, np.random.default_rng(0))[1]["actuator/*/delay"]
    stronger = plants.Folder(folder.place, 1.5)
    assert plants.late(("u",), 0.04, 0.04)(stronger, np.random.default_rng(0))[1]["actuator/*/delay"] == 1.5 * weak


def test_a_case_that_never_shows_is_left_out_of_the_scores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    benchmark, cases = part("diagnose"), part("gap_cases")

    def refuse(job: Any) -> None:
        raise cases.NotShownError("too small")

    monkeypatch.setattr(benchmark, "prepare", refuse)
    assert list(benchmark.answers_of(cases.cases("tuning", "null")[:2], tmp_path, 1)) == []
