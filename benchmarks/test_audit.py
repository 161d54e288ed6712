"""Are planted ranges told? Takes a quarter of an hour."""

import importlib
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.bench
def test_planted_ranges_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))  # its parts import each other by name
    benchmark = importlib.import_module("audit")
    answers = [benchmark.run(case, tmp_path) for case in benchmark.cases(0, 60)]
    assert [bar.line() for bar in benchmark.tables(answers)[0].bars if not bar.met] == []
