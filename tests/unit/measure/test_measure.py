from pathlib import Path

import numpy as np
import pytest

from gapless.core.interval import wilson
from gapless.core.results import MeasureResult
from gapless.identify.verb import identify
from gapless.measure.verb import measure
from unit.fit_file import fitted, write_fit
from unit.identify.realities import write_csv, write_reality
from unit.sim.scenes import write_project

# Nothing acts on this body: its prediction is a straight line from where it was.
FREE = """<mujoco><option timestep="0.005" gravity="0 0 0"/><worldbody><body name="b"><joint name="x" type="slide"
 axis="1 0 0"/><geom name="b" type="sphere" size=".1" mass="1" contype="0" conaffinity="0"/></body></worldbody>
</mujoco>"""
X_AND_V = {"x": "{joint: x, quantity: position, noise: 1.0e-6}", "v": "{joint: x, quantity: velocity, noise: 1.0e-6}"}


def free_body(folder: Path, seen_v: float) -> Path:
    """Writes logs of a body that stands still while its speed is read as `seen_v`."""
    write_project(folder, FREE, {}, X_AND_V, rate_hz=50.0)
    time_s = np.arange(151) / 50.0
    columns = {"time_s": time_s, "x": 0 * time_s, "v": np.full(151, seen_v)}
    (folder / "gapless.yaml").write_text((folder / "gapless.yaml").read_text().replace("auto", "[]"))
    write_csv(folder / "logs" / "a.csv", columns)
    return folder


def test_errors_by_horizon_have_their_closed_form(tmp_path: Path) -> None:
    # x = 0.2 t from each start, measured 0: over n intervals of 0.02 s the rmse is
    # 0.004 sqrt((n + 1)(2 n + 1) / 6), with n = 5, 25, 50, 75 and, for the whole run, 150.
    place = free_body(tmp_path, 0.2)
    (place / "gapless.yaml").write_text((place / "gapless.yaml").read_text() + "horizon_s: 1.5\n")
    found = measure(place).horizons
    assert [each.horizon_s for each in found] == [0.1, 0.5, 1.0, 1.5, None]
    for each, n in zip(found, (5, 25, 50, 75, 150), strict=True):
        column = each.columns["x"]
        assert column.before == pytest.approx(0.004 * np.sqrt((n + 1) * (2 * n + 1) / 6), rel=1e-6)
        assert column.after is None
        assert column.motion == pytest.approx(0.0, abs=1e-12)
    assert found[-1].num_windows == 1


def test_horizons_tell_the_model_from_the_fit(tmp_path: Path) -> None:
    place = write_reality(tmp_path, {"joint/hinge/damping": 0.1})
    fit = write_fit(tmp_path / "fit.json", fitted("joint/hinge/damping", 0.1))
    for each in measure(place, fit=fit).horizons:
        for column in each.columns.values():
            assert column.after is not None
            assert column.before is not None
            assert column.after < 0.5 * column.before
        assert each.after is not None
        assert each.before is not None
        assert each.after < each.before


def test_errors_have_their_closed_form(tmp_path: Path) -> None:
    # Predicted: x = 0.2 t from each start, measured 0. Over t = 0.02 k, k = 1..15 (0.3 s):
    # rmse = 0.2 * 0.02 * sqrt(sum k^2 / 15) = 0.004 * sqrt(1240 / 15), bias = 0.004 * 8.
    result = measure(free_body(tmp_path, 0.2))
    assert result.num_windows == 10
    assert result.columns["x"].rmse == pytest.approx(0.004 * np.sqrt(1240 / 15), rel=1e-6)
    assert result.columns["x"].bias == pytest.approx(0.032, rel=1e-6)
    assert result.columns["x"].nrmse is None  # what was measured does not vary
    assert result.columns["v"].rmse == pytest.approx(0.0, abs=1e-9)
    assert result.columns["x"].unit == "m"


def test_window_zero_is_one_prediction_per_episode(tmp_path: Path) -> None:
    # k = 1..150 (3 s): bias = 0.004 * 75.5
    result = measure(free_body(tmp_path, 0.2), window_s=0)
    assert result.num_windows == 1
    assert result.columns["x"].bias == pytest.approx(0.004 * 75.5, rel=1e-6)


