"""Whose data may be shown: what people agreed to, and which episodes nothing shows any more."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from gapless.data.descendants import Descendants, Select, find_descendants
from gapless.data.events import Event

ConsentState = Literal["valid", "expired", "withdrawn"]
_OF_PEOPLE = """
SELECT * FROM (SELECT unnest(participants) AS person, id FROM recorded_episodes)
WHERE person IN (SELECT unnest($1::VARCHAR[]))
"""


@dataclass(frozen=True)
class Grant:
    """The newest that a person said about one scope."""

    person: str
    scope: str
    until: str | None  # last day; None for no end
    state: ConsentState


def read_grants(events: Sequence[Event], today: str | None = None) -> tuple[Grant, ...]:
    """Returns what people agreed to by the events of consent, by person and scope.

    A withdrawal is of all that the person agreed to before. `today` is a day in UTC such as `2027-01-01`, None for now.
    """
    today = today or datetime.now(UTC).date().isoformat()
    newest: dict[tuple[str, str], Grant] = {}
    for event in events:
        person, until = str(event.name), event.said.get("until")
        if event.said["what"] == "grant":
            newest.pop((person, ""), None)
            state: ConsentState = "expired" if until is not None and until < today else "valid"
            newest[person, event.said["scope"]] = Grant(person, event.said["scope"], until, state)
        elif event.said["what"] == "withdraw":
            for key in [key for key in newest if key[0] == person] or [(person, "")]:
                until = newest[key].until if key in newest else None
                newest[key] = Grant(person, key[1], until, "withdrawn")
    return tuple(newest[key] for key in sorted(newest))


def refused_people(grants: Sequence[Grant]) -> tuple[str, ...]:
    """Returns who said something about consent, and has none that is valid now."""
    valid = {grant.person for grant in grants if grant.state == "valid"}
    return tuple(sorted({grant.person for grant in grants} - valid))


def keys_of_people(select: Select, events: Sequence[Event], people: Sequence[str]) -> set[tuple[str, str]]:
    """Returns (person, id or hash of signals) of the episodes that people take part in, or took part in."""
    found = {
        (person, key) for e in events for person in people if e.name == person for key in (*e.episodes, *e.signals)
    }
    rows = select(_OF_PEOPLE, (list(people),)) if people else []
    return found | {(row["person"], row["id"]) for row in rows}  # of which copies follow from the signals of this id


def find_hidden(select: Select, events: Sequence[Event], today: str | None = None) -> Descendants:
    """Returns what holds the data of people whose consent is withdrawn or has ended: episode or artefact -> person."""
    people = refused_people(read_grants(events, today))
    return find_descendants(select, keys_of_people(select, events, people), through_artefacts=False)
