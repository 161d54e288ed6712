"""The first sentence of the page: the error of the model as written, and with the fit."""

from dataclasses import replace

import pytest

from gapless.core.results import ColumnError, MeasureResult, Result
from gapless.report.parts import collect
from gapless.report.sections import describe_gap, list_rates

ID = "0123456789abcdef0123456789abcdef"
HEAD = "Prediction error in the median column, relative to how much it varies: "


def measured(nrmse: float, as_written: float | None = None, window_s: float = 0.3) -> MeasureResult:
    """Returns a measure whose one column is off by a share of its spread, 2 m."""
    columns = {"x": ColumnError(2 * nrmse, nrmse, 0.0, 0.0, "m")}
    before = {} if as_written is None else {"x": ColumnError(2 * as_written, as_written, 0.0, 0.0, "m")}
    return MeasureResult((ID,), window_s, 12, columns, {}, (), before)


def sentence(**results: Result) -> str:
    parts = collect(results)
    return describe_gap(parts, list(list_rates(parts)))


def test_a_measure_with_a_fit_alone_tells_both_errors() -> None:
    found = sentence(measure_fitted=measured(0.0042, as_written=0.41))
    assert found == f"{HEAD}41 % with the model as written and 0.4 % with the fitted model."


def test_both_measures_tell_both_errors() -> None:
    found = sentence(measure=measured(0.41), measure_fitted=measured(0.052))
    assert found == f"{HEAD}41 % with the model as written and 5 % with the fitted model."


def test_errors_that_are_compared_are_of_the_same_windows() -> None:
    found = sentence(measure=measured(0.9, window_s=1.0), measure_fitted=measured(0.05, as_written=0.41))
    assert found.startswith(f"{HEAD}41 % with the model as written")


def test_a_fit_whose_measure_has_no_error_as_written_says_so() -> None:
    found = sentence(measure_fitted=measured(0.0042))  # as older versions wrote it
    assert found == f"{HEAD}0.4 % with the fitted model; run `gapless measure` for that of the model as written."


@pytest.mark.parametrize(("error", "said"), [(0.0, "0 %"), (1e-5, "0.001 %"), (0.0096, "1 %"), (0.0149, "1 %")])
def test_a_small_error_is_not_rounded_to_nothing(error: float, said: str) -> None:
    assert sentence(measure=measured(error)) == f"{HEAD}{said} with the model as written."


def test_a_page_with_a_measure_of_the_fit_lacks_no_measure_of_the_model() -> None:
    parts = collect({"measure_fitted": measured(0.0042, as_written=0.41)})
    assert parts.measure is not None
    assert parts.measure.columns["x"].nrmse == 0.41
    assert parts.measure_fitted == replace(measured(0.0042, as_written=0.41))
