"""The columns of a log: CSV, Parquet or npz. A column of lists is one column per element, `action_0`, `action_1`."""

import csv
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from gapless.core.errors import LogError, nearest
from gapless.core.signal import Array

SUFFIXES = (".csv", ".parquet", ".npz")
_EXPORT_CSV = "open it in PlotJuggler and save the signals with its CSV Exporter"
_SAVE_NPZ = "save its arrays with numpy.savez(FILE, time_s=..., q=...)"
CONVERT_WITH = {
    **dict.fromkeys((".mcap", ".db3", ".bag"), _EXPORT_CSV),
    **dict.fromkeys((".h5", ".hdf5", ".mat", ".npy", ".pkl"), _SAVE_NPZ),
    **dict.fromkeys((".tsv", ".txt", ".xlsx"), "save it as CSV with commas"),
}
MAX_CSV_BYTES = 10**9  # the numbers in 1 GB of text, and what is made of them, take about 3 GB of memory
CSV_BLOCK_BYTES = 4 * 2**20  # of text in memory at a time
Report = Callable[[float], None]
_MISSING = ("", "nan", "NaN", "NAN", "-nan", "-NaN", "null", "NULL", "None", "NA", "N/A", "n/a", "#N/A")
_DAMAGED = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)
_Place = tuple[str, int | None]  # the file's column or array; and the place in the list of each row, None without lists


def log_error(text: str, path: Path) -> LogError:
    """Returns an error whose message is one line, with the path in brackets at its end."""
    return LogError(" ".join(f"{text} ({path})".splitlines()))


def column_names(path: Path) -> tuple[str, ...]:
    """Returns the names of a log's columns, in the file's order."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        advice = CONVERT_WITH.get(suffix, "save it as one of these")
        raise log_error(f"a log is {', '.join(SUFFIXES)}, not '{path.suffix}': {advice}", path)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise log_error(f"cannot be read ({error.strerror}): check the name and its permissions", path) from None
    if size == 0:
        raise log_error("the file is empty: delete it or record again", path)
    if suffix != ".csv":
        return tuple(_find_parquet_places(path) if suffix == ".parquet" else _find_npz_places(path))
    if size > MAX_CSV_BYTES:
        text = f"{size / 1e9:.1f} GB of CSV, more than {MAX_CSV_BYTES / 1e9:g} GB"
        raise log_error(f"{text}: split it, or save it as Parquet, of which only needed columns are read", path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = next((row for row in csv.reader(file) if row), None)
    except (UnicodeDecodeError, csv.Error):
        raise log_error("not a text file in UTF-8: save it as CSV in UTF-8", path) from None
    if header is None:
        raise log_error("the file has no header: its first line must name the columns", path)
    return tuple(header)


def read_columns(path: Path, wanted: Sequence[str], report: Report | None = None) -> dict[str, Array]:
    """Reads some columns of a log as numbers of equal length, NaN where nothing was recorded.

    Only the wanted columns are kept in memory. `report` is called with how much of a CSV is read, in [0, 1].
    """
    available = column_names(path)
    for name in wanted:
        if name not in available:
            raise log_error(_describe_absent(name, available), path)
        if available.count(name) > 1:
            raise log_error(f"column {name} stands {available.count(name)} times: keep one", path)
    names = list(dict.fromkeys(wanted))
    if path.suffix.lower() == ".csv":
        return _read_csv(path, names, report)
    return _read_parquet(path, names) if path.suffix.lower() == ".parquet" else _read_npz(path, names)


def has_other_separator(available: Sequence[str]) -> bool:
    """Returns whether a CSV has one column only because something else than commas separates its columns."""
    return len(available) == 1 and (";" in available[0] or "\t" in available[0])


def _describe_absent(name: str, available: Sequence[str]) -> str:
    if has_other_separator(available):
        return "the columns are not separated by commas: save it with commas, and points in numbers"
    listed = nearest(name, available)
    if name == "time_s":
        return f"no column time_s, the time in seconds; there are: {listed}; rename the time column"
    return f"no column {name}, which gapless.yaml maps; there are: {listed}; correct gapless.yaml or the log"


def as_doubles(column: Any) -> Array:
    """Returns a column of numbers as float64, NaN where nothing is."""
    return np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _read_csv(path: Path, wanted: list[str], report: Report | None) -> dict[str, Array]:
    convert = pyarrow.csv.ConvertOptions(
        include_columns=wanted, column_types=dict.fromkeys(wanted, pa.float64()), null_values=list(_MISSING)
    )
    blocks: list[Any] = []
    try:
        with path.open("rb") as file:
            options = pyarrow.csv.ReadOptions(block_size=CSV_BLOCK_BYTES)
            reader = pyarrow.csv.open_csv(file, options, convert_options=convert)
            for block in reader:
                blocks.append(block)
                if report is not None:
                    report(file.tell() / path.stat().st_size)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        try:
            found = _find_bad_cell(path, wanted)  # pyarrow gives the value, not the row
        except csv.Error as csv_error:
            error, found = csv_error, ""
        raise log_error(found or f"not readable as CSV ({_shorten(error, 200)}): save it again", path) from None
    table = pa.Table.from_batches(blocks, reader.schema)
    return {name: as_doubles(table.column(name)) for name in wanted}


def _find_bad_cell(path: Path, wanted: list[str]) -> str:
    """Returns the first row or cell of a CSV that is wrong, in words; empty where none is."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = (row for row in csv.reader(file) if row)
        header = next(rows)
        places = [header.index(name) for name in wanted]
        for number, row in enumerate(rows, start=1):
            if len(row) != len(header):
                return f"row {number} has {len(row)} of {len(header)} fields: correct or delete that line"
            for place in places:
                if not _is_number(row[place]):
                    text = f"column {header[place]} row {number}: '{row[place][:40]}' is not a number"
                    return f"{text}: correct it or leave the cell empty"
    return ""


