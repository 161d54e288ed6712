"""Files of tables: for each ending, how to list the columns of a file and how to read some of them."""

import csv
import math
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from gapless.core.errors import LogError
from gapless.formats.source import explain_damage, log_error, require_memory, shorten_error

MAX_CSV_BYTES = 10**9
MEMORY_PER_CSV_BYTE = 3.0  # the numbers in 1 GB of text, and what is made of them, take about 3 GB of memory
MAX_NPZ_RATIO, MIN_BOMB_BYTES = 200.0, 10**8  # unpacked over packed size of a member; above it, one of 100 MB is a bomb
_MISSING = ["", "nan", "NaN", "NAN", "-nan", "-NaN", "null", "NULL", "None", "NA", "N/A", "n/a", "#N/A"]


@dataclass(frozen=True)
class TableFormat:
    """How to read the files of one ending; both functions raise LogError for a file that is damaged."""

    # path -> (column, how many elements the list in each of its rows has; None where rows hold one value), in order
    list_columns: Callable[[Path], list[tuple[str, int | None]]]
    # path, columns, whether they must be numbers -> column -> Arrow array, in the type that was written
    read: Callable[[Path, Sequence[str], bool], dict[str, Any]]


def holds_numbers(kind: Any) -> bool:
    """Returns whether values of an Arrow type are numbers."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _list_csv_columns(path: Path) -> list[tuple[str, int | None]]:
    if (size := path.stat().st_size) > MAX_CSV_BYTES:
        text = f"{size / 1e9:.1f} GB of CSV, more than {MAX_CSV_BYTES / 1e9:g} GB: split it, or save it as Parquet"
        raise log_error(text, path)
    require_memory(MEMORY_PER_CSV_BYTE * size, path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next((row for row in csv.reader(file) if row), None)
    except (UnicodeDecodeError, csv.Error):
        raise log_error("not a text file in UTF-8: save it as CSV in UTF-8", path) from None
    if header is None:
        raise log_error("the file has no header: its first line must name the columns", path)
    if len(header) == 1 and re.search("[;\t]", header[0]):
        raise log_error("the columns are not separated by commas: save it with commas, and points in numbers", path)
    return [(name, None) for name in header]


def _read_csv(path: Path, columns: Sequence[str], numbers: bool) -> dict[str, Any]:
    types = dict.fromkeys(columns, pa.float64()) if numbers else {}
    convert = pyarrow.csv.ConvertOptions(include_columns=list(columns), column_types=types, null_values=_MISSING)
    options = pyarrow.csv.ReadOptions(use_threads=False)  # errors name the row only if there is one thread
    try:
        table = pyarrow.csv.read_csv(path, options, convert_options=convert)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise log_error(_describe_csv_error(error, path), path) from None
    return {name: table.column(name) for name in columns}


def _describe_csv_error(error: Exception, path: Path) -> str:
    """Returns what pyarrow says of a CSV as people count: rows from 1 below the header, columns by name."""
    text = shorten_error(error, 200)
    if found := re.search(r"column #(\d+): Row #(\d+): .* invalid value '(.*)'", text):
        column = _list_csv_columns(path)[int(found[1])][0]
        row, value = int(found[2]) - 1, found[3][:40]
        return f"column {column} row {row}: '{value}' is not a number: correct it or leave the cell empty"
    if found := re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", text):
        return f"row {int(found[1]) - 1} has {found[3]} of {found[2]} fields: correct or delete that line"
    return f"not readable as CSV ({text}): save it again"


def _list_parquet_columns(path: Path) -> list[tuple[str, int | None]]:
    """Lists the columns of a Parquet file; only lists of unstated length are read for it."""
    found: list[tuple[str, int | None]] = []
    with explain_damage(path, "Parquet"), pq.ParquetFile(path) as file:
        for field in file.schema_arrow:
            kind, length = field.type, None
            if pa.types.is_fixed_size_list(kind) and holds_numbers(kind.value_type):
                length = kind.list_size
            elif (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and holds_numbers(kind.value_type):
                shortest, longest = list_lengths(file.read(columns=[field.name]).column(0))
                length = longest if shortest == longest else None
            found.append((field.name, length))
    return found


def list_lengths(column: Any) -> tuple[int | None, int | None]:
    """Returns the length of the shortest and of the longest list in a column; None where there is none."""
    found = pc.min_max(pc.list_value_length(column)).as_py()
    return found["min"], found["max"]


def _read_parquet(path: Path, columns: Sequence[str], numbers: bool) -> dict[str, Any]:
    with explain_damage(path, "Parquet"), pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
        parts = [group.column(k) for group in groups for k in range(group.num_columns)]
        chosen = [part for part in parts if part.path_in_schema.split(".list.")[0] in columns]
        require_memory(sum(max(part.total_uncompressed_size, 8 * part.num_values) for part in chosen), path)
        table = file.read(columns=list(columns))
    return {name: table.column(name) for name in columns}


@contextmanager
def _open_npz(path: Path) -> Iterator[zipfile.ZipFile]:
    """Opens an npz file, after a look at the sizes that its members declare; nothing of it is unpacked to disk."""
    with explain_damage(path, "npz of plain numbers"), zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if ".." in Path(member.filename).parts:
                raise log_error(f"its member {member.filename!r} leads out of the file: save it again", path)
            ratio = member.file_size / max(member.compress_size, 1)
            if member.file_size > MIN_BOMB_BYTES and ratio > MAX_NPZ_RATIO:
                many = f"its member {member.filename} unpacks to {ratio:.0f} times its size, as a zip bomb does"
                raise log_error(f"{many}: save it with numpy.savez", path)
        yield archive


def _read_npz_shape(archive: zipfile.ZipFile, name: str, path: Path) -> tuple[int, ...]:
    """Returns the shape of an array; raises LogError where it claims more numbers than its member holds, or objects."""
    with archive.open(f"{name}.npy") as file:
        is_first = np.lib.format.read_magic(file) == (1, 0)
        read_header = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
        shape, _, kind = read_header(file)
    if kind.hasobject:
        raise log_error(f"{name} holds Python objects, which are never unpickled: save plain numbers", path)
    if math.prod(shape) * kind.itemsize > archive.getinfo(f"{name}.npy").file_size:
        raise log_error(f"{name} claims more numbers than there are: the file is damaged, save it again", path)
    return shape


def _list_npz_columns(path: Path) -> list[tuple[str, int | None]]:
    """Lists the arrays of an npz file by their headers; an array of shape (rows, n) has lists of n elements."""
    found: list[tuple[str, int | None]] = []
    with _open_npz(path) as archive:
        for name in (name.removesuffix(".npy") for name in archive.namelist()):
            try:
                shape = _read_npz_shape(archive, name, path)
            except LogError:
                shape = ()  # reading it says why
            found.append((name, shape[1] if len(shape) == 2 else None))
    return found


def _read_npz(path: Path, columns: Sequence[str], numbers: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with _open_npz(path) as archive:
        require_memory(2 * sum(archive.getinfo(f"{name}.npy").file_size for name in columns), path)
        for name in columns:
            _read_npz_shape(archive, name, path)
            with archive.open(f"{name}.npy") as file:
                values = np.atleast_1d(np.lib.format.read_array(file, allow_pickle=False))
            values = values.astype(values.dtype.newbyteorder("="), copy=False)
            if values.ndim == 1:
                found[name] = pa.array(values)
            elif values.ndim == 2:
                found[name] = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
            else:
                found[name] = pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(values))
    return found


TABLE_FORMATS = {
    ".csv": TableFormat(_list_csv_columns, _read_csv),
    ".parquet": TableFormat(_list_parquet_columns, _read_parquet),
    ".npz": TableFormat(_list_npz_columns, _read_npz),
}
SUFFIXES = tuple(TABLE_FORMATS)
CONVERT_WITH = {  # ending of a file that no format reads -> what to do
    **dict.fromkeys((".mat", ".npy", ".pkl"), "save its arrays with numpy.savez(FILE, time_s=..., q=...)"),
    **dict.fromkeys((".tsv", ".txt", ".xlsx"), "save it as CSV with commas"),
    **dict.fromkeys((".zip", ".gz", ".tgz", ".tar", ".7z", ".xz"), "unpack it, and give the folder"),
    ".db3": "make its metadata.yaml with `ros2 bag reindex`, and give the folder",
}
