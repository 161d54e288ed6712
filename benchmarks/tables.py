"""Tables of results: numbers in, markdown out."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """Something that a result has to reach."""

    text: str
    value: float | None
    """None: not measured, and so not met."""
    limit: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        """Whether the value is on the right side of the limit."""
        if self.value is None:
            return False
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    def line(self) -> str:
        """Returns the bar as a sentence."""
        sign, value = ("<=" if self.at_most else ">="), "not measured" if self.value is None else f"{self.value:.3g}"
        return f"{'met' if self.met else 'MISSED'}: {self.text}: {value} ({sign} {self.limit:g})"


@dataclass(frozen=True)
class Table:
    """A table with what must be said about it."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    bars: Sequence[Bar] = ()
    notes: Sequence[str] = ()


def markdown(table: Table) -> str:
    """Returns a table as markdown that also reads well as text: the columns are aligned."""
    lines = [list(table.header), *(list(row) for row in table.rows)]
    widths = [max(3, *(len(line[k]) for line in lines)) for k in range(len(table.header))]
    text = [f"### {table.title}", ""]
    for number, line in enumerate(lines):
        cells = [
            cell.ljust(width) if k == 0 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        text.append(f"| {' | '.join(cells)} |")
        if number == 0:
            rules = ["-" * width if k == 0 else "-" * (width - 1) + ":" for k, width in enumerate(widths)]
            text.append(f"| {' | '.join(rules)} |")
    points = [f"- {bar.line()}" for bar in table.bars] + [f"- {note}" for note in table.notes]
    return "\n".join([*text, "", *points, ""] if points else [*text, ""])


def number(value: float | None, form: str = ".3g") -> str:
    """Returns a number, or a dash where there is none."""
    return "-" if value is None else format(value, form)
