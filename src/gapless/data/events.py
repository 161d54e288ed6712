"""What people say of episodes, in the order in which they say it: labels, splits and consent.

Events are only ever added, so that history stays, and two processes that add at once lose nothing.
"""

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

EventKind = Literal["label", "split", "consent"]
Select = Callable[[str, Sequence[Any]], list[dict[str, Any]]]  # rows of a query over everything that was recorded


@dataclass(frozen=True)
class Event:
    """One thing that somebody said of some episodes."""

    kind: EventKind
    said: Mapping[str, Any]  # what was said, as plain JSON
    name: str | None = None  # of the split, or of the person who agrees; None for labels
    said_by: str | None = None  # who said it; None where nobody was named
    episodes: Sequence[str] = ()  # ids of the episodes it is about
    signals: Sequence[str] = ()  # hashes of their signals: what makes another copy of them known
    said_at: str = field(default_factory=lambda: write_time())
    id: str = field(default_factory=lambda: uuid.uuid4().hex)

    def as_row(self) -> dict[str, Any]:
        """Returns the row of the table of events."""
        return {**vars(self), "said": json.dumps(self.said)}


def read_events(select: Select, kind: EventKind) -> tuple[Event, ...]:
    """Returns the events of a kind, those said first first."""
    rows = select("SELECT * FROM events WHERE kind = $1 ORDER BY said_at, id", (kind,))
    return tuple(Event(**{**row, "said": json.loads(row["said"])}) for row in rows)


def write_time() -> str:
    """Returns the time now as ISO 8601 text in UTC whose order as text is its order in time."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
