"""Long logs: what Python does one by one must not grow with their rows."""

import cProfile
import pstats
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gapless.check.verb import check
from gapless.fit.data import read_project_data
from gapless.fit.prediction.windows import MOST_WINDOWS, cut_windows
from gapless.measure import verb as measure_verb
from gapless.project import load as loading
from gapless.project.load import load_project
from gapless.project.log import imported
from gapless.project.log.read import read_log
from gapless.signals.smoother import MAX_ROWS_FOR_PENALTY, smooth
from gapless.signals.track import NUM_STRETCHES, STRETCH_S, make_track, take_excerpts
from unit.identify.realities import write_csv, write_reality

RATE_HZ = 50.0


def write_long(folder: Path, num_rows: int) -> Path:
    """Writes a project with one log of a pendulum: a short one, over and over."""
    write_reality(folder, {}, num_logs=1)
    log = next((folder / "logs").glob("*.csv"))
    names = log.read_text().splitlines()[0].split(",")
    values = np.loadtxt(log, delimiter=",", skiprows=1)
    there_and_back = np.concatenate([values, values[-2:0:-1]])
    long = there_and_back[np.arange(num_rows) % len(there_and_back)]
    rng = np.random.default_rng(0)
    long[:, names.index("q")] += 1e-3 * rng.standard_normal(num_rows)
    long[:, names.index("time_s")] = np.arange(num_rows) / RATE_HZ
    write_csv(log, dict(zip(names, long.T, strict=True)))
    return folder


def num_calls(work: Callable[[], object]) -> int:
    """Returns how many functions Python calls: unlike time, the same on every machine."""
    profile = cProfile.Profile()
    profile.enable()
    work()
    profile.disable()
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


def test_reading_and_smoothing_call_no_function_per_row(tmp_path: Path) -> None:
    counts: list[int] = []
    for num_rows in (3_000, 90_000):
        project = load_project(write_long(tmp_path / str(num_rows), num_rows))
        path = next(project.logs_path.glob("*.csv"))
        counts.append(num_calls(lambda p=project, at=path: make_track(p, read_log(p, at).episode)))
    assert counts[1] < counts[0] + 60_000  # for choosing a penalty on stretches; before, 4 per row


def test_check_of_a_long_log_is_hardly_more_work_than_of_a_short_one(tmp_path: Path) -> None:
    short, long = (write_long(tmp_path / str(n), n) for n in (15_000, 120_000))
    check(short)  # imports
    few, many = (num_calls(lambda folder=folder: check(folder)) for folder in (short, long))
    assert many < 4 * few  # before, 6.6 times


def test_check_reads_model_and_log_once_and_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_long(tmp_path, 100_000)
    log = next((folder / "logs").glob("*.csv"))
    lines = log.read_text().splitlines(keepends=True)
    log.with_name("brief.csv").write_text("".join([lines[0], *lines[501:1001]]))
    read, shares, plain = list[Path](), list[float](), imported.read_columns
    models, load_model = list[Path](), loading.load_model
    monkeypatch.setattr(loading, "load_model", lambda path: models.append(path) or load_model(path))
    monkeypatch.setattr(imported, "read_columns", lambda path, *rest: read.append(path) or plain(path, *rest))
    check(folder, progress=lambda label, share: label == "reading the logs" and shares.append(share))
    assert len(read) == len(set(read)) == 2
    assert len(models) == 1
    assert shares == [0.0, 0.5, 1.0]


def test_long_logs_give_windows_that_are_spread_evenly(tmp_path: Path) -> None:
    evidence = read_project_data(write_long(tmp_path, 90_000))
    windows = cut_windows(evidence.project, evidence.tracks, 0.3)
    assert len(windows) == MOST_WINDOWS
    assert windows.first_row[-1] > 89_900
    assert np.diff(windows.first_row).max() <= 4 * 15  # one of three
    assert len(cut_windows(evidence.project, evidence.tracks, 1.2)) == 1499  # all, where they are fewer


def test_excerpts_are_stretches_of_the_tracks(tmp_path: Path) -> None:
    evidence = read_project_data(write_long(tmp_path, 90_000))
    some = take_excerpts(evidence.tracks, RATE_HZ)
    assert len(some) == NUM_STRETCHES
    assert {len(track.measured) for track in some} == {round(STRETCH_S * RATE_HZ)}
    last, whole = some[-1], evidence.tracks[0]
    np.testing.assert_array_equal(last.smooth, whole.smooth[-len(last.smooth) :])
    np.testing.assert_array_equal(last.noise, whole.noise)
    assert take_excerpts(some[:3], RATE_HZ) == some[:3]  # short ones stay whole


def test_a_long_signal_is_smoothed_like_a_short_one() -> None:
    times_s = np.arange(2 * MAX_ROWS_FOR_PENALTY) / 1000.0
    clean = np.sin(2 * np.pi * 0.7 * times_s)
    noisy = clean + 0.01 * np.random.default_rng(0).standard_normal(len(times_s))
    long, short = smooth(noisy, 1000.0), smooth(noisy[:MAX_ROWS_FOR_PENALTY], 1000.0)
    assert long.noise == pytest.approx(short.noise, rel=0.02)
    assert long.value_sd == pytest.approx(short.value_sd, rel=0.5)  # the penalty is one of a grid of half decades
    assert np.sqrt(np.mean((long.value - clean) ** 2)) < 0.002


def test_measure_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, shares = write_reality(tmp_path, {}), list[float]()
    whole = measure_verb.measure(folder)
    monkeypatch.setattr(measure_verb, "MAX_WINDOWS_AT_ONCE", 10)
    parts = measure_verb.measure(folder, progress=lambda label, share: label == "predicting" and shares.append(share))
    assert len(shares) > 2
    assert shares[-1] == 1.0
    assert parts.columns["q"].rmse == pytest.approx(whole.columns["q"].rmse, rel=1e-9)
