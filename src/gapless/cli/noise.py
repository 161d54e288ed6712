"""How the noise of sensors reads on the screen."""

from rich.console import Console

from gapless.cli.output import number, table
from gapless.core.results import ColumnNoise, SensorResult
from gapless.report.noise import TERM_NAMES, remark, shows_value


def show_sensor(console: Console, result: SensorResult) -> None:
    """Prints the noise of each column, what cannot be told, and what to write in gapless.yaml."""
    span = f"{result.duration_s:.4g} s at {result.rate_hz:.4g} Hz"
    count = f"{len(result.columns)} columns" if len(result.columns) != 1 else "1 column"
    console.print(f"{result.sensor}: {count}, {span}", markup=False, soft_wrap=True)
    for name, column in result.columns.items():
        console.print()
        _show_column(console, name, column)
    console.print()
    console.print(f"verdict: {result.verdict}", style="bold")
    moved = [reason for reason in result.reasons if reason.startswith("the log")]
    for reason in moved:
        console.print(f"  {reason}", markup=False, soft_wrap=True)
    for note in result.notes:
        console.print(f"{note.level:8} {note.where}: {note.text}", markup=False, soft_wrap=True)
    if result.verdict != "refused":
        _show_lines(console, result)


def _show_column(console: Console, name: str, column: ColumnNoise) -> None:
    title = f"{name} [{column.unit}]: {column.verdict}"
    console.print(title, style="bold", markup=False, soft_wrap=True)
    rows = table("", ">value", ">95 % interval", "unit", "")
    for key, term in column.terms.items():
        value = number(term.value) if shows_value(term) else "-"
        span = f"{number(term.low)} .. {number(term.high)}"
        rows.add_row(f"  {TERM_NAMES[key]}", value, span, term.unit, remark(column, key))
    if column.terms:
        console.print(rows)
    for reason in column.reasons:
        console.print(f"  {reason}", markup=False, soft_wrap=True)


def _show_lines(console: Console, result: SensorResult) -> None:
    """Prints the noise of the columns as it is written in gapless.yaml, and how to find what a simulation needs."""
    console.print("for gapless.yaml, in the line of each column under `measurements` (SI units):", markup=False)
    for name, column in result.columns.items():
        if column.noise is not None:
            console.print(f"  {name}: {{..., noise: {column.noise:.3g}}}", markup=False, soft_wrap=True)
    console.print("for a simulated sensor: `layer` of each column in the JSON (--json FILE)", markup=False)
