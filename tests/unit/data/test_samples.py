"""Chunks are joined and samples are deleted beside other processes: nothing else is lost, nothing comes twice."""

import os
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from catalogue_writer import make_episode, make_provenance, same_episode
from test_catalogue_processes import printed_ids, start_writer
from test_recordings import add, make_recording, same_recording

from gapless.core.errors import CatalogueError
from gapless.core.recording import Video
from gapless.data import samples, tables
from gapless.data.catalogue import Catalogue

COUNT = "SELECT count(*) AS n FROM samples"


def chunk_files(project: Path) -> list[Path]:
    return sorted((project / ".gapless" / "samples").glob("*.parquet"))


def age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def add_some(catalogue: Catalogue, count: int) -> list[str]:
    return [catalogue.add_episode(make_episode(k), make_provenance()) for k in range(count)]


def check(catalogue: Catalogue, ids: list[str]) -> None:
    for k, id in enumerate(ids):
        assert same_episode(catalogue.episode(id), make_episode(k))
    assert catalogue.query(COUNT)["n"][0].as_py() == 250 * len(ids)


def test_many_episodes_of_one_commit_are_one_file(catalogue: Catalogue, tmp_path: Path) -> None:
    ids = catalogue.add_episodes([(make_episode(k), make_provenance()) for k in range(1000)])
    (path,) = chunk_files(tmp_path)
    file = pq.ParquetFile(path)
    assert file.num_row_groups == pytest.approx(1000 * 350 / samples.ROW_GROUP_CELLS, abs=1)
    assert same_episode(catalogue.episode(ids[500]), make_episode(500))


def test_compaction_joins_chunks_and_keeps_what_is_in_them(catalogue: Catalogue, tmp_path: Path) -> None:
    ids, other = add_some(catalogue, 5), Catalogue.open(tmp_path)
    assert len(chunk_files(tmp_path)) == 5
    other.episode(ids[0])  # it has looked, and has a file open
    catalogue.compact()
    for path in chunk_files(tmp_path):
        age(path, 3700)  # one was just written, others were replaced
    catalogue.compact()
    (joined,) = chunk_files(tmp_path)
    assert pq.ParquetFile(joined).num_row_groups == 1
    for each in (catalogue, other, Catalogue.open(tmp_path)):
        check(each, ids)
    ids.append(catalogue.add_episode(make_episode(5), make_provenance()))
    catalogue.compact()
    check(other, ids)


