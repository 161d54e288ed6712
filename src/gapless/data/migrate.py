"""Brings a catalogue of the version before to this one: one small file of samples per episode becomes chunks.

The old samples of an episode are `samples/XX/ID.parquet`, with a row per signal and time; names, units and lengths
stand in the file's metadata. The table had no column `chunk`.
"""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema, write_deltalake

from gapless.core.signal import TimeSeries
from gapless.data.chunks import Segment, cut_episode, describe_segments
from gapless.data.rows import EPISODES_SCHEMA
from gapless.data.samples import SampleStore
from gapless.data.tables import NO_STATISTICS, Table, explain_failure
from gapless.data.views import Views

BATCH_EPISODES = 1000  # in one chunk
_METADATA_KEY = b"gapless"


def is_old(table: Table) -> bool:
    """Returns whether the table of the episodes is of the version before."""
    return "chunk" not in {field.name for field in DeltaTable(table.directory).schema().fields}


def migrate(table: Table, look: Callable[[], Views]) -> None:
    """Moves the samples of an old catalogue into chunks, with its rows in one commit at the end.

    A killed process leaves the old rows and files, and the next one begins anew. Processes of this version wait for
    it; those of the version before read on until it is done, and cannot add from its beginning on. A folder that
    cannot be written to stays as it is, and is read as it is; so is a file of samples that is damaged.

    Args:
        table: Of the episodes.
        look: Returns the views of the catalogue at that moment.
    """
    with explain_failure("the catalogue of the version before cannot be taken over", table.directory):
        if not os.access(table.directory, os.W_OK):
            return
        with table.adding():
            if is_old(table):  # else another process has just done it
                _lock_out_old_writers(table)
                views = look()
                stored = views.select("SELECT * FROM recorded_episodes ORDER BY id")
                begins = range(0, len(stored), BATCH_EPISODES)
                rows = [row for k in begins for row in _move(stored[k : k + BATCH_EPISODES], views.store)]
                data = pa.Table.from_pylist(rows, schema=EPISODES_SCHEMA)
                write_deltalake(DeltaTable(table.directory), data, mode="overwrite", schema_mode="overwrite")
    delete_old_samples(table, look())


def delete_old_samples(table: Table, views: Views) -> None:
    """Deletes the old files of samples, but those that a row still refers to."""
    old = list(views.store.folder.glob("??/*.parquet"))
    if old and not is_old(table):
        kept = {row["id"] for row in views.select("SELECT id FROM episodes WHERE chunk IS NULL")}
        for path in (path for path in old if path.stem not in kept):
            path.unlink(missing_ok=True)
            with suppress(OSError):  # others lie in it, or it is gone
                path.parent.rmdir()


def read_old_samples(store: SampleStore, id: str) -> list[Segment]:
    """Returns the segments of an episode whose samples lie in a file of their own."""
    with pq.ParquetFile(old_path(store, id)) as file:
        about = json.loads(file.schema_arrow.metadata[_METADATA_KEY])
        table = file.read(columns=["time_s", "value"])
    times_s, values = table.column("time_s").to_numpy(), table.column("value").to_numpy()
    series, begin = list[TimeSeries](), 0
    for item in about:
        names, num_samples = tuple(item["names"]), item["num_samples"]
        end = begin + num_samples * max(1, len(names))
        cells = values[begin:end].reshape(len(names), num_samples).T if names else np.empty((num_samples, 0))
        moments_s = times_s[begin : begin + num_samples]
        series.append(TimeSeries(moments_s.copy(), cells.copy(), names, tuple(item["units"])))
        begin = end
    return cut_episode(*series)


def old_path(store: SampleStore, id: str) -> Path:
    """Returns where the samples of an episode lay."""
    return store.folder / id[:2] / f"{id}.parquet"


def _lock_out_old_writers(table: Table) -> None:
    """Adds the new columns but the last: the version before cannot add rows to a table with other columns."""
    wanted = pa.schema([field for field in EPISODES_SCHEMA if field.name != "chunk"])
    known = {field.name for field in DeltaTable(table.directory).schema().fields}
    fields = [field for field in Schema.from_arrow(wanted).fields if field.name not in known]
    if fields:
        DeltaTable(table.directory).alter.add_columns(fields)
        DeltaTable(table.directory).alter.set_table_properties(NO_STATISTICS)


def _move(stored: Sequence[dict[str, Any]], store: SampleStore) -> list[dict[str, Any]]:
    """Writes the samples of some episodes into a chunk and returns their new rows."""
    segments, rows = dict[str, list[Segment]](), {row["id"]: dict(row) for row in stored}
    for id in rows:
        with suppress(OSError, ValueError, KeyError, pa.ArrowException):  # damaged: reading it says so, as before
            segments[id] = read_old_samples(store, id)
    for id, where in (store.write(segments) if segments else {}).items():
        rows[id] |= describe_segments(segments[id]) | where
    return list(rows.values())
