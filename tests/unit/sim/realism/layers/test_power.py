import numpy as np

from gapless.sim.realism.layers.power import BATTERY, HEATING
from unit.sim.realism.layers.playing import flat, run


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
