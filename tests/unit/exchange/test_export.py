from pathlib import Path

import numpy as np
import pytest

from gapless import verbs
from gapless.core.errors import InputError
from gapless.data.catalogue import Catalogue
from gapless.formats.registry import choose_format, list_names
from unit.exchange.test_import import MOTION, write_csv, write_set


@pytest.fixture
def data(tmp_path: Path) -> Path:
    verbs.import_(tmp_path / "data", write_set(tmp_path / "set"))
    return tmp_path / "data"


@pytest.mark.parametrize("name", list_names())
def test_what_goes_out_comes_in_again(data: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / f"out{choose_format(name).suffix}"
    result = verbs.export(data, out, format=name)
    assert (result.episodes, result.samples, result.skipped) == (3, 600, ())
    again = verbs.import_(tmp_path / "again", out)
    assert (again.episodes, again.samples, again.skipped) == (3, 600, ())
    here, there = (Catalogue.open(place) for place in (data, tmp_path / "again"))
    for one, other in zip(here.recordings(here.select_ids("true")), there.recordings(there.select_ids("true"))):  # noqa: B905
        np.testing.assert_array_equal(one.times_s, other.times_s)
        for column, values in one.columns.items():
            np.testing.assert_array_equal(values, other.columns[column])
        assert (one.source, one.outcome, one.failed_in) == (other.source, other.outcome, other.failed_in)


def test_logs_of_a_project_go_out_in_model_units_beside_what_was_imported(tmp_path: Path) -> None:
    project = verbs.copy_example("balance", tmp_path / "balance")
    text = (
        (project / "gapless.yaml")
        .read_text()
        .replace("quantity: position, noise: 0.001", "quantity: position, scale: 2")
    )
    (project / "gapless.yaml").write_text(text)
    extra = {"voltage": MOTION, "cart": 0.1 * MOTION, "pole": MOTION}
    verbs.import_(project, write_csv(tmp_path / "extra.csv", extra))
    result = verbs.export(project, tmp_path / "out", format="parquet")
    assert result.episodes == len(list((project / "logs").glob("*.csv"))) + 1
    again = verbs.import_(tmp_path / "again", tmp_path / "out")
    assert again.episodes == result.episodes
    sql = "SELECT name, max(abs(value)) FROM samples WHERE name = 'pole' AND episode IN "
    found = verbs.query(tmp_path / "again", f"{sql} (SELECT id FROM episodes WHERE name = 'motion0') GROUP BY ALL").rows
    logged = np.genfromtxt(project / "logs" / "motion0.csv", delimiter=",", names=True)
    assert found[0][1] == pytest.approx(2 * np.abs(logged["pole"]).max())
    twice = verbs.export(project, tmp_path / "twice", format="csv")
    assert twice.episodes == result.episodes  # entering logs again adds nothing


def test_episodes_are_chosen_in_sql(data: Path, tmp_path: Path) -> None:
    assert verbs.export(data, tmp_path / "failed", format="npz", where="outcome = 'failure'").episodes == 1
    assert sorted(path.name for path in (tmp_path / "failed").glob("*.npz")) == ["reach_0.npz"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"format": "hdf9"}, "no format 'hdf9' to write; choose from: lerobot-v3.0"),
        ({"format": "robomimic"}, "one file whose name ends in .hdf5: name it .*out.hdf5"),
        ({"format": "csv", "where": "outcome = 'lost'"}, "no episode to export"),
        ({"format": "csv", "where": "nonsense = 1"}, "nonsense"),
        ({"format": "csv", "where": "true; DROP TABLE episodes"}, "condition|one"),
    ],
)
def test_bad_wishes_are_one_line(data: Path, tmp_path: Path, options: dict[str, str], match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        verbs.export(data, tmp_path / "out", **options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten_and_nothing_unfinished_stays(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="exists and is not overwritten"):
        verbs.export(data, tmp_path / "out", format="csv")
    with pytest.raises(InputError, match=r"import .* SOURCE"):
        verbs.export(tmp_path / "empty", tmp_path / "other", format="csv")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
