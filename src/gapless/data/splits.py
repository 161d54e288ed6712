"""The verb `split`: named sets of episodes, frozen by the content of their signals; and what must not be learned from.

An episode of a frozen test split is never fitted or trained on: nor is another file with the same signals, nor what
was made from it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from gapless.core.episode import Episode
from gapless.core.errors import InputError
from gapless.core.results import Purpose, Split, SplitResult
from gapless.data.catalogue import Catalogue
from gapless.data.chunks import cut_episode, describe_segments
from gapless.data.descendants import Descendants, find_descendants
from gapless.data.events import Event
from gapless.data.select import find_episodes, open_existing, signals_of


def split(
    directory: str | Path,
    name: str | None = None,
    episodes: Sequence[str] = (),
    *,
    where: str | None = None,
    purpose: Purpose = "test",
) -> SplitResult:
    """Freezes a set of episodes under a name; without a name, lists the splits that there are.

    A frozen split never changes: the same name with the same episodes does nothing, with others it is refused.

    Args:
        directory: The project folder.
        name: Of the split; None to list them.
        episodes: Ids, beginnings of ids, names, or patterns of names such as `reach_*`.
        where: SQL condition over the view `episodes`, in place of names.
        purpose: `test` keeps its episodes out of every fit and training; `train` and `validation` are only names.

    Raises:
        InputError: If no episode is meant, the name is taken, or one of the episodes is of a test split already while
            this one is to be trained on.
    """
    catalogue = open_existing(directory)
    if name is None:
        if episodes or where is not None:
            raise InputError("a split needs a name: give one before the episodes, such as `gapless split DIR final`")
        return SplitResult((), _list_splits(catalogue))
    if not name.strip() or name != name.strip():
        raise InputError(f"a split cannot be called {name!r}: give it a name without spaces around it")
    if purpose not in get_args(Purpose):
        raise InputError(f"purpose is {purpose!r}: use one of {', '.join(get_args(Purpose))}")
    if not episodes and where is None:
        known = {event.name: event.episodes for event in catalogue.read_events("split")}
        if name not in known:
            there = ", ".join(map(str, known)) or "none yet"
            raise InputError(
                f"no split {name} (there are: {there}): choose its episodes with --where SQL, or name them"
            )
        ids = tuple(known[name])
    else:
        ids = find_episodes(catalogue, episodes, where)
        with catalogue.events.adding():
            _freeze(catalogue, name, ids, purpose)
    return SplitResult(ids, tuple(one for one in _list_splits(catalogue) if one.name == name))


def _freeze(catalogue: Catalogue, name: str, ids: Sequence[str], purpose: Purpose) -> None:
    """Adds a split, unless it is there already; refuses to change one, and to train on what another one tests."""
    if known := next((event for event in catalogue.read_events("split") if event.name == name), None):
        shown = {row["id"] for row in catalogue.query("SELECT id FROM episodes").to_pylist()}
        if set(known.episodes) & shown != set(ids) or known.said["purpose"] != purpose:
            what = f"{len(known.episodes)} episodes for {known.said['purpose']}"
            raise InputError(
                f"split {name} is frozen with {what}, asked for are {len(ids)} for {purpose}: use a new name"
            )
        return
    if purpose != "test" and (leaks := leave_out(catalogue, ids, "train")):
        reason = next(iter(leaks.values()))
        raise InputError(f"{len(leaks)} of {len(ids)} episodes cannot be for {purpose} ({reason}): choose others")
    signals = signals_of(catalogue, ids)
    catalogue.add_events(Event("split", {"purpose": purpose}, name, episodes=sorted(ids), signals=signals))


def _list_splits(catalogue: Catalogue) -> tuple[Split, ...]:
    hidden, found = catalogue.hidden().episodes, list[Split]()
    for event in catalogue.read_events("split"):
        ids = [id for id in event.episodes if id not in hidden]
        more = find_descendants(catalogue.select, _keys(event)).episodes.keys() - set(event.episodes) - hidden.keys()
        found.append(Split(str(event.name), event.said["purpose"], event.said_at, len(ids), len(more)))
    return tuple(found)


def _keys(event: Event) -> Iterable[tuple[str, str]]:
    return ((str(event.name), key) for key in (*event.episodes, *event.signals))


def find_protected(catalogue: Catalogue) -> Descendants:
    """Returns what must not be fitted or trained on: id -> name of the test split that it is of, or was made from."""
    tests = [event for event in catalogue.read_events("split") if event.said["purpose"] == "test"]
    return find_descendants(catalogue.select, [key for event in tests for key in _keys(event)])


def find_blocked(catalogue: Catalogue, purpose: Purpose) -> dict[str, str]:
    """Returns id, or hash of signals -> why, of episodes and artefacts that must not be used for a purpose.

    For any purpose these are the ones of people whose consent is withdrawn or has ended; for all but `test` also those
    of frozen test splits, their copies, and what was made from them.
    """
    hidden, blocked = catalogue.hidden(), dict[str, str]()
    if purpose != "test":
        test = find_protected(catalogue)
        blocked = {
            key: f"of test split {name}" for key, name in (test.signals | test.artefacts | test.episodes).items()
        }
    withdrawn = hidden.signals | hidden.artefacts | hidden.episodes
    return blocked | dict.fromkeys(withdrawn, "of people whose consent is withdrawn or has ended")


def leave_out(catalogue: Catalogue, ids: Sequence[str], purpose: Purpose) -> dict[str, str]:
    """Returns id -> why, of those episodes and artefacts that `find_blocked` has; what an export must not hold."""
    blocked = find_blocked(catalogue, purpose)
    return {id: blocked[id] for id in ids if id in blocked}


def require_allowed(catalogue: Catalogue, episode: Episode, purpose: Purpose, name: str) -> None:
    """Raises InputError where an episode that the user named must not be used for a purpose."""
    blocked = find_blocked(catalogue, purpose)
    row = describe_segments(cut_episode(episode.commands, episode.measurements)) if blocked else {}
    if row.get("num_rows") and (why := blocked.get(row["signals_id"])):
        raise InputError(f"{name} is {why}: choose another log")


def require_untested(catalogue: Catalogue, artefacts: Sequence[str], what: str) -> None:
    """Raises InputError where artefacts were made from episodes of a test split that is frozen now."""
    protected = find_protected(catalogue).artefacts
    if found := [protected[id] for id in artefacts if id in protected]:
        text = f"{what} was made from episodes of test split {found[0]}, which nothing may be trained on"
        raise InputError(f"{text}: run `gapless identify` and `gapless randomize` again, without them")
