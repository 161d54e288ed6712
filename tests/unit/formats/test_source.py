"""What every reader watches: lack of memory, names of files, folders of several formats."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gapless.core.errors import LogError
from gapless.core.recording import Skipped
from gapless.formats.source import choose_file_name, explain_damage, list_files, read_files


def test_sizes_that_nobody_has_memory_for_are_one_line() -> None:
    with (
        pytest.raises(LogError, match="as HDF5, it asks for more memory than is free") as caught,
        explain_damage(Path("a.h5"), "HDF5"),
    ):
        bytearray(2**62)  # what h5py and ffmpeg do with sizes that damage made up
    assert "record or save it again" in str(caught.value)
    assert str(caught.value).endswith("(a.h5)")


def test_names_of_files_are_safe_and_differ_whatever_their_case() -> None:
    taken: set[str] = set()
    names = [choose_file_name(name, taken) for name in ("a/b", "A:b", "a_b_2", "..", "", "ä b", "x" * 300)]
    assert names == ["a_b", "A_b_2", "a_b_2_2", "episode", "episode_2", "ä b", "x" * 100]


def find(path: Path) -> Iterator[Skipped]:
    yield Skipped(path.name, "found")


def test_a_folder_of_several_formats_is_refused_and_its_files_are_not(tmp_path: Path) -> None:
    for name in ("a.mcap", "b.CSV", ".c.csv", "notes.txt"):
        (tmp_path / name).touch()
    with pytest.raises(LogError, match=r"\.csv and \.mcap files: give each format a folder of its own"):
        list(read_files(list_files(tmp_path, [".mcap"]), tmp_path, find))
    assert list(read_files([tmp_path / "b.CSV"], tmp_path / "b.CSV", find)) == [Skipped("b.CSV", "found")]
    (tmp_path / "b.CSV").unlink()
    assert list(read_files(list_files(tmp_path, [".mcap"]), tmp_path, find)) == [Skipped("a.mcap", "found")]
