"""A motion for a real arm: its stock model and three of its logs, which lie beside the repository, not in it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from architecture.tree import ROOT
from gapless.core.results import ExciteResult
from gapless.excite.search import ExciteConfig
from gapless.excite.verb import excite
from gapless.fit.data import read_project_data

SETS = importlib.util.spec_from_file_location("sets", ROOT / "benchmarks" / "sets.py")
sets = importlib.util.module_from_spec(SETS)  # type: ignore[arg-type]
SETS.loader.exec_module(sets)  # type: ignore[union-attr]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (sets.data_folder() / "so101").is_dir(), reason="no real logs here: set GAPLESS_DATA"),
]
WANTED = [f"actuator/{joint}/kp" for joint in sets.SO101_JOINTS]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ExciteResult]:
    folder = sets.so101(tmp_path_factory.mktemp("so101"), sets.so101_motions()[:3], 40.0)
    return folder, excite(folder, WANTED, seconds=12.0, config=ExciteConfig(min_motions=14, max_motions=14))


def test_it_tells_the_stiffness_of_every_servo(found: tuple[Path, ExciteResult]) -> None:
    wanted = [p for p in found[1].parameters if p.wanted]
    assert [p.target for p in wanted] == WANTED
    assert all(p.outlook == "can be told" for p in wanted)


def test_it_keeps_to_what_the_robot_has_done_in_its_logs(found: tuple[Path, ExciteResult]) -> None:
    folder, result = found
    table = np.genfromtxt(str(result.path), delimiter=",", names=True)
    tracks = read_project_data(folder).tracks
    for k, joint in enumerate(sets.SO101_JOINTS):
        span = sets.JAW_RANGE[1] - sets.JAW_RANGE[0] if joint == "gripper" else 1.0  # the jaw is logged as 0..1
        speed = np.abs(np.diff(table[f"cmd_{joint}"])).max() * 50.0 * span
        assert 0.0 < speed <= 1.5 * max(np.abs(track.slope[:, k]).max() for track in tracks)
    assert any(limit.active for limit in result.limits)
    assert all(limit.low <= limit.reached_low <= limit.reached_high <= limit.high for limit in result.limits)
    assert 0.0 <= table["cmd_gripper"].min() <= table["cmd_gripper"].max() <= 1.0
