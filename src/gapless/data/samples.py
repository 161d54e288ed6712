"""The samples of an episode: one Parquet file each, a row per signal and time.

Columns: `signal` (`command` or `measurement`), `name`, `unit`, `time_s`, `value`. Signals lie one after the
other, so that a question about one of them reads few row groups. A series without columns keeps its times in
rows without a name. Names, units and lengths stand in the file's metadata: empty series come back too.
"""

import json
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.signal import TimeSeries

ROW_GROUP_ROWS = 65_536
METADATA_KEY = b"gapless"

SAMPLES_SCHEMA = pa.schema(
    [
        pa.field("signal", pa.dictionary(pa.int32(), pa.string())),
        pa.field("name", pa.dictionary(pa.int32(), pa.string())),
        pa.field("unit", pa.dictionary(pa.int32(), pa.string())),
        pa.field("time_s", pa.float64()),
        pa.field("value", pa.float64()),
    ]
)


def samples_path(directory: Path, id: str) -> Path:
    """Returns where the samples of an episode lie: `directory/<2 first digits>/<id>.parquet`."""
    return directory / id[:2] / f"{id}.parquet"


def write_samples(path: Path, temporary: Path, commands: TimeSeries, measurements: TimeSeries) -> None:
    """Writes the samples of an episode, whole or not at all.

    Args:
        path: Where they shall lie.
        temporary: A folder of the same file system for the unfinished file.
        commands: What was asked.
        measurements: What was read.
    """
    about = [
        {"names": series.names, "units": series.units, "num_samples": len(series.times_s)}
        for series in (commands, measurements)
    ]
    table = pa.concat_tables([_rows("command", commands), _rows("measurement", measurements)])
    table = table.replace_schema_metadata({METADATA_KEY: json.dumps(about)})
    unfinished = temporary / f"{uuid.uuid4().hex}.parquet"
    words: Any = ["signal", "name", "unit"]
    numbers = ["time_s", "value"]
    encoding = dict.fromkeys(numbers, "BYTE_STREAM_SPLIT")  # half the size and half the time of a dictionary
    pq.write_table(
        table,
        unfinished,
        row_group_size=ROW_GROUP_ROWS,
        compression="zstd",
        use_dictionary=words,
        column_encoding=encoding,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    os.replace(unfinished, path)


def read_samples(path: Path) -> tuple[TimeSeries, TimeSeries]:
    """Returns the commands and the measurements exactly as they were written."""
    with pq.ParquetFile(path) as file:
        about = json.loads(file.schema_arrow.metadata[METADATA_KEY])
        table = file.read(columns=["time_s", "value"])
    times_s = table.column("time_s").to_numpy()
    values = table.column("value").to_numpy()
    num_command_rows = about[0]["num_samples"] * max(1, len(about[0]["names"]))
    parts = slice(0, num_command_rows), slice(num_command_rows, None)
    commands, measurements = (_series(about[k], times_s[part], values[part]) for k, part in enumerate(parts))
    return commands, measurements


def _rows(signal: str, series: TimeSeries) -> pa.Table:
    num_samples = len(series.times_s)
    names = series.names or (None,)
    units = series.units or (None,)
    values = series.values.T.ravel() if series.names else np.full(num_samples, np.nan)
    columns = [
        _repeated((signal,), num_samples * len(names)),
        _repeated(names, num_samples),
        _repeated(units, num_samples),
        np.tile(series.times_s, len(names)).astype(np.float64, copy=False),
        values.astype(np.float64, copy=False),
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=SAMPLES_SCHEMA)


def _repeated(texts: tuple[str | None, ...], count: int) -> pa.DictionaryArray:
    """Returns each text `count` times in a row, without making that many texts."""
    words = sorted({text for text in texts if text is not None})
    codes = pa.array([None if text is None else words.index(text) for text in texts], pa.int32())
    return pa.DictionaryArray.from_arrays(
        codes.take(pa.array(np.repeat(np.arange(len(texts)), count))), pa.array(words, pa.string())
    )


def _series(about: dict[str, Any], times_s: np.ndarray, values: np.ndarray) -> TimeSeries:
    num_samples, names = about["num_samples"], tuple(about["names"])
    table = values.reshape(len(names), num_samples).T if names else np.empty((num_samples, 0))
    return TimeSeries(times_s[:num_samples].copy(), table.copy(), names, tuple(about["units"]))
