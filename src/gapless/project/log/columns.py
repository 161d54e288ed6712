"""The columns of a log file, whatever its format."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.csv

from gapless.core.errors import nearest
from gapless.core.signal import Array
from gapless.project.log.arrays import as_doubles, npz_elements, parquet_elements, read_npz, read_parquet
from gapless.project.log.errors import log_error

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


def column_names(path: Path) -> tuple[str, ...]:
    """Returns the names of a log's columns, in the file's order; lists are one column per element.

    Raises:
        LogError: If the file is missing, empty, too large or not what its ending says.
    """
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
    if suffix == ".csv":
        return _csv_names(path, size)
    if suffix == ".parquet":
        return tuple(element.name for element in parquet_elements(path))
    return tuple(element.name for element in npz_elements(path))


def read_columns(path: Path, wanted: Sequence[str], report: Report | None = None) -> dict[str, Array]:
    """Reads some columns of a log as numbers of equal length, NaN where nothing was recorded.

    Args:
        path: The log.
        wanted: Names of columns; only they are kept in memory.
        report: Called with how much of a CSV is read, in [0, 1].

    Raises:
        LogError: If one is missing or holds anything but numbers; the message says where.
    """
    there = column_names(path)
    for name in wanted:
        if name not in there:
            raise log_error(_absent(name, there), path)
        if there.count(name) > 1:
            raise log_error(f"column {name} stands {there.count(name)} times: keep one", path)
    columns = list(dict.fromkeys(wanted))
    if path.suffix.lower() == ".csv":
        return _read_csv(path, columns, report)
    return {".parquet": read_parquet, ".npz": read_npz}[path.suffix.lower()](path, columns)


def _absent(name: str, there: Sequence[str]) -> str:
    if len(there) == 1 and (";" in there[0] or "\t" in there[0]):
        return "the columns are not separated by commas: save it with commas, and points in numbers"
    listed = nearest(name, there)
    if name == "time_s":
        return f"no column time_s, the time in seconds; there are: {listed}; rename the time column"
    return f"no column {name}, which gapless.yaml maps; there are: {listed}; correct gapless.yaml or the log"


def _csv_names(path: Path, size: int) -> tuple[str, ...]:
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
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        _explain_csv(path, wanted, error)
    table = pa.Table.from_batches(blocks, reader.schema)
    return {name: as_doubles(table.column(name)) for name in wanted}


def _explain_csv(path: Path, wanted: list[str], error: Exception) -> NoReturn:
    """Finds the first cell that is no number; pyarrow tells the value, not the row."""
    reason = f"not readable as CSV ({' '.join(str(error).split())[:200]}): save it again"
    try:
        found = _first_bad_cell(path, wanted)
    except csv.Error as csv_error:
        found = f"not readable as CSV ({csv_error}): save it again"
    raise log_error(found or reason, path) from None


def _first_bad_cell(path: Path, wanted: list[str]) -> str | None:
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
    return None


def _is_number(cell: str) -> bool:
    if cell.strip() in _MISSING:
        return True
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
