"""Known noise is found again, within the stated intervals, and a real hour is near what others published of it."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from gapless.core.results import SensorResult
from gapless.signals.noise.allan import term_shapes
from gapless.signals.noise.column import fit_column_noise
from gapless.verbs import noise
from unit.signals.noise.simulated import PLATEAU, column

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import sets

HOUR = sets.data_folder() / "imu" / "adis16405_static_1h.npz"
INTERVAL_S = 0.01
# Per sample: white noise of 1, and what may come with it.
KINDS = ({}, {"flicker": 0.09}, {"walk": 0.004}, {"flicker": 0.075, "walk": 0.002}, {"slope": 4e-5})


def hits(num_columns: int, num_samples: int) -> dict[str, list[bool]]:
    """Returns per number whether its interval held the truth, by column; every other column lacks 3 % of samples."""
    found: dict[str, list[bool]] = {}
    for seed in range(num_columns):
        rng, kind = np.random.default_rng([11, seed]), KINDS[seed % len(KINDS)]
        values = 3.0 + column(rng, num_samples, **kind)
        values[rng.random(num_samples) < 0.03 * (seed % 2)] = np.nan
        noise = fit_column_noise(values, INTERVAL_S, "rad/s").noise
        for name, truth in truths(kind, num_samples, noise.instability_tau_s).items():
            term = noise.terms[name]
            found.setdefault(name, []).append(term.low <= truth * (1 + 1e-9) and truth <= term.high * (1 + 1e-9))
    return found


def truths(kind: dict[str, float], num_samples: int, tau_s: float | None) -> dict[str, float]:
    flicker, walk, slope = (kind.get(name, 0.0) for name in ("flicker", "walk", "slope"))
    root = np.sqrt(INTERVAL_S)
    made = {"white": 1.0, "density": root, "angle_random_walk": root * 60 * 180 / np.pi, "flicker": flicker}
    made |= {"walk": walk / root, "drift": slope / INTERVAL_S, "quantisation": 0.0}
    if not flicker and not walk:
        made["bias"] = 3.0 + slope * (num_samples - 1) / 2
    if tau_s is not None:
        size = tau_s / INTERVAL_S
        terms = np.array([0.0, 1.0, (PLATEAU * flicker) ** 2, walk**2])
        made["bias_instability"] = float(np.sqrt(term_shapes(np.array([size]))[0] @ terms + slope**2 * size**2 / 2))
    return made


def fewest(count: int) -> int:
    """Returns the number of hits that intervals of 95 % stay below in one of 1,000 tests."""
    return int(binom.ppf(0.001, count, 0.95))


def check(found: dict[str, list[bool]]) -> None:
    counts = {name: (sum(held), len(held)) for name, held in found.items()}
    print(counts)
    assert {name: c for name, c in counts.items() if c[0] < fewest(c[1])} == {}


def test_intervals_hold_the_truth() -> None:
    check(hits(20, 6000))


@pytest.mark.slow
def test_intervals_hold_the_truth_in_many_columns() -> None:
    check(hits(200, 20_000))


def test_strong_terms_are_identified() -> None:
    # 1 at 100 Hz has the Allan deviation 0.1 / sqrt(tau); a walk of 0.02 per sample 0.2 sqrt(tau / 3): they cross at
    # 0.9 s, 60 times within this log.
    noise = fit_column_noise(column(np.random.default_rng(12), 6000, walk=0.02), INTERVAL_S, "rad/s").noise
    assert noise.terms["walk"].told
    assert noise.terms["walk"].low <= 0.2 <= noise.terms["walk"].high
    assert noise.terms["walk"].high < 0.4


@pytest.fixture(scope="module")
def hour() -> SensorResult:
    if not HOUR.is_file():
        pytest.skip("no hour of a real sensor: set GAPLESS_DATA to the folder that holds imu/adis16405_static_1h.npz")
    return noise(HOUR, columns=["gyro_deg_s_0", "accel_g_0"])


def test_the_gyroscope_of_a_real_hour(hour: SensorResult) -> None:
    # Published over 2.8 h, of which this is one: 2.36 deg/sqrt(h), 0.0078 deg/s, steps of 0.05 deg/s. Ours: 2.44 [2.37,
    # 2.47], which does not hold 2.36: near, not the same.
    terms = hour.columns["gyro_deg_s_0"].terms
    assert terms["angle_random_walk"].value == pytest.approx(2.36, rel=0.05)
    assert terms["bias_instability"].low < 0.0078 < terms["bias_instability"].high
    assert terms["quantum"].value == pytest.approx(0.05, rel=1e-3)


def test_the_accelerometer_of_a_real_hour_does_not_identify_its_white_noise(hour: SensorResult) -> None:
    # Published 0.386 m/s/sqrt(h) and steps of 0.00333 g. A fit from 1.28 s on gives 0.305, one from 2.56 s on gives 0:
    # something sways at 0.56 Hz, and beyond that flicker begins. So it must not claim to know.
    found = hour.columns["accel_g_0"]
    assert not found.terms["velocity_random_walk"].told
    assert found.verdict == "poor"
    assert any("depends on where the fit begins" in reason for reason in found.reasons)
    assert found.terms["quantum"].value == pytest.approx(0.00333, rel=1e-3)
    assert any("vibrates at 0.56" in note.text for note in hour.notes)
