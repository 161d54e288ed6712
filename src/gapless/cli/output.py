"""Where results go: a console for people, JSON for programs."""

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gapless.core.errors import InputError
from gapless.core.results import Result, to_json


class Printer(Console):
    """A console that prints text as it is: no markup, no colours in numbers, no line broken to fit the screen."""

    def __init__(self, **options: Any) -> None:
        """Takes what a console takes."""
        super().__init__(highlight=False, markup=False, soft_wrap=True, **options)

    def on_broken_pipe(self) -> None:
        """Raises the BrokenPipeError that is being handled, where rich would end the process with status 1."""
        raise

    def print_table(self, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        """Prints a plain table; columns whose header begins with > are aligned right."""
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for name in header:
            table.add_column(name.lstrip(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
        for row in rows:
            table.add_row(*row)
        self.print(table, soft_wrap=False)


def open_console(json_target: str | None) -> Printer:
    """Returns where people read results: standard output, or standard error while JSON goes there."""
    console = Printer(stderr=json_target == "-")
    if not console.is_terminal:
        console = Printer(file=sys.stderr if json_target == "-" else sys.stdout, width=120)
    return console


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


def number(value: float | None) -> str:
    """Returns a number with three significant digits, a hyphen for none."""
    return "-" if value is None or value != value else f"{value:.3g}"


def span(low: float | None, high: float | None) -> str:
    """Returns an interval such as `0.1 .. 0.3`."""
    return f"{number(low)} .. {number(high)}"
