"""Does the catalogue answer in time? At a thousandth of the size, in half a minute."""

import importlib
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.bench
def test_the_catalogue_answers_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))  # its parts import each other by name
    benchmark = importlib.import_module("catalogue")
    growth, samples = benchmark.measure(tmp_path, small=True)
    assert [row[0] for row in growth.rows] == ["10", "50", "100", "1,000"]
    assert [row[1] for row in samples.rows] == ["50", "10"]
    assert [bar.line() for bar in growth.bars if not bar.met] == []
