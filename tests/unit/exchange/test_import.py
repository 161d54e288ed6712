import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from gapless import verbs
from gapless.core.errors import InputError
from gapless.data.catalogue import Catalogue
from gapless.exchange.origin import Statement
from gapless.fit.data import read_project_data
from gapless.project.data_folder import open_data_folder
from gapless.project.load import load_project
from gapless.project.log.read import read_logs

MOTION = np.sin(3 * np.arange(200) / 50)


def write_csv(path: Path, columns: dict[str, np.ndarray], rate_hz: float = 50.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    times_s = np.arange(len(next(iter(columns.values())))) / rate_hz
    table = np.column_stack([times_s, *columns.values()])
    np.savetxt(path, table, delimiter=",", header=",".join(["time_s", *columns]), comments="", fmt="%.17g")
    return path


def write_set(folder: Path, count: int = 3) -> Path:
    for number in range(count):
        write_csv(folder / f"reach_{number}.csv", {"q": MOTION + number, "force": MOTION**2})
    (folder / "reach_0.json").write_text(json.dumps({"outcome": "failure", "failed_in": "grasp"}))
    return folder


@pytest.fixture
def balance(tmp_path: Path) -> Path:
    """A project with a model, whose logs lie elsewhere, under names of another recorder."""
    return verbs.copy_example("balance", tmp_path / "balance")


def move_logs(project: Path, names: dict[str, str], target: Path) -> Path:
    """Moves logs out of a project, with other names of columns."""
    target.mkdir()
    for path in sorted((project / "logs").glob("*.csv")):
        header, rest = path.read_text().split("\n", 1)
        renamed = ",".join(names.get(name, name) for name in header.split(","))
        (target / path.name).write_text(f"{renamed}\n{rest}")
    shutil.rmtree(project / "logs")
    return target


def test_a_folder_without_a_project_becomes_one_with_data_only(tmp_path: Path) -> None:
    result = verbs.import_(tmp_path / "data", write_set(tmp_path / "set"))
    assert (result.episodes, result.samples, result.known, result.skipped) == (3, 600, 0, ())
    assert (tmp_path / "data" / "gapless.yaml").read_text().startswith("gapless: 1")
    found = verbs.query(tmp_path / "data", "SELECT name, outcome, failed_in, source FROM episodes ORDER BY name")
    assert found.rows[0] == ("reach_0", "failure", "grasp", "real")
    assert [row[0] for row in found.rows] == ["reach_0", "reach_1", "reach_2"]
    sums = verbs.query(tmp_path / "data", "SELECT sum(value) FROM samples WHERE name = 'force'").rows
    assert sums[0][0] == pytest.approx(3 * float(np.sum(MOTION**2)))


def test_the_same_again_adds_only_what_is_new(tmp_path: Path) -> None:
    source = write_set(tmp_path / "set")
    first = verbs.import_(tmp_path / "data", source)
    again = verbs.import_(tmp_path / "data", source)
    assert (again.episodes, again.samples, again.known) == (3, 600, 3)
    assert sorted(again.inputs) == sorted(first.inputs)
    write_csv(source / "reach_9.csv", {"q": 2 * MOTION, "force": MOTION})
    more = verbs.import_(tmp_path / "data", source)
    assert (more.episodes, more.samples, more.known) == (4, 800, 3)
    names = verbs.query(tmp_path / "data", "SELECT name FROM episodes ORDER BY name").rows
    assert [row[0] for row in names] == ["reach_0", "reach_1", "reach_2", "reach_9"]


def test_a_copy_under_another_name_comes_in_and_is_flagged(tmp_path: Path) -> None:
    source = write_set(tmp_path / "set")
    shutil.copyfile(source / "reach_1.csv", source / "twin.csv")
    result = verbs.import_(tmp_path / "data", source)
    assert (result.episodes, result.flagged) == (4, 1)
    sql = "SELECT name FROM episodes WHERE list_contains(quality, 'copy_of:reach_1')"
    assert verbs.query(tmp_path / "data", sql).rows == (("twin",),)


def test_what_was_withdrawn_does_not_come_in_again(tmp_path: Path) -> None:
    source = write_set(tmp_path / "set")
    verbs.import_(tmp_path / "data", source, statement=Statement(origin={"participants": "ana"}))
    verbs.consent(tmp_path / "data", person="ana", withdraw=True)
    assert verbs.query(tmp_path / "data", "SELECT name FROM episodes").rows == ()
    again = verbs.import_(tmp_path / "data", [source, write_csv(tmp_path / "other.csv", {"q": -MOTION})])
    assert [each.what for each in again.skipped] == ["reach_0", "reach_1", "reach_2"]
    assert "consent is withdrawn" in again.skipped[0].why
    assert verbs.query(tmp_path / "data", "SELECT name FROM episodes").rows == (("other",),)


def test_what_is_not_changed_of_episodes_that_are_there_is_said(tmp_path: Path) -> None:
    source, project = write_set(tmp_path / "set"), tmp_path / "data"
    stated = Statement(origin={"site": "lab", "participants": "ana, ben"}, conditions={"light": "dim"})
    assert verbs.import_(project, source, statement=stated).notes == ()
    assert verbs.import_(project, source, statement=stated).notes == ()
    for other in (Statement(source="sim"), Statement(origin={"site": "yard"}), Statement(conditions={"light": "day"})):
        (note,) = verbs.import_(project, source, statement=other).notes
        assert (note.level, note.where) == ("warning", "--set")
        assert "3 episodes there stays" in note.text
    assert verbs.query(project, "SELECT DISTINCT source, site FROM episodes").rows == (("real", "lab"),)


def test_a_map_that_changes_keeps_the_project_readable(tmp_path: Path) -> None:
    source, project, file = write_set(tmp_path / "set"), tmp_path / "data", tmp_path / "map.yaml"
    file.write_text("columns:\n  q: angle\n  force: push\n")
    verbs.import_(project, source, map=file)
    file.write_text("columns:\n  q: elbow\n")
    (note,) = verbs.import_(project, source, map=file).notes
    assert (note.level, note.where) == ("warning", "--map")
    assert open_data_folder(project).columns == {"q": "elbow", "force": "push"}
    (project / "gapless.yaml").write_text('gapless: 1\ncolumns:\n  "q": angle\n')
    with pytest.raises(InputError, match="write q in columns in a line of its own"):
        verbs.import_(project, source, map=file)


def test_keys_that_no_origin_has_are_refused() -> None:
    with pytest.raises(InputError, match="--set serial: no such key; choose from: robot_serial"):
        Statement(origin={"serial": "A7"})


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    result = verbs.import_(tmp_path / "data", write_set(tmp_path / "set"), dry_run=True)
    assert (result.episodes, result.samples, result.dry_run) == (3, 600, True)
    assert not (tmp_path / "data").exists()


def test_what_is_stated_wins_and_can_be_asked_for(tmp_path: Path) -> None:
    stated = Statement("sim", {"site": "lab", "participants": "ana, ben"}, {"light": "dim"})
    verbs.import_(tmp_path / "data", write_set(tmp_path / "set"), statement=stated)
    sql = "SELECT count(*) FROM episodes WHERE site = 'lab' AND source = 'sim' AND list_contains(participants, 'ben')"
    assert verbs.query(tmp_path / "data", f"{sql} AND conditions->>'light' = 'dim'").rows == ((3,),)
    with pytest.raises(InputError, match="--set sight: no such key; choose from: site"):
        verbs.import_(tmp_path / "data", write_set(tmp_path / "other"), statement=Statement(origin={"sight": "lab"}))


def test_flags_say_what_is_wrong_and_can_be_asked_for(tmp_path: Path) -> None:
    keep = np.arange(200) != 100
    write_csv(tmp_path / "set" / "good.csv", {"q": MOTION})
    path = write_csv(tmp_path / "set" / "bad.csv", {"q": MOTION})
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *(line for line, kept in zip(lines[1:], keep, strict=True) if kept)]))
    result = verbs.import_(tmp_path / "data", tmp_path / "set")
    assert result.flagged == 1
    assert [note.text for note in result.notes if note.level == "warning"] == ["dropped in 1 episode, the first is bad"]
    sql = "SELECT name FROM episodes WHERE list_contains(quality, 'dropped')"
    assert verbs.query(tmp_path / "data", sql).rows == (("bad",),)


