"""What people see: progress on standard error, results as short tables on standard output."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from gapless.core.errors import InputError
from gapless.core.places import writable
from gapless.core.results import Result, to_json


class Printer(Console):
    """A console that lets a reader who leaves early be noticed, where rich would end the process with status 1."""

    def on_broken_pipe(self) -> None:
        """Raises the BrokenPipeError that is being handled."""
        raise


class Steps:
    """Shows each step of long work once: a bar on a terminal, a line when done elsewhere."""

    def __init__(self, console: Console) -> None:
        """Writes to a console."""
        self._console = console
        self._bars = Progress(
            TextColumn("  {task.description:34}"),
            BarColumn(bar_width=28),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[str, TaskID] = {}
        self._began: dict[str, float] = {}
        self._done: set[str] = set()

    def __call__(self, label: str, share: float) -> None:
        """Takes note of how far a step is, in [0, 1]."""
        if self._console.is_terminal:
            if label not in self._tasks:
                self._tasks[label] = self._bars.add_task(label, total=1.0)
            self._bars.update(self._tasks[label], completed=share)
            return
        began = self._began.setdefault(label, time.monotonic())
        if share >= 1.0 and label not in self._done:
            self._done.add(label)
            self._console.print(f"  {label:34} {time.monotonic() - began:5.0f} s", highlight=False)

    @contextmanager
    def shown(self) -> Iterator["Steps"]:
        """Shows the bars while the work lasts."""
        if self._console.is_terminal:
            with self._bars:
                yield self
        else:
            yield self


def progress() -> Steps:
    """Returns a display of progress on standard error."""
    return Steps(Console(stderr=True))


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
