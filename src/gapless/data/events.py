"""What people say of episodes, in the order in which they said it: labels, splits and consent.

Events are only ever added, so that history stays, and two processes that add at once lose nothing.
"""

import fcntl
import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow.parquet as pq

from gapless.data.rows import EVENTS_SCHEMA
from gapless.data.tables import Table, explain_failure

EventKind = Literal["label", "split", "consent"]


@dataclass(frozen=True)
class Event:
    """One thing that somebody said of some episodes."""

    kind: EventKind
    said: Mapping[str, Any]  # what was said, as plain JSON
    name: str | None = None  # of the split, or of the person who agrees; None for labels
    said_by: str | None = None  # who said it; None where nobody was named
    episodes: tuple[str, ...] = ()  # ids of the episodes it is about
    signals: tuple[str, ...] = ()  # hashes of their signals: what makes another copy of them known
    said_at: str = ""  # ISO 8601 time, UTC; set when it is added
    id: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class EventLog:
    """The events of a catalogue. Without one there is no table, and nothing costs time."""

    directory: Path  # of the table

    @property
    def _table(self) -> Table:
        return Table(self.directory, EVENTS_SCHEMA)

    def files(self) -> tuple[Path, ...]:
        """Returns the Parquet files that hold the events; none while there are no events."""
        return self._table.files() if (self.directory / "_delta_log").is_dir() else ()

    def append(self, *events: Event) -> None:
        """Adds events in one commit, all or none."""
        self._table.create()
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        self._table.append([{**vars(event), "said_at": now, "said": json.dumps(event.said)} for event in events])

    def read(self, kind: EventKind) -> tuple[Event, ...]:
        """Returns the events of a kind, those said first first."""
        files = self.files()
        with explain_failure("what people said of episodes cannot be read", self.directory):
            parts = [pq.read_table(file, filters=[("kind", "==", kind)]).to_pylist() for file in files]
        rows = {row["id"]: row for part in parts for row in part}  # each once, whatever a compaction left
        found = [
            Event(
                **{**row, "said": json.loads(row["said"]), **{k: tuple(row[k] or ()) for k in ("episodes", "signals")}}
            )
            for row in rows.values()
        ]
        return tuple(sorted(found, key=lambda event: (event.said_at, event.id)))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lets one process at a time look at the events and then add some; it ends with the process."""
        with explain_failure("what people say of episodes cannot be written", self.directory):
            self.directory.parent.mkdir(parents=True, exist_ok=True)
            lock = self.directory.with_name("events-order.lock").open("w")
        with lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
