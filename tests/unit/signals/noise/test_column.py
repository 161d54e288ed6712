import numpy as np
import pytest

from gapless.core.signal import Array
from gapless.signals.noise.column import fit_column_noise
from gapless.signals.noise.readings import find_time_grid, read_unit
from gapless.signals.noise.stillness import find_disturbances, find_knocks
from gapless.signals.smoother import find_quantum
from gapless.sim.realism.layers.sensor import IMU
from unit.signals.noise.simulated import column

NUM = 6000
TIMES = np.arange(NUM) / 100


def white(scale: float = 1e-3) -> Array:
    return scale * np.random.default_rng(0).standard_normal(NUM)


@pytest.mark.parametrize(
    ("motion", "text"),
    [
        (0.5 * np.sin(np.pi * TIMES), "moves smoothly"),
        (0.005 * np.sin(2 * np.pi * TIMES / 40), "moves smoothly"),
        (0.02 * (TIMES > 30), "jumps by"),
        (2e-4 * TIMES**2, "moves smoothly"),
        (0.02 * np.sin(2 * np.pi * 31 * TIMES), "vibrates at 31"),
    ],
)
def test_what_moves_is_refused(motion: Array, text: str) -> None:
    found = fit_column_noise(white() + motion, 0.01, "rad")
    assert found.moved
    assert found.noise.verdict == "refused"
    assert text in found.noise.reasons[0]
    assert found.noise.terms == {}


def test_noise_alone_never_moves() -> None:
    for seed in range(150):
        kind = [{}, {"flicker": 0.15}, {"walk": 0.01}][seed % 3]
        values = column(np.random.default_rng(seed), NUM, **kind)
        assert find_disturbances(values, 0.01, 0.0, "rad") == []
        assert not find_knocks(values, 0.01, 0.0).any()


def test_a_knock_is_left_out_and_named() -> None:
    values = np.random.default_rng(1).standard_normal(30_000)
    values[20_000:20_020] += 30.0
    found = fit_column_noise(values, 0.01, "g")
    assert not found.moved
    assert any("it was knocked" in note for note in found.notes)
    assert found.noise.terms["white"].value == pytest.approx(1, rel=0.03)


def test_constant_and_short_columns_are_refused() -> None:
    assert "constant at 0.5" in fit_column_noise(np.full(NUM, 0.5), 0.01, "rad").noise.reasons[0]
    assert "only 20 of at least 64" in fit_column_noise(white()[:20], 0.01, "rad").noise.reasons[0]
    assert "only 0 of at least 64" in fit_column_noise(np.full(NUM, np.nan), 0.01, "rad").noise.reasons[0]


def test_two_seconds_identify_the_white_noise_only() -> None:
    noise = fit_column_noise(white()[:200], 0.01, "rad").noise
    assert noise.verdict == "poor"
    assert "too short for bias instability" in noise.reasons[0]
    assert noise.terms["white"].low <= 1e-3 <= noise.terms["white"].high
    assert not noise.terms["bias_instability"].told
    assert noise.instability_tau_s is None


@pytest.mark.slow
def test_the_mean_of_a_sensor_is_known_to_its_noise() -> None:
    # White noise of 1 and a walk that is hardly there: the mean of 6000 readings is off by about 0.013. Where such a
    # term had less than one degree of freedom, the interval was 1e151 wide; no mean is less known than one reading.
    inside = 0
    for seed in range(60):
        values = column(np.random.default_rng(seed), NUM, walk=2e-4 * (seed % 3))
        bias = fit_column_noise(values, 0.01, "rad").noise.terms["bias"]
        inside += bias.low <= 0.0 <= bias.high
        assert bias.high - bias.low < np.ptp(values)
    assert inside >= 55


def test_steps_that_hide_the_noise() -> None:
    # Noise of a tenth of a step, half way between two steps: the readings toggle between two values.
    noise = fit_column_noise(np.round((white() + 0.005) / 0.01) * 0.01, 0.01, "rad").noise
    assert "hide the noise" in noise.reasons[0]
    assert not noise.terms["white"].told
    assert noise.terms["white"].high == pytest.approx(0.005)
    assert noise.noise == pytest.approx(0.01 / np.sqrt(12))


