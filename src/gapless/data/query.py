"""The verb `query`: SQL over the catalogue, which it can only read."""

import os
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.errors import InputError
from gapless.core.results import QueryResult
from gapless.data.select import open_existing


def query(directory: str | Path, sql: str, *, parquet: str | Path | None = None) -> QueryResult:
    """Returns what a SELECT statement finds in a project's catalogue; nothing can be changed by it.

    Views are `episodes`, `artefacts` and `samples`; see `Catalogue.query` for their columns.

    Args:
        directory: The project folder.
        sql: One statement that reads.
        parquet: File for the rows with their types; None for no such file.

    Raises:
        InputError: If there is no catalogue, the statement does not read, or the file cannot be written.
    """
    found = open_existing(directory).query(sql)
    names = found.column_names
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"several columns are called {', '.join(twice)}: give each a name of its own with AS")
    if parquet is not None:
        _write_parquet(found, Path(parquet))
    return QueryResult((), tuple(names), tuple(tuple(map(_as_plain, row.values())) for row in found.to_pylist()))


def _as_plain(value: Any) -> Any:
    """Returns a value of DuckDB's as one that JSON has: times as ISO 8601, durations in seconds, bytes as hex."""
    if isinstance(value, dict):
        return {str(key): _as_plain(item) for key, item in value.items()}  # type: ignore[reportUnknownVariableType]
    if isinstance(value, pa.MonthDayNano):  # a difference of times; months as DuckDB counts them
        return (30 * value.months + value.days) * 86400.0 + value.nanoseconds / 1e9
    if isinstance(value, (list, tuple)):
        return [_as_plain(item) for item in value]  # type: ignore[reportUnknownVariableType]
    if isinstance(value, (date, time)):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, (bool, int, float, str)) or value is None else str(value)


def _write_parquet(table: pa.Table, path: Path) -> None:
    """Writes a table whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        pq.write_table(table, unfinished)
        os.replace(unfinished, path)
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"--parquet: cannot write: {reason}: {path}") from None
    finally:
        unfinished.unlink(missing_ok=True)
