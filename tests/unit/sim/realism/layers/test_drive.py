"""Layers of drives, in closed form."""

import numpy as np

from gapless.sim.realism.layers.drive import BATTERY, HEATING, RATE_LIMIT, SERIES_ELASTICITY, TORQUE_SPEED
from unit.sim.realism.layers.one_layer import flat, run


def test_torque_falls_on_a_line_with_speed_and_braking_is_stronger() -> None:
    # Stall 2 N·m, free at 10 rad/s: at 5 rad/s 1 N·m forwards; against the motion 2 (1 + 0.5) = 3 N·m, cut at 2.5.
    asked, speed = np.array([9.0, 9.0, 9.0, -9.0, 0.4]), np.array([0.0, 5.0, 20.0, 5.0, 5.0])
    out = flat(TORQUE_SPEED, asked, seen={"velocity": speed}, stall=2.0, free_speed=10.0, limit=2.5)
    np.testing.assert_allclose(out, [2.0, 1.0, 0.0, -2.5, 0.4])


def test_a_step_becomes_a_ramp_of_the_limited_slope() -> None:
    # 2 per second and 0.01 s: 0.02 per step, so a step of 1 takes 50 steps.
    out = flat(RATE_LIMIT, np.r_[0.0, np.ones(60)], rate=2.0)
    np.testing.assert_allclose(np.diff(out)[:50], 0.02)
    assert out[50] == 1.0
    np.testing.assert_allclose(out[50:], 1.0)


def test_a_rotor_on_a_spring_rings_at_its_own_frequency() -> None:
    # Joint held still, J = 0.05, k = 200: sqrt(k / J) = 63.2 rad/s. A step of torque comes out ringing about itself.
    step_s, num = 1e-4, 10000
    still = np.zeros(num)
    torque = np.r_[0.0, np.ones(num - 1)]
    seen = {"position": still, "velocity": still}
    out = flat(SERIES_ELASTICITY, torque, step_s=step_s, seen=seen, rotor_inertia=0.05, compliance=1 / 200, damping=0.0)
    crossings = np.flatnonzero(np.diff(np.sign(out[1:] - 1.0)) != 0)
    period_s = 2 * np.mean(np.diff(crossings)) * step_s
    np.testing.assert_allclose(period_s, 2 * np.pi / np.sqrt(200 / 0.05), rtol=0.01)
    assert out.max() > 1.7  # twice the step without damping, less what backward Euler takes


def test_ringing_dies_at_the_rate_of_its_damping() -> None:
    # d / (2 J) = 0.2 / 0.1 = 2 per second, and k h / (2 J) = 0.2 per second by backward Euler.
    still = np.zeros(10000)
    seen = {"position": still, "velocity": still}
    torque = np.r_[0.0, np.ones(9999)]
    out = flat(SERIES_ELASTICITY, torque, step_s=1e-4, seen=seen, rotor_inertia=0.05, compliance=1 / 200, damping=0.2)
    swing = np.abs(out - 1.0)
    peaks = np.flatnonzero((swing[1:-1] > swing[:-2]) & (swing[1:-1] >= swing[2:])) + 1
    rate = -np.polyfit(peaks * 1e-4, np.log(swing[peaks]), 1)[0]
    np.testing.assert_allclose(rate, 2.2, rtol=0.02)


def test_a_damped_rotor_settles_on_the_torque_it_was_given() -> None:
    still = np.zeros(2000)
    seen = {"position": still, "velocity": still}
    torque = np.r_[0.0, np.ones(1999)]
    out = flat(SERIES_ELASTICITY, torque, step_s=0.001, seen=seen, rotor_inertia=0.05, compliance=1 / 200, damping=2.0)
    np.testing.assert_allclose(out[-1], 1.0, atol=1e-6)


def test_a_motor_heats_to_loss_times_resistance_and_is_derated_there() -> None:
    # 2 W/(N·m)^2 and 5 K/W: 3 N·m would end at 90 K. Derating from 40 K over 20 K: y = 3 (1 - (T - 40) / 20) with
    # T = 10 y^2 gives y = 2.2119 (3 (3 - y^2 / 2) = y), T = 48.9 K.
    torque = flat(HEATING, np.full(4000, 3.0), step_s=1.0, loss=2.0, thermal_k_per_w=5.0, time_constant_s=100.0)
    assert torque[0] == 3.0
    rise = -np.log(1 - 40 / 90) * 100  # 58.8 s until derating begins
    first = np.flatnonzero(torque < 3.0)[0]
    assert abs(first - rise) <= 2
    root = (-1 + np.sqrt(1 + 4 * 1.5 * 9)) / 3
    np.testing.assert_allclose(torque[-1], root, rtol=1e-3)


def test_warm_magnets_weaken() -> None:
    out = flat(
        HEATING, np.ones(5000), step_s=1.0, loss=1.0, thermal_k_per_w=20.0, time_constant_s=100.0, weakening_per_k=0.001
    )
    # y = 1 - 0.001 T, T = 20 y^2: y = 0.98076
    np.testing.assert_allclose(out[-1], (-1 + np.sqrt(1.08)) / 0.04, rtol=1e-6)


def test_a_battery_sags_with_the_load_of_all_joints_and_recovers() -> None:
    # Two joints of 10 N·m at 6 rad/s draw 120 W: 5 A at 24 V, over 0.48 ohm 2.4 V: a tenth.
    torque = np.full((3, 2), 10.0)
    speed = np.array([[6.0, 6.0], [6.0, 0.0], [0.0, 0.0]])
    out = run(BATTERY, torque, seen={"velocity": speed}, resistance_ohm=0.48)[:, 0]
    np.testing.assert_allclose(out, [[9.0, 9.0], [9.5, 9.5], [10.0, 10.0]])


def test_a_battery_empties() -> None:
    # 240 W at 24 V are 10 A; 100 A·s are gone after 10 s, and with them 6 of 24 V.
    out = flat(
        BATTERY, np.full(30, 24.0), step_s=1.0, seen={"velocity": np.full(30, 10.0)}, drop_v=6.0, capacity_as=100.0
    )
    np.testing.assert_allclose(out[[0, 5, 10, 29]], [24.0, 21.0, 18.0, 18.0])
