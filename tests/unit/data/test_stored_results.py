"""Results in the catalogue: each has an id, the one stored last is the newest, and the code that made it counts."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from catalogue_writer import make_provenance
from deltalake import DeltaTable, write_deltalake

import gapless
from gapless.core.results import CheckResult, to_json
from gapless.data import stored_results
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import (
    artefact_ids,
    code_version,
    find_same_result,
    load_stored_result,
    newest_result,
    result_path,
    store_result,
)

SOUND, UNSOUND = CheckResult((), True, (), {}), CheckResult((), False, (), {})


def test_a_result_comes_back_with_its_id(catalogue: Catalogue) -> None:
    identity = store_result(catalogue, SOUND, make_provenance())
    loaded = load_stored_result(catalogue, identity)
    assert loaded == replace(SOUND, id=identity)
    assert to_json(loaded)["id"] == identity
    assert store_result(catalogue, loaded, make_provenance()) == identity  # the id is no part of the content
    assert "id" not in json.loads(result_path(catalogue, identity).read_text())


def test_what_is_stored_again_is_the_newest(catalogue: Catalogue, tmp_path: Path) -> None:
    first = store_result(catalogue, SOUND, make_provenance())
    second = store_result(catalogue, UNSOUND, make_provenance())
    assert newest_result(catalogue, "check") == second
    assert store_result(catalogue, SOUND, make_provenance()) == first
    assert newest_result(catalogue, "check") == first
    rows = catalogue.artefacts("check")
    assert [row.id for row in rows] == [second, first]
    assert rows[1].created_at < rows[0].created_at == rows[0].stored_at < rows[1].stored_at
    assert catalogue.query("SELECT count(*) AS n FROM artefacts")["n"][0].as_py() == 2
    version = DeltaTable(tmp_path / ".gapless/tables/artefacts").version()
    store_result(catalogue, SOUND, make_provenance())  # it is the newest already: no further row
    assert DeltaTable(tmp_path / ".gapless/tables/artefacts").version() == version
    catalogue.compact()
    assert newest_result(catalogue, "check") == first


def test_other_code_makes_another_result(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = store_result(catalogue, SOUND, make_provenance())
    assert find_same_result(catalogue, "check", make_provenance()) == identity
    assert catalogue.artefact(identity).provenance.code_version == code_version()
    monkeypatch.setattr(stored_results, "code_version", lambda: f"{gapless.__version__}+another")
    assert find_same_result(catalogue, "check", make_provenance()) is None
    assert store_result(catalogue, SOUND, make_provenance()) != identity


def test_the_code_version_follows_the_source_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "room").mkdir()
    monkeypatch.setattr(gapless, "__file__", str(tmp_path / "__init__.py"))
    found = set()
    for name, text in (("__init__.py", ""), ("room/a.py", "1"), ("room/a.py", "2"), ("room/b.py", "2")):
        (tmp_path / name).write_text(text)
        found.add(code_version.__wrapped__())
    assert len(found) == 4
    assert all(version.startswith(f"{gapless.__version__}+") for version in found)


def test_files_say_which_artefact_they_are(catalogue: Catalogue, tmp_path: Path) -> None:
    identity = store_result(catalogue, SOUND, make_provenance())
    copy, other = tmp_path / "fit.json", tmp_path / "other.json"
    copy.write_text(json.dumps(to_json(load_stored_result(catalogue, identity))))
    other.write_text('{"id": null}')
    assert artefact_ids(result_path(catalogue, identity), copy, other, tmp_path / "policy.npz", None) == (identity,) * 2


def test_a_catalogue_of_the_version_before_opens(tmp_path: Path) -> None:
    folder = tmp_path / ".gapless"
    texts = dict.fromkeys(("id", "kind", "created_at", "made_by", "code_version", "config"), pa.string())
    schema = pa.schema({**texts, "files": pa.list_(pa.string()), "parents": pa.list_(pa.string()), "seed": pa.int64()})
    row = {"kind": "check", "files": ["result.json"], "made_by": "check", "code_version": "0.1.0", "config": "{}"}
    rows = [{**row, "id": k * 32, "parents": [], "seed": 1, "created_at": f"2026-01-0{k}T00:00:00"} for k in "21"]
    (folder / "tables").mkdir(parents=True)
    write_deltalake(folder / "tables/artefacts", pa.Table.from_pylist(rows, schema=schema))
    (folder / "artefacts" / ("1" * 32)).mkdir(parents=True)
    written = {key: value for key, value in to_json(SOUND).items() if key != "id"}
    (folder / "artefacts" / ("1" * 32) / "result.json").write_text(json.dumps(written))
    catalogue = Catalogue.open(tmp_path)
    assert newest_result(catalogue, "check") == "2" * 32
    assert load_stored_result(catalogue, "1" * 32) == replace(SOUND, id="1" * 32)
    new = store_result(catalogue, UNSOUND, make_provenance())
    assert newest_result(catalogue, "check") == new
