"""Writes the rows of LeRobot episodes: a file each (v2.1), or several in a file, a row group each (v3.0)."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.signal import Array
from gapless.formats.lerobot.features import TIMES
from gapless.formats.lerobot.layout import DATA_PATHS, V21, number_file

DATA_FILE_MB = 100  # of a v3.0 file, after which the next is begun; the format's default
_SCALARS = ((), (1,))  # shapes of features that are one number in a row


@dataclass
class DataFiles:
    """The data files of a set; a file holds episodes of one schema until all are brought to that of info.json."""

    folder: Path
    version: str
    place: dict[str, int] = field(default_factory=dict)
    _writer: pq.ParquetWriter | None = None
    _written: dict[Path, pa.Schema] = field(default_factory=dict)

    def add(self, table: pa.Table, index: int) -> dict[str, int]:
        """Writes an episode; returns the place of its file, as metadata name it."""
        if self.version == V21 or self._writer is None or self._is_full(table.schema):
            self._begin_file(table.schema, index)
        assert self._writer is not None
        self._writer.write_table(table)
        return self.place

    def finish(self, features: Mapping[str, Mapping[str, Any]]) -> None:
        """Closes the last file, and writes those again whose types are not the ones that hold all episodes."""
        if self._writer is not None:
            self._writer.close()
        schemas = {key: (each["dtype"], each["shape"]) for key, each in features.items() if each["dtype"] != "video"}
        schema = pa.schema([(key, find_arrow_type(*said)) for key, said in schemas.items()])
        for path, written in self._written.items():
            if not written.equals(schema):
                _convert_file(path, schema)

    def _begin_file(self, schema: pa.Schema, index: int) -> None:
        if self._writer is not None:
            self._writer.close()
        number = index if self.version == V21 else len(self._written)
        self.place = number_file(number, index)
        path = self.folder / DATA_PATHS[self.version].format(**self.place)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._written[path] = schema
        self._writer = pq.ParquetWriter(path, schema, write_page_checksum=True)

    def _is_full(self, schema: pa.Schema) -> bool:
        path, written = next(reversed(self._written.items()))
        return not written.equals(schema) or path.stat().st_size > DATA_FILE_MB * 1e6


def build_column(matrix: Array, shape: Sequence[int], dtype: str) -> pa.Array:
    """Returns a feature's column: scalars for one element, lists for a vector, lists of lists for more dimensions."""
    flat = pa.array(matrix.reshape(-1).astype(dtype))
    for size in () if tuple(shape) in _SCALARS else reversed(shape):
        flat = pa.FixedSizeListArray.from_arrays(flat, size)
    return flat.cast(find_arrow_type(dtype, shape))


def find_arrow_type(dtype: str, shape: Sequence[int]) -> pa.DataType:
    """Returns the type of a feature's column in Parquet."""
    found = pa.from_numpy_dtype(np.dtype(dtype))
    if len(shape) == 1 and shape[0] > 1:
        return pa.list_(found, shape[0])
    for _ in () if tuple(shape) in _SCALARS else shape:
        found = pa.list_(found)
    return found


def _convert_file(path: Path, schema: pa.Schema) -> None:
    """Writes a file again with other types, which hold every number of it."""
    partial = path.with_suffix(".partial")
    with pq.ParquetFile(path) as file, pq.ParquetWriter(partial, schema, write_page_checksum=True) as writer:
        for group in range(file.metadata.num_row_groups):
            table = file.read_row_group(group)
            if TIMES in schema.names and TIMES not in table.column_names:
                table = table.append_column(TIMES, table["timestamp"].cast(pa.float64()))
            writer.write_table(table.select(schema.names).cast(schema))
    os.replace(partial, path)
