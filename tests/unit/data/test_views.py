"""Questions read the views and nothing else, whatever they say."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from catalogue_writer import make_episode, make_provenance

from gapless.core.errors import InputError
from gapless.data.catalogue import Catalogue

ONLY_READ = "only read"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A catalogue that no test here changes."""
    folder = tmp_path_factory.mktemp("project")
    Catalogue.open(folder).add_episode(make_episode(), make_provenance())
    (folder / "secret.csv").write_text("secret\nword\n")
    return folder


@pytest.fixture(scope="module")
def filled(folder: Path) -> Catalogue:
    return Catalogue.open(folder)


def all_files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("COPY episodes TO 'OUT/x.csv'", ONLY_READ),
        ("COPY (SELECT 1) TO 'IN/x.parquet'", ONLY_READ),
        ("COPY episodes FROM 'OUT/secret.csv'", ONLY_READ),
        ("EXPORT DATABASE 'OUT/x'", ONLY_READ),
        ("IMPORT DATABASE 'OUT/x'", ONLY_READ),
        ("ATTACH 'OUT/x.db'", ONLY_READ),
        ("DETACH memory", ONLY_READ),
        ("USE memory", ONLY_READ),
        ("INSTALL httpfs", ONLY_READ),
        ("LOAD httpfs", ONLY_READ),
        ("PRAGMA database_list", ONLY_READ),
        ("CALL pragma_database_size()", ONLY_READ),
        ("SET enable_external_access = true", ONLY_READ),
        ("RESET lock_configuration", ONLY_READ),
        ("CREATE TABLE t (a INT)", ONLY_READ),
        ("CREATE OR REPLACE VIEW episodes AS SELECT 1", ONLY_READ),
        ("INSERT INTO episodes VALUES (1)", ONLY_READ),
        ("UPDATE episodes SET name = 'x'", ONLY_READ),
        ("DELETE FROM episodes", ONLY_READ),
        ("DROP VIEW episodes", ONLY_READ),
        ("CHECKPOINT", ONLY_READ),
        ("VACUUM", ONLY_READ),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO 'IN/x.csv'", ONLY_READ),
        ("EXPLAIN SELECT * FROM read_csv('OUT/secret.csv')", "disabled"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled"),
        ("SELECT * FROM read_text('OUT/secret.csv')", "disabled"),
        ("SELECT * FROM read_blob('/etc/passwd')", "disabled"),
        ("SELECT * FROM read_json('OUT/secret.csv')", "disabled"),
        ("SELECT * FROM read_parquet('IN/samples/*.parquet')", "disabled"),
        ("SELECT * FROM parquet_scan('IN/samples/*.parquet')", "disabled"),
        ("SELECT * FROM parquet_metadata('IN/samples/*.parquet')", "disabled"),
        ("SELECT * FROM 'IN/samples/a.parquet'", "disabled"),
        ('SELECT * FROM "OUT/secret.csv"', "disabled"),
        ("SELECT * FROM glob('/etc/*')", "disabled"),
        ("SELECT * FROM sniff_csv('OUT/secret.csv')", "disabled"),
        ("SELECT * FROM duckdb_settings()", "disabled"),
        ("SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')", "disabled"),
        ("SELECT * FROM query_table('OUT/secret.csv')", "disabled"),
        ("SELECT (SELECT content FROM read_text('/etc/passwd'))", "disabled"),
        ("WITH a AS (SELECT * FROM read_text('/etc/passwd')) SELECT * FROM a", "disabled"),
        ("SELECT 1 UNION ALL SELECT content FROM read_text('/etc/passwd')", "disabled"),
        ("SELECT * FROM episodes JOIN read_text('/etc/passwd') ON true", "disabled"),
        ("SELECT [x FOR x IN (SELECT list(content) FROM read_text('/etc/passwd'))]", "disabled"),
        ("FROM read_text('/etc/passwd')", "disabled"),
        ("SUMMARIZE SELECT * FROM read_text('/etc/passwd')", "disabled"),
    ],
)
def test_what_is_no_question_about_the_views_is_refused_in_one_line(filled: Catalogue, folder, sql, says) -> None:
    filled.query("SELECT 1")
    before = all_files(folder)
    with pytest.raises(InputError, match=says) as caught:
        filled.query(sql.replace("OUT", str(folder)).replace("IN/", f"{folder}/.gapless/"))
    assert "\n" not in str(caught.value)
    assert "word" not in str(caught.value)
    assert all_files(folder) == before
    assert len(filled.query("SELECT * FROM episodes")) == 1


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT unnest(range(3)) AS n",
        "SELECT * FROM range(3), generate_series(1, 2)",
        "WITH e AS (SELECT id FROM episodes) SELECT count(*) FROM e JOIN samples ON episode = e.id",
        "EXPLAIN SELECT * FROM samples",
        "DESCRIBE episodes",
        "SUMMARIZE episodes",
        "FROM episodes",
        "SELECT name, row_number() OVER (ORDER BY id) FROM episodes QUALIFY 1 = 1",
        "SELECT * FROM episodes, json_each(conditions)",
        "SELECT * FROM (VALUES (1), (2)) AS t(a)",
        "/* words */ SELECT 'read_text(1.parquet)' AS text -- COPY",
    ],
)
def test_questions_of_all_kinds_are_answered(filled: Catalogue, sql: str) -> None:
    assert filled.query(sql).num_rows > 0


def test_a_question_may_use_less_memory_than_the_machine_has(catalogue: Catalogue) -> None:
    limit = catalogue.query("SELECT current_setting('memory_limit') AS m")["m"][0].as_py()
    memory_gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    assert limit.endswith("GiB")
    assert 0.3 < float(limit.split()[0]) / memory_gib < 0.5


def test_rows_are_found_in_several_files_and_row_groups(catalogue: Catalogue, tmp_path: Path, monkeypatch) -> None:
    sources = ("real", "sim", "twin")
    items = [(make_episode(k, source=sources[k % 3]), make_provenance()) for k in range(60)]
    ids = [id for k in range(0, 60, 20) for id in catalogue.add_episodes(items[k : k + 20])]
    assert [catalogue.episode(id).name for id in ids] == [f"run{k:04d}" for k in range(60)]
    catalogue.compact()
    files = list((tmp_path / ".gapless/tables/episodes").rglob("*.parquet"))
    assert len(files) == 12  # three of each commit, and three that they were joined into
    for path in (path for path in files if pq.ParquetFile(path).metadata.num_rows == 20):
        stored = pq.read_table(path, columns=["id"], partitioning=None)["id"].to_pylist()
        assert stored == sorted(stored)
    for each in (catalogue, Catalogue.open(tmp_path)):
        assert [each.episode(id).source for id in ids] == [sources[k % 3] for k in range(60)]
        assert each.add_episodes(items) == tuple(ids)
        assert len(each.episodes()) == 60
