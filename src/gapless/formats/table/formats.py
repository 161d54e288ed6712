"""The three formats of tables."""

from functools import partial
from pathlib import Path

from gapless.formats.format import Format
from gapless.formats.source import list_files
from gapless.formats.table.read import read_tables
from gapless.formats.table.write import Save, save_csv, save_npz, save_parquet, write_tables


def _is_table(suffix: str, path: Path) -> bool:
    return bool(list_files(path, (suffix,)))


def _make_format(name: str, title: str, save: Save) -> Format:
    suffix = f".{name}"
    return Format(
        name, title, partial(_is_table, suffix), partial(read_tables, suffix), partial(write_tables, suffix, save)
    )


TABLES = (
    _make_format("csv", "CSV file, or folder of them", save_csv),
    _make_format("parquet", "Parquet file, or folder of them", save_parquet),
    _make_format("npz", "NPZ file, or folder of them", save_npz),
)
