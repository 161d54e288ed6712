"""Several processes at once, and processes that are killed."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from catalogue_writer import __file__ as writer_file
from catalogue_writer import make_episode, make_provenance, same_episode
from deltalake import DeltaTable

from gapless.data import tables
from gapless.data.catalogue import Catalogue


def start_writer(project: Path, first: int, count: int, *kind: str) -> subprocess.Popen:
    command = [sys.executable, writer_file, str(project), str(first), str(count), *kind]
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def printed_ids(process: subprocess.Popen) -> list[str]:
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return out.split()[1:]


def test_writers_at_once_lose_and_double_nothing_and_a_reader_never_fails(tmp_path: Path) -> None:
    # Writers overlap by half, so that the same episode is often added by two at once.
    writers = [start_writer(tmp_path, 4 * k, 8) for k in range(3)]  # they also create it at once
    ids: dict[int, list[str]] = {}
    threads = [threading.Thread(target=lambda k=k: ids.update({k: printed_ids(writers[k])})) for k in range(3)]
    for thread in threads:
        thread.start()
    catalogue = Catalogue.open(tmp_path)
    seen, reads = 0, 0
    while any(thread.is_alive() for thread in threads):
        rows = catalogue.episodes()
        assert len(rows) >= seen
        assert len(rows) == len({row.id for row in rows})
        seen, reads = len(rows), reads + 1
        if rows:
            catalogue.episode(rows[-1].id)
        assert catalogue.query("SELECT count(DISTINCT episode) AS n FROM samples")["n"][0].as_py() >= seen
    assert reads > 1
    assert {k: len(found) for k, found in ids.items()} == {0: 8, 1: 8, 2: 8}
    rows = catalogue.episodes()
    assert sorted(row.id for row in rows) == sorted(set().union(*ids.values()))
    assert len(rows) == 16  # 0..15, each once


def test_two_that_race_for_the_same_row_leave_one(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    """The other process commits the same row exactly between the look into the table and the commit."""
    append, raced = tables.Table.append, []

    def late(table, rows, *checked) -> None:
        if not raced:
            raced.append(True)
            Catalogue.open(tmp_path).add_episode(make_episode(), make_provenance())
        append(table, rows, *checked)

    monkeypatch.setattr(tables.Table, "append", late)
    catalogue.add_episodes([(make_episode(k), make_provenance()) for k in range(3)])
    assert raced
    assert sorted(row.name for row in catalogue.episodes()) == ["run0000", "run0001", "run0002"]


def _compact_while_running(project: Path, writers: list[subprocess.Popen]) -> None:
    catalogue = Catalogue.open(project)
    while any(writer.poll() is None for writer in writers):
        catalogue.compact()


@pytest.mark.parametrize("num_killed", [2, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", [(), ("artefacts",)])
def test_a_killed_writer_leaves_nothing_half_done(tmp_path: Path, kind: tuple[str, ...], num_killed: int) -> None:
    promised: set[str] = set()
    for attempt in range(num_killed):
        writer = start_writer(tmp_path, 1000 * attempt, 1000, *kind)
        lines = [writer.stdout.readline() for _ in range(3 + 2 * attempt)]  # then it is in the middle of a write
        threading.Event().wait(0.004 * attempt)
        writer.kill()
        out, _ = writer.communicate()
        assert writer.returncode == -9
        promised |= {line.strip() for line in [*lines, *out.splitlines(True)] if line.endswith("\n")} - {"open"}
    catalogue = Catalogue.open(tmp_path)
    rows = catalogue.artefacts() if kind else catalogue.episodes()
    assert promised <= {row.id for row in rows}
    assert len(promised) >= 2 * num_killed
    for row in rows:
        if kind:
            files = {name: catalogue.artefact_path(row.id, name).read_bytes() for name in row.files}
            assert files == {"fit.json": b"%d" % row.provenance.seed, "a/b": b"x" * 50_000}
        else:
            assert same_episode(catalogue.episode(row.id), make_episode(int(row.name.removeprefix("run"))))
    new = catalogue.add_episode(make_episode(99_999), make_provenance())
    assert catalogue.episode(new).name == "run99999"


def test_compaction_joins_files_and_keeps_rows(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tables, "COMPACT_ABOVE_FILES", 5)
    ids = [catalogue.add_episode(make_episode(k), make_provenance()) for k in range(12)]
    folder = tmp_path / ".gapless/tables/episodes"
    assert len(DeltaTable(folder).file_uris()) <= 6  # it happened by itself
    catalogue.compact()
    assert len(DeltaTable(folder).file_uris()) == 1
    assert [row.id for row in catalogue.episodes()] == ids


def test_compaction_beside_other_processes_loses_nothing(tmp_path: Path) -> None:
    catalogue = Catalogue.open(tmp_path)
    writers = [start_writer(tmp_path, 100 * k, 8) for k in range(2)]
    threads = [threading.Thread(target=_compact_while_running, args=(tmp_path, writers)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [id for writer in writers for id in printed_ids(writer)]
    assert len(ids) == 16
    assert sorted(row.id for row in catalogue.episodes()) == sorted(ids)


def test_two_compactions_at_once_double_nothing(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    """The other compaction comes exactly between reading the table and joining its files."""
    for k in range(3):
        catalogue.add_episode(make_episode(k), make_provenance())
    look, raced = tables.Table._snapshot, []

    def late(table) -> DeltaTable:
        snapshot = look(table)
        if not raced:
            raced.append(True)
            Catalogue.open(tmp_path).compact()
        return snapshot

    monkeypatch.setattr(tables.Table, "_snapshot", late)
    catalogue.compact()
    assert raced
    assert len(DeltaTable(tmp_path / ".gapless/tables/episodes").file_uris()) == 1
    assert len(catalogue.episodes()) == 3


def test_an_append_during_a_compaction_is_kept(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    for k in range(3):
        catalogue.add_episode(make_episode(k), make_provenance())
    look, raced = tables.Table._snapshot, []

    def late(table) -> DeltaTable:
        snapshot = look(table)
        if not raced:
            raced.append(True)
            Catalogue.open(tmp_path).add_episode(make_episode(3), make_provenance())
        return snapshot

    monkeypatch.setattr(tables.Table, "_snapshot", late)
    catalogue.compact()
    assert sorted(row.name for row in catalogue.episodes()) == ["run0000", "run0001", "run0002", "run0003"]


def test_compaction_removes_old_leftovers_only(catalogue: Catalogue, tmp_path: Path) -> None:
    temporary = tmp_path / ".gapless" / "temporary"
    for name in ("old", "new"):
        (temporary / f"{name}.parquet").touch()
        (temporary / name).mkdir()
    week_ago_s = time.time() - 8 * 24 * 3600
    for name in ("old.parquet", "old"):
        os.utime(temporary / name, (week_ago_s, week_ago_s))
    (temporary / "gone").symlink_to("nothing")  # what a file looks like that is moved away meanwhile
    catalogue.compact()
    assert {path.name for path in temporary.iterdir()} == {"new.parquet", "new", "gone"}
