"""Ranges as event terms, to paste into an environment's configuration: what mjlab and Isaac Lab share.

Each of the two has an `EventFormat`: a table of which function writes the terms of which parameter.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gapless.core.distribution import Range
from gapless.randomize.export.job import (
    CORRELATION,
    ROBOT,
    ExportedRange,
    ExportJob,
    ModelElement,
    get_element,
    header_comment,
    note_changed,
    note_left_out,
)


@dataclass(frozen=True)
class EventFormat:
    """How a training stack writes event terms."""

    stack: str  # name of the stack
    step_mode: str  # mode of a term that is called at every control step
    file: str  # the file: imports and functions, with `{entities}` and `{terms}` where these go
    term: str  # one term, with its `{name}`, `{comment}`, `{func}` and `{arguments}`
    # (kind, field) -> function that writes the terms of such a range, or a note
    writers: Mapping[tuple[str, str], Callable[["TermWriter", ExportedRange], None]]
    reasons: Mapping[str, str]  # kind or field -> why such a range has no term
    only_named: frozenset[tuple[str, str]]  # (kind, field) of which one factor on all (`*`) has no term
    first_fields: tuple[str, ...] = ()  # whose terms come first


@dataclass
class TermWriter:
    """The terms that were written so far, as Python, and notes on what was left out or changed."""

    job: ExportJob
    format: EventFormat
    terms: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def leave_out(self, why: str, *entries: ExportedRange) -> None:
        """Notes that ranges have no term."""
        self.notes += [note_left_out(entry.target, why) for entry in entries]

    def note_change(self, how: str, *entries: ExportedRange) -> None:
        """Notes that terms do something else than their ranges say."""
        self.notes += [note_changed(entry.target, how) for entry in entries]

    def add(
        self,
        entry: ExportedRange,
        func: str,
        elements: Sequence[ModelElement],
        params: Mapping[str, str],
        *,
        name: str = "",
        mode: str = "",
        comment: str = "",
    ) -> None:
        """Writes a term for each entity that elements with a name belong to; one without a selection for none.

        `params` are arguments as Python, besides the selection. Name, mode and comment are those of the range unless
        given.
        """
        groups: dict[str, list[str]] = {} if elements else {ROBOT: []}
        for element in elements:
            if element.name:
                groups.setdefault(element.owner, []).append(element.name)
        mode = mode or {"robot": "startup", "episode": "reset", "step": self.format.step_mode}[entry.range.per]
        step_s = self.job.blueprint.interval_s
        timing = f"        interval_range_s=({step_s!r}, {step_s!r}),\n" if mode == "interval" else ""
        for owner, names in groups.items():
            patterns = [re.sub(r"([.^$*+?{}\[\]\\|()])", r"\\\1", one) for one in names]  # that match just the names
            given = dict(params)
            if names:
                selection = f"{python_name(owner).upper()}, {elements[0].kind}_names={patterns!r}"
                given = {"asset_cfg": f"SceneEntityCfg({selection})"} | given
            lines = "".join(f'            "{key}": {value},\n' for key, value in given.items())
            suffix = f"_{python_name(owner)}" if len(groups) > 1 else ""
            full_name, about = (name or python_name(entry.target)) + suffix, comment or f"{entry.target} [{entry.unit}]"
            arguments = f'        mode="{mode}",\n{timing}        params={{\n{lines}        }},\n'
            self.terms.append(self.format.term.format(name=full_name, func=func, comment=about, arguments=arguments))

    def as_uniform(self, entry: ExportedRange) -> Range:
        """Returns a range as the uniform one between the same ends, with a note where it was another."""
        item = entry.range
        if item.kind in ("uniform", "fixed"):
            return item
        self.note_change(f"uniform over its ends: {self.format.stack} has no {item.kind} for this term", entry)
        return Range(item.target, "uniform", item.low, item.high, (item.low + item.high) / 2, per=item.per)

    def note_shared_term(self, first: ExportedRange, *others: ExportedRange) -> None:
        """Notes which ranges are drawn less or more often than they say, in one term with the first."""
        for other in others:
            if other.range.per != first.range.per:
                self.note_change(f"drawn per {first.range.per}, in one term with {first.target}", other)


def write_event_terms(form: EventFormat, job: ExportJob, _: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the Python file, and what it does not carry."""
    writer = TermWriter(job, form)
    for entry in sorted(job.entries, key=lambda e: e.field not in form.first_fields):
        if entry.name == "*" and (entry.kind, entry.field) in form.only_named:
            writer.leave_out(f"each {entry.kind} would draw a factor of its own; name the {entry.kind}s", entry)
        elif (entry.kind, entry.field) in form.writers:
            form.writers[entry.kind, entry.field](writer, entry)
        else:
            default = f"{form.stack} has no term for {entry.kind} {entry.field}"
            writer.leave_out(form.reasons.get(entry.kind) or form.reasons.get(entry.field, default), entry)
    for pair in job.distribution.correlations:
        writer.notes.append(note_left_out(f"{CORRELATION}{pair.first} {pair.second}", "each term draws on its own"))
    owners = {get_element(job.model, "body", k).owner for k in range(1, job.model.nbody)} - {ROBOT}
    entities = "".join(f"{name.upper()} = {name!r}\n" for name in sorted(map(python_name, owners)))
    text = form.file.replace("{entities}", entities).replace("{terms}", "".join(writer.terms))
    return header_comment(job, writer.notes) + text, tuple(writer.notes)


def python_name(target: str) -> str:
    """Returns a target as a name that Python takes: `body/puck/com/x` becomes `body_puck_com_x`."""
    return re.sub(r"\W+", "_", target.replace("*", "all")).strip("_")


def pair_text(low: float, high: float, factor: float = 1.0, shift: float = 0.0) -> str:
    """Returns `factor * (low, high) + shift` as Python, in order."""
    ends = sorted((low * factor + shift, high * factor + shift))
    return f"({float(ends[0])!r}, {float(ends[1])!r})"
