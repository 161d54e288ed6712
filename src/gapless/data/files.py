"""The files of the catalogue: the samples of an episode, the files of an artefact. Each appears whole or not at all.

The samples of an episode are one Parquet file, with a row per signal and time: `signal` (`command` or `measurement`),
`name`, `unit`, `time_s`, `value`. Signals lie one after the other, so that a query about one of them reads few row
groups. A series without columns keeps its times in rows without a name. Names, units and lengths stand in the file's
metadata, so that empty series come back too.
"""

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.errors import CatalogueError
from gapless.core.signal import TimeSeries

ROW_GROUP_ROWS = 65_536
METADATA_KEY = b"gapless"
_TEXT = pa.dictionary(pa.int32(), pa.string())
SAMPLES_SCHEMA = pa.schema(
    [("signal", _TEXT), ("name", _TEXT), ("unit", _TEXT), ("time_s", pa.float64()), ("value", pa.float64())]
)


def write_samples(path: Path, temporary: Path, commands: TimeSeries, measurements: TimeSeries) -> None:
    """Writes the samples of an episode; `temporary` is a folder of the same file system for the unfinished file."""
    about = [
        {"names": series.names, "units": series.units, "num_samples": len(series.times_s)}
        for series in (commands, measurements)
    ]
    table = pa.concat_tables([_as_rows("command", commands), _as_rows("measurement", measurements)])
    unfinished = temporary / f"{uuid.uuid4().hex}.parquet"
    texts: Any = ["signal", "name", "unit"]
    pq.write_table(
        table.replace_schema_metadata({METADATA_KEY: json.dumps(about)}),
        unfinished,
        row_group_size=ROW_GROUP_ROWS,
        compression="zstd",
        use_dictionary=texts,
        # half the size and half the time of a dictionary
        column_encoding=dict.fromkeys(["time_s", "value"], "BYTE_STREAM_SPLIT"),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(unfinished, path)


def read_samples(path: Path) -> tuple[TimeSeries, TimeSeries]:
    """Returns the commands and the measurements exactly as they were written."""
    with pq.ParquetFile(path) as file:
        about = json.loads(file.schema_arrow.metadata[METADATA_KEY])
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
    return series[0], series[1]


def _as_rows(signal: str, series: TimeSeries) -> pa.Table:
    num_samples = len(series.times_s)
    names = series.names or (None,)
    values = series.values.T.ravel() if series.names else np.full(num_samples, np.nan)
    columns = [
        _repeat_texts((signal,), num_samples * len(names)),
        _repeat_texts(names, num_samples),
        _repeat_texts(series.units or (None,), num_samples),
        np.tile(series.times_s, len(names)).astype(np.float64, copy=False),
        values.astype(np.float64, copy=False),
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=SAMPLES_SCHEMA)


def _repeat_texts(texts: tuple[str | None, ...], count: int) -> pa.DictionaryArray:
    """Returns each text `count` times in a row, without making that many texts."""
    words = sorted({text for text in texts if text is not None})
    codes = pa.array([None if text is None else words.index(text) for text in texts], pa.int32())
    places = pa.array(np.repeat(np.arange(len(texts)), count))
    return pa.DictionaryArray.from_arrays(codes.take(places), pa.array(words, pa.string()))


def artefact_content(kind: str, content: Mapping[str, bytes]) -> bytes:
    """Returns the bytes that identify an artefact: its kind, and the name and SHA-256 of each file."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in content.items()}
    return json.dumps([kind, digests], sort_keys=True).encode()


def check_file_names(kind: str, content: Mapping[str, bytes]) -> None:
    """Raises CatalogueError for an artefact without files, and for names that are no plain relative paths with `/`."""
    if not content:
        raise CatalogueError(f"a {kind} artefact without files has no content: give at least one file")
    for name in content:
        path = PurePosixPath(name)
        plain = name == str(path) and name != "." and "\\" not in name and "\0" not in name
        if not plain or path.is_absolute() or ".." in path.parts:
            raise CatalogueError(f"a {kind} artefact has a file {name!r}: use a relative name such as fit.json")


def write_files(folder: Path, temporary: Path, content: Mapping[str, bytes]) -> None:
    """Writes those files of an artefact that are not there yet: what is there holds the same bytes."""
    for name in (name for name in content if not (folder / name).exists()):
        unfinished, path = temporary / uuid.uuid4().hex, folder / name
        for parent in (temporary, path.parent):
            parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content[name])
        os.replace(unfinished, path)
