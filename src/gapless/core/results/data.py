"""What people said of episodes: the results of `label`, `split` and `consent`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gapless.core.episode import Outcome
from gapless.core.interval import Interval
from gapless.core.results.gap import Result

Purpose = Literal["test", "train", "validation"]


@dataclass(frozen=True)
class Disagreement:
    """An episode of which two people say different things."""

    episode: str  # its name
    id: str  # its id
    first_said: Outcome  # what the first person says
    second_said: Outcome  # what the second person says


@dataclass(frozen=True)
class Agreement:
    """How far two people agree on the outcome, beyond what chance gives."""

    first: str  # who
    second: str  # and who
    num_common: int  # episodes of which both said the outcome
    kappa: Interval  # Cohen's kappa [1]; its value is NaN where both always say the same one word
    disagreements: tuple[Disagreement, ...]  # by name


@dataclass(frozen=True)
class LabelResult(Result):
    """What `label` wrote, of which episodes (`inputs`), or how far people agree (`--agreement`)."""

    verb: ClassVar[str] = "label"
    said_by: str | None  # who labelled; None where only agreement was asked for
    outcome: Outcome | None = None  # None: nothing was said of it
    failed_in: str | None = None  # the phase in which it failed
    reason: str | None = None  # why, in the person's words
    conditions: Mapping[str, str] = field(default_factory=dict[str, str])
    tags: tuple[str, ...] = ()
    agreements: tuple[Agreement, ...] = ()  # of each two people who labelled the same episodes


@dataclass(frozen=True)
class Split:
    """A named, frozen set of episodes."""

    name: str
    purpose: Purpose  # episodes of a `test` split are never fitted or trained on
    frozen_at: str  # ISO 8601 time, UTC
    num_episodes: int  # that it was frozen with
    num_copies: int  # further episodes now known that hold the same recordings, or were made from them


@dataclass(frozen=True)
class SplitResult(Result):
    """The splits of a catalogue, oldest first. `inputs` are the episodes of the one that was asked for."""

    verb: ClassVar[str] = "split"
    splits: tuple[Split, ...]


@dataclass(frozen=True)
class Consent:
    """What one person agreed to, within one scope."""

    person: str
    scope: str  # such as `research`; empty for a withdrawal of a person who never agreed
    until: str | None  # last day, such as `2027-01-01`; None for no end
    state: Literal["valid", "expired", "withdrawn"]
    num_episodes: int  # that hold this person's data


@dataclass(frozen=True)
class MadeFrom:
    """An artefact that was made, directly or indirectly, from some episodes."""

    id: str
    kind: str  # such as `identify`, `train` or `report`
    created_at: str  # ISO 8601 time, UTC
    path: str  # folder that its files lie in


@dataclass(frozen=True)
class ConsentResult(Result):
    """Who agreed to what, and what follows from it. `inputs` are the episodes that the call was about."""

    verb: ClassVar[str] = "consent"
    consents: tuple[Consent, ...]  # by person and scope
    hidden: tuple[str, ...]  # ids of the episodes that nothing shows now: withdrawn or expired
    deleted: tuple[str, ...] = ()  # ids of the episodes that this call deleted from the disk
    made_from: tuple[MadeFrom, ...] = ()  # what was made from the hidden episodes: to be made anew, and deleted
