"""Whose data may be shown: what people agreed to, and which episodes nothing shows any more."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from gapless.data.descendants import Descendants, find_descendants
from gapless.data.events import Event, Select, read_events

ConsentState = Literal["valid", "expired", "withdrawn"]
_KEYS_OF_PEOPLE = """
SELECT DISTINCT person, key FROM (
    SELECT name AS person, unnest(episodes || signals) AS key FROM events WHERE kind = 'consent'
    UNION ALL SELECT unnest(participants), id FROM recorded_episodes
) WHERE person IN (SELECT unnest($1::VARCHAR[]))
"""


@dataclass(frozen=True)
class Grant:
    """The newest that a person said about one scope."""

    person: str
    scope: str
    until: str | None  # last day; None for no end
    state: ConsentState


def read_grants(events: Sequence[Event], today: str) -> tuple[Grant, ...]:
    """Returns what people agreed to by the events of consent, by person and scope.

    A withdrawal is of all that the person agreed to before. `today` is a day in UTC such as `2027-01-01`.
    """
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


def find_data_of(select: Select, people: Collection[str]) -> Descendants:
    """Returns what holds the data of some people: the episodes they take part in, copies, what was made from these."""
    rows = select(_KEYS_OF_PEOPLE, (list(people),)) if people else []
    return find_descendants(select, [(row["person"], row["key"]) for row in rows], through_artefacts=False)


def find_hidden(select: Select, today: str) -> Descendants:
    """Returns what holds the data of people who said something about consent, and have none that is valid now."""
    grants = read_grants(read_events(select, "consent"), today)
    valid = {grant.person for grant in grants if grant.state == "valid"}
    return find_data_of(select, {grant.person for grant in grants} - valid)


def name_today() -> str:
    """Returns the day now, in UTC, such as `2027-01-01`."""
    return datetime.now(UTC).date().isoformat()
