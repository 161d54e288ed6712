"""What is gathered while terms are read."""

from dataclasses import dataclass, field, replace

import mujoco

from gapless.core.distribution import Range
from gapless.core.errors import InputError
from gapless.project.records import Project
from gapless.randomize.export.entries import nominal_of
from gapless.randomize.foreign.drawn import Draw, level_of, range_of
from gapless.randomize.foreign.selection import Selection, select
from gapless.randomize.foreign.term import Asset, Written, said_as


@dataclass
class Reading:
    """Ranges that were read so far, and notes on what was not.

    Attributes:
        project: The project.
        model: Its compiled model.
        source: Name of the file, for the reader.
        ranges: Target -> its range.
        notes: What could not be read, or not as it is there: a line each.
    """

    project: Project
    model: mujoco.MjModel
    source: str
    ranges: dict[str, Range] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, term: Written, text: str) -> None:
        """Takes a note on a term."""
        self.notes.append(f"{term.name} ({term.func}): {text}")

    def chosen(self, term: Written, kind: str, default: Asset | None = None) -> Selection:
        """Returns the elements that a term is about."""
        asset = term.params.get("asset_cfg", default or Asset("robot"))
        if not isinstance(asset, Asset):
            self.note(term, f"asset_cfg was not read: {said_as(asset)}")
            return Selection((), False, ())
        found = select(self.model, kind, asset)
        for text in found.notes:
            self.note(term, text)
        return found

    def add(self, term: Written, path: str, draw: Draw | None, factor: float = 1.0) -> None:
        """Keeps the range of one parameter.

        Args:
            term: The term it comes from.
            path: The parameter's target.
            draw: What is drawn; nothing is kept for None.
            factor: The target's unit per unit of the term.
        """
        if draw is None:
            return
        per, text = level_of(term, 1 / self.project.rate_hz)
        try:
            nominal = nominal_of(path, self.project, self.model) / factor
            made = range_of(path, nominal, draw, per, f"{term.name} of {self.source}")
        except InputError as error:
            self.note(term, f"left out: {error}")
            return
        if text:
            self.note(term, f"{path}: {text}")
        if path in self.ranges:
            self.note(term, f"{path} has a range already: this one counts")
        self.ranges[path] = scaled(made, factor)


def scaled(item: Range, factor: float) -> Range:
    """Returns a range with its values multiplied."""
    if factor == 1.0:
        return item
    std = item.std if item.kind == "log-normal" else item.std * factor
    parts = tuple(replace(part, mean=part.mean * factor, std=part.std * factor) for part in item.parts)
    ends = {"low": item.low * factor, "high": item.high * factor, "mean": item.mean * factor}
    return replace(item, std=std, parts=parts, **ends)
