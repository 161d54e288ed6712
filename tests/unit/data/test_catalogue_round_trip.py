"""What goes in comes out, under an id that follows from what it is."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from catalogue_writer import make_episode, make_provenance, same_episode

from gapless.core.errors import CatalogueError
from gapless.core.signal import TimeSeries
from gapless.data import chunks
from gapless.data.catalogue import Catalogue


def test_an_episode_comes_back_exactly(catalogue: Catalogue) -> None:
    values = np.array([[1.0, np.nan], [-0.0, np.inf], [5e-324, 0.1 + 0.2]])
    measured = TimeSeries(np.array([0.0, 0.01, 0.05]), values, ("q", "é"), ("rad", "°C"))
    episode = make_episode(
        measurements=measured,
        outcome="failure",
        failed_in="grasp",
        recorded_at="2026-01-01T00:00:00Z",
        source="real",
    )
    found = catalogue.episode(catalogue.add_episode(episode, make_provenance()))
    assert same_episode(found, episode)
    assert found.measurements.values.tobytes() == values.tobytes()  # also the sign of zero


@pytest.mark.parametrize("num_samples", [0, 1, 7])
@pytest.mark.parametrize("names", [(), ("a",)])
def test_series_without_columns_or_samples_come_back(catalogue: Catalogue, num_samples: int, names) -> None:
    times_s = np.linspace(3.0, 4.0, num_samples)
    series = TimeSeries(times_s, np.ones((num_samples, len(names))), names, ("1",) * len(names))
    for changes in (
        {"commands": series},
        {"measurements": series},
        {"commands": series, "measurements": series},
    ):
        episode = make_episode(**changes)
        found = catalogue.episode(catalogue.add_episode(episode, make_provenance()))
        assert same_episode(found, episode)
        assert found.commands.values.shape == episode.commands.values.shape


def test_a_long_episode_is_stored_in_chunks(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    for name in ("SEGMENT_CELLS", "ROW_GROUP_CELLS", "MAX_GROUP_CELLS"):
        monkeypatch.setattr(chunks, name, 20)
    episode = make_episode()
    id = catalogue.add_episode(episode, make_provenance())
    (path,) = (tmp_path / ".gapless" / "samples").glob("*.parquet")
    file = pq.ParquetFile(path)
    assert file.metadata.num_rows == 21  # 50 samples in 3 segments, of 5 columns and 2 clocks
    assert file.num_row_groups == 15  # the last segment of each has 10 samples, and goes with the next one's first
    assert same_episode(catalogue.episode(id), episode)


def test_rows_tell_what_was_stored(catalogue: Catalogue) -> None:
    provenance = make_provenance(parents=("p", "q"), config={"a": [1, {"b": None}]}, seed=None)
    real = catalogue.add_episode(make_episode(1, source="real", outcome=None, conditions={}), provenance)
    lost = catalogue.add_episode(make_episode(2, outcome="failure", failed_in="lift"), make_provenance())
    row, other = catalogue.episodes()
    assert (row.id, row.name, row.source, row.outcome, row.conditions) == (real, "run0001", "real", None, {})
    assert row.duration_s == 0.49
    assert row.provenance == provenance
    assert (other.id, other.failed_in, other.conditions) == (lost, "lift", {"object": "mug"})
    assert [r.id for r in catalogue.episodes(source="real")] == [real]
    assert [r.id for r in catalogue.episodes(outcome="failure")] == [lost]
    assert catalogue.episodes(source="twin") == ()


def test_simulated_and_real_rows_lie_apart(catalogue: Catalogue, tmp_path: Path) -> None:
    catalogue.add_episodes([(make_episode(k, source=s), make_provenance()) for k, s in enumerate(("sim", "real"))])
    folders = {path.parent.name for path in (tmp_path / ".gapless/tables/episodes").rglob("*.parquet")}
    assert folders == {"source=sim", "source=real"}


def test_adding_twice_changes_nothing(catalogue: Catalogue, tmp_path: Path) -> None:
    item = (make_episode(), make_provenance())
    id = catalogue.add_episode(*item)
    assert catalogue.add_episodes([item, item, (make_episode(9), make_provenance())])[:2] == (id, id)
    assert Catalogue.open(tmp_path).add_episode(*item) == id
    assert len(catalogue.episodes()) == 2
    fit = [catalogue.add_artefact("fit", {"a": b"1"}, make_provenance()) for _ in range(2)]
    assert fit[0] == fit[1]
    assert len(catalogue.artefacts()) == 1


def test_samples_without_a_row_are_no_episode_until_added(catalogue: Catalogue, tmp_path: Path) -> None:
    id = catalogue.add_episode(make_episode(), make_provenance())
    other = tmp_path / "other"
    other.mkdir()
    fresh = Catalogue.open(other)
    fresh.add_episode(make_episode(1), make_provenance())
    (written,) = (tmp_path / ".gapless" / "samples").glob("*.parquet")
    (other / ".gapless" / "samples" / written.name).write_bytes(written.read_bytes())
    count = "SELECT count(DISTINCT episode) AS n FROM samples"
    assert len(fresh.episodes()) == 1
    assert fresh.query(count).to_pylist() == [{"n": 1}]
    assert fresh.add_episode(make_episode(), make_provenance()) == id
    assert fresh.query(count).to_pylist() == [{"n": 2}]


def test_the_id_changes_with_anything_that_matters(catalogue: Catalogue) -> None:
    moved = make_episode().measurements
    moved = TimeSeries(moved.times_s, moved.values + 1e-12, moved.names, moved.units)
    episodes = [make_episode(), make_episode(measurements=moved), make_episode(outcome="failure")]
    changes = (
        {"parents": ("p",)},
        {"code_version": "0.2"},
        {"config": {"rate_hz": 50}},
        {"seed": 2},
        {"made_by": "x"},
    )
    items = [(episode, make_provenance()) for episode in episodes]
    items += [(make_episode(), make_provenance(**change)) for change in changes]
    ids = catalogue.add_episodes(items)
    assert len(set(ids)) == len(items) == len(catalogue.episodes())
    made = [("fit", {"a": b"1"}), ("fit", {"a": b"2"}), ("fit", {"b": b"1"}), ("policy", {"a": b"1"})]
    fits = {catalogue.add_artefact(kind, content, make_provenance()) for kind, content in made}
    fits |= {catalogue.add_artefact(*made[0], make_provenance(**change)) for change in changes}
    assert len(fits) == len(made) + len(changes)


def test_artefacts_come_back_newest_last(catalogue: Catalogue) -> None:
    content = {"fit.json": b"{}", "plots/a.png": b"\x00\xff"}
    first = catalogue.add_artefact("fit", content, make_provenance())
    second = catalogue.add_artefact("policy", {"net": b""}, make_provenance(parents=(first,)))
    third = catalogue.add_artefact("fit", {"fit.json": b"[]"}, make_provenance())
    assert [row.id for row in catalogue.artefacts()] == [first, second, third]
    assert [row.id for row in catalogue.artefacts("fit")] == [first, third]
    row = catalogue.artefact(second)
    assert (row.kind, row.files, row.provenance) == ("policy", ("net",), make_provenance(parents=(first,)))
    assert {name: catalogue.artefact_path(first, name).read_bytes() for name in content} == content


def test_lineage_is_nearest_first(catalogue: Catalogue) -> None:
    episode = catalogue.add_episode(make_episode(), make_provenance(parents=("outside",)))
    fit = catalogue.add_artefact("fit", {"a": b"1"}, make_provenance(parents=(episode,)))
    policy = catalogue.add_artefact("policy", {"a": b"2"}, make_provenance(parents=(fit, episode)))
    run = catalogue.add_episode(make_episode(1), make_provenance(parents=(policy,)))
    lineage = catalogue.lineage(run)
    assert lineage[0] == policy
    assert set(lineage[1:3]) == {fit, episode}
    assert lineage[3:] == ("outside",)
    assert catalogue.lineage(episode) == ("outside",)
    with pytest.raises(CatalogueError, match="no episode or artefact 'zz'; choose from"):
        catalogue.lineage("zz")
