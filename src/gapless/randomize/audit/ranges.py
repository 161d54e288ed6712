"""Training ranges beside the parameters of a project: one space that has both."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gapless.core.distribution import Distribution, Range
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.randomize.event_files.files import SUFFIXES
from gapless.randomize.event_files.read import read_event_ranges
from gapless.sim.auto import parameters_of
from gapless.sim.blueprint import CompiledProject
from gapless.sim.ranges import distribution_of, read_ranges
from gapless.sim.targets.target import split_target

NUM_DRAWS = 4000  # that quantiles of normal ranges and shares are read from
TAIL = 0.005  # share of a normal range or a mixture, on each side, that counts as outside


def read_training_ranges(path: str | Path, blueprint: CompiledProject) -> tuple[Distribution, tuple[Note, ...]]:
    """Returns the ranges of a file, whoever wrote it, and what could not be read of it.

    It may be a result of `randomize`, ranges as text, or an event configuration of Isaac Lab or mjlab.

    Raises:
        InputError: If it cannot be read, holds no ranges, or ranges of another robot.
    """
    notes: tuple[Note, ...] = ()
    if _is_event_file(Path(path)):
        events = read_event_ranges(path, blueprint.project, blueprint.model)
        found = distribution_of(events.ranges, events.correlations, blueprint, path)
        notes = tuple(Note("info", Path(path).name, text) for text in events.notes)
        if not found.ranges:
            raise InputError(
                f"none of its event terms is a parameter of this model ({events.notes[0]}): name a "
                f"file for this robot: {path}"
            )
    else:
        found = read_ranges(path, blueprint)
    if not found.ranges:
        raise InputError(f"there are no ranges in it: write a line per parameter, such as uniform 0.1 .. 0.5: {path}")
    return found, notes


def _is_event_file(path: Path) -> bool:
    """Says whether a file is an event configuration of another stack; JSON of ours names its verb."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return path.suffix.lower() in SUFFIXES and path.suffix.lower() != ".json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        return False
    return isinstance(found, dict) and "verb" not in found


@dataclass(frozen=True)
class TrainingBox:
    """What training draws, per parameter of a space."""

    low: Array  # (num_parameters,) smallest value, without tails; the model's value where it is not varied
    high: Array  # (num_parameters,) largest value
    varied: NDArray[np.bool_]  # (num_parameters,) whether training draws it
    drawn: Array  # (num_draws, num_parameters) rows as training draws them

    def share(self, column: int, low: float, high: float) -> float:
        """Returns the share of a parameter's draws that lie between two values."""
        values = self.drawn[:, column]
        return float(np.mean((values >= low) & (values <= high)))


def add_ranges(data: ProjectData, ranges: Distribution) -> ProjectData:
    """Returns data whose parameters include those of the ranges, with bounds that include the ranges.

    A term that a range belongs to is no longer tried, but fitted. A range of one factor for all (`*`) replaces single
    parameters of its kind, and the other way round: together they are not identifiable.
    """
    named = set(ranges.space.targets)
    kept = [p for p in data.space.parameters if p.target in named or not _conflicts(p.target, named)]
    kept += [p for term in data.terms if named & set(term.targets) for p in term.parameters]
    space = {p.target: p for p in kept}
    missing = [target for target in ranges.space.targets if target not in space]
    space |= {p.target: p for p in parameters_of(data.blueprint, data.tracks, missing)}
    for item in ranges.ranges:
        p = space[item.target]
        space[item.target] = replace(p, low=min(p.low, item.low), high=max(p.high, item.high))
    terms = tuple(
        term
        for term in data.terms
        if not named & set(term.targets) and not any(_conflicts(target, named) for target in term.targets)
    )
    return replace(data, space=ParameterSpace(tuple(space.values())), terms=terms)


def _conflicts(target: str, named: set[str]) -> bool:
    """Says whether a target and one of some others are of the same kind, and one of the two is for all."""
    own, others = split_target(target), [split_target(other) for other in named]
    alike = [one for one in others if (one.kind, one.field) == (own.kind, own.field) and one != own]
    return any("*" in (own.name, one.name) for one in alike)


def make_box(ranges: Distribution, space: ParameterSpace, rng: np.random.Generator) -> TrainingBox:
    """Returns what training draws of the parameters of a space."""
    low, high, varied = space.nominal, space.nominal, np.zeros(len(space), dtype=bool)
    drawn = draw_rows(ranges, space, rng, NUM_DRAWS)
    for item in ranges.ranges:
        column = space.index(item.target)
        low[column], high[column] = _find_ends(item, drawn[:, column])
        varied[column] = True
    return TrainingBox(low, high, varied, drawn)


def draw_rows(ranges: Distribution, space: ParameterSpace, rng: np.random.Generator, count: int) -> Array:
    """Returns whole rows of a space as training draws them, (count, num_parameters)."""
    rows = np.tile(space.nominal, (count, 1))
    rows[:, [space.index(target) for target in ranges.space.targets]] = ranges.sample(rng, count)
    return rows


def find_prior(data: ProjectData, target: str) -> Parameter:
    """Returns a parameter as the project has it, whatever a range adds to its bounds."""
    known = {p.target: p for p in data.whole.parameters}
    return known[target] if target in known else parameters_of(data.blueprint, data.tracks, [target])[0]


def _find_ends(item: Range, values: Array) -> tuple[float, float]:
    """Returns the ends of a range: of a normal range or a mixture, without its tails."""
    if item.kind == "fixed":
        return item.mean, item.mean
    if item.kind in ("uniform", "log-uniform"):
        return item.low, item.high
    low, high = np.quantile(values, [TAIL, 1 - TAIL])
    return float(low), float(high)
