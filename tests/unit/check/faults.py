"""Faults that are put into the logs of a copy of a project."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gapless.check.examine import Examination, examine_data
from gapless.core.signal import Array
from gapless.fit.data import read_project_data
from unit.identify.realities import write_csv

Columns = dict[str, Array]


def spoil(folder: Path, change: Callable[[Columns], Columns], logs: str = "*.csv") -> Path:
    """Changes the columns of every log of a folder, or of some; returns the folder."""
    for path in sorted((folder / "logs").glob(logs)):
        names = path.read_text().splitlines()[0].split(",")
        table = np.genfromtxt(path, delimiter=",", skip_header=1)
        write_csv(path, change(dict(zip(names, table.T.copy(), strict=True))))
    return folder


def scaled(column: str, factor: float) -> Callable[[Columns], Columns]:
    """Returns the fault that a column is in another unit, or has the wrong sign."""
    return lambda columns: columns | {column: factor * columns[column]}


def swapped(one: str, other: str) -> Callable[[Columns], Columns]:
    """Returns the fault that two columns have each other's name."""
    return lambda columns: columns | {one: columns[other], other: columns[one]}


def held(column: str, first: int, end: int) -> Callable[[Columns], Columns]:
    """Returns the fault that a column keeps one value over some rows."""

    def change(columns: Columns) -> Columns:
        values = columns[column].copy()
        values[first:end] = values[first]
        return columns | {column: values}

    return change


def shifted(names: tuple[str, ...], rows: int) -> Callable[[Columns], Columns]:
    """Returns the fault that some columns are stamped some rows too late."""

    def change(columns: Columns) -> Columns:
        source = np.clip(np.arange(len(columns["time_s"])) - rows, 0, None)
        return columns | {name: columns[name][source] for name in names}

    return change


def examined(folder: Path) -> Examination:
    """Returns what is wrong with the data of a project."""
    return examine_data(read_project_data(folder))


def texts(found: Examination) -> str:
    """Returns all notes of an examination as one text."""
    return "\n".join(f"{note.level} {note.where}: {note.text}" for note in found.notes)
