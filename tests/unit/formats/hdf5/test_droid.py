"""Folders as DROID records them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.core.errors import LogError
from gapless.core.recording import Recording, Skipped
from gapless.formats.format import ReadOptions
from gapless.formats.registry import find_format, read_source

h5py = pytest.importorskip("h5py")

START_MS = 1_700_000_000_123
UUID = "CLVR+236539bc+2023-05-15-00h-51m-15s"


def write_episode(folder: Path, uuid: str = UUID, *, timed: bool = True) -> Path:
    """Writes the folder of one episode."""
    (folder / "recordings" / "MP4").mkdir(parents=True)
    for serial in ("16787047", "24259877"):
        (folder / "recordings" / "MP4" / f"{serial}.mp4").write_bytes(b"")
    metadata: dict[str, Any] = {"uuid": uuid, "lab": "CLVR", "user": "Ana B", "timestamp": "2023-05-15-00h-51m-15s"}
    metadata |= {"success": True, "current_task": "Close the drawer", "scene_id": 8, "robot_serial": "panda-295341"}
    metadata |= {"wrist_mp4_path": "success/recordings/MP4/16787047.mp4", "ext1_mp4_path": "MP4/99.mp4"}
    (folder / f"metadata_{uuid}.json").write_text(json.dumps(metadata))
    with h5py.File(folder / "trajectory.h5", "w") as file:
        file.attrs["building"], file.attrs["success"] = "GRASP", True
        file["action/joint_position"] = np.arange(28.0).reshape(4, 7)
        file["observation/robot_state/joint_positions"] = np.ones((4, 7))
        file["observation/robot_state/gripper_position"] = np.zeros(4)
        file["observation/timestamp/skip_action"] = np.array([True, False, False, False])
        if timed:
            file["observation/timestamp/control/step_start"] = START_MS + 67 * np.arange(4)
    return folder


def read(path: Path, known: tuple[str, ...] = ()) -> tuple[list[Recording], dict[str, str]]:
    """Returns recordings, and what was skipped with the reasons."""
    found = list(read_source(path, ReadOptions(known=known)))
    skipped = {each.what: each.why for each in found if isinstance(each, Skipped)}
    return [each for each in found if isinstance(each, Recording)], skipped


def test_an_episode_with_all_that_is_said_of_it(tmp_path: Path) -> None:
    folder = write_episode(tmp_path / "success" / "2023-05-15" / "Mon_May_15_00:51:15_2023")
    assert find_format(tmp_path).name == "droid"
    (run,), skipped = read(tmp_path)
    assert run.name == UUID
    np.testing.assert_allclose(run.times_s, 0.067 * np.arange(4), atol=1e-12)
    assert run.start_ns == START_MS * 10**6
    np.testing.assert_array_equal(run.columns["action.joint_position_6"], 6 + 7.0 * np.arange(4))
    assert run.types["observation.timestamp.skip_action"] == "bool"
    assert (run.source, run.outcome, run.recorded_at) == ("real", "success", "2023-05-15T00:51:15")
    assert run.conditions == {"task": "Close the drawer", "building": "GRASP", "scene": "8"}
    assert (run.origin.site, run.origin.operator, run.origin.robot_serial) == ("CLVR", "Ana B", "panda-295341")
    assert [(video.camera, video.path.name) for video in run.videos] == [
        ("wrist", "16787047.mp4"),
        ("24259877", "24259877.mp4"),
    ]
    assert skipped == {f"{UUID}: video ext1": "no recordings/MP4/99.mp4"}
    assert read(folder / "trajectory.h5")[0][0].name == UUID
    assert read(tmp_path, (UUID,))[0] == []


def test_folders_say_success_and_a_usual_rate_is_said(tmp_path: Path) -> None:
    folder = write_episode(tmp_path / "failure" / "2023-05-15" / "Mon", timed=False)
    next(folder.glob("metadata*")).unlink()
    with h5py.File(folder / "trajectory.h5", "a") as file:
        del file.attrs["success"]
    (run,), skipped = read(tmp_path)
    assert (run.name, run.outcome, run.source) == ("Mon", "failure", None)
    np.testing.assert_allclose(run.times_s, np.arange(4) / 15, atol=1e-12)
    assert skipped["time"] == "no rate stated; steps are taken as 0.0666667 s"
    assert "who recorded it" in skipped["Mon: metadata"]


def test_one_damaged_episode_leaves_the_others(tmp_path: Path) -> None:
    for name in "abc":
        write_episode(tmp_path / name, uuid="same" if name != "b" else "b")
    whole = (tmp_path / "b" / "trajectory.h5").read_bytes()
    (tmp_path / "b" / "trajectory.h5").write_bytes(whole[:3000])
    runs, skipped = read(tmp_path)
    assert [run.name for run in runs] == ["same", "same_2"]
    assert "not readable as HDF5" in skipped["b/trajectory.h5"]
    (tmp_path / "c" / "metadata_same.json").write_text("[1]")
    assert "the metadata beside it is no JSON object" in read(tmp_path)[1]["c/trajectory.h5"]


def test_links_that_lead_out_are_refused(tmp_path: Path) -> None:
    write_episode(tmp_path / "secret")
    (tmp_path / "set" / "a").mkdir(parents=True)
    (tmp_path / "set" / "a" / "trajectory.h5").symlink_to(tmp_path / "secret" / "trajectory.h5")
    with pytest.raises(LogError, match="outside of its folder"):
        read(tmp_path / "set")
