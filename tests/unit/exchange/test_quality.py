from dataclasses import replace

import numpy as np
import pytest

from gapless.core.recording import Recording
from gapless.exchange.quality import find_flags

TIMES_S = np.arange(400) / 100
MOTION = np.sin(7 * TIMES_S)


def recording(**columns: np.ndarray) -> Recording:
    return Recording("a", TIMES_S, {"q": MOTION, **columns})


def test_a_clean_recording_has_no_flags() -> None:
    rng = np.random.default_rng(0)
    noisy = np.round(MOTION + 0.01 * rng.normal(size=400), 3)
    switch = (TIMES_S > 2).astype(float)
    assert find_flags(recording(noisy=noisy, switch=switch, cmd=np.where(TIMES_S < 2, 0.5, -0.5))) == ()


def test_what_comes_to_rest_is_not_stuck() -> None:
    rest = np.round(1000 * np.tanh(3 * TIMES_S)) / 1000
    assert find_flags(recording(rest=rest)) == ()


def test_a_lost_row_is_flagged() -> None:
    keep = np.arange(400) != 200
    cut = Recording("a", TIMES_S[keep], {"q": MOTION[keep]})
    assert find_flags(cut) == ("dropped",)


def test_rows_of_several_topics_are_no_lost_rows() -> None:
    times_s = np.unique(np.concatenate([np.arange(400) / 100, np.arange(300) / 70.0]))
    mixed = Recording("a", times_s, {"/q.transport_latency_s": np.full(len(times_s), 0.01), "q": np.sin(times_s)})
    assert find_flags(mixed) == ()


@pytest.mark.parametrize(
    ("values", "flag"),
    [
        (np.where(TIMES_S < 1.35, MOTION, MOTION[134]), "stuck"),  # in the midst of a motion
        (np.clip(MOTION, -0.7, 0.7), "saturated"),
        (np.where(np.arange(400) == 123, 80.0, MOTION), "impossible_speed"),
    ],
)
def test_faults_of_one_signal_are_flagged_with_its_name(values: np.ndarray, flag: str) -> None:
    assert find_flags(recording(bad=values)) == (f"{flag}:bad",)


def test_a_column_that_repeats_another_is_flagged() -> None:
    assert find_flags(recording(again=MOTION.copy())) == ("duplicated:again",)


def test_clocks_that_run_apart_are_flagged() -> None:
    columns = {"/q.transport_latency_s": 0.01 + 0.005 * TIMES_S}
    assert find_flags(recording(**columns)) == ("skewed_clock",)
    steady = {"/q.transport_latency_s": 0.01 + 1e-4 * np.sin(TIMES_S)}
    assert find_flags(replace(recording(**steady), name="b")) == ()
