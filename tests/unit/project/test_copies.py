"""The same recording under two names is found, whatever its format; repeated trials are no copies."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapless.core.errors import InputError
from gapless.fit.data import read_project_data
from gapless.project.load import load_project
from gapless.project.log.inspect import find_copies
from gapless.project.log.read import read_logs
from unit.project.conftest import table, write_csv


def noisy(seed: int) -> dict[str, list[object]]:
    """Returns the columns of a run with the commands of all others and noise of its own."""
    rng = np.random.default_rng(seed)
    columns = table()
    return columns | {name: list(columns[name] + 1e-3 * rng.standard_normal(200)) for name in ("q1", "q2_deg")}


def as_parquet(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    pq.write_table(pa.table({name: np.asarray(values, np.float64) for name, values in columns.items()}), path)


def as_single_precision(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    np.savez(path, **{name: np.asarray(values, np.float32) for name, values in columns.items()})


def with_other_clock(path: Path, columns: Mapping[str, Sequence[object]]) -> None:
    write_csv(path, {**columns, "time_s": np.asarray(columns["time_s"]) + 1.7e9, "battery": range(200)})


@pytest.fixture
def two_runs(arm: Path) -> Path:
    for k in range(2):
        write_csv(arm / "logs" / f"run{k}.csv", noisy(k))
    return arm


@pytest.mark.parametrize(
    ("save", "ending"), [(as_parquet, "parquet"), (as_single_precision, "npz"), (with_other_clock, "csv")]
)
def test_a_copy_is_found_in_any_format(two_runs: Path, save: object, ending: str) -> None:
    save(two_runs / "logs" / f"run2.{ending}", noisy(1))  # type: ignore[operator]
    assert find_copies(read_logs(load_project(two_runs))) == {2: 1}


def test_three_of_the_same_are_one_and_two_copies(two_runs: Path) -> None:
    for k in (2, 3):
        write_csv(two_runs / "logs" / f"run{k}.csv", noisy(0))
    assert find_copies(read_logs(load_project(two_runs))) == {2: 0, 3: 0}


def test_repeated_trials_and_logs_at_rest_are_no_copies(two_runs: Path) -> None:
    for k in (2, 3):
        write_csv(two_runs / "logs" / f"run{k}.csv", table() | dict.fromkeys(("u1", "u2", "q1", "q2_deg"), [0.0] * 200))
    assert find_copies(read_logs(load_project(two_runs))) == {}


def test_a_copy_is_neither_fitted_nor_held_out_and_that_is_said(two_runs: Path) -> None:
    write_csv(two_runs / "logs" / "run2.csv", noisy(0))
    evidence = read_project_data(two_runs)
    assert [episode.name for episode in evidence.episodes] == ["run0", "run1"]
    assert "run2.csv" in [note.where for note in evidence.notes if "same recording as run0.csv" in note.text]
    with pytest.raises(InputError, match="--hold-out run2: it holds the same recording as run0"):
        evidence.split(["run2"])
