"""Ranges beside the parameters of a project."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.core.interval import normal_quantile
from gapless.fit.data import ProjectData, read_project_data
from gapless.randomize.audit.predictions import make_box
from gapless.randomize.audit.verb import add_ranges, read_training_ranges
from unit.identify.realities import write_reality


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> ProjectData:
    return read_project_data(write_reality(tmp_path_factory.mktemp("ranges"), {}, num_logs=1, duration_s=1.0))


def written(folder: Path, text: str) -> Path:
    path = folder / "ranges.txt"
    path.write_text(text)
    return path


def test_what_is_not_varied_stays_at_the_model_and_bells_lose_their_tails(
    evidence: ProjectData, tmp_path: Path
) -> None:
    text = "actuator/motor/gain normal 1 +- 0.1 within 0 .. 2\njoint/hinge/damping uniform 0.1 .. 0.2\n"
    ranges, _ = read_training_ranges(written(tmp_path, text), evidence.blueprint)
    space = add_ranges(evidence, ranges).whole
    box = make_box(replace(ranges, space=space), np.random.default_rng(0))
    low, high = (dict(zip(space.targets, end, strict=True)) for end in (box.low, box.high))
    assert (low["joint/hinge/damping"], high["joint/hinge/damping"]) == (0.1, 0.2)
    assert (low["actuator/*/delay"], high["actuator/*/delay"]) == (0.0, 0.0)
    # 99 % of a bell lies within 2.576 deviations
    assert high["actuator/motor/gain"] == pytest.approx(1 + 0.1 * normal_quantile(0.995), abs=0.02)
    assert sorted(np.array(space.targets)[box.varied]) == ["actuator/motor/gain", "joint/hinge/damping"]


def test_bounds_hold_the_ranges_and_the_model(evidence: ProjectData, tmp_path: Path) -> None:
    ranges, _ = read_training_ranges(written(tmp_path, "actuator/motor/gain uniform 3 .. 5\n"), evidence.blueprint)
    found = {p.target: p for p in add_ranges(evidence, ranges).space.parameters}
    assert (found["actuator/motor/gain"].low, found["actuator/motor/gain"].high) == (0.3, 5.0)


def test_one_factor_for_all_takes_the_place_of_single_ones(evidence: ProjectData, tmp_path: Path) -> None:
    ranges, _ = read_training_ranges(written(tmp_path, "joint/*/damping uniform 0.5 .. 2\n"), evidence.blueprint)
    targets = add_ranges(evidence, ranges).whole.targets
    assert "joint/*/damping" in targets
    assert "joint/hinge/damping" not in targets


def test_a_parameter_that_the_project_does_not_list_is_fitted_too(evidence: ProjectData, tmp_path: Path) -> None:
    ranges, _ = read_training_ranges(written(tmp_path, "body/bob/mass uniform 0.3 .. 0.9\n"), evidence.blueprint)
    assert "body/bob/mass" in add_ranges(evidence, ranges).space.targets


@pytest.mark.parametrize(
    ("text", "told"), [("", "no ranges in it"), ("joint/knee/damping uniform 0 .. 1\n", "no joint 'knee'")]
)
def test_no_ranges_and_those_of_another_robot(evidence: ProjectData, tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_training_ranges(written(tmp_path, text), evidence.blueprint)


MJLAB = """
from mjlab.envs.mdp import dr
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg

HINGE = SceneEntityCfg("robot", joint_names=("hinge",))
events = {
    "damping": EventTermCfg(
        mode="reset", func=dr.dof_damping, params={"asset_cfg": HINGE, "operation": "abs", "ranges": (0.07, 0.12)}
    ),
    "reset": EventTermCfg(mode="reset", func=mdp.reset_joints_by_offset, params={}),
}
"""


def test_ranges_of_another_stack_are_read_from_its_configuration(evidence: ProjectData, tmp_path: Path) -> None:
    path = tmp_path / "events.py"
    path.write_text(MJLAB)
    found, notes = read_training_ranges(path, evidence.blueprint)
    assert [(item.target, item.low, item.high) for item in found.ranges] == [("joint/hinge/damping", 0.07, 0.12)]
    assert [note.where for note in notes] == ["events.py"]
    assert "reset" in notes[0].text


def test_a_configuration_without_a_parameter_of_this_model_is_one_line(evidence: ProjectData, tmp_path: Path) -> None:
    path = tmp_path / "events.py"
    path.write_text(MJLAB.replace("dr.dof_damping", "mdp.push_by_setting_velocity"))
    with pytest.raises(InputError, match="none of its event terms is a parameter of this model"):
        read_training_ranges(path, evidence.blueprint)
