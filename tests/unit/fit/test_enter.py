"""What verbs that fit are given of a project whose catalogue has a test split, and withdrawn consent."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from gapless import verbs
from gapless.cli.main import run
from gapless.core.errors import CatalogueError, InputError, ResultWarning
from gapless.core.signal import TimeSeries
from gapless.data.catalogue import Catalogue
from gapless.exchange.origin import Statement
from gapless.excite.knowledge import read_knowledge
from gapless.fit.data import ProjectData, read_project_data
from gapless.randomize.verb import LOG_METHODS
from gapless.verbs import copy_example


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_example("balance", tmp_path / "balance")


def names(data: ProjectData) -> list[str]:
    return [episode.name for episode in data.episodes]


def test_a_test_split_is_left_out_and_named(folder: Path) -> None:
    verbs.split(folder, "final", ["motion0", "motion1"])  # the logs are entered by it
    data = read_project_data(folder)
    assert names(data) == ["motion2", "motion3", "motion4", "motion5"]
    assert len(data.ids) == 4
    said = [note.text for note in data.notes if note.where == "logs"]
    assert said == ["2 of 6 are left out, of test split final: motion0, motion1"]
    assert len(names(read_project_data(folder, purpose="test"))) == 6


def test_naming_one_is_refused(folder: Path) -> None:
    verbs.split(folder, "final", where="name IN ('motion0', 'motion1')")
    for pattern in ("motion0", "motion0.csv", "motion[01]"):
        with pytest.raises(InputError, match="motion0 is of test split final: choose other logs"):
            read_project_data(folder, [pattern])
    assert names(read_project_data(folder, ["motion[02]"])) == ["motion2"]
    for name in ("motion0", "motion0.csv"):
        with pytest.raises(InputError, match=f"--hold-out {name}: it is of test split final: choose another log"):
            read_project_data(folder).split([name])
    with pytest.raises(InputError, match="--hold-out motion1: it is of test split final"):
        verbs.identify(folder, ["motion1"])


def test_nothing_is_fitted_where_everything_is_for_tests(folder: Path) -> None:
    verbs.split(folder, "final", ["motion*"])
    with pytest.raises(InputError, match="no log is left to use, the first is of test split final: record others"):
        read_project_data(folder)


def test_copies_of_a_test_recording_are_left_out(folder: Path) -> None:
    """In another format with an offset of the clock, and in single precision; the original is gone from the logs."""
    verbs.split(folder, "final", ["motion0", "motion1"])
    table = pyarrow.csv.read_csv(folder / "logs" / "motion0.csv")
    later = table.set_column(table.column_names.index("time_s"), "time_s", pc.add(table["time_s"], 100.0))
    pq.write_table(later, folder / "logs" / "again.parquet")
    table = pyarrow.csv.read_csv(folder / "logs" / "motion1.csv")
    single = table.cast(pa.schema([(n, pa.float64() if n == "time_s" else pa.float32()) for n in table.column_names]))
    pq.write_table(single, folder / "logs" / "zz.parquet")
    for name in ("motion0", "motion1"):
        for path in (folder / "logs").glob(f"{name}.*"):
            path.unlink()
    data = read_project_data(folder)
    assert names(data) == ["motion2", "motion3", "motion4", "motion5"]
    assert data.left_out == dict.fromkeys(("again", "zz"), "of test split final")


def test_a_log_made_from_a_test_recording_is_left_out(folder: Path) -> None:
    """An augmented child lies in the catalogue, and the same signals come as a log."""
    catalogue = read_project_data(folder).catalogue
    (first,) = (row for row in catalogue.episodes() if row.name == "motion0")
    (later,) = (row for row in catalogue.episodes() if row.name == "motion3")
    child = replace(catalogue.episode(later.id), name="child", source="augmented")
    catalogue.add_episode(child, replace(later.provenance, parents=(first.id,)))
    verbs.split(folder, "final", ["motion0"])
    assert read_project_data(folder).left_out == dict.fromkeys(("motion0", "motion3"), "of test split final")


def test_withdrawn_logs_are_left_out_of_every_verb_and_stay_deleted(folder: Path) -> None:
    (id,) = verbs.consent(folder, ["motion2"], person="P07", scope="research").inputs
    verbs.consent(folder, person="P07", withdraw=True, compact=True)
    for purpose in ("train", "test"):
        data = read_project_data(folder, purpose=purpose)
        assert names(data) == ["motion0", "motion1", "motion3", "motion4", "motion5"]
    verbs.label(folder, ["motion*"], by="ana", tags=["x"])  # enters the logs again
    found = verbs.query(folder, "SELECT DISTINCT name FROM episodes JOIN labels ON id = episode ORDER BY name")
    assert [row[0] for row in found.rows] == ["motion0", "motion1", "motion3", "motion4", "motion5"]
    verbs.consent(folder, person="P07", scope="research")  # its samples are gone for good
    with pytest.raises(CatalogueError, match="were deleted: choose another"):
        Catalogue.open(folder).episode(id)


def test_a_withdrawn_episode_of_a_test_split_is_in_nobodys_way(folder: Path) -> None:
    """It is not read to be compared with the logs; nor is it once its samples are deleted and it is shown again."""
    verbs.split(folder, "final", ["motion2"])
    verbs.consent(folder, ["motion2"], person="P07", scope="research")
    verbs.consent(folder, person="P07", withdraw=True)
    assert "motion2" in read_project_data(folder).left_out
    verbs.consent(folder, compact=True)
    verbs.consent(folder, person="P07", scope="research")
    assert read_project_data(folder).left_out == {"motion2": "of test split final"}


def test_a_training_does_not_start_from_what_test_episodes_made(folder: Path) -> None:
    ids = read_project_data(folder).ids
    catalogue = Catalogue.open(folder)
    row = catalogue.episodes()[0]
    about = replace(row.provenance, parents=ids)
    fit = catalogue.add_artefact("identify", {"result.json": b"{}"}, about)
    verbs.split(folder, "final", ["motion0"])
    with pytest.raises(InputError, match="this fit was made from episodes of test split final"):
        verbs.randomize(folder, fit=catalogue.artefact_path(fit, "result.json"))
    with pytest.raises(InputError, match="this fit was made from episodes of test split final"):
        verbs.excite(folder, fit=catalogue.artefact_path(fit, "result.json"))


def test_verbs_without_notes_warn_of_what_they_leave_out(folder: Path, monkeypatch, capsys) -> None:
    text = "2 of 6 are left out, of test split final: motion0, motion1"
    verbs.split(folder, "final", ["motion0", "motion1"])
    with pytest.warns(ResultWarning, match=text):
        assert len(read_knowledge(folder, None, ()).tracks) == 4
    for method in ("dropo", "simopt"):
        monkeypatch.setitem(LOG_METHODS, method, lambda *_: ((), ()))
        with pytest.warns(ResultWarning, match=text):
            assert len(verbs.randomize(folder, method=method).inputs) == 4
    assert run(["randomize", str(folder), "--method", "dropo"]) == 0
    assert f"gapless: {text}\n" in capsys.readouterr().err


def test_without_splits_and_consent_nothing_is_left_out(folder: Path) -> None:
    data = read_project_data(folder)
    assert (len(data.episodes), data.left_out) == (6, {})
    assert isinstance(data.episodes[0].commands, TimeSeries)
    assert not [note for note in data.notes if note.where == "logs"]


def test_labels_are_the_outcomes_that_verbs_see(folder: Path) -> None:
    before = read_project_data(folder)
    verbs.label(folder, ["motion1"], by="ana", failed_in="swing", conditions={"light": "dim"})
    data = read_project_data(folder)
    assert (data.episodes[1].outcome, data.episodes[1].failed_in) == ("failure", "swing")
    assert data.episodes[1].conditions == {**before.episodes[1].conditions, "light": "dim"}
    assert data.ids == before.ids
    assert list(data.labels) == ["motion1"]  # part of what a diagnosis was made from, so that none is out of date
    assert data.episodes[0].outcome == before.episodes[0].outcome
    assert before.labels == {}


def test_noise_is_not_fitted_to_a_test_recording(folder: Path) -> None:
    verbs.split(folder, "final", ["motion0"])
    with pytest.raises(InputError, match=r"motion0.csv is of test split final: choose another log"):
        verbs.noise("motion0", folder)


def test_what_a_sidecar_says_of_the_origin_can_be_asked_for(folder: Path) -> None:
    about = {"source": "real", "site": "lab", "participants": ["ana"], "robot_serial": "A7"}
    (folder / "logs" / "motion0.json").write_text(json.dumps(about))
    verbs.measure(folder)
    sql = "SELECT site, robot_serial FROM episodes WHERE list_contains(participants, 'ana')"
    assert verbs.query(folder, sql).rows == (("lab", "A7"),)


def test_simulated_runs_are_no_reality(folder: Path) -> None:
    (folder / "logs" / "motion0.json").write_text(json.dumps({"source": "sim"}))
    found = read_project_data(folder)
    assert "motion0" not in [episode.name for episode in found.episodes]
    assert any("1 of" in note.text and "of source sim: motion0" in note.text for note in found.notes)


@pytest.mark.parametrize("name", ["parquet", "mcap", "lerobot-v3.0"])
def test_a_test_episode_does_not_come_back_through_an_export(folder: Path, tmp_path: Path, name: str) -> None:
    verbs.split(folder, "final", ["motion0"])
    with pytest.raises(InputError, match="of test split final"):
        verbs.export(folder, tmp_path / "out", format=name, where="name = 'motion0'")
    verbs.export(folder, tmp_path / "out", format=name, where="name = 'motion0'", purpose="test")
    verbs.import_(folder, tmp_path / "out", statement=Statement(conditions={"from": "elsewhere"}))
    found = read_project_data(folder)
    assert all(episode.conditions.get("from") != "elsewhere" for episode in found.episodes)
    assert sum("of test split final" in note.text for note in found.notes) == 1


def test_runs_are_chosen_in_sql(folder: Path) -> None:
    for number in (1, 3):
        (folder / "logs" / f"motion{number}.json").write_text(json.dumps({"source": "real", "site": "lab"}))
    assert names(read_project_data(folder, where="site = 'lab'")) == ["motion1", "motion3"]
    assert len(verbs.measure(folder, where="source = 'twin'").inputs) == 4
    with pytest.raises(InputError, match="--where site = 'home': it holds for none of the 6 runs"):
        verbs.measure(folder, where="site = 'home'")
    with pytest.raises(InputError, match="sight"):
        verbs.measure(folder, where="sight = 'lab'")


def test_people_whom_a_sidecar_names_later_can_withdraw(folder: Path) -> None:
    verbs.measure(folder)
    (folder / "logs" / "motion0.json").write_text(json.dumps({"source": "real", "participants": ["ana"]}))
    verbs.measure(folder)
    verbs.consent(folder, person="ana", withdraw=True)
    assert verbs.query(folder, "SELECT count(*) FROM episodes WHERE name = 'motion0'").rows == ((0,),)
    assert len(verbs.measure(folder).inputs) == 5


def test_ranges_from_logs_can_be_of_some_and_ranges_about_a_fit_cannot(folder: Path) -> None:
    with pytest.raises(InputError, match="--where site = 'home': it holds for none"):
        verbs.randomize(folder, method="dropo", where="site = 'home'")
    for method in ("evidence", "bayrn"):
        with pytest.raises(InputError, match="leave it out"):
            verbs.randomize(folder, method=method, where="site = 'home'")