def test_columns_of_another_recorder_get_the_names_of_the_project(balance: Path, tmp_path: Path) -> None:
    source = move_logs(balance, {"voltage": "cmd_motor", "cart": "cart_pos", "pole": "pole_pos"}, tmp_path / "robot")
    given = len(list(source.glob("*.csv")))
    result = verbs.import_(balance, source)
    becomes = {each.column: (each.becomes, each.what) for each in result.mapping}
    assert becomes["cart_pos"] == ("cart", "joint cart position")
    assert becomes["cmd_motor"] == ("voltage", "actuator motor command")
    project = load_project(balance)
    assert project.columns["pole_pos"] == "pole"  # written, so that nobody is asked again
    logs = read_logs(project)
    assert [log.episode.name for log in logs] == [f"motion{k}" for k in range(given)]
    measured = verbs.measure(balance)
    assert set(measured.inputs) == set(result.inputs)


def test_files_and_recordings_count_alike(balance: Path, tmp_path: Path) -> None:
    before = verbs.measure(balance)
    whole = {path.name: path.read_bytes() for path in (balance / "logs").glob("*.csv")}
    first = tmp_path / "apart" / "motion0.csv"
    first.parent.mkdir()
    first.write_bytes(whole["motion0.csv"])
    shutil.copyfile(balance / "logs" / "motion0.json", first.with_suffix(".json"))
    for suffix in (".csv", ".json"):
        (balance / "logs" / f"motion0{suffix}").unlink()
    verbs.import_(balance, first)
    after = verbs.measure(balance)
    assert after.columns["pole"].rmse == pytest.approx(before.columns["pole"].rmse, rel=1e-9)
    assert len(after.inputs) == len(before.inputs)


