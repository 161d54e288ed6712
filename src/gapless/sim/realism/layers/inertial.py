"""Inertial and force-torque sensors."""

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.layer import Knob, Knobs, Layer, Moment, State
from gapless.sim.realism.process import forgetting

_NEXT, _LAST = [1, 2, 0], [2, 0, 1]  # the axes after and before x, y, z, for cross products


def _imu_start(signal: Array, knobs: Knobs, moment: Moment) -> State:
    return knobs["instability"] * moment.draws.normal("imu start", 3), np.zeros_like(signal)


def _imu(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y = clip(scale (u + m x u) + b + r + w, -range, range), for one triad: gyroscope or accelerometer.

    w = density / sqrt(h) n: white noise. b' = b e^(-h/tau) + instability sqrt(1 - e^(-2h/tau)) n: first-order
    Gauss-Markov, whose Allan deviation peaks at 0.62 instability near 1.9 tau. r' = r + walk sqrt(h) n: random walk. m
    is a small rotation of the axes, about all three alike if one number. Terms as in IEEE Std 952-1997.
    """
    bias, walked = state
    step_s, draws = moment.step_s, moment.draws
    noise = draws.normal("imu", 9)
    turn = np.broadcast_to(knobs["misalignment"], signal.shape)
    turned = signal + (turn[:, _NEXT] * signal[:, _LAST] - turn[:, _LAST] * signal[:, _NEXT])
    white = knobs["density"] / np.sqrt(step_s) * noise[:, :3]
    out = np.clip(knobs["scale"] * turned + bias + walked + white, -knobs["range"], knobs["range"])
    bias = forgetting(bias, knobs["instability"], knobs["tau_s"], step_s, noise[:, 3:6])
    return (bias, walked + knobs["walk"] * np.sqrt(step_s) * noise[:, 6:]), out


def _force_torque(state: State, signal: Array, knobs: Knobs, moment: Moment) -> tuple[State, Array]:
    """Returns y_i = u_i + F_i (crosstalk sum_{j != i} u_j / F_j + zero_per_k warmth), F the full scale of channel i."""
    full = np.concatenate([knobs["full_n"]] * 3 + [knobs["full_nm"]] * 3, axis=1)
    load = signal / full
    others = load.sum(axis=1, keepdims=True) - load
    return state, signal + full * (knobs["crosstalk"] * others + knobs["zero_per_k"] * moment.warmth_k)


_IMUDATA = "ADIS16405 gyroscope, measured over 2.8 h (SMAC-Group imudata)"

IMU = Layer(
    "inertial sensor", "sensor", "reading",
    (
        Knob("density", "signal/√Hz", 0.0, 0.0, 10.0, 6.9e-4, _IMUDATA + ": 2.36 deg/√h"),
        Knob("instability", "signal", 0.0, 0.0, 10.0, 2.2e-4, _IMUDATA + ": 0.0078 deg/s, over 0.62"),
        Knob("tau_s", "s", 100.0, 0.1, 1e4, 100.0, "rule of thumb"),
        Knob("walk", "signal/√s", 0.0, 0.0, 1.0, 1e-5, "rule of thumb"),
        Knob("scale", "1", 1.0, 0.5, 2.0, 1.005, "rule of thumb: below 1 % for MEMS"),
        Knob("misalignment", "rad", 0.0, -0.5, 0.5, 0.01, "rule of thumb: half a degree, as mounted"),
        Knob("range", "signal", np.inf, 1e-3, 1e4, 5.2, "300 deg/s, a common range of MEMS gyroscopes"),
    ),
    _imu, _imu_start, columns=("x", "y", "z"),
)  # fmt: skip
FORCE_TORQUE = Layer(
    "force-torque sensor", "sensor", "reading",
    (
        Knob("crosstalk", "1", 0.0, -0.2, 0.2, 0.01, "rule of thumb: 1 to 2 % of full scale in data sheets"),
        Knob("zero_per_k", "1/K", 0.0, -0.1, 0.1, 5e-4, "rule of thumb: 0.05 % of full scale per kelvin"),
        Knob("full_n", "N", 100.0, 1.0, 1e4, 200.0, "data sheet of the sensor", per_column=False),
        Knob("full_nm", "N·m", 10.0, 0.01, 1e3, 10.0, "data sheet of the sensor", per_column=False),
    ),
    _force_torque, columns=("fx", "fy", "fz", "tx", "ty", "tz"), needs=("warmth_k",),
)  # fmt: skip
INERTIAL_LAYERS = (IMU, FORCE_TORQUE)
