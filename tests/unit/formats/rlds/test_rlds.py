"""Data sets as TensorFlow Datasets writes them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.core.errors import LogError
from gapless.core.recording import Recording, Skipped
from gapless.formats.format import ReadOptions
from gapless.formats.registry import find_format, read_source
from gapless.formats.rlds.rlds import write_rlds
from gapless.formats.rlds.tfrecord import write_example, write_record

TEXT = {"pythonClassName": "tensorflow_datasets.core.features.text_feature.Text", "text": {}}


def tensor(dtype: str, *shape: int) -> dict[str, Any]:
    """Returns a feature of features.json."""
    dimensions = {"dimensions": [str(size) for size in shape]} if shape else {}
    return {"tensor": {"shape": dimensions, "dtype": dtype, "encoding": "none"}}


def group(**features: Any) -> dict[str, Any]:
    """Returns a dictionary of features."""
    return {"featuresDict": {"features": features}}


FEATURES = group(
    steps={
        "sequence": {
            "feature": group(
                action=tensor("float32", 7),
                is_last=tensor("bool"),
                reward=tensor("float32"),
                language_instruction=TEXT,
                observation=group(
                    state=tensor("float32", 2),
                    pose=tensor("float64", 2, 2),
                    image={"image": {"shape": {"dimensions": ["8", "8", "3"]}, "dtype": "uint8"}},
                    embedding=tensor("float32", 512),
                    contacts={"sequence": {"feature": tensor("float32")}},
                ),
            ),
            "length": "-1",
        }
    },
    episode_metadata=group(file_path=TEXT, trial=tensor("int64")),
)


def write_set(folder: Path, num_episodes: int = 3, num_shards: int = 1, features: Any = FEATURES) -> Path:
    """Writes a data set of episodes of 4 steps."""
    folder.mkdir(parents=True)
    (folder / "features.json").write_text(json.dumps(features))
    (folder / "dataset_info.json").write_text(json.dumps({"name": "toy", "fileFormat": "tfrecord"}))
    for shard in range(num_shards):
        with (folder / f"toy-train.tfrecord-{shard:05d}-of-{num_shards:05d}").open("wb") as file:
            for number in range(num_episodes):
                example = {
                    "steps/action": np.arange(28, dtype=np.float32),
                    "steps/is_last": np.array([0, 0, 0, 1]),
                    "steps/reward": np.zeros(4, np.float32),
                    "steps/language_instruction": [b"open the drawer"] * 4,
                    "steps/observation/state": np.full(8, number, np.float32),
                    "steps/observation/pose": np.arange(16, dtype=np.float32),
                    "steps/observation/image": [b"\x89PNG"] * 4,
                    "steps/observation/embedding": np.zeros(2048, np.float32),
                    "episode_metadata/file_path": [f"raw/{number}.h5".encode()],
                    "episode_metadata/trial": np.array([number]),
                }
                write_record(file, write_example(example))
    return folder


def read(path: Path, known: tuple[str, ...] = ()) -> tuple[list[Recording], dict[str, str]]:
    """Returns recordings, and what was skipped with the reasons."""
    found = list(read_source(path, ReadOptions(known=known)))
    skipped = [each for each in found if isinstance(each, Skipped)]
    assert len({each.what for each in skipped}) == len(skipped)  # each thing is said once
    return [each for each in found if isinstance(each, Recording)], {each.what: each.why for each in skipped}


def test_episodes_of_all_shards(tmp_path: Path) -> None:
    write_set(tmp_path / "toy" / "1.0.0", num_shards=2)
    assert find_format(tmp_path / "toy").name == "rlds"
    runs, skipped = read(tmp_path / "toy")
    assert [run.name for run in runs] == [f"train_{number:06d}" for number in range(6)]
    run = runs[4]
    np.testing.assert_array_equal(run.columns["action_6"], [6, 13, 20, 27])
    np.testing.assert_array_equal(run.columns["observation.state_1"], 1)
    np.testing.assert_array_equal(run.columns["observation.pose_3"], [3, 7, 11, 15])
    assert run.types["action_6"] == "float32"
    assert run.types["is_last"] == "bool"
    assert "observation.pose_3" not in run.types
    assert run.conditions == {"task": "open the drawer"}
    assert run.details["episode_metadata.file_path"] == "raw/1.h5"
    assert run.details["episode_metadata.trial"] == [1]
    np.testing.assert_allclose(run.times_s, np.arange(4) / 10, atol=1e-12)
    assert skipped["time"] == run.details["time"] == "no rate stated; steps are taken as 0.1 s"
    assert "image, which is not read" in skipped["observation.image"]
    assert "512 numbers per row" in skipped["observation.embedding"]
    assert "another length in each step" in skipped["observation.contacts"]
    assert set(skipped) == {"time", "observation.image", "observation.embedding", "observation.contacts"}
    assert [run.name for run in read(tmp_path / "toy", ("train_000000",))[0]] == [run.name for run in runs[1:]]


def test_a_rate_that_metadata_state(tmp_path: Path) -> None:
    write_set(tmp_path / "toy")
    (tmp_path / "toy" / "metadata.json").write_text('{"fps": 5}')
    runs, skipped = read(tmp_path / "toy")
    np.testing.assert_allclose(runs[0].times_s, np.arange(4) / 5, atol=1e-12)
    assert "time" not in skipped
    assert runs[0].details["time"] == "steps are taken as 0.2 s, as metadata.json says"


def test_damage_and_missing_shards_leave_the_rest(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "toy", num_shards=3)
    (folder / "toy-train.tfrecord-00002-of-00003").unlink()
    shard = folder / "toy-train.tfrecord-00000-of-00003"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    runs, skipped = read(folder)
    assert [run.name for run in runs] == [f"train_{number:06d}" for number in (0, 2, 3, 4, 5)]
    assert "checksum is wrong: download" in skipped["train_000001"]
    assert "missing: download it" in skipped["toy-train.tfrecord-00002-of-00003"]
    shard.write_bytes(data[:-7])
    assert "cut off, 7 bytes are missing" in read(folder)[1][shard.name]


def test_what_is_no_such_set_is_refused_in_one_line(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "a" / "1.0.0", features={"sequence": {"feature": {"new": {}}}})
    with pytest.raises(LogError, match="nothing known of the episodes"):
        read(folder)
    write_set(tmp_path / "a" / "1.1.0")
    with pytest.raises(LogError, match=r"2 versions, 1\.0\.0, 1\.1\.0: give one"):
        read(tmp_path / "a")
    (folder / "dataset_info.json").write_text('{"fileFormat": "array_record"}')
    with pytest.raises(LogError, match="array_record, and only tfrecord is read"):
        read(folder)
    shard = tmp_path / "a" / "1.1.0" / "toy-train.tfrecord-00000-of-00001"
    shard.rename(tmp_path / "secret")
    shard.symlink_to(tmp_path / "secret")
    assert "outside of its folder" in read(tmp_path / "a" / "1.1.0")[1][shard.name]


def test_what_is_written_is_laid_out_as_rlds_wants(tmp_path: Path) -> None:
    names = ["action.hip", "action.knee", "observation.state.hip", "reward", "/a/b"]
    columns = {name: np.arange(3.0) + k for k, name in enumerate(names)}
    columns["/a/b"] = np.array([np.nan, -0.0, 5e-324])
    types = {"action.hip": "float32", "action.knee": "float32", "reward": "uint8"}
    given = [Recording("a", np.array([0, 0.1, 0.3]), columns, types)]
    given += [Recording("b", np.array([0, 0.1]), {"q": np.zeros(2)})]
    skipped = list(write_rlds(iter(given), tmp_path / "out"))
    assert [each.what for each in skipped] == ["b"]
    assert "differs from the first episode's" in skipped[0].why
    steps = json.loads((tmp_path / "out" / "features.json").read_text())["featuresDict"]["features"]["steps"]
    features = steps["sequence"]["feature"]["featuresDict"]["features"]
    assert set(features) == {"action", "observation", "reward", "timestamp", "is_first", "is_last", "is_terminal"}
    assert features["action"]["tensor"] == {"shape": {"dimensions": ["2"]}, "dtype": "float32", "encoding": "none"}
    info = json.loads((tmp_path / "out" / "dataset_info.json").read_text())
    assert info["splits"][0]["shardLengths"] == ["1"]
    (run,), left = read(tmp_path / "out")
    assert left == {}
    assert set(run.columns) == {*names, "is_first", "is_last", "is_terminal"}
    for name in names:
        assert run.columns[name].tobytes() == columns[name].tobytes()
        assert run.types.get(name) == types.get(name)
    np.testing.assert_array_equal(run.times_s, given[0].times_s)
