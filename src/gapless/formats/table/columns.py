"""The columns of a log of any format. A column of lists is one column per element, `action_0`, `action_1`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.core.errors import nearest
from gapless.core.signal import Array
from gapless.formats.source import log_error
from gapless.formats.table.files import CONVERT_WITH, SUFFIXES, TABLE_FORMATS, holds_numbers, list_lengths


def column_names(path: Path) -> tuple[str, ...]:
    """Returns the names of a log's columns, in the file's order."""
    return tuple(name for name, *_ in _find_places(path))


def _find_places(path: Path) -> list[tuple[str, str, int | None]]:
    """Returns the columns of a log: name, column of the file, and place in the list of each row, None without lists."""
    suffix = path.suffix.lower()
    if suffix not in TABLE_FORMATS:
        advice = CONVERT_WITH.get(suffix, "save it as one of these")
        raise log_error(f"a log is {', '.join(SUFFIXES)}, not '{path.suffix}': {advice}", path)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise log_error(f"cannot be read ({error.strerror}): check the name and its permissions", path) from None
    if size == 0:
        raise log_error("the file is empty: delete it or record again", path)
    found: list[tuple[str, str, int | None]] = []
    for source, length in TABLE_FORMATS[suffix].list_columns(path):
        found += [(source, source, None)] if length is None else [(f"{source}_{k}", source, k) for k in range(length)]
    return found


def read_columns(path: Path, wanted: Sequence[str]) -> dict[str, Array]:
    """Reads some columns of a log, and only them, as numbers of equal length, NaN where nothing was recorded."""
    columns = read_raw(path, wanted, numbers=True)
    for name, column in columns.items():
        if other := describe_other_kind(column):
            raise log_error(f"column {name} holds {other}, not numbers: save one number per time stamp", path)
        if len(column) != (expected := len(columns[wanted[0]])):
            text = f"columns of different length: {wanted[0]} has {expected}, {name} has {len(column)}"
            raise log_error(f"{text}: save one value per time stamp", path)
    return {name: as_doubles(column) for name, column in columns.items()}


def read_raw(path: Path, wanted: Sequence[str], *, numbers: bool = False) -> dict[str, Any]:
    """Reads some columns of a log as Arrow arrays: whole numbers and dates keep all their digits.

    With `numbers`, a cell of a CSV that holds no number is an error.
    """
    found = _find_places(path)
    available, places = [name for name, *_ in found], {name: (source, k) for name, source, k in found}
    for name in wanted:
        if name not in places:
            raise log_error(_describe_absent(name, available), path)
        if available.count(name) > 1:
            raise log_error(f"column {name} stands {available.count(name)} times: keep one", path)
    chosen = {name: places[name] for name in wanted}
    sources = list(dict.fromkeys(source for source, _ in chosen.values()))
    columns = TABLE_FORMATS[path.suffix.lower()].read(path, sources, numbers)
    return {n: columns[s] if k is None else pc.list_element(columns[s], k) for n, (s, k) in chosen.items()}


def describe_other_kind(column: Any) -> str:
    """Returns what a column holds in place of numbers; empty where it holds numbers, or nothing at all."""
    if holds_numbers(column.type) or pa.types.is_null(column.type):
        return ""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return "lists of {} to {} elements".format(*list_lengths(column))
    if isinstance(column.type, pa.FixedShapeTensorType):
        return f"arrays of shape {tuple(column.type.shape)}"
    return str(column.type)


def _describe_absent(name: str, available: Sequence[str]) -> str:
    listed = nearest(name, available)
    if name == "time_s":
        return f"no column time_s, the time in seconds; there are: {listed}; rename the time column"
    return f"no column {name}, which gapless.yaml maps; there are: {listed}; correct gapless.yaml or the log"


def as_doubles(column: Any) -> Array:
    """Returns a column of numbers as float64, NaN where nothing is."""
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