AMBIGUOUS = {"voltage": "cmd_motor", "cart": "cart_pos", "pole": "poleangle"}


def test_what_may_be_several_columns_is_refused_asked_or_mapped(balance: Path, tmp_path: Path) -> None:
    source = move_logs(balance, {"cart": "cart_pos_a"}, tmp_path / "robot")
    for path in source.glob("*.csv"):  # two encoders of the cart
        rows = [line.split(",") for line in path.read_text().splitlines()]
        extra = [["cart_pos_b"], *([row[2]] for row in rows[1:])]
        path.write_text("\n".join(",".join([*row, *more]) for row, more in zip(rows, extra, strict=True)))
    with pytest.raises(InputError, match=r"which recorded column is cart .*cart_pos_a or cart_pos_b.*--map FILE"):
        verbs.import_(balance, source)
    assert not (balance / ".gapless").exists() or not verbs.query(balance, "SELECT 1 FROM episodes").rows

    asked: list[tuple[str, Sequence[str]]] = []

    def answer(question: str, names: Sequence[str]) -> str:
        asked.append((question, names))
        return names[1]

    result = verbs.import_(balance, source, ask=answer, dry_run=True)
    assert [names for _, names in asked] == [["cart_pos_a", "cart_pos_b"]]
    assert {m.column: m.becomes for m in result.mapping}["cart_pos_b"] == "cart"
    by_yes = verbs.import_(balance, source, yes=True, dry_run=True)
    assert "taken by --yes" in next(m.reason for m in by_yes.mapping if m.becomes == "cart")

    (tmp_path / "map.yaml").write_text("columns:\n  cart_pos_b: cart\n  cart_pos_a:\n")
    mapped = verbs.import_(balance, source, map=tmp_path / "map.yaml")
    assert {m.column: m.becomes for m in mapped.mapping if "cart" in m.column} == {
        "cart_pos_a": None,
        "cart_pos_b": "cart",
    }
    assert verbs.import_(balance, source).known == mapped.episodes


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("columns: {nothing: cart}", "--map names nothing, which is not there; choose from"),
        ("names: {a: b}", "a map has the key columns only"),
        ("columns: {cart: [1]}", "write one column's name"),
        ("columns: {cart: pole}", "cart and pole would both be pole"),
    ],
)
def test_a_wrong_map_is_one_line(balance: Path, tmp_path: Path, text: str, match: str) -> None:
    source = move_logs(balance, {}, tmp_path / "robot")
    (tmp_path / "map.yaml").write_text(text)
    with pytest.raises(InputError, match=match) as caught:
        verbs.import_(balance, source, map=tmp_path / "map.yaml")
    assert "\n" not in str(caught.value)


