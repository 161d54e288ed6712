"""Splits: frozen, and nothing of a test split leaks out through a copy, a child or an export."""

from dataclasses import replace
from pathlib import Path

import pytest
from catalogue_writer import make_episode, make_provenance

from gapless.core.errors import InputError
from gapless.core.results import from_json, to_json
from gapless.core.signal import TimeSeries
from gapless.data.catalogue import Catalogue
from gapless.data.splits import leave_out, require_untested, split


@pytest.fixture
def ids(catalogue: Catalogue) -> tuple[str, ...]:
    episodes = [make_episode(k, name=f"run{k}", source="real") for k in range(6)]
    return catalogue.add_episodes([(episode, make_provenance()) for episode in episodes])


def test_a_frozen_split_is_never_changed(tmp_path: Path, catalogue: Catalogue, ids: tuple[str, ...]) -> None:
    first = split(tmp_path, "final", where="name IN ('run0', 'run1')")
    assert set(first.inputs) == set(ids[:2])
    split(tmp_path, "final", ["run1", "run0"])  # the same
    with pytest.raises(
        InputError, match=r"final is frozen with 2 episodes for test, asked for are 3 .* use a new name"
    ):
        split(tmp_path, "final", ["run[012]"])
    with pytest.raises(InputError, match="use a new name"):
        split(tmp_path, "final", ["run0", "run1"], purpose="validation")
    split(tmp_path, "final-2", ["run[012]"])
    listed = split(tmp_path)
    assert [(one.name, one.purpose, one.num_episodes) for one in listed.splits] == [
        ("final", "test", 2),
        ("final-2", "test", 3),
    ]
    assert to_json(from_json(to_json(listed))) == to_json(listed)
    assert len(catalogue.read_events("split")) == 2
    shown = catalogue.query("SELECT name, count(*) AS n FROM splits GROUP BY name ORDER BY name").to_pylist()
    assert shown == [{"name": "final", "n": 2}, {"name": "final-2", "n": 3}]


def test_what_matches_later_does_not_join_a_frozen_split(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    split(tmp_path, "final", where="name LIKE 'run%'")
    new = catalogue.add_episode(make_episode(9, name="run9"), make_provenance())
    assert leave_out(catalogue, [*ids, new], "train").keys() == set(ids)
    with pytest.raises(InputError, match="use a new name"):
        split(tmp_path, "final", where="name LIKE 'run%'")


def test_the_same_recording_under_another_name_does_not_leak(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    split(tmp_path, "final", ["run0"])
    original = catalogue.episode(ids[0])
    again = replace(original, name="other", outcome="failure", conditions={}, recorded_at="2026-01-01")
    copy = catalogue.add_episode(again, make_provenance(made_by="import"))
    assert leave_out(catalogue, [*ids, copy], "train") == dict.fromkeys((ids[0], copy), "of test split final")
    assert leave_out(catalogue, [copy], "test") == {}
    assert split(tmp_path).splits[0].num_copies == 1


def test_children_do_not_leak(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    """A child, its child, a copy of that without parents, a child of a copy."""
    split(tmp_path, "final", ["run0"])
    child = catalogue.add_episode(make_episode(20, source="augmented"), make_provenance(parents=(ids[0],)))
    grandchild = catalogue.add_episode(make_episode(21, source="augmented"), make_provenance(parents=(ids[3], child)))
    orphan = catalogue.add_episode(make_episode(21, name="found"), make_provenance())
    copy = catalogue.add_episode(replace(catalogue.episode(ids[0]), name="other"), make_provenance())
    of_copy = catalogue.add_episode(make_episode(22, source="augmented"), make_provenance(parents=(copy,)))
    every = (*ids, child, grandchild, orphan, copy, of_copy)
    assert leave_out(catalogue, every, "train").keys() == {ids[0], child, grandchild, orphan, copy, of_copy}


def test_simulations_of_a_tested_fit_are_left_out_but_new_recordings_are_not(
    tmp_path: Path, catalogue: Catalogue, ids
) -> None:
    fit = catalogue.add_artefact("identify", {"a": b"1"}, make_provenance(parents=ids[:2]))
    policy = catalogue.add_artefact("train", {"a": b"2"}, make_provenance(parents=(fit,)))
    other = catalogue.add_artefact("identify", {"a": b"3"}, make_provenance(parents=ids[2:4]))
    simulated = catalogue.add_episode(make_episode(30, source="sim"), make_provenance(parents=(policy,)))
    recorded = catalogue.add_episode(make_episode(31, source="real"), make_provenance(parents=(policy,)))
    split(tmp_path, "final", ["run0"])
    found = leave_out(catalogue, [fit, policy, other, simulated, recorded], "train")
    assert found.keys() == {fit, policy, simulated}
    require_untested(catalogue, [other], "this fit")
    with pytest.raises(
        InputError, match=r"this fit was made from episodes of test split final.*run `gapless identify`"
    ):
        require_untested(catalogue, [other, fit], "this fit")


def test_runs_without_samples_are_no_copies_of_each_other(tmp_path: Path, catalogue: Catalogue) -> None:
    none = make_episode(0).commands
    silent = TimeSeries(none.times_s[:0], none.values[:0], none.names, none.units)
    ids = catalogue.add_episodes(
        [(make_episode(0, name=f"quiet{k}", commands=silent, measurements=silent), make_provenance()) for k in (1, 2)]
    )
    split(tmp_path, "final", ["quiet1"])
    assert leave_out(catalogue, ids, "train").keys() == {ids[0]}


def test_a_split_for_training_holds_nothing_of_a_test_split(tmp_path: Path, catalogue: Catalogue, ids) -> None:
    split(tmp_path, "fitting", ["run4"], purpose="train")
    assert leave_out(catalogue, ids, "train") == {}  # only test splits are kept out
    split(tmp_path, "final", ["run0"])
    child = catalogue.add_episode(
        make_episode(20, name="child", source="augmented"), make_provenance(parents=(ids[0],))
    )
    assert child
    with pytest.raises(InputError, match=r"1 of 2 episodes cannot be for train \(of test split final\): choose others"):
        split(tmp_path, "more", ["child", "run3"], purpose="train")


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (("nothing",), {}, "no split nothing .there are: none yet.: choose its episodes"),
        ((" final",), {"where": "true"}, "without spaces around it"),
        ((None, ["run0"]), {}, "a split needs a name"),
        (("final", ["run0"]), {"purpose": "exam"}, "use one of test, train, validation"),
        (("final",), {"where": "name = 'no'"}, "no episode has"),
    ],
)
def test_what_is_no_split_is_refused(tmp_path: Path, catalogue, ids, arguments, options, text: str) -> None:
    with pytest.raises(InputError, match=text):
        split(tmp_path, *arguments, **options)
    assert catalogue.read_events("split") == ()
