"""Recordings in the catalogue: they come back bit for bit, and all that is said of them can be asked for."""

import os
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from catalogue_writer import make_episode, make_provenance

from gapless.core.errors import CatalogueError, InputError
from gapless.core.recording import Origin, Recording, Video
from gapless.data import catalogue as catalogue_module
from gapless.data.catalogue import Catalogue

ORIGIN = Origin(
    robot="so101",
    robot_serial="s/n 7",
    simulator="mujoco",
    simulator_version="3.3",
    parameters={"arm.mass": 0.1 + 0.2, "friction": 0.5},
    policy="act",
    policy_version="v3",
    participants=("anna", "bo"),
    consent="research",
    parents=("p1", "p2"),
)


def make_recording(seed: int = 0, **changes) -> Recording:
    """A recording of two rates: `imu` at every time, `joint` at every fifth, `none` never."""
    rng = np.random.default_rng(seed)
    times_s = np.arange(500) / 500
    slow = np.where(np.arange(500) % 5 == 0, rng.normal(size=500), np.nan)
    fast = rng.normal(size=500)
    fast[:4] = [-0.0, np.inf, 5e-324, 0.1 + 0.2]
    columns = {"imu": fast, "joint/ä": slow, "none": np.full(500, np.nan), "button": (fast > 0).astype(float)}
    about = {"name": f"take{seed}", "source": "real", "types": {"button": "bool", "imu": "float32"}, "origin": ORIGIN}
    about |= {"start_ns": 1_700_000_000_123_456_789, "conditions": {"light": "dim"}, "outcome": "success"}
    about |= {"times_s": times_s, "columns": columns, "details": {"fps": 30, "tasks": ["a"]}}
    return Recording(**(about | changes))


def same_recording(one: Recording, other: Recording) -> bool:
    assert list(one.columns) == list(other.columns)
    said = [each.name for each in fields(Recording) if each.name not in ("times_s", "columns")]
    assert [getattr(one, name) for name in said] == [getattr(other, name) for name in said]
    assert one.times_s.tobytes() == other.times_s.tobytes()
    return all(one.columns[name].tobytes() == other.columns[name].tobytes() for name in one.columns)


def add(catalogue: Catalogue, *recordings: Recording, **options) -> tuple[str, ...]:
    return catalogue.add_recordings([(recording, make_provenance()) for recording in recordings], **options)


def test_a_recording_comes_back_bit_for_bit(catalogue: Catalogue) -> None:
    bare = Recording("bare", np.empty(0), {})
    one_row = Recording("one", np.zeros(1), {"a": np.array([np.nan]), "b": np.array([-0.0])}, source="sim")
    no_columns = Recording("times", np.arange(3.0), {})
    given = (make_recording(), bare, one_row, no_columns)
    ids = add(catalogue, *given)
    assert len(set(ids)) == 4
    for id, recording in zip(ids, given, strict=True):
        assert same_recording(catalogue.recording(id), recording)
    assert [found.name for found in catalogue.recordings(reversed(ids))] == ["times", "one", "bare", "take0"]


def test_cells_that_were_not_recorded_cost_no_row(catalogue: Catalogue) -> None:
    add(catalogue, make_recording())
    counts = catalogue.query(
        "SELECT name, count(*) AS n FROM samples WHERE signal = 'recorded' GROUP BY ALL ORDER BY 1"
    )
    assert counts.to_pylist() == [
        {"name": "button", "n": 500},
        {"name": "imu", "n": 500},
        {"name": "joint/ä", "n": 100},
    ]