def test_a_set_without_a_column_of_the_project_is_refused(balance: Path, tmp_path: Path) -> None:
    source = write_set(tmp_path / "set")
    with pytest.raises(InputError, match=r"which recorded column is voltage .*it may be force; say it with --map FILE"):
        verbs.import_(balance, source)


def test_a_source_of_no_known_format_is_refused_before_any_is_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(InputError, match="no format that is known"):
        verbs.import_(tmp_path / "data", [write_set(tmp_path / "set"), tmp_path / "notes.txt"])
    assert not (tmp_path / "data").exists()


def test_a_bag_without_its_metadata_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "run0").mkdir()
    (tmp_path / "run0" / "run0.db3").write_bytes(b"SQLite format 3")
    with pytest.raises(InputError, match="ros2 bag reindex"):
        verbs.import_(tmp_path / "data", tmp_path / "run0")


def test_two_sets_with_one_name_stay_apart(tmp_path: Path) -> None:
    verbs.import_(tmp_path / "data", [write_set(tmp_path / "one"), write_csv(tmp_path / "reach_1.csv", {"q": -MOTION})])
    names = verbs.query(tmp_path / "data", "SELECT name FROM episodes ORDER BY name").rows
    assert [row[0] for row in names] == ["reach_0", "reach_1", "reach_1_2", "reach_2"]
    copies = Catalogue.open(tmp_path / "data")
    assert copies.select_ids("name = 'reach_1_2'") != copies.select_ids("name = 'reach_1'")


def test_a_folder_of_folders_says_which_to_give(tmp_path: Path) -> None:
    write_set(tmp_path / "both" / "monday")
    (tmp_path / "both" / "NOTES.txt").write_text("notes")
    with pytest.raises(InputError, match="but folders in it are: give monday;"):
        verbs.import_(tmp_path / "data", tmp_path / "both")


def test_recordings_of_another_robot_are_left_out_of_a_project_and_said(tmp_path: Path) -> None:
    example = verbs.copy_example("balance", tmp_path / "example")
    data = tmp_path / "data"
    verbs.import_(data, [example / "logs", write_set(tmp_path / "set")])  # data only: each keeps its own columns
    for name in ("gapless.yaml", "robot.xml"):  # a model comes later
        shutil.copyfile(example / name, data / name)
    found = read_project_data(data)
    assert [episode.name for episode in found.episodes] == [f"motion{k}" for k in range(6)]
    assert any("3 imported recordings are left out, the first is reach_0" in note.text for note in found.notes)
    assert any("left out: it has no column" in note.text for note in verbs.check(data).notes)
    verbs.split(data, "final", where="name IN ('reach_0', 'motion0')")
    assert [e.name for e in read_project_data(data).episodes] == [f"motion{k}" for k in range(1, 6)]
    with pytest.raises(InputError, match=r"no column voltage, which gapless\.yaml maps"):
        read_logs(load_project(data), ["reach_*"])
