import json
from pathlib import Path

import numpy as np
import pytest

from gapless.core.interval import Interval, wilson
from gapless.core.results import (
    CheckResult,
    ColumnError,
    EvaluateResult,
    MeasureResult,
    Note,
    ReportResult,
    Result,
    plain,
    to_json,
)


def test_format_and_verb_come_first() -> None:
    written = to_json(ReportResult(("a",), "report.html"))
    assert list(written.items())[:2] == [("format", 1), ("verb", "report")]
    assert written == {"format": 1, "verb": "report", "id": None, "inputs": ["a"], "path": "report.html"}


def test_nested_records_become_plain() -> None:
    result = MeasureResult(
        inputs=("e1",),
        window_s=0.5,
        num_windows=3,
        columns={"q": ColumnError(rmse=0.1, nrmse=0.2, bias=-0.05, lag_s=None, unit="rad")},
        success={"reality": Interval(0.5, 0.2, 0.8, 0.95, 10, "wilson")},
    )
    written = to_json(result)
    assert written["columns"] == {"q": {"rmse": 0.1, "nrmse": 0.2, "bias": -0.05, "lag_s": None, "unit": "rad"}}
    assert written["success"]["reality"]["method"] == "wilson"
    assert written["traces"] == []


def test_what_is_not_a_number_becomes_null() -> None:
    # wilson(0, 0) has value NaN and the interval [0, 1].
    result = EvaluateResult(("p",), "reality", wilson(0, 0), {"grasp": np.int64(2)}, seed=1)  # type: ignore[dict-item]
    written = to_json(result)
    assert written["success"] == {
        "value": None,
        "low": 0.0,
        "high": 1.0,
        "level": 0.95,
        "n": 0,
        "method": "wilson",
    }
    assert json.loads(json.dumps(written, allow_nan=False)) == written


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (np.float64("nan"), None),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array([[1.0, np.nan], [np.inf, 2.0]]), [[1.0, None], [None, 2.0]]),
        (np.array([], dtype=float), []),
        (np.array(2.5), 2.5),
        ((1, "a", None, True), [1, "a", None, True]),
        ({"k": (np.nan,)}, {"k": [None]}),
        ({3: "three"}, {"3": "three"}),
        (Path("a") / "b", str(Path("a") / "b")),
    ],
)
def test_plain(value: object, expected: object) -> None:
    got = plain(value)
    assert got == expected
    assert type(got) is type(expected)
    json.dumps(got, allow_nan=False)


RESULTS: list[Result] = [
    CheckResult(("e",), True, (Note("info", "q", "fine"),), {"q": float("nan")}),
    ReportResult((), "x.html"),
]


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: result.verb)
def test_every_result_is_strict_json(result: Result) -> None:
    written = to_json(result)
    assert json.loads(json.dumps(written, allow_nan=False)) == written
