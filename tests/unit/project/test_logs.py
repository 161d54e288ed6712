"""Logs become episodes in model units, or one line that says why not."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapless.core.errors import LogError
from gapless.formats.table.files import MAX_CSV_BYTES
from gapless.project.load import load_project
from gapless.project.log.inspect import read_and_inspect
from gapless.project.log.read import Log, log_paths, read_log, read_logs

from .conftest import table, write_csv


def read(arm: Path, name: str = "run0.csv") -> Log:
    return read_log(load_project(arm), arm / "logs" / name)


def refusal(arm: Path, name: str = "run0.csv") -> str:
    with pytest.raises(LogError) as caught:
        read(arm, name)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert text.endswith(f"{name})") or text.endswith(".json)")
    notes = read_and_inspect(load_project(arm))[1]
    assert [note.text for note in notes if note.level == "fault"] == [text]
    return text


def test_csv_in_model_units_from_time_zero(arm: Path) -> None:
    log = read(arm)
    columns = table()
    assert log.notes == ()
    assert log.episode.name == "run0"
    assert log.episode.source == "real"
    assert log.episode.outcome is None
    assert log.episode.measurements.times_s[:2] == pytest.approx([0.0, 0.01], abs=1e-9)
    raw = np.array(columns["q2_deg"], dtype=float)
    # scale 0.5, offset 1
    np.testing.assert_allclose(log.episode.measurements.column("q2_deg"), 0.5 * raw + 1.0, atol=1e-12)
    np.testing.assert_allclose(log.episode.commands.column("u1"), np.array(columns["u1"], dtype=float))
    assert log.episode.measurements.units == ("rad", "rad")


@pytest.mark.parametrize("ending", ["parquet", "npz", "CSV"])
def test_formats_agree(arm: Path, ending: str) -> None:
    columns = {**table(), "note": ["text"] * 200, "a.b": [1] * 200}
    path = arm / "logs" / f"other.{ending}"
    if ending == "parquet":
        pq.write_table(pa.table(columns), path)
    elif ending == "npz":
        np.savez(path, **{key: np.array(value) for key, value in columns.items()})
    else:
        write_csv(path, columns)
    first, second = read_logs(load_project(arm))
    by_name = {first.path.stem: first.episode, second.path.stem: second.episode}
    assert by_name["run0"].measurements.equals(by_name["other"].measurements)
    assert by_name["run0"].commands.equals(by_name["other"].commands)


def changed(column: str, row: int, value: object) -> dict[str, list[object]]:
    columns = table()
    columns[column][row] = value
    return columns


def without(column: str) -> dict[str, list[object]]:
    columns = table()
    del columns[column]
    return columns


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (changed("q1", 4, "open"), ["column q1", "row 5", "'open'"]),
        (changed("time_s", 4, 3.5), ["backwards in row 5", "7.03", "3.5"]),
        (without("time_s"), ["no column time_s", "q2_deg"]),
        ({**without("q1"), "q_1": [0.0] * 200}, ["no column q1", "are: q_1"]),
        (table(0), ["header but no rows"]),
        (table(1), ["only one time stamp"]),
        ({**table(3), "time_s": [""] * 3}, ["time_s holds no numbers"]),
        ({**table(3), "time_s": [1.0] * 3}, ["only one time stamp"]),
    ],
)
def test_bad_csv(arm: Path, columns: dict[str, list[object]], words: list[str]) -> None:
    write_csv(arm / "logs" / "run0.csv", columns)
    found = refusal(arm)
    assert all(word in found for word in words), found


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\n\n", "no header"),
        (b"time_s;u1;q1\n1;2;3\n", "separated by commas"),
        (b"time_s,u1,u2,q1,q2_deg\n0,1,1,1,1\n1,1,1\n", "row 2 has 3 of 5 fields"),
        (b"time_s,u1,u2,q1,q1,q2_deg\n0,1,1,1,1,1\n", "q1 stands 2 times"),
        (b"\x89PNG\xff\xfe\x00\n", "not a text file"),
    ],
)
def test_bad_csv_bytes(arm: Path, content: bytes, words: str) -> None:
    (arm / "logs" / "run0.csv").write_bytes(content)
    assert words in refusal(arm)


def test_huge_csv_is_refused_before_reading(arm: Path) -> None:
    os.truncate(arm / "logs" / "run0.csv", MAX_CSV_BYTES + 200_000_000)  # sparse: takes no room
    found = refusal(arm)
    assert "1.2 GB" in found
    assert "split" in found
    assert "Parquet" in found


@pytest.mark.parametrize("name", ["bad.parquet", "bad.npz"])
def test_damaged_binary(arm: Path, name: str) -> None:
    (arm / "logs" / name).write_bytes(b"PK\x03\x04 nothing")
    assert "not readable" in refusal(arm, name)


def test_cut_off_npz_and_parquet(arm: Path) -> None:
    pq.write_table(pa.table(table()), arm / "logs" / "cut.parquet")
    os.truncate(arm / "logs" / "cut.parquet", 500)
    assert "not readable as Parquet" in refusal(arm, "cut.parquet")


def test_npz_lengths_and_kinds(arm: Path) -> None:
    columns: dict[str, Any] = {key: np.array(value) for key, value in table().items()}
    np.savez(arm / "logs" / "a.npz", **{**columns, "q1": columns["q1"][:-3]})
    found = refusal(arm, "a.npz")
    assert "different length" in found
    assert "200" in found
    assert "197" in found
    np.savez(arm / "logs" / "a.npz", **{**columns, "q1": np.zeros((200, 2))})
    assert "no column q1, which gapless.yaml maps; there are: q1_0" in refusal(arm, "a.npz")
    np.savez(arm / "logs" / "a.npz", **{**columns, "q1": np.zeros((200, 2, 2))})
    assert "column q1 holds arrays of shape (2, 2)" in refusal(arm, "a.npz")


def test_parquet_text_column(arm: Path) -> None:
    pq.write_table(pa.table({**table(), "q1": ["a"] * 200}), arm / "logs" / "p.parquet")
    assert "column q1 holds string" in refusal(arm, "p.parquet")


def test_repeated_missing_and_infinite(arm: Path) -> None:
    columns = table()
    columns["time_s"][10] = columns["time_s"][9]
    columns["time_s"][20] = ""
    columns["q1"][30] = ""
    columns["q1"][31] = "nan"
    columns["u1"][40] = "inf"
    write_csv(arm / "logs" / "run0.csv", columns)
    log = read(arm)
    assert len(log.episode.measurements.times_s) == 198
    # Row 10 is dropped, row 9 kept; so rows 30 and 31 are now 28 and 29.
    assert list(np.flatnonzero(np.isnan(log.episode.measurements.column("q1")))) == [28, 29]
    assert np.isnan(log.episode.commands.column("u1")[38])
    texts = [(note.level, note.where, note.text) for note in log.notes]
    assert ("warning", "run0.csv: q1", "2 of 198 values are missing") in texts
    assert any("1 of 200 time stamps are repeated" in text for _, _, text in texts)
    assert any("1 of 200 rows have no time stamp" in text for _, _, text in texts)
    assert any("1 of 198 values are infinite" in text for _, _, text in texts)


def test_sidecar(arm: Path) -> None:
    about = {"source": "twin", "outcome": "failure", "failed_in": "grasp", "remark": "A"}
    about |= {"conditions": {"object": "mug", "lux": 80}, "recorded_at": "2026-03-01T10:00:00"}  # type: ignore[dict-item]
    (arm / "logs" / "run0.json").write_text(json.dumps(about))
    log = read(arm)
    assert (log.episode.source, log.episode.outcome, log.episode.failed_in) == ("twin", "failure", "grasp")
    assert log.episode.conditions == {"object": "mug", "lux": "80"}
    assert [note.level for note in log.notes] == ["info"]
    assert "remark" in log.notes[0].text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"source": "robot"}', "real, twin, sim or augmented"),
        ('{"outcome": true}', "success or failure"),
        ('{"failed_in": 3}', "failed_in is 3"),
        ('{"conditions": ["a"]}', 'conditions is ["a"]: write an object'),
        ('{"conditions": {"a": {}}}', 'conditions is {"a": {}}: write'),
        ('{"recorded_at": "yesterday"}', "recorded_at"),
    ],
)
def test_bad_sidecar(arm: Path, content: str, words: str) -> None:
    (arm / "logs" / "run0.json").write_text(content)
    assert words in refusal(arm)


def test_log_paths(arm: Path) -> None:
    project = load_project(arm)
    write_csv(arm / "logs" / "a.csv", table())
    (arm / "logs" / "._a.csv").write_text("")
    (arm / "logs" / "readme.txt").write_text("")
    assert [path.name for path in log_paths(project)] == ["a.csv", "run0.csv"]
    (arm / "logs" / "a.npz").write_bytes(b"")
    with pytest.raises(LogError, match=r"a\.csv and a\.npz have one name"):
        log_paths(project)


def test_no_logs(arm: Path) -> None:
    project = load_project(arm)
    (arm / "logs" / "run0.csv").rename(arm / "logs" / "run0.txt")
    with pytest.raises(LogError, match=r"no logs .*run0\.txt"):
        log_paths(project)
    (arm / "logs").rename(arm / "gone")
    with pytest.raises(LogError, match="no such folder"):
        log_paths(project)
    assert [note.level for note in read_and_inspect(project)[1]] == ["fault"]