def _is_number(cell: str) -> bool:
    if cell.strip() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _list_places(lengths: dict[str, int | None]) -> dict[str, _Place]:
    """Returns column -> its place, for the lengths of the lists in a file's columns; None where there are none."""
    found: dict[str, _Place] = {}
    for source, length in lengths.items():
        found |= {source: (source, None)} if length is None else {f"{source}_{k}": (source, k) for k in range(length)}
    return found


def open_parquet(path: Path) -> Any:
    """Opens a Parquet file; raises LogError if it is none."""
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise log_error(f"not readable as Parquet, perhaps cut off ({_shorten(error)}): save it again", path) from None


def _find_parquet_places(path: Path) -> dict[str, _Place]:
    """Returns the columns of a Parquet file, in its order; only lists of unstated length are read for it."""
    file, lengths = open_parquet(path), dict[str, int | None]()
    for field in file.schema_arrow:
        lengths[field.name] = None
        if pa.types.is_fixed_size_list(field.type) and _holds_numbers(field.type.value_type):
            lengths[field.name] = field.type.list_size
        elif _is_list_of_numbers(field.type):
            shortest, longest = _length_range(file, field.name, path)
            lengths[field.name] = longest if shortest == longest else None
    return _list_places(lengths)


def read_flat_table(path: Path, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Reads columns of a Parquet file as they were written, all without `names`; lists are a column per element."""
    places = _find_parquet_places(path)
    places = places if names is None else {name: places[name] for name in names}
    table = _read_table(open_parquet(path), list(dict.fromkeys(source for source, _ in places.values())), path)
    columns = {name: (table.column(source), index) for name, (source, index) in places.items()}
    return {name: c if index is None else pc.list_element(c, index) for name, (c, index) in columns.items()}


def _read_parquet(path: Path, wanted: Sequence[str]) -> dict[str, Array]:
    file = open_parquet(path)
    columns = read_flat_table(path, wanted)
    for name, column in columns.items():
        if _is_list_of_numbers(column.type):
            low, high = _length_range(file, name, path)
            raise log_error(f"column {name} holds lists of {low} to {high} elements: save lists of one length", path)
        if not _holds_numbers(column.type):
            raise log_error(f"column {name} holds {column.type}, not numbers: save it as numbers", path)
    return {name: as_doubles(column) for name, column in columns.items()}


def _read_table(file: Any, sources: list[str], path: Path) -> Any:
    try:
        return file.read(columns=sources)
    except (pa.ArrowException, OSError) as error:
        raise log_error(f"damaged Parquet ({_shorten(error)}): save it again", path) from None


def _holds_numbers(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _is_list_of_numbers(kind: Any) -> bool:
    return bool((pa.types.is_list(kind) or pa.types.is_large_list(kind)) and _holds_numbers(kind.value_type))


def _length_range(file: Any, name: str, path: Path) -> tuple[int, int]:
    """Returns the length of the shortest and of the longest list in a column; (0, -1) where there is none."""
    found = pc.min_max(pc.list_value_length(_read_table(file, [name], path).column(name))).as_py()
    return (0, -1) if found["min"] is None else (int(found["min"]), int(found["max"]))


@contextmanager
def open_npz(path: Path) -> Iterator[Any]:
    """Opens an npz file without ever unpickling; raises LogError if it is none."""
    with path.open("rb") as file:
        try:
            arrays: Any = np.load(file, allow_pickle=False)
        except (ValueError, OSError, EOFError, zipfile.BadZipFile):
            raise log_error("not readable as npz, perhaps cut off: write it with numpy.savez", path) from None
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise log_error("one array without a name: write it with numpy.savez(FILE, time_s=...)", path)
        yield arrays


def _find_npz_places(path: Path) -> dict[str, _Place]:
    """Returns the columns of an npz file, in its order; an array of shape (rows, n) is n columns."""
    with open_npz(path) as arrays:
        shapes = {name: _read_shape(arrays, name) for name in arrays.files}
    return _list_places({name: shape[1] if len(shape) == 2 else None for name, shape in shapes.items()})


def _read_shape(arrays: Any, name: str) -> tuple[int, ...]:
    """Returns an array's shape without reading the array; empty where the file is damaged there."""
    try:
        with arrays.zip.open(f"{name}.npy") as file:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return tuple(header(file)[0])
    except _DAMAGED:
        return ()


def _read_npz(path: Path, wanted: Sequence[str]) -> dict[str, Array]:
    places, found, loaded = _find_npz_places(path), dict[str, Array](), dict[str, Any]()
    with open_npz(path) as arrays:
        for name in wanted:
            source, index = places[name]
            try:
                values = loaded[source] = loaded[source] if source in loaded else arrays[source]
            except _DAMAGED:
                raise log_error(f"array {source} is damaged or holds objects: save plain numbers", path) from None
            if values.dtype.kind not in "fiub" or (index is None and values.ndim != 1):
                kind = f"array {source} is {values.dtype} of shape {values.shape}"
                raise log_error(f"{kind}, not one row of numbers: save one value per time stamp", path)
            found[name] = (values if values.ndim == 1 else values[:, index]).astype(np.float64)
            if len(found[name]) != len(found[wanted[0]]):
                text = f"{wanted[0]} has {len(found[wanted[0]])}, {name} has {len(found[name])}"
                raise log_error(f"columns of different length: {text}: save them with one value per time stamp", path)
    return found


def _shorten(error: Exception, limit: int = 160) -> str:
    return " ".join(str(error).split())[:limit]
