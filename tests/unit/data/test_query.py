"""`query` as a user has it: rows on the screen and in files, one clear line for what cannot be answered."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gapless.cli.main import run
from gapless.core.episode import Episode
from gapless.core.errors import InputError
from gapless.core.provenance import Provenance
from gapless.core.results import from_json, to_json
from gapless.core.signal import TimeSeries
from gapless.data.catalogue import Catalogue
from gapless.data.query import query

COUNTS = "SELECT source, count(*) AS runs, sum(duration_s) AS seconds FROM episodes GROUP BY source ORDER BY source"


@pytest.fixture
def folder(tmp_path: Path, catalogue: Catalogue) -> Path:
    for number, source in enumerate(("real", "real", "sim")):
        times = np.linspace(0.0, 1.0 + number, 5)
        series = TimeSeries(times, np.full((5, 1), float(number)), ("q",), ("rad",))
        episode = Episode(f"run{number}", source, series, series, conditions={"light": "dim" if number else "bright"})
        catalogue.add_episode(episode, Provenance("test", "0", (), {}, None))
    parents = tuple(row.id for row in catalogue.episodes(source="real"))
    fit = catalogue.add_artefact("fit", {"fit.json": b"{}"}, Provenance("identify", "0", parents, {}, 0))
    catalogue.add_artefact("policy", {"p.npz": b"1"}, Provenance("train", "0", (fit, "0" * 64), {}, 0))
    return tmp_path


def test_rows_and_columns_come_back_and_go_through_json(folder: Path) -> None:
    found = query(folder, COUNTS)
    assert found.columns == ("source", "runs", "seconds")
    assert found.rows == (("real", 2, 3.0), ("sim", 1, 3.0))
    again = from_json(json.loads(json.dumps(to_json(found))))
    assert to_json(again) == to_json(found)


def test_conditions_and_samples_can_be_asked_for(folder: Path) -> None:
    dim = query(folder, "SELECT name FROM episodes WHERE conditions->>'light' = 'dim' ORDER BY name")
    assert dim.rows == (("run1",), ("run2",))
    largest = query(folder, "SELECT max(value) FROM samples WHERE signal = 'measurement'")
    assert largest.rows == ((2.0,),)


def test_lineage_names_all_that_something_was_made_from(folder: Path) -> None:
    (policy,) = query(folder, "SELECT id FROM artefacts WHERE kind = 'policy'").rows[0]
    found = query(folder, f"SELECT steps, what, name FROM lineage('{policy}')")
    assert sorted(found.rows, key=str) == sorted(
        [
            (1, "fit", None),
            (1, "not in this catalogue", None),
            (2, "real episode", "run0"),
            (2, "real episode", "run1"),
        ],
        key=str,
    )


def test_values_that_json_has_not_become_text_or_numbers(folder: Path) -> None:
    sql = "SELECT DATE '2026-01-02' AS d, INTERVAL 90 SECONDS AS i, 2.50::DECIMAL(4,2) AS n, [1, 2] AS l, {'a': 1} AS s"
    assert query(folder, sql).rows == (("2026-01-02", 90.0, 2.5, [1, 2], {"a": 1}),)


def test_files_hold_all_rows(folder: Path) -> None:
    place = folder / "out"
    place.mkdir()
    words = ["query", str(folder), "SELECT range AS n, [range] AS l FROM range(300)"]
    files = {kind: place / f"rows.{kind}" for kind in ("csv", "parquet", "json")}
    assert run([*words, *(word for kind, path in files.items() for word in (f"--{kind}", str(path)))]) == 0
    with files["csv"].open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["n", "l"]
    assert rows[-1] == ["299", "[299]"]
    assert pq.read_table(files["parquet"]).column("n").to_pylist() == list(range(300))
    assert len(json.loads(files["json"].read_text())["rows"]) == 300
    assert sorted(os.listdir(place)) == ["rows.csv", "rows.json", "rows.parquet"]  # nothing unfinished stays


def test_csv_on_standard_output_is_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", str(folder), COUNTS, "--csv", "-"]) == 0
    assert capsys.readouterr().out == "source,runs,seconds\nreal,2,3.0\nsim,1,3.0\n"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DELETE FROM episodes", "only read"),
        ("COPY episodes TO 'out.csv'", "only read"),
        ("SELECT 1; SELECT 2", "one SELECT"),
        ("", "one SELECT"),
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM episodes", "nothing"),
        ("SELECT * FROM read_csv('/etc/hostname')", "disabled"),
        ("SELECT * FROM '../secret.parquet'", "disabled"),
        ("SELECT 1 AS a, 2 AS a", "several columns are called a"),
    ],
)
def test_what_does_not_read_this_catalogue_is_refused_with_one_line(folder: Path, sql: str, reason: str) -> None:
    before = query(folder, COUNTS)
    with pytest.raises(InputError, match=reason) as refused:
        query(folder, sql)
    assert "\n" not in str(refused.value)
    assert query(folder, COUNTS) == before


def test_a_folder_without_a_catalogue_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    place = tmp_path / "empty"
    place.mkdir()
    with pytest.raises(InputError, match="no catalogue here yet"):
        query(place, "SELECT 1")
    assert list(place.iterdir()) == []


def test_a_file_that_cannot_be_written_is_said(folder: Path) -> None:
    with pytest.raises(InputError, match="--parquet: cannot write"):
        query(folder, "SELECT 1", parquet=folder / "missing" / "rows.parquet")