def test_a_row_tells_where_a_recording_came_from(catalogue: Catalogue) -> None:
    (id,) = catalogue.add_recordings(
        [(make_recording(), make_provenance(parents=("file", "p1")))],
        format="lerobot",
        quality=lambda recording: ("stuck", f"{len(recording.columns)} columns"),
    )
    (row,) = catalogue.episodes()
    assert (row.id, row.is_recording, row.num_rows, row.format) == (id, True, 500, "lerobot")
    assert (row.origin, row.quality) == (ORIGIN, ("stuck", "4 columns"))
    assert row.provenance.parents == ("file", "p1", "p2")
    asked = "robot_serial = 's/n 7' AND (parameters->>'arm.mass')::DOUBLE > 0.3 AND list_contains(participants, 'bo')"
    assert catalogue.select_ids(f"{asked} AND policy_version = 'v3' AND 'stuck' IN quality") == (id,)
    assert catalogue.select_ids("consent <> 'research'") == ()
    assert catalogue.lineage(id) == ("file", "p1", "p2")


def test_the_same_file_twice_is_one_recording_and_other_numbers_are_another(catalogue: Catalogue) -> None:
    given = make_recording()
    moved = {**given.columns, "imu": np.nextafter(given.columns["imu"], 9)}
    ids = add(catalogue, given, given, replace(given, columns=moved), replace(given, name="other"))
    assert add(catalogue, given) == ids[:1]
    assert len(set(ids)) == len(catalogue.episodes()) == 3
    rows = {row.id: row for row in catalogue.episodes()}
    assert rows[ids[0]].signals_id == rows[ids[3]].signals_id != rows[ids[2]].signals_id


def test_a_copy_is_recognised_in_any_order_and_file(catalogue: Catalogue) -> None:
    given = make_recording()
    turned = dict(reversed(given.columns.items()))
    dense = Recording("copy", given.times_s, turned, source="sim", details={"format": "csv"})
    renamed = replace(given, columns={f"{name}2": values for name, values in given.columns.items()})
    later = replace(given, times_s=given.times_s * 2)
    add(catalogue, given, dense, renamed, later)
    found = {row.name + row.id[:4]: row.signals_id for row in catalogue.episodes()}
    assert len(found) == 4
    assert sorted(list(found.values()).count(each) for each in set(found.values())) == [1, 1, 2]


def test_episodes_of_a_simulator_say_which_and_with_what(catalogue: Catalogue) -> None:
    plain = catalogue.add_episode(make_episode(0), make_provenance())
    id = catalogue.add_episode(make_episode(1), make_provenance(), ORIGIN)
    assert catalogue.select_ids("simulator = 'mujoco' AND (parameters->>'friction')::DOUBLE = 0.5") == (id,)
    rows = {row.id: row for row in catalogue.episodes()}
    assert rows[id].origin == ORIGIN
    assert rows[plain].origin == Origin()
    assert rows[plain].num_rows == 50
    assert len(rows[plain].signals_id) == 32
    assert rows[plain].signals_id != rows[id].signals_id


def test_recordings_and_episodes_are_not_taken_for_each_other(catalogue: Catalogue) -> None:
    episode = catalogue.add_episode(make_episode(), make_provenance())
    (recording,) = add(catalogue, make_recording())
    with pytest.raises(CatalogueError, match="use `recording`"):
        catalogue.episode(recording)
    with pytest.raises(CatalogueError, match="use `episode`"):
        catalogue.recording(episode)
    assert catalogue.select_ids("true") == (episode, recording)
    assert catalogue.select_ids("true", recordings_only=True) == (recording,)


def test_a_source_that_nobody_said_stays_unknown(catalogue: Catalogue) -> None:
    (id,) = add(catalogue, make_recording(source=None))
    assert catalogue.recording(id).source is None
    assert catalogue.select_ids("source IS NULL") == (id,)
    assert catalogue.query("SELECT what FROM lineage('x')").num_rows == 0


