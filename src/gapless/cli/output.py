"""Where results go: a console for people, JSON for programs; and on standard error how far long work is."""

import csv
import io
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from gapless.core.errors import InputError
from gapless.core.results import QueryResult, Result, to_json

LINE_INTERVAL_S = 10.0  # silence that people accept
MIN_STEP_S = 1.0  # a step that took less gets no line
MIN_SHARE, MIN_ELAPSED_S = 0.03, 3.0  # done before a guess of what is left means something


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
    stream = sys.stderr if json_target == "-" else sys.stdout
    return Printer(file=stream, width=None if stream.isatty() else 120)


def write_json(result: Result, target: str | None) -> None:
    """Writes a result as JSON to a file, or to standard output for `-`."""
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


def write_csv(result: QueryResult, target: str | None) -> None:
    """Writes rows as CSV to a file, or to standard output for `-`; lists and mappings as JSON text."""
    if target is None:
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows:
        writer.writerow([json.dumps(cell) if isinstance(cell, (list, dict)) else cell for cell in row])
    if target == "-":
        print(text.getvalue(), end="")
        return
    try:
        Path(target).write_text(text.getvalue(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"--csv: cannot write: {error.strerror}: {target}") from None


def number(value: float | None) -> str:
    """Returns a number with three significant digits, a hyphen for none."""
    return "-" if value is None or value != value else f"{value:.3g}"


def span(low: float | None, high: float | None) -> str:
    """Returns an interval such as `0.1 .. 0.3`."""
    return f"{number(low)} .. {number(high)}"


class ProgressDisplay:
    """Shows each step of long work: a bar on a terminal, elsewhere a line every `interval_s` and one when done."""

    def __init__(self, console: Console, interval_s: float = LINE_INTERVAL_S) -> None:
        """Writes to a console."""
        self._console, self._interval_s = console, interval_s
        columns = (BarColumn(bar_width=28), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn(), _TimeLeft())
        self._bars = Progress(TextColumn("  {task.description:34}"), *columns, console=console)
        self._steps: dict[str, Task] = {}
        self._label = "beginning"

    def __call__(self, label: str, share: float) -> None:
        """Takes note of how far a step is, in [0, 1]; a step never goes back."""
        step = self._steps.get(label) or self._begin(label)
        self._label, was_done, took_s = label, step.completed >= 1.0, step.elapsed or 0.0
        self._bars.update(step.id, completed=max(step.completed, min(1.0, share)))
        if step.completed >= 1.0 and not was_done and not self._console.is_terminal and took_s >= MIN_STEP_S:
            self._print(f"  {label:34} {took_s:5.0f} s")

    @contextmanager
    def display(self) -> Iterator["ProgressDisplay"]:
        """Shows the steps while the work lasts."""
        if self._console.is_terminal:
            with self._bars:
                yield self
            return
        self._begin(self._label)
        over = threading.Event()
        printer = threading.Thread(target=self._print_regularly, args=(over,), daemon=True)
        printer.start()
        try:
            yield self
        finally:
            over.set()
            printer.join()

    def _begin(self, label: str) -> Task:
        self._bars.add_task(label, total=1.0)
        return self._steps.setdefault(label, self._bars.tasks[-1])

    def _print_regularly(self, over: threading.Event) -> None:
        while not over.wait(self._interval_s):
            step = self._steps[self._label]
            elapsed_s = step.elapsed or 0.0
            left = describe_time_left(step.completed, elapsed_s)
            how_far = f"{100 * step.completed:.0f} % after {elapsed_s:.0f} s{left and ', '}{left}"
            self._print(f"  {self._label}: {how_far if step.completed < 1.0 else 'done, working on what follows'}")

    def _print(self, text: str) -> None:
        with suppress(OSError):  # nobody reads any more
            self._console.print(text, highlight=False, markup=False, soft_wrap=True)


class _TimeLeft(ProgressColumn):
    """What is left, in words."""

    def render(self, task: Task) -> Text:
        return Text(describe_time_left(task.completed, task.elapsed or 0.0))


def describe_time_left(share: float, elapsed_s: float) -> str:
    """Returns words such as `about 2 min left`, taking the rest to go as fast; none too early or at the end."""
    if share < MIN_SHARE or elapsed_s < MIN_ELAPSED_S or share >= 1.0:
        return ""
    left_s = elapsed_s * (1.0 - share) / share
    if left_s < 50.0:
        return f"about {max(10.0, 10.0 * round(left_s / 10.0)):.0f} s left"
    return f"about {left_s / 60.0:.0f} min left" if left_s < 5400.0 else f"about {left_s / 3600.0:.1f} h left"