def test_rounding_is_taken_out_of_the_layer() -> None:
    # sigma^2 = 1, step 1: readings have 1 + 1/12; density at 100 Hz is 0.1 sigma.
    values = np.round(np.random.default_rng(2).standard_normal(60_000))
    noise = fit_column_noise(values, 0.01, "m").noise
    assert noise.terms["quantum"].value == pytest.approx(1)
    assert noise.terms["white"].value == pytest.approx(np.sqrt(13 / 12), rel=0.01)
    assert noise.layer["density"] == pytest.approx(0.1, rel=0.01)
    assert noise.layer["quantum"] == pytest.approx(1)


def test_the_layer_is_in_si() -> None:
    noise = fit_column_noise(white(), 0.01, "deg/s").noise
    assert noise.layer["density"] == pytest.approx(1e-4 * np.pi / 180, rel=0.05)
    assert noise.terms["angle_random_walk"].value == pytest.approx(60 * 1e-4, rel=0.05)  # deg/s/sqrt(Hz) -> deg/sqrt(h)


def test_the_layer_has_the_knobs_of_the_simulated_sensor() -> None:
    layer = fit_column_noise(white(), 0.01, "deg/s").noise.layer
    knobs = {knob.name: knob for knob in IMU.knobs if knob.name in layer}
    assert {*layer} - {*knobs} == {"bias", "quantum"}
    assert all(knob.low <= layer[name] <= knob.high for name, knob in knobs.items())


def test_a_filtered_sensor_is_fitted_at_longer_times() -> None:
    raw = np.random.default_rng(3).standard_normal(60_003)
    noise = fit_column_noise(np.convolve(raw, np.full(4, 0.25), "valid"), 0.01, "rad/s").noise
    assert noise.fitted_from_s > 0.02
    assert noise.terms["density"].low <= 0.1 <= noise.terms["density"].high
    assert noise.terms["white"].value == pytest.approx(0.5, rel=0.05)  # of the readings: 1 / sqrt(4)


@pytest.mark.parametrize(("step", "stored"), [(0.05, np.float32), (0.00333, np.float32), (1e-3, np.float64)])
def test_the_step_is_found(step: float, stored: type) -> None:
    values = (np.round(np.random.default_rng(4).standard_normal(5000) * 6) * step - 1.0).astype(stored)
    assert find_quantum(values.astype(float)) == pytest.approx(step, rel=1e-4)


def test_continuous_values_have_no_step() -> None:
    assert find_quantum(white()) == 0.0
    assert find_quantum(white().astype(np.float32).astype(float)) == 0.0


def test_jittered_and_missing_time_stamps() -> None:
    rng = np.random.default_rng(5)
    kept = np.sort(rng.permutation(NUM)[: NUM - 60])
    times_s = TIMES[kept] + rng.uniform(-0.003, 0.003, len(kept))
    grid, notes = find_time_grid(times_s, "imu.csv")
    assert grid.interval_s == pytest.approx(0.01, rel=1e-3)
    assert abs(grid.num_ticks - NUM) <= 3
    assert any("ticks are missing" in note.text for note in notes)
    assert np.isnan(grid.place_values(white()[kept])).sum() == grid.num_ticks - len(np.unique(grid.tick))


def test_time_in_milliseconds_gets_a_note() -> None:
    assert "milliseconds" in find_time_grid(TIMES * 1000, "imu.csv")[1][0].text


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("gyro_x_rad_s", "rad/s"),
        ("gyro_deg_s[0]", "deg/s"),
        ("gyro_deg_s_0", "deg/s"),
        ("accel_g_x", "g"),
        ("accel_y_m_s2", "m/s^2"),
        ("box_x", "unit"),
        ("wrist_fz_N", "N"),
        ("height_m", "m"),
    ],
)
def test_units_from_names(name: str, unit: str) -> None:
    assert read_unit(name) == unit
