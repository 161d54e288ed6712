"""The columns of a log of any format. A column of lists is one column per element, `action_0`, `action_1`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapless.core.errors import nearest
from gapless.core.signal import Array
from gapless.project.log.formats import (
    CONVERT_WITH,
    FORMATS,
    SUFFIXES,
    Report,
    holds_numbers,
    list_lengths,
    log_error,
)

_Place = tuple[str, int | None]  # a column of the file, and the place in the list of each row; None without lists


def column_names(path: Path) -> tuple[str, ...]:
    """Returns the names of a log's columns, in the file's order."""
    return tuple(name for name, _ in _find_places(path))


def _find_places(path: Path) -> list[tuple[str, _Place]]:
    """Returns the columns of a log, each with its place in the file."""
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        advice = CONVERT_WITH.get(suffix, "save it as one of these")
        raise log_error(f"a log is {', '.join(SUFFIXES)}, not '{path.suffix}': {advice}", path)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise log_error(f"cannot be read ({error.strerror}): check the name and its permissions", path) from None
    if size == 0:
        raise log_error("the file is empty: delete it or record again", path)
    found: list[tuple[str, _Place]] = []
    for source, length in FORMATS[suffix].list_columns(path):
        elements = [(f"{source}_{k}", (source, k)) for k in range(length or 0)]
        found += [(source, (source, None))] if length is None else elements
    return found


def read_columns(path: Path, wanted: Sequence[str], report: Report | None = None) -> dict[str, Array]:
    """Reads some columns of a log as numbers of equal length, NaN where nothing was recorded.

    Only the wanted columns are kept in memory. `report` is called with how much of a CSV is read, in [0, 1].
    """
    columns = read_raw(path, wanted, numbers=True, report=report)
    for name, column in columns.items():
        if other := describe_other_kind(column):
            raise log_error(f"column {name} holds {other}, not numbers: save one number per time stamp", path)
        if len(column) != len(columns[wanted[0]]):
            text = f"{wanted[0]} has {len(columns[wanted[0]])}, {name} has {len(column)}"
            raise log_error(f"columns of different length: {text}: save them with one value per time stamp", path)
    return {name: as_doubles(column) for name, column in columns.items()}


def read_raw(
    path: Path, wanted: Sequence[str], *, numbers: bool = False, report: Report | None = None
) -> dict[str, Any]:
    """Reads some columns of a log as Arrow arrays: whole numbers and dates keep all their digits.

    With `numbers`, a cell of a CSV that holds no number is an error.
    """
    found = _find_places(path)
    available, places = [name for name, _ in found], dict(found)
    for name in wanted:
        if name not in places:
            raise log_error(_describe_absent(name, available), path)
        if available.count(name) > 1:
            raise log_error(f"column {name} stands {available.count(name)} times: keep one", path)
    names = list(dict.fromkeys(wanted))
    sources = list(dict.fromkeys(places[name][0] for name in names))
    columns = FORMATS[path.suffix.lower()].read(path, sources, numbers, report)
    raw = {name: (columns[places[name][0]], places[name][1]) for name in names}
    return {name: c if index is None else pc.list_element(c, index) for name, (c, index) in raw.items()}


def describe_other_kind(column: Any) -> str:
    """Returns what a column holds in place of numbers; empty where it holds numbers, or nothing at all."""
    if holds_numbers(column.type) or pa.types.is_null(column.type):
        return ""
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        return "lists of {} to {} elements".format(*list_lengths(column))
    if isinstance(column.type, pa.FixedShapeTensorType):
        return f"arrays of shape {tuple(column.type.shape)}"
    return str(column.type)


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
    return np.array(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)
