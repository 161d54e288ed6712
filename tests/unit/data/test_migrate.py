"""A catalogue of the version before opens with everything that was in it, whatever happens meanwhile."""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from catalogue_writer import make_episode, make_provenance, same_episode
from deltalake.exceptions import DeltaError
from old_catalogue import __file__ as opener_file
from old_catalogue import add_old_episode, write_old_catalogue

from gapless.core.errors import CatalogueError
from gapless.core.signal import TimeSeries
from gapless.data import migrate
from gapless.data.catalogue import Catalogue

EMPTY = TimeSeries(np.arange(3.0), np.empty((3, 0)), (), ())
ITEMS = [
    (make_episode(0), make_provenance(parents=("p",))),
    (make_episode(1, source="real", outcome=None, commands=EMPTY), make_provenance(seed=None)),
    (make_episode(2, source="twin", failed_in="lift"), make_provenance()),
]
COUNT = "SELECT count(*) AS n, count(DISTINCT episode) AS episodes FROM samples"


def check(project: Path, ids: list[str], items=ITEMS) -> None:
    catalogue = Catalogue.open(project)
    rows = catalogue.episodes()
    assert sorted(row.id for row in rows) == sorted(set(ids))
    for id, (episode, provenance) in zip(ids, items, strict=True):
        assert same_episode(catalogue.episode(id), episode)
        (row,) = (row for row in rows if row.id == id)
        assert (row.provenance, row.conditions) == (provenance, episode.conditions)
    cells = sum(e.commands.values.size + e.measurements.values.size for e, _ in items)
    assert catalogue.query(COUNT).to_pylist() == [{"n": cells, "episodes": len(items)}]


def old_files(project: Path) -> list[Path]:
    return list((project / ".gapless" / "samples").glob("??/*.parquet"))


def test_an_old_catalogue_is_migrated_once(tmp_path: Path) -> None:
    ids = write_old_catalogue(tmp_path, ITEMS)
    check(tmp_path, ids)
    assert old_files(tmp_path) == []
    log = tmp_path / ".gapless" / "tables" / "episodes" / "_delta_log"
    commits = len(list(log.glob("*.json")))
    check(tmp_path, ids)
    assert len(list(log.glob("*.json"))) == commits
    catalogue = Catalogue.open(tmp_path)
    assert catalogue.add_episode(*ITEMS[0]) == ids[0]
    catalogue.add_episode(make_episode(9), make_provenance())
    assert [row.name for row in catalogue.episodes()] == ["run0000", "run0001", "run0002", "run0009"]
    assert all(row.num_rows == 50 and len(row.signals_id) == 32 for row in catalogue.episodes())


def test_rows_that_were_written_twice_come_once(tmp_path: Path) -> None:
    ids = write_old_catalogue(tmp_path, [*ITEMS, ITEMS[0]])
    check(tmp_path, ids[:3])


@pytest.mark.parametrize("step", ["_lock_out_old_writers", "_move", "write_deltalake", "delete_old_samples"])
def test_a_process_killed_on_the_way_loses_nothing(tmp_path: Path, monkeypatch, step: str) -> None:
    ids = write_old_catalogue(tmp_path, ITEMS)
    real, calls = getattr(migrate, step), []

    def die(*args, **kwargs):
        calls.append(step)
        if step == "_move" and len(calls) == 1:
            return real(*args, **kwargs)  # the first batch is written
        raise KeyboardInterrupt

    monkeypatch.setattr(migrate, step, die)
    monkeypatch.setattr(migrate, "BATCH_EPISODES", 2)
    with pytest.raises(KeyboardInterrupt):
        Catalogue.open(tmp_path)
    monkeypatch.undo()
    check(tmp_path, ids)
    Catalogue.open(tmp_path).compact()
    assert old_files(tmp_path) == []
    check(tmp_path, ids)


@pytest.mark.slow
def test_processes_killed_at_any_moment_lose_nothing(tmp_path: Path) -> None:
    items = [(make_episode(k), make_provenance()) for k in range(30)]
    ids = write_old_catalogue(tmp_path, items)
    for attempt in range(4):
        opener = start_opener(tmp_path)
        time.sleep(0.9 + 0.1 * attempt)  # about when it has imported what it needs
        opener.kill()
        opener.communicate()
    check(tmp_path, ids, items)


def test_several_processes_may_open_it_at_once(tmp_path: Path) -> None:
    items = [(make_episode(k), make_provenance()) for k in range(8)]
    ids = write_old_catalogue(tmp_path, items)
    openers = [start_opener(tmp_path) for _ in range(2)]
    assert [opener.communicate(timeout=60)[0] for opener in openers] == ["done\n"] * 2
    check(tmp_path, ids, items)


def start_opener(project: Path) -> subprocess.Popen:
    environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, opener_file, str(project)], stdout=subprocess.PIPE, text=True, env=environment
    )


def test_a_process_of_the_version_before_cannot_add_what_would_be_lost(tmp_path: Path, monkeypatch) -> None:
    ids = write_old_catalogue(tmp_path, ITEMS)
    move, refused = migrate._move, []

    def race(*args):
        try:
            add_old_episode(tmp_path, make_episode(7), make_provenance(), "2026-01-02")
        except DeltaError as error:
            refused.append(error)
        return move(*args)

    monkeypatch.setattr(migrate, "_move", race)
    check(tmp_path, ids)
    assert len(refused) == 1


def test_a_folder_that_cannot_be_written_to_is_read_as_it_is(tmp_path: Path, monkeypatch) -> None:
    ids = write_old_catalogue(tmp_path, [*ITEMS, ITEMS[0]])
    monkeypatch.setattr(os, "access", lambda *_args: False)
    before = sorted(path for path in tmp_path.rglob("*.parquet"))
    check(tmp_path, ids[:3])
    catalogue = Catalogue.open(tmp_path)
    assert [row.name for row in catalogue.episodes(source="real")] == ["run0001"]
    assert catalogue.select_ids("robot IS NULL AND outcome = 'success'") == (ids[0], ids[2])
    assert sorted(path for path in tmp_path.rglob("*.parquet")) == before


def test_damaged_samples_stay_where_they_are(tmp_path: Path) -> None:
    ids = write_old_catalogue(tmp_path, ITEMS)
    (path,) = (path for path in old_files(tmp_path) if path.stem == ids[1])
    path.write_bytes(b"PAR1")
    catalogue = Catalogue.open(tmp_path)
    assert old_files(tmp_path) == [path]
    assert same_episode(catalogue.episode(ids[0]), ITEMS[0][0])
    with pytest.raises(CatalogueError, match=f"samples of episode {ids[1]} cannot be read"):
        catalogue.episode(ids[1])
    assert len(catalogue.episodes()) == 3