def test_large_files_are_not_joined_again(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    add_some(catalogue, 6)
    size = chunk_files(tmp_path)[0].stat().st_size
    monkeypatch.setattr(samples, "JOINED_BYTES", 2 * size - 100)  # two chunks make a file
    catalogue.compact()
    joined = [path for path in chunk_files(tmp_path) if path.stem.startswith("joined")]
    assert len(joined) == 3
    monkeypatch.setattr(samples, "SMALL_BYTES", min(path.stat().st_size for path in joined))
    catalogue.compact()
    assert [path for path in chunk_files(tmp_path) if path.stem.startswith("joined")] == joined


def test_adding_joins_by_itself(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(samples, "JOIN_ABOVE_FILES", 4)
    monkeypatch.setattr(samples, "MAX_REPLACED_AGE_S", 0.0)
    ids = add_some(catalogue, 14)
    assert len(chunk_files(tmp_path)) <= 6
    check(catalogue, ids)


@pytest.mark.parametrize("step", ["_copy", "write_text", "replace", "utime", "_delete_leftovers"])
def test_a_compaction_killed_on_the_way_loses_nothing(catalogue: Catalogue, tmp_path, monkeypatch, step: str) -> None:
    ids = add_some(catalogue, 4)

    def die(*_args, **_kwargs):
        raise KeyboardInterrupt

    where = {"_copy": samples, "write_text": Path, "_delete_leftovers": samples.SampleStore}.get(step, samples.os)
    with monkeypatch.context() as patch:
        patch.setattr(where, step, die)
        with pytest.raises(KeyboardInterrupt):
            catalogue.compact()
    for each in (catalogue, Catalogue.open(tmp_path)):
        check(each, ids)
    catalogue.compact()
    check(catalogue, ids)


def test_an_episode_added_during_a_compaction_is_kept(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    ids, copy = add_some(catalogue, 3), samples._copy

    def late(*args):
        if len(ids) == 3:
            ids.append(Catalogue.open(tmp_path).add_episode(make_episode(3), make_provenance()))
        return copy(*args)

    monkeypatch.setattr(samples, "_copy", late)
    catalogue.compact()
    assert len(ids) == 4
    check(catalogue, ids)
    for path in chunk_files(tmp_path):
        age(path, 8 * 24 * 3600)
    catalogue.compact()
    check(Catalogue.open(tmp_path), ids)


def test_chunks_that_another_process_joined_meanwhile_are_kept(catalogue: Catalogue, tmp_path, monkeypatch) -> None:
    """The other process adds and joins after this one has looked which chunks there are."""
    ids, delete = add_some(catalogue, 3), samples.SampleStore.delete

    def late(store, chunks, episodes) -> None:
        if len(ids) == 3:
            other = Catalogue.open(tmp_path)
            ids.append(other.add_episode(make_episode(3), make_provenance()))
            other.compact()
        delete(store, chunks, episodes)

    monkeypatch.setattr(samples.SampleStore, "delete", late)
    monkeypatch.setattr(samples, "MAX_REPLACED_AGE_S", 0.0)
    catalogue.compact([ids[0]])
    assert len(ids) == 4
    assert [same_episode(catalogue.episode(id), make_episode(k)) for k, id in enumerate(ids) if k] == [True] * 3
    for path in chunk_files(tmp_path):
        assert ids[0] not in pq.read_table(path, columns=["episode"])["episode"].to_pylist()


def test_a_file_that_is_replaced_while_it_is_asked_for_is_found_again(
    catalogue: Catalogue, tmp_path, monkeypatch
) -> None:
    ids, place, files = add_some(catalogue, 3), samples.SampleStore.find_file, samples.SampleStore.files
    late = Catalogue.open(tmp_path)
    monkeypatch.setattr(samples, "MAX_REPLACED_AGE_S", 0.0)

    def replace_after(look, call: int):
        def looked(store, *args):
            found = look(store, *args)
            if store is late._samples:
                looks.append(found)
                if len(looks) == call:
                    catalogue.compact()
            return found

        return looked

    looks: list[object] = []
    monkeypatch.setattr(samples.SampleStore, "find_file", replace_after(place, 2))  # the first is for messages
    assert same_episode(late.episode(ids[1]), make_episode(1))
    assert len(looks) == 3
    add_some(catalogue, 5)
    looks.clear()
    monkeypatch.setattr(samples.SampleStore, "files", replace_after(files, 1))
    assert late.query(COUNT)["n"][0].as_py() == 5 * 250
    assert len(looks) == 2


def test_leftovers_go_after_a_week_and_what_is_just_written_stays(catalogue: Catalogue, tmp_path: Path) -> None:
    ids = add_some(catalogue, 1)
    folder = tmp_path / ".gapless" / "samples"
    for name, days in (("young", 6), ("old", 8)):
        (folder / f"{name}.parquet").write_bytes(chunk_files(tmp_path)[0].read_bytes())
        age(folder / f"{name}.parquet", days * 24 * 3600)
    catalogue.compact()
    assert (folder / "young.parquet").exists()
    assert not (folder / "old.parquet").exists()
    check(catalogue, ids)


def test_samples_of_some_episodes_are_deleted_at_once(catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "shared.mp4").write_bytes(b"both")
    (tmp_path / "own.mp4").write_bytes(b"mine")
    shared, own = (Video(name, tmp_path / f"{name}.mp4") for name in ("shared", "own"))
    secret = np.full(500, 1234.5678)
    person = make_recording(0, columns={"a": secret}, videos=(shared, own))
    ids = add(catalogue, make_recording(1, videos=(shared,)), person, make_recording(2))
    (alone,) = add(catalogue, make_recording(3))
    before, other = catalogue.query(COUNT)["n"][0].as_py(), Catalogue.open(tmp_path)
    other.recording(ids[1])
    catalogue.compact(without=[ids[1]])
    for path in chunk_files(tmp_path):
        assert ids[1] not in pq.read_table(path, columns=["episode"])["episode"].to_pylist()
        assert not any(1234.5678 in values for values in pq.read_table(path)["values"].to_pylist())
    assert before - catalogue.query(COUNT)["n"][0].as_py() == 500
    assert {path.read_bytes() for path in (tmp_path / ".gapless" / "media").rglob("*.mp4")} == {b"both"}
    for each in (catalogue, other):
        with pytest.raises(CatalogueError, match=f"samples of episode {ids[1]} were deleted: choose"):
            each.recording(ids[1])
        found = each.recordings([ids[0], ids[2], alone])
        assert [recording.name for recording in found] == ["take1", "take2", "take3"]
    assert same_recording(catalogue.recording(ids[2]), make_recording(2))
    assert add(catalogue, make_recording(2)) == (ids[2],)
    files = chunk_files(tmp_path)
    catalogue.compact(without=[ids[1]])  # nothing is left to delete
    assert chunk_files(tmp_path) == files
    assert len(catalogue.episodes()) == 4


@pytest.mark.slow
def test_writers_beside_joining_lose_nothing(tmp_path: Path) -> None:
    catalogue = Catalogue.open(tmp_path)
    writers: list[subprocess.Popen] = [start_writer(tmp_path, 100 * k, 8) for k in range(2)]
    reads = 0

    def join() -> None:
        own = Catalogue.open(tmp_path)
        while any(writer.poll() is None for writer in writers):
            own.compact()

    thread = threading.Thread(target=join)
    thread.start()
    while thread.is_alive():
        for row in catalogue.episodes()[-3:]:
            assert same_episode(catalogue.episode(row.id), make_episode(int(row.name[3:])))
            reads += 1
    thread.join()
    ids = [id for writer in writers for id in printed_ids(writer)]
    assert len(ids) == 16
    assert reads > 0
    assert catalogue.query(COUNT)["n"][0].as_py() == 16 * 250


def test_a_row_that_another_process_added_meanwhile_is_left_out(
    catalogue: Catalogue, tmp_path: Path, monkeypatch
) -> None:
    """The lost chunk of the slower process does not show in the samples."""
    append, raced = tables.Table.append, []

    def late(table, rows, *checked) -> None:
        if not raced:
            raced.append(True)
            Catalogue.open(tmp_path).add_episode(make_episode(), make_provenance())
        append(table, rows, *checked)

    monkeypatch.setattr(tables.Table, "append", late)
    ids = catalogue.add_episodes([(make_episode(k), make_provenance()) for k in range(2)])
    check(catalogue, list(ids))
    rows = [path for path in tables.Table(tmp_path / ".gapless/tables/episodes", tables.pa.schema([])).files()]
    assert sum(pq.ParquetFile(path).metadata.num_rows for path in rows) == 2  # on the disk, too
