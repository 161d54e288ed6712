"""Demonstrations of robomimic and episodes of ACT, as their recorders lay them out."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.core.errors import LogError
from gapless.core.recording import Recording, Skipped
from gapless.formats import source
from gapless.formats.format import ReadOptions
from gapless.formats.hdf5.robomimic import write_robomimic
from gapless.formats.registry import find_format, read_source

h5py = pytest.importorskip("h5py")

ENV_ARGS = {
    "env_name": "Lift",
    "type": 1,
    "env_version": "1.4.1",
    "env_kwargs": {"robots": ["Panda"], "control_freq": 10, "controller_configs": {"kp": 150}},
}


def read(path: Path, known: Sequence[str] = ()) -> tuple[list[Recording], dict[str, str]]:
    """Returns recordings, and what was skipped with the reasons."""
    found = list(read_source(path, ReadOptions(known=known)))
    skipped = [each for each in found if isinstance(each, Skipped)]
    assert len({each.what for each in skipped}) == len(skipped)  # each thing is said once
    return [each for each in found if isinstance(each, Recording)], {each.what: each.why for each in skipped}


def write_demos(path: Path, env_args: Any = ENV_ARGS, *, numbers: Sequence[int] = (0, 1, 10, 2)) -> Path:
    """Writes demonstrations as robomimic's own tools do."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps(env_args)
        for number in numbers:
            demo, num_rows = data.create_group(f"demo_{number}"), 5 + number
            demo.attrs["num_samples"], demo.attrs["model_file"] = num_rows, "<mujoco/>" * 20_000
            demo["actions"] = np.arange(7.0 * num_rows).reshape(num_rows, 7)
            demo["rewards"], demo["dones"] = np.zeros(num_rows), np.zeros(num_rows, np.int64)
            demo["states"] = np.ones((num_rows, 32))
            for group in ("obs", "next_obs"):
                demo[f"{group}/robot0_eef_pos"] = np.full((num_rows, 3), number, np.float32)
                demo[f"{group}/agentview_image"] = np.zeros((num_rows, 8, 8, 3), np.uint8)
        file["mask/train"] = np.array([b"demo_0", b"demo_10"])
    return path


def change(path: Path, edit: Callable[[Any], None]) -> Path:
    """Changes a file."""
    with h5py.File(path, "a") as file:
        edit(file)
    return path


def test_demonstrations_of_robomimic(tmp_path: Path) -> None:
    path = write_demos(tmp_path / "low_dim.hdf5")
    assert find_format(path).name == "robomimic"
    runs, skipped = read(path)
    assert [run.name for run in runs] == ["demo_0", "demo_1", "demo_2", "demo_10"]
    first, last = runs[0], runs[-1]
    assert len(last.times_s) == 15
    np.testing.assert_allclose(last.times_s, np.arange(15) / 10, atol=1e-12)
    assert first.details["time"] == "steps are taken as 0.1 s, as control_freq in env_args says"
    np.testing.assert_array_equal(first.columns["actions_6"], 6 + 7.0 * np.arange(5))
    np.testing.assert_array_equal(last.columns["obs.robot0_eef_pos_2"], 10)
    assert first.types["obs.robot0_eef_pos_2"] == "float32"
    assert first.types["dones"] == "int64"
    assert {"rewards", "states_31", "next_obs.robot0_eef_pos_0"} <= set(first.columns)
    assert (first.source, first.origin.simulator, first.origin.simulator_version) == ("sim", "robosuite", "1.4.1")
    assert first.origin.robot == "Panda"
    assert first.conditions == {"task": "Lift"}
    assert [run.details.get("masks") for run in runs] == [["train"], None, None, ["train"]]
    assert first.details["env_args"] == ENV_ARGS
    assert len(first.details["model_sha256"]) == 64
    assert list(skipped) == ["model_file", "next_obs.agentview_image", "obs.agentview_image"]
    assert "8 x 8 x 3 numbers per row: images" in skipped["obs.agentview_image"]
    assert [run.name for run in read(path, ["demo_0", "demo_2"])[0]] == ["demo_1", "demo_10"]


def test_a_rate_that_nothing_states_is_said_once(tmp_path: Path) -> None:
    path = write_demos(tmp_path / "a.hdf5", {"env_name": "real", "type": 7})
    runs, skipped = read(path)
    assert skipped["time"] == "no rate stated; steps are taken as 0.05 s"
    assert runs[0].details["time"] == skipped["time"]
    assert runs[0].source is None
    change(path, lambda file: file["data/demo_1"].create_dataset("timestamps", data=7 + np.arange(6) ** 2.0))
    np.testing.assert_array_equal(read(path)[0][1].times_s, np.arange(6) ** 2.0)


def test_links_and_numbers_in_other_files_are_not_followed(tmp_path: Path) -> None:
    other = write_demos(tmp_path / "secret.hdf5")
    path = write_demos(tmp_path / "a.hdf5", numbers=[0])

    def edit(file: Any) -> None:
        demo, virtual = file["data/demo_0"], h5py.VirtualLayout((5,), "f8")
        virtual[:] = h5py.VirtualSource(str(other), "data/demo_0/rewards", (5,))
        demo["obs/linked"] = h5py.ExternalLink(str(other), "data/demo_0/rewards")
        demo["obs/nowhere"] = h5py.SoftLink("/nothing")
        demo.create_virtual_dataset("obs/virtual", virtual)
        demo.create_dataset("obs/outside", (5,), "u1", external=[(str(other), 0, 5)])
        file["data/demo_1"] = h5py.ExternalLink(str(other), "data/demo_1")
        file["data/again"] = file["data"]  # a circle

    runs, skipped = read(change(path, edit))
    assert [run.name for run in runs if run.name != "again"] == ["demo_0"]
    assert not [column for column in runs[0].columns if column.split(".")[-1] in ("linked", "virtual", "outside")]
    assert "links are not followed" in skipped["obs.linked"]
    assert "links are not followed" in skipped["obs.nowhere"]
    assert "lie in other files" in skipped["obs.virtual"]
    assert "lie in other files" in skipped["obs.outside"]
    assert "it is a link" in skipped["a.hdf5: demo_1"]


