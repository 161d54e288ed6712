"""Logs in Parquet and npz: a column that holds a list per row is one column per element, `action_0`, `action_1`."""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapless.core.signal import Array
from gapless.project.log.errors import log_error

_DAMAGED = (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Element:
    """One column as gapless sees it.

    Attributes:
        name: Its name, `SOURCE` or `SOURCE_INDEX`.
        source: The file's column or array.
        index: Place in the list of each row; None where the source holds one value per row.
    """

    name: str
    source: str
    index: int | None = None


def list_elements(source: str, length: int | None) -> list[Element]:
    """Returns one element per place of a list, or the column itself where the length is not known."""
    if length is None:
        return [Element(source, source)]
    return [Element(f"{source}_{index}", source, index) for index in range(length)]


def open_parquet(path: Path) -> Any:
    """Opens a Parquet file.

    Raises:
        LogError: If it is none.
    """
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())[:160]
        raise log_error(f"not readable as Parquet, perhaps cut off ({reason}): save it again", path) from None


def parquet_elements(path: Path) -> list[Element]:
    """Returns the columns of a Parquet file, in its order; only lists of unstated length are read for it."""
    file = open_parquet(path)
    found: list[Element] = []
    for field in file.schema_arrow:
        length: int | None = None
        if pa.types.is_fixed_size_list(field.type):
            length = field.type.list_size if _is_number(field.type.value_type) else None
        elif _is_list(field.type) and _is_number(field.type.value_type):
            shortest, longest = _length_range(_read_table(file, [field.name], path).column(field.name))
            length = longest if shortest == longest else None
        found += list_elements(field.name, length)
    return found


def read_parquet(path: Path, wanted: Sequence[str]) -> dict[str, Array]:
    """Reads columns that are known to be there; NaN where nothing was recorded."""
    file = open_parquet(path)
    elements = {element.name: element for element in parquet_elements(path)}
    for name in wanted:
        element = elements[name]
        kind = file.schema_arrow.field(element.source).type
        if element.index is None and _is_list(kind) and _is_number(kind.value_type):
            low, high = _length_range(_read_table(file, [name], path).column(name))
            raise log_error(f"column {name} holds lists of {low} to {high} elements: save lists of one length", path)
        if element.index is None and not _is_number(kind):
            raise log_error(f"column {name} holds {kind}, not numbers: save it as numbers", path)
    table = _read_table(file, list(dict.fromkeys(elements[name].source for name in wanted)), path)
    return {name: as_doubles(take_element(table, elements[name])) for name in wanted}


def take_element(table: Any, element: Element) -> Any:
    """Returns one column of a table, or one place of the lists that a column holds."""
    column = table.column(element.source)
    return column if element.index is None else pc.list_element(column, element.index)


def as_doubles(column: Any) -> Array:
    """Returns a column of numbers as float64, NaN where nothing is."""
    return np.array(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _read_table(file: Any, sources: list[str], path: Path) -> Any:
    try:
        return file.read(columns=sources)
    except (pa.ArrowException, OSError) as error:
        raise log_error(f"damaged Parquet ({' '.join(str(error).split())[:160]}): save it again", path) from None


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _is_list(kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _length_range(column: Any) -> tuple[int, int]:
    """Returns the shortest and the longest list of a column; (0, -1) where there is none."""
    found = pc.min_max(pc.list_value_length(column)).as_py()
    return (0, -1) if found["min"] is None else (int(found["min"]), int(found["max"]))


@contextmanager
def open_npz(path: Path) -> Iterator[Any]:
    """Opens an npz file without ever unpickling.

    Raises:
        LogError: If it is none.
    """
    with path.open("rb") as file:
        try:
            arrays: Any = np.load(file, allow_pickle=False)
        except (ValueError, OSError, EOFError, zipfile.BadZipFile):
            raise log_error("not readable as npz, perhaps cut off: write it with numpy.savez", path) from None
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise log_error("one array without a name: write it with numpy.savez(FILE, time_s=...)", path)
        yield arrays


def npz_elements(path: Path) -> list[Element]:
    """Returns the columns of an npz file, in its order; an array of shape (rows, n) is n columns."""
    with open_npz(path) as arrays:
        shapes = {name: _shape(arrays, name) for name in arrays.files}
    return [e for name, shape in shapes.items() for e in list_elements(name, shape[1] if len(shape) == 2 else None)]


def _shape(arrays: Any, name: str) -> tuple[int, ...]:
    """Returns an array's shape without reading the array; empty where the file is damaged there."""
    try:
        with arrays.zip.open(f"{name}.npy") as file:
            version = np.lib.format.read_magic(file)
            header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            return tuple(header(file)[0])
    except _DAMAGED:
        return ()


def read_npz(path: Path, wanted: Sequence[str]) -> dict[str, Array]:
    """Reads columns that are known to be there, all of one length."""
    elements = {element.name: element for element in npz_elements(path)}
    found: dict[str, Array] = {}
    with open_npz(path) as arrays:
        loaded: dict[str, Any] = {}
        for name in wanted:
            source = elements[name].source
            if source not in loaded:
                try:
                    loaded[source] = arrays[source]
                except _DAMAGED:
                    raise log_error(f"array {source} is damaged or holds objects: save plain numbers", path) from None
            values = loaded[source]
            if values.dtype.kind not in "fiub" or (elements[name].index is None and values.ndim != 1):
                kind = f"array {source} is {values.dtype} of shape {values.shape}"
                raise log_error(f"{kind}, not one row of numbers: save one value per time stamp", path)
            found[name] = (values if values.ndim == 1 else values[:, elements[name].index]).astype(np.float64)
    first = wanted[0]
    for name, values in found.items():
        if len(values) != len(found[first]):
            text = f"columns of different length: {first} has {len(found[first])}, {name} has {len(values)}"
            raise log_error(f"{text}: save them with one value per time stamp", path)
    return found
