"""Consent: what is withdrawn or over is shown nowhere, leaves the disk, and what came from it is listed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from catalogue_writer import make_episode, make_provenance
from test_recordings import make_recording

from gapless.core.errors import CatalogueError, InputError
from gapless.core.recording import Origin
from gapless.core.results import from_json, to_json
from gapless.data import samples
from gapless.data.catalogue import Catalogue
from gapless.data.consent import consent
from gapless.data.labels import label
from gapless.data.splits import leave_out, split
from gapless.data.withdrawn import find_hidden, read_grants


@pytest.fixture
def ids(tmp_path: Path, catalogue: Catalogue) -> tuple[str, ...]:
    found = catalogue.add_episodes([(make_episode(k, name=f"run{k}"), make_provenance()) for k in range(4)])
    consent(tmp_path, ["run0", "run1"], person="P07", scope="research", until="2999-01-01")
    consent(tmp_path, ["run1", "run2"], person="P08", scope="research")
    return found


def shown(catalogue: Catalogue, view: str = "episodes", column: str = "id") -> set[str]:
    return set(catalogue.query(f"SELECT {column} FROM {view}").column(column).to_pylist())


def test_withdrawn_data_is_shown_nowhere_at_once(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    label(tmp_path, ["run*"], by="ana", outcome="success")
    split(tmp_path, "final", ["run0", "run3"])
    child = catalogue.add_episode(make_episode(9, source="augmented"), make_provenance(parents=(ids[0],)))
    copy = catalogue.add_episode(replace(catalogue.episode(ids[1]), name="other"), make_provenance())
    result = consent(tmp_path, person="P07", withdraw=True)
    gone = {ids[0], ids[1], child, copy}
    assert set(result.inputs) == set(result.hidden) == gone
    assert shown(catalogue) == {ids[2], ids[3]}
    assert shown(catalogue, "samples", "episode") == {ids[2], ids[3]}
    assert shown(catalogue, "labels", "episode") == {ids[2], ids[3]}
    assert shown(catalogue, "splits", "episode") == {ids[3]}
    assert {row.id for row in catalogue.episodes()} == {ids[2], ids[3]}
    assert leave_out(catalogue, [*ids, child, copy], "test").keys() == gone
    with pytest.raises(CatalogueError, match="no episode"):
        catalogue.episode(ids[0])
    split(tmp_path, "final", ["run3"])  # what is left of it is still the same split
    assert split(tmp_path).splits[0].num_episodes == 1


def test_everything_that_came_from_it_is_listed(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    fit = catalogue.add_artefact("identify", {"a": b"1"}, make_provenance(parents=(ids[0], ids[3])))
    policy = catalogue.add_artefact("train", {"a": b"2"}, make_provenance(parents=(fit,)))
    recorded = catalogue.add_episode(make_episode(30, source="real"), make_provenance(parents=(policy,)))
    report = catalogue.add_artefact("report", {"a": b"3"}, make_provenance(parents=(recorded, policy)))
    catalogue.add_artefact("identify", {"a": b"4"}, make_provenance(parents=(ids[2], ids[3])))
    result = consent(tmp_path, person="P07", withdraw=True)
    assert {(one.id, one.kind) for one in result.made_from} == {
        (fit, "identify"),
        (policy, "train"),
        (report, "report"),
    }
    assert recorded in shown(catalogue)  # somebody else's run of a policy is not the person's data
    assert to_json(from_json(to_json(result))) == to_json(result)
    consent(tmp_path, compact=True)
    again = consent(tmp_path)
    assert {one.id for one in again.made_from} == {fit, policy, report}  # also once the episodes are gone


def lies_on_disk(folder: Path, what: np.ndarray | str, *, but: str = "nowhere") -> bool:
    """Returns whether a file holds a value of a column, or a text; Parquet is compressed, so it is read."""
    words = [what.encode()] if isinstance(what, str) else [repr(float(what[3])).encode(), what[3].tobytes()]
    for path in (path for path in (folder / ".gapless").rglob("*") if path.is_file() and but not in path.parts):
        content = path.read_bytes()
        if path.suffix == ".parquet":
            content += repr(pq.ParquetFile(path).read().to_pylist()).encode()
        if any(word in content for word in words):
            return True
    return False


def test_compaction_takes_it_from_the_disk(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    values = catalogue.episode(ids[0]).measurements.values
    needle, other = values[:, 0], catalogue.episode(ids[3]).measurements.values[:, 0]
    assert lies_on_disk(tmp_path, needle)
    result = consent(tmp_path, person="P07", withdraw=True, compact=True)
    assert set(result.deleted) == {ids[0], ids[1]}
    assert not lies_on_disk(tmp_path, needle)
    assert lies_on_disk(tmp_path, other)
    assert consent(tmp_path, compact=True).deleted == ()  # once is enough


def test_compaction_takes_what_rows_say_of_a_person_from_the_disk(tmp_path: Path, catalogue: Catalogue) -> None:
    """What they agreed to and withdrew stays among the events."""
    about = Origin(participants=("Zora", "P02"), operator="Zora")
    item = (make_episode(1, name="Zora-1", conditions={"who": "Zora"}), make_provenance(made_by="log Zora-1.csv"))
    first = catalogue.add_episode(*item, about)
    child = catalogue.add_episode(make_episode(2, name="Zora-2"), make_provenance(parents=(first,)))
    other = catalogue.add_episode(make_episode(3, name="else"), make_provenance(), Origin(participants=("P02",)))
    recorded = make_recording(4, origin=about, name="Zora-3", details={"who": "Zora"}, conditions={})
    (again,) = catalogue.add_recordings([(recorded, make_provenance(config={"source": {"path": "Zora.mcap"}}))])
    consent(tmp_path, person="Zora", withdraw=True)
    assert lies_on_disk(tmp_path, "Zora", but="events")
    assert set(consent(tmp_path, compact=True).deleted) == {first, child, again}
    assert not lies_on_disk(tmp_path, "Zora", but="events")
    for each in (catalogue, Catalogue.open(tmp_path)):
        assert shown(each) == {other}
        assert set(each.hidden().episodes) == {first, child, again}  # as before, though no row names the person
        assert each.add_episode(*item, about) == first
    rows = catalogue.select("SELECT id, name, source, parents, signals_id, num_rows FROM recorded_episodes")
    assert {row["id"]: row["parents"] for row in rows}[child] == [first]
    assert all(row["signals_id"] and row["num_rows"] and row["source"] for row in rows)
    assert consent(tmp_path, compact=True).deleted == ()
    consent(tmp_path, person="Zora", scope="research")
    assert {row.id: row.name for row in catalogue.episodes()} == {
        first: first,
        child: child,
        again: again,
        other: "else",
    }


def test_rows_of_episodes_that_are_deleted_by_id_say_nothing_more(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    split(tmp_path, "final", ["run3"])
    assert catalogue.compact(without=[ids[3]]) == (ids[3],)
    assert not lies_on_disk(tmp_path, "run3")
    assert lies_on_disk(tmp_path, "run2")
    copy = catalogue.add_episode(make_episode(3, name="copy"), make_provenance())
    assert leave_out(catalogue, [copy], "train") == {copy: "of test split final"}


def test_a_killed_deletion_is_done_again(tmp_path: Path, catalogue: Catalogue, monkeypatch) -> None:
    """Who took part is among the events before the rows do not say it any more."""
    id = catalogue.add_episode(make_episode(1, name="Zora-1"), make_provenance(), Origin(participants=("Zora",)))
    consent(tmp_path, person="Zora", withdraw=True)
    for step in ("rewrite", "append"):
        with monkeypatch.context() as patch:
            patch.setattr(f"gapless.data.tables.Table.{step}", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                catalogue.compact()
        assert shown(Catalogue.open(tmp_path)) == set()
    assert catalogue.compact() == (id,)
    assert shown(catalogue) == set()
    assert not lies_on_disk(tmp_path, "Zora", but="events")


def test_adding_does_not_bring_back_what_is_withdrawn(tmp_path: Path, catalogue: Catalogue, ids, monkeypatch) -> None:
    """Adding joins small files by itself."""
    monkeypatch.setattr(samples, "JOIN_ABOVE_FILES", 3)
    monkeypatch.setattr(samples, "MAX_REPLACED_AGE_S", 0.0)
    needle = catalogue.episode(ids[0]).measurements.values[:, 0]
    consent(tmp_path, person="P07", withdraw=True)
    new = [catalogue.add_episode(make_episode(10 + k), make_provenance()) for k in range(4)]
    assert len(list((tmp_path / ".gapless" / "samples").glob("*.parquet"))) < 4
    assert not lies_on_disk(tmp_path, needle)
    assert shown(catalogue, "samples", "episode") == {*new, *ids[2:]}
    consent(tmp_path, person="P07", scope="research")
    with pytest.raises(CatalogueError, match="were deleted"):
        catalogue.episode(ids[0])


def test_a_deleted_recording_does_not_come_back_unseen(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    episode = catalogue.episode(ids[0])
    consent(tmp_path, person="P07", withdraw=True, compact=True)
    again = catalogue.add_episode(replace(episode, name="renamed"), make_provenance())
    assert again not in shown(catalogue)
    consent(tmp_path, person="P07", scope="research")  # the person agrees again
    assert again in shown(catalogue)


def test_consent_ends_with_its_last_day(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    consent(tmp_path, person="P08", scope="teaching", until="2027-01-01")
    consent(tmp_path, person="P08", scope="research", until="2026-12-30")
    events = catalogue.read_events("consent")
    states = {day: {g.scope: g.state for g in read_grants(events, day) if g.person == "P08"} for day in
              ("2026-12-30", "2027-01-01", "2027-01-02")}  # fmt: skip
    assert states["2026-12-30"] == {"research": "valid", "teaching": "valid"}
    assert states["2027-01-01"] == {"research": "expired", "teaching": "valid"}
    assert states["2027-01-02"] == {"research": "expired", "teaching": "expired"}
    assert not find_hidden(catalogue.select, "2027-01-01").episodes
    assert find_hidden(catalogue.select, "2027-01-02").episodes == {ids[1]: "P08", ids[2]: "P08"}


def test_those_who_are_known_are_listed(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    consent(tmp_path, person="P08", withdraw=True)
    found = consent(tmp_path).consents
    assert [(one.person, one.scope, one.until, one.state, one.num_episodes) for one in found] == [
        ("P07", "research", "2999-01-01", "valid", 2),
        ("P08", "research", None, "withdrawn", 2),
    ]


REFUSED: list[tuple[list[str], dict[str, Any], str]] = [
    ([], {"person": "P09", "withdraw": True}, "nobody here is called 'P09': use one of P0"),
    ([], {"person": "P09", "scope": "research"}, "name the episodes too"),
    (["run3"], {"person": "P09"}, "Name the scope"),
    (["run3"], {"person": "P09", "scope": "research", "until": "1.1.2027"}, "is no day: write it as 2027-01-01"),
    (["run3"], {"person": "P09", "scope": "research", "until": "2020-01-01"}, "is over already"),
    (["run3"], {"person": " ", "scope": "research"}, "has no name"),
    (["run9"], {"person": "P09", "scope": "research"}, "no episode 'run9'"),
    (["run3"], {}, "Name the person"),
    ([], {"person": "P07", "scope": "research", "withdraw": True}, "leave out episodes, --scope"),
    ([], {"withdraw": True}, "Name the person"),
]


def test_what_cannot_be_is_refused(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    before = len(catalogue.read_events("consent"))
    for names, options, text in REFUSED:
        with pytest.raises(InputError) as error:
            consent(tmp_path, names, **options)
        assert text in str(error.value)
    assert len(catalogue.read_events("consent")) == before


def test_people_of_whom_the_origin_says_it_need_not_be_assigned(tmp_path: Path, catalogue: Catalogue) -> None:
    first = catalogue.add_episode(make_episode(1), make_provenance(), Origin(participants=("P01", "P02")))
    second = catalogue.add_episode(make_episode(2), make_provenance(), Origin(participants=("P02",)))
    cut = catalogue.add_episode(make_episode(3), make_provenance(), Origin(parents=(first,)))
    assert set(consent(tmp_path, person="P01", withdraw=True).hidden) == {first, cut}
    assert shown(catalogue) == {second}
    new = catalogue.add_episode(make_episode(4), make_provenance(), Origin(participants=("P01",)))
    assert new not in shown(catalogue)  # what comes in later too