def test_what_does_not_fit_is_left_out_and_the_rest_comes_in(tmp_path: Path) -> None:
    def edit(file: Any) -> None:
        demo = file["data/demo_0"]
        demo["obs/short"], demo["obs/words"] = np.zeros(4), ["a", "b", "a", "b", "a"]
        demo["obs/robot"], demo["obs/pairs"] = ["panda"] * 5, np.zeros(5, [("a", "f8"), ("b", "f8")])
        demo["obs/huge"] = np.full(5, 2**60)
        demo["gain"] = 0.5
        demo.attrs["num_samples"] = 6

    runs, skipped = read(change(write_demos(tmp_path / "a.hdf5", numbers=[0]), edit))
    assert runs[0].details["obs.robot"] == "panda"
    assert runs[0].details["gain"] == 0.5
    assert skipped["demo_0: obs.short"] == "it has 4 rows, and the others have 5"
    assert skipped["obs.words"] == "it holds text that changes, not numbers"
    assert "not numbers" in skipped["demo_0: obs.pairs"]
    assert "beyond 2**53" in skipped["demo_0: obs.huge"]
    assert skipped["demo_0: num_samples"] == "it says 6; the 5 rows that there are are read"
    assert "actions_0" in runs[0].columns


def test_an_array_larger_than_the_memory_is_refused_without_reading_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edit(file: Any) -> None:
        for key in list(file["data/demo_0"]):
            del file["data/demo_0"][key]
        file["data/demo_0"].create_dataset("actions", (2**33, 7), "f8", chunks=(1024, 7), compression="gzip")

    path = change(write_demos(tmp_path / "bomb.hdf5", numbers=[0, 1]), edit)
    assert path.stat().st_size < 10**6
    monkeypatch.setattr(source, "read_free_memory", lambda: 16e9)
    runs, skipped = read(path)
    assert [run.name for run in runs] == ["demo_1"]
    assert "481.0 GB of memory, and 16.0 GB are free" in skipped["bomb.hdf5: demo_0"]


@pytest.mark.parametrize("is_sim", [True, False])
def test_episodes_of_act_are_a_file_each(tmp_path: Path, is_sim: bool) -> None:
    for number in range(2):
        with h5py.File(tmp_path / f"episode_{number}.hdf5", "w") as file:
            file.attrs["sim"] = is_sim
            file["action"], file["observations/qpos"] = np.zeros((9, 14)), np.full((9, 14), number)
            file["observations/images/top"] = np.zeros((9, 4, 4, 3), np.uint8)
    runs, skipped = read(tmp_path)
    assert [run.name for run in runs] == ["episode_0", "episode_1"]
    assert runs[0].source == ("sim" if is_sim else "real")
    np.testing.assert_allclose(runs[1].times_s, np.arange(9) / 50, atol=1e-12)
    np.testing.assert_array_equal(runs[1].columns["observations.qpos_13"], 1)
    assert "0.02 s" in skipped["time"]
    assert "images" in skipped["observations.images.top"]


def test_other_hdf5_says_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["temperature"] = [1.0]
    with pytest.raises(LogError, match=r"neither data/demo_0 nor action, but temperature"):
        read(path)
    path.write_bytes(b"not hdf5 at all")
    with pytest.raises(LogError, match="not readable as HDF5") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_what_is_written_is_laid_out_as_robomimic_wants(tmp_path: Path) -> None:
    columns = {
        **{f"action.{joint}": np.arange(4.0) + k for k, joint in enumerate(["hip", "knee"])},
        **{f"observation.state.{joint}": np.arange(4.0) for joint in ("hip", "knee")},
        **{f"obs.eef_{k}": np.arange(4.0) for k in range(3)},
        **{"rewards": np.ones(4), "/imu.x": np.zeros(4), "a/b": np.array([np.nan, -0.0, np.inf, 5e-324])},
    }
    types = {"action.hip": "float32", "action.knee": "float32", "rewards": "int8"}
    given = [Recording(name, np.array([0, 0.1, 0.2, 0.4]), columns, types) for name in ("reach", "reach", "demo_0")]
    path = tmp_path / "out.hdf5"
    assert list(write_robomimic(iter(given), path)) == []
    with h5py.File(path) as file:
        demo = file["data/demo_1"]
        assert demo["actions"].shape == (4, 2)
        assert demo["actions"].dtype == np.float32
        assert demo["obs/observation.state"].shape == (4, 2)
        assert demo["obs/eef"].shape == (4, 3)
        assert demo["rewards"].dtype == np.int8
        assert demo["rewards"].shape == (4,)
        assert demo.attrs["num_samples"] == 4
        assert file["data"].attrs["total"] == 12
        assert set(json.loads(file["data"].attrs["env_args"])) == {"env_name", "env_kwargs"}
    runs, skipped = read(path)
    assert skipped == {}
    assert [run.name for run in runs] == ["reach", "reach_2", "demo_0"]
    for run in runs:
        assert set(run.columns) == set(columns)
        assert run.types == types
        assert run.details == {}
        assert run.columns["a/b"].tobytes() == columns["a/b"].tobytes()
        np.testing.assert_array_equal(run.times_s, given[0].times_s)
