"""The verb `consent`: who agreed to what until when, and what a withdrawal takes away."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from gapless.core.errors import InputError, nearest
from gapless.core.results import Consent, ConsentResult, MadeFrom
from gapless.data.catalogue import Catalogue
from gapless.data.events import Event
from gapless.data.select import find_episodes, open_existing, signals_of
from gapless.data.withdrawn import find_data_of, name_today, read_grants


def consent(
    directory: str | Path,
    episodes: Sequence[str] = (),
    *,
    person: str | None = None,
    scope: str | None = None,
    until: str | None = None,
    where: str | None = None,
    withdraw: bool = False,
    compact: bool = False,
    by: str | None = None,
) -> ConsentResult:
    """Writes down what a person agrees to, or withdraws it; without either, lists who agreed to what.

    Withdrawing, and the day after `until`, hide every episode that the person takes part in, and every copy of one and
    episode made from one: from queries, splits and exports at once, and on disk with the next compaction. What was
    fitted, trained or reported from them is listed.

    Args:
        directory: The project folder.
        episodes: Ids, beginnings of ids, names or patterns of the episodes that the person takes part in, where their
            origin does not say so.
        person: Who agrees or withdraws, by the name or number that episodes give.
        scope: What to, such as `research`.
        until: Last day of it, such as `2027-01-01`; None for no end.
        where: SQL condition over the view `episodes`, in place of `episodes`.
        withdraw: Whether the person withdraws all that they agreed to.
        compact: Whether to delete what is hidden from the disk now.
        by: Who writes it down; None where it does not matter.

    Raises:
        InputError: If the person is not known, the day is no day, or no episode is meant.
    """
    chosen = bool(episodes) or where is not None
    if withdraw and (scope or until or chosen):
        raise InputError("--withdraw is of all that the person agreed to: leave out episodes, --scope and --until")
    if person is None and (withdraw or scope or until or chosen):
        raise InputError("who agrees, or withdraws? Name the person with --person")
    catalogue = open_existing(directory)
    ids: tuple[str, ...] = ()
    if person is not None and withdraw:
        ids = _withdraw(catalogue, person, by)
    elif person is not None:
        ids = find_episodes(catalogue, episodes, where) if chosen else ()
        _grant(catalogue, Event("consent", _check_grant(scope, until), person, by, ids, signals_of(catalogue, ids)))
    deleted = catalogue.compact() if compact else ()
    return _describe(catalogue, ids, deleted)


def _check_grant(scope: str | None, until: str | None) -> dict[str, str | None]:
    """Returns what is agreed to, as it is stored; raises InputError for no scope and for a day that is none or over."""
    if not (scope or "").strip():
        raise InputError("what to? Name the scope with --scope, such as research")
    try:
        day = None if until is None else date.fromisoformat(until)
    except ValueError:
        raise InputError(f"--until {until} is no day: write it as 2027-01-01") from None
    if day is not None and day < datetime.now(UTC).date():
        raise InputError(f"--until {until} is over already: give a later day, or use --withdraw")
    return {"what": "grant", "scope": scope, "until": None if day is None else day.isoformat()}


def _grant(catalogue: Catalogue, event: Event) -> None:
    if not (event.name or "").strip():
        raise InputError("the person has no name: give one with --person")
    if not event.episodes:
        _require_known(catalogue, str(event.name), "name the episodes too that hold the data of a new one")
    catalogue.add_events(event)


def _withdraw(catalogue: Catalogue, person: str, by: str | None) -> tuple[str, ...]:
    """Withdraws all that a person agreed to; returns the episodes that this hides, with copies and what was made."""
    _require_known(catalogue, person, "see who is known with `gapless consent DIR`")
    before = catalogue.hidden().episodes.keys()
    catalogue.add_events(Event("consent", {"what": "withdraw"}, person, by))
    return tuple(sorted(catalogue.hidden().episodes.keys() - before))


def _require_known(catalogue: Catalogue, person: str, advice: str) -> None:
    """Raises InputError, with who is known, for a person of whom no episode and no consent is known."""
    rows = catalogue.select("SELECT DISTINCT unnest(participants) AS person FROM recorded_episodes")
    known = {row["person"] for row in rows} | {str(event.name) for event in catalogue.read_events("consent")}
    if person not in known:
        raise InputError(f"nobody here is called {person!r}: use one of {nearest(person, known)}; {advice}")


def _describe(catalogue: Catalogue, ids: tuple[str, ...], deleted: tuple[str, ...]) -> ConsentResult:
    """Returns who agreed to what, and what was made from the episodes that are hidden now."""
    hidden, consents = catalogue.hidden(), list[Consent]()
    for grant in read_grants(catalogue.read_events("consent"), name_today()):
        own = find_data_of(catalogue.select, (grant.person,))
        consents.append(Consent(grant.person, grant.scope, grant.until, grant.state, len(own.episodes)))
    rows = [row for row in catalogue.artefacts() if row.id in hidden.artefacts]
    made = [MadeFrom(r.id, r.kind, r.created_at, str(catalogue.artefact_folder(r.id))) for r in rows]
    return ConsentResult(ids, tuple(consents), tuple(hidden.episodes), deleted, tuple(made))
