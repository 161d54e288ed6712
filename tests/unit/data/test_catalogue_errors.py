"""What cannot be done is said in one line that helps."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
from catalogue_writer import make_episode, make_provenance

from gapless.core.errors import CatalogueError, InputError
from gapless.data.catalogue import Catalogue


def one_line(caught: pytest.ExceptionInfo) -> str:
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / ".gapless").write_text("mine")
    with pytest.raises(CatalogueError) as caught:
        Catalogue.open(tmp_path)
    assert one_line(caught).endswith(str(tmp_path / ".gapless"))


def test_no_project_folder(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="No such file"):
        Catalogue.open(tmp_path / "nowhere")


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch) -> None:
    def refuse(path, *_args, **_kwargs):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(CatalogueError, match="Permission denied") as caught:
        Catalogue.open(tmp_path)
    assert one_line(caught).endswith(str(tmp_path / ".gapless"))


def test_a_disk_that_is_full(catalogue: Catalogue, monkeypatch) -> None:
    def refuse(*_args, **_kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gapless.data.chunks.pq.ParquetWriter.write_table", refuse)
    with pytest.raises(CatalogueError, match="No space left"):
        catalogue.add_episode(make_episode(), make_provenance())
    monkeypatch.undo()
    assert catalogue.episodes() == ()
    assert len(catalogue.episodes()) + len(catalogue.add_episodes([(make_episode(), make_provenance())])) == 1


@pytest.mark.parametrize("name", ["a[1]", "50%", "what?"])
def test_a_path_that_delta_would_misread(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(CatalogueError, match="rename the folder"):
        Catalogue.open(tmp_path / name)


@pytest.mark.parametrize("name", ["two words", "it's", "ö#+", "source=real", "id=1", "a:b"])
def test_other_strange_paths_work(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    catalogue = Catalogue.open(tmp_path / name)
    id = catalogue.add_episode(make_episode(source="sim"), make_provenance())
    assert catalogue.add_episode(make_episode(source="sim"), make_provenance()) == id
    found = catalogue.query("SELECT DISTINCT id, source FROM episodes JOIN samples ON episode = id").to_pylist()
    assert found == [{"id": id, "source": "sim"}]


def test_a_corrupt_table(catalogue: Catalogue, tmp_path: Path) -> None:
    log = tmp_path / ".gapless/tables/episodes/_delta_log/00000000000000000000.json"
    log.write_text('{"protocol": ')
    with pytest.raises(CatalogueError) as caught:
        Catalogue.open(tmp_path)
    assert one_line(caught).endswith(str(tmp_path / ".gapless/tables/episodes"))


def test_a_corrupt_episode(catalogue: Catalogue, tmp_path: Path) -> None:
    id = catalogue.add_episode(make_episode(), make_provenance())
    (path,) = (tmp_path / ".gapless/samples").glob("*.parquet")
    for damage in (lambda: path.write_bytes(b"PAR1"), path.unlink):
        damage()
        with pytest.raises(CatalogueError, match=f"episode {id} cannot be read") as caught:
            catalogue.episode(id)
        assert one_line(caught).endswith(str(path))


def test_unknown_ids_name_what_exists(catalogue: Catalogue) -> None:
    with pytest.raises(CatalogueError, match=r"no episode 'x'; choose from: \(none exist\)"):
        catalogue.episode("x")
    ids = [catalogue.add_artefact("fit", {"a.json": b"%d" % k}, make_provenance()) for k in range(5)]
    with pytest.raises(CatalogueError, match=f"no artefact '.*'; choose from: {ids[3]}, .* and 2 more"):
        catalogue.artefact(ids[3][:-1])
    with pytest.raises(CatalogueError, match=r"has no file .*; choose from: a\.json"):
        catalogue.artefact_path(ids[0], "../x")


@pytest.mark.parametrize("name", ["../a", "/a", "", ".", "a/../b", "a//b", "a\\b"])
def test_a_file_may_not_leave_its_folder(catalogue: Catalogue, name: str) -> None:
    with pytest.raises(CatalogueError, match="has a file"):
        catalogue.add_artefact("fit", {name: b""}, make_provenance())
    assert catalogue.artefacts() == ()


def test_what_could_not_be_given_back_is_refused(catalogue: Catalogue) -> None:
    with pytest.raises(CatalogueError, match="not plain JSON"):
        catalogue.add_episode(make_episode(), make_provenance(config={"a": object()}))
    with pytest.raises(CatalogueError, match="too large"):
        catalogue.add_episode(make_episode(), make_provenance(seed=2**70))
    with pytest.raises(CatalogueError, match="use one of real, twin, sim"):
        catalogue.add_episode(make_episode(source="../up"), make_provenance())
    with pytest.raises(CatalogueError, match="without files"):
        catalogue.add_artefact("fit", {}, make_provenance())
    assert catalogue.episodes() == ()


@pytest.mark.parametrize("view", ["episodes", "artefacts", "samples"])
def test_an_empty_view_has_the_columns_of_a_full_one(catalogue: Catalogue, view: str) -> None:
    empty = catalogue.query(f"SELECT * FROM {view}")
    catalogue.add_episode(make_episode(), make_provenance())
    catalogue.add_artefact("fit", {"a": b""}, make_provenance())
    full = catalogue.query(f"SELECT * FROM {view}")
    assert empty.num_rows == 0
    assert full.num_rows == {"episodes": 1, "artefacts": 1, "samples": 250}[view]
    assert empty.schema.equals(full.schema)


def test_questions_are_answered(catalogue: Catalogue) -> None:
    episode = make_episode()
    id = catalogue.add_episode(episode, make_provenance(seed=7))
    which = f"episode = '{id}' AND signal = 'measurement' AND name = 'cmd_a'"
    sql = f"SELECT avg(value) AS mean FROM samples WHERE {which}"
    assert catalogue.query(sql)["mean"][0].as_py() == pytest.approx(episode.measurements.column("cmd_a").mean())
    found = catalogue.query("SELECT conditions->>'object' AS object, seed, config->>'rate_hz' AS rate FROM episodes;")
    assert found.to_pylist() == [{"object": "mug", "seed": 7, "rate": "100"}]


def test_a_bad_question_is_refused_in_one_line(catalogue: Catalogue) -> None:
    for sql, says in {
        "selct 1": "syntax error",
        "SELECT * FROM epsodes": "Did you mean",
        "": "one SELECT",
        "SELECT 1; SELECT 2": "one SELECT",
    }.items():
        with pytest.raises(InputError, match=says) as caught:
            catalogue.query(sql)
        one_line(caught)


def test_a_question_cannot_change_or_reach_anything(catalogue: Catalogue, tmp_path: Path) -> None:
    outside = pa.table({"secret": [1]})  # DuckDB would find this variable by its name
    catalogue.add_episode(make_episode(), make_provenance())
    (tmp_path / "other.csv").write_text("a\n1\n")
    inside = tmp_path / ".gapless" / "x.parquet"
    for sql in (
        f"COPY (SELECT 1) TO '{inside}'",
        "CREATE TABLE t (a INT)",
        "SET enable_external_access = true",
        f"ATTACH '{tmp_path / 'x.db'}'",
        f"SELECT * FROM read_csv('{tmp_path / 'other.csv'}')",
        "SELECT * FROM outside",
        "DROP VIEW episodes",
    ):
        with pytest.raises(InputError):
            catalogue.query(sql)
    assert not inside.exists()
    assert outside.num_rows == len(catalogue.episodes()) == 1
