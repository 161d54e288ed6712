"""What `new` and `check` have to say."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from gapless.core.results.stored import StoredResult


@dataclass(frozen=True)
class Note:
    """One thing that `check` or `new` has to say."""

    # `fault` (the project cannot be used so), `warning` (look at it) or `info`
    level: Literal["fault", "warning", "info"]
    where: str  # file, column or element it is about
    text: str  # what was found and what to do


@dataclass(frozen=True)
class NewResult(StoredResult):
    """What `new` made: the project folder and what it guessed on the way."""

    verb: ClassVar[str] = "new"
    inputs: tuple[str, ...]
    project: str
    notes: tuple[Note, ...]


@dataclass(frozen=True)
class CheckResult(StoredResult):
    """What `check` found."""

    verb: ClassVar[str] = "check"
    inputs: tuple[str, ...]  # ids of the episodes that were read
    sound: bool  # no fault was found
    notes: tuple[Note, ...]  # what was found, faults first
    # per column, how far the prediction moves when the time step is halved, as a share of its travel [1]; empty where
    # nothing could be simulated
    numerics: Mapping[str, float]