def test_a_perfect_model_has_no_error(tmp_path: Path) -> None:
    # but for what smoothing does to the starts, which stays within the stated noise of 0.001 and 0.01
    result = measure(write_reality(tmp_path, {}, noise=(0.0, 0.0)))
    assert result.columns["q"].rmse < 0.001  # type: ignore[operator]
    assert result.columns["v"].rmse < 0.01  # type: ignore[operator]


def test_a_late_sensor_shows_as_lag(tmp_path: Path) -> None:
    # The rate is read 40 ms late. Whole episodes start at rest, so that the prediction itself is right.
    result = measure(write_reality(tmp_path, {"measurement/v/delay": 0.04}, noise=(0.0, 0.0)), window_s=0)
    assert result.columns["v"].lag_s == pytest.approx(0.04, abs=0.004)
    assert result.columns["q"].lag_s == pytest.approx(0.0, abs=1e-4)


def test_late_commands_show_as_lag(tmp_path: Path) -> None:
    # Everything that the motor does is 40 ms late, and the pendulum starts at rest.
    result = measure(write_reality(tmp_path, {"actuator/*/delay": 0.04}, noise=(0.0, 0.0)), window_s=0)
    assert result.columns["q"].lag_s == pytest.approx(0.04, abs=0.005)


def test_a_biased_column_shows_as_bias(tmp_path: Path) -> None:
    # No gravity, nothing else wrong: a rate read 0.5 too high moves the prediction of the angle, not of the rate.
    folder = write_reality(tmp_path, {"measurement/q/bias": 0.05}, noise=(0.0, 0.0))
    whole = measure(folder, window_s=0).columns
    # the pendulum hangs at -0.05 in the model's eyes and swings back to 0 while reality stays: predicted - measured
    assert whole["q"].bias == pytest.approx(-0.05, abs=0.01)


def test_a_fit_lowers_the_error(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {"actuator/motor/gain": 0.7})
    fit = tmp_path / "fit.json"
    identify(folder)
    found = sorted((folder / ".gapless" / "artefacts").glob("*/model.xml"))
    fit.write_bytes((found[0].parent / "result.json").read_bytes())
    plain, fitted = measure(folder), measure(folder, fit=fit)
    assert fitted.columns["q"].rmse < 0.3 * plain.columns["q"].rmse  # type: ignore[operator]
    assert set(fitted.traces[0].predicted) == {"fitted"}


@pytest.fixture
def judged(tmp_path: Path) -> MeasureResult:
    return measure(write_reality(tmp_path, {}, outcomes=("success", "success", "failure", "success")))


def test_success_comes_from_sidecars(judged: MeasureResult) -> None:
    assert judged.success == {"reality": wilson(3, 4)}


def test_without_outcomes_there_is_no_success(tmp_path: Path) -> None:
    assert measure(write_reality(tmp_path, {})).success == {}


def test_runs_without_a_log_count_in_success(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, num_logs=2)
    before = measure(folder)
    for k in range(4):
        (folder / "logs" / f"trial{k}.json").write_text(f'{{"outcome": "{"failure" if k else "success"}"}}')
    after = measure(folder)
    assert (before.columns, before.inputs) == (after.columns, after.inputs)
    assert (after.success["reality"].value, after.success["reality"].n) == (0.25, 4)
    for log in (folder / "logs").glob("*.csv"):
        log.unlink()
        log.with_suffix(".json").unlink(missing_ok=True)
    alone = measure(folder)
    assert alone.success == after.success
    assert alone.num_windows == 0
    assert all(column.rmse is None for column in alone.columns.values())


def test_with_a_fit_the_error_of_the_model_as_written_is_there_too(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {"joint/hinge/damping": 0.3})
    fit = write_fit(tmp_path / "fit.json", fitted("joint/hinge/damping", 0.3))
    written, corrected = measure(folder), measure(folder, fit=fit)
    assert written.as_written == {}
    assert corrected.as_written == written.columns
    assert corrected.columns["q"].rmse < 0.5 * written.columns["q"].rmse  # type: ignore[operator]
