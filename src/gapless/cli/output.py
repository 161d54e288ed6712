"""What people see of results: short tables on standard output."""

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from gapless.core.errors import InputError
from gapless.core.places import writable
from gapless.core.results import Result, to_json


class Printer(Console):
    """A console that lets a reader who leaves early be noticed, where rich would end the process with status 1."""

    def on_broken_pipe(self) -> None:
        """Raises the BrokenPipeError that is being handled."""
        raise


def checked(target: str | None) -> str | None:
    """Returns the target of `--json` after a look at its folder.

    Raises:
        InputError: If nothing can be written there.
    """
    if target is not None and target != "-":
        writable(Path(target), "--json")
    return target


def write_json(result: Result, target: str | None) -> None:
    """Writes a result as JSON to a file, or to standard output for `-`.

    Raises:
        InputError: If the file cannot be written.
    """
    if target is None:
        return
    text = json.dumps(to_json(result), indent=1)
    if target == "-":
        print(text)
        return
    try:
        Path(target).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--json: cannot write: {error.strerror}: {target}") from None


def table(*columns: str) -> Table:
    """Returns a plain table; columns that begin with > are aligned right."""
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left", overflow="fold")
    return made


def number(value: float | None) -> str:
    """Returns a number with three significant digits, a hyphen for none."""
    return "-" if value is None or value != value else f"{value:.3g}"


def out(json_target: str | None) -> Console:
    """Returns where people read results: standard output, or standard error while JSON goes there."""
    console = Printer(stderr=json_target == "-", highlight=False)
    if not console.is_terminal:
        console = Printer(file=sys.stderr if json_target == "-" else sys.stdout, highlight=False, width=120)
    return console