def test_many_recordings_are_added_in_batches_that_stay(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(catalogue_module, "BATCH_CELLS", 3000)  # two recordings of 500 + 1,600 cells

    def read():
        for seed in range(6):
            if seed == 5:
                raise RuntimeError("killed")
            yield make_recording(seed), make_provenance()

    with pytest.raises(RuntimeError):
        catalogue.add_recordings(read())
    assert sorted(row.name for row in catalogue.episodes()) == ["take0", "take1", "take2", "take3"]
    ids = add(catalogue, *(make_recording(seed) for seed in range(6)))
    assert [recording.name for recording in catalogue.recordings(ids)] == [f"take{k}" for k in range(6)]
    assert len(list((tmp_path / ".gapless" / "samples").glob("*.parquet"))) == 3


def test_videos_are_kept_once_by_content(catalogue: Catalogue, tmp_path: Path) -> None:
    for name, data in (("a.mp4", b"one"), ("copy.mp4", b"one"), ("b.mp4", b"two")):
        (tmp_path / name).write_bytes(data)
    videos = (Video("front", tmp_path / "a.mp4", 1.5, 2.5), Video("top", tmp_path / "b.mp4"))
    copied = (Video("front", tmp_path / "copy.mp4", 1.5, 2.5), Video("top", tmp_path / "b.mp4"))
    (id,) = add(catalogue, make_recording(videos=videos))
    assert add(catalogue, make_recording(videos=copied)) == (id,)
    found = catalogue.recording(id).videos
    assert [(v.camera, v.path.read_bytes(), v.begin_s, v.end_s) for v in found] == [
        ("front", b"one", 1.5, 2.5),
        ("top", b"two", 0.0, None),
    ]
    media = tmp_path / ".gapless" / "media"
    assert all(v.path.is_relative_to(media) for v in found)
    assert len([path for path in media.rglob("*") if path.is_file()]) == 2
    assert catalogue.select_ids("'top' IN cameras") == (id,)
    assert add(catalogue, catalogue.recording(id)) == (id,)
    with pytest.raises(CatalogueError, match=r"a video cannot be read .*gone\.mp4"):
        add(catalogue, make_recording(1, videos=(Video("front", tmp_path / "gone.mp4"),)))
    assert len(catalogue.episodes()) == 1


def test_videos_are_copied_where_links_do_not_work(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    def refuse(*_args, **_kwargs):
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "a.mp4").write_bytes(b"one")
    (id,) = add(catalogue, make_recording(videos=(Video("front", tmp_path / "a.mp4"),)))
    (tmp_path / "a.mp4").unlink()
    assert catalogue.recording(id).videos[0].path.read_bytes() == b"one"


@pytest.mark.parametrize(
    ("where", "says"),
    [
        ("nope = 1", "nope"),
        ("true) UNION SELECT id FROM artefacts --", "syntax error"),
        ("true; DROP VIEW episodes", "use these columns: id, name, source"),
        ("", "use these columns"),
        ("source = 'real', true", "use these columns"),
        ("id IN (SELECT content FROM read_text('/etc/hostname'))", "disabled"),
        ("id IN (SELECT id FROM '/etc/x.parquet')", "disabled"),
    ],
)
def test_a_bad_condition_is_one_line(catalogue: Catalogue, where: str, says: str) -> None:
    add(catalogue, make_recording())
    with pytest.raises(InputError, match=says) as caught:
        catalogue.select_ids(where)
    assert "\n" not in str(caught.value)


def test_a_condition_may_ask_the_samples(catalogue: Catalogue) -> None:
    ids = add(catalogue, make_recording(0), make_recording(1, columns={"odd": np.full(500, 7.0)}))
    assert catalogue.select_ids("id IN (SELECT episode FROM samples WHERE name = 'odd' AND value = 7)") == ids[1:]


def test_details_that_are_not_json_are_refused(catalogue: Catalogue) -> None:
    with pytest.raises(CatalogueError, match="not plain JSON"):
        add(catalogue, make_recording(details={"a": object()}))
    with pytest.raises(CatalogueError, match="use one of real"):
        add(catalogue, make_recording(source="moon"))
    assert catalogue.episodes() == ()
