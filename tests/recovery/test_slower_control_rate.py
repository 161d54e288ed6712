"""A delay is found again where `rate_hz` is below the rate of the logs: commands are averaged, not shifted."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.verbs import identify

LOG_HZ, STEPS_PER_SAMPLE = 200, 5
MODEL = """<mujoco><option timestep="0.001"/><worldbody><body><joint name="hinge" axis="0 1 0" damping="0.1"/>
<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".6"/></body></worldbody>
<actuator><position name="servo" joint="hinge" kp="20" kv="1"/></actuator></mujoco>"""
PROJECT = """gapless: 1
model: robot.xml
rate_hz: 100
commands: {u: {actuator: servo}}
measurements: {q: {joint: hinge, quantity: position, noise: 3e-4}}
parameters:
- {target: actuator/*/delay, low: 0, high: 0.1}
"""


def record(folder: Path, delay_s: float, rng: np.random.Generator) -> None:
    """Writes two logs of a servo that gets each command late; the engine alone plays the robot."""
    (folder / "logs").mkdir()
    (folder / "robot.xml").write_text(MODEL)
    (folder / "gapless.yaml").write_text(PROJECT)
    model = mujoco.MjModel.from_xml_string(MODEL)
    times_s = np.arange(6 * LOG_HZ) / LOG_HZ
    for run in range(2):
        waves = (np.sin(2 * np.pi * f * times_s + rng.uniform(0, 6.3)) for f in rng.uniform(0.3, 3, 4))
        commands = 0.2 * np.minimum(1, times_s) * np.sum(list(waves), axis=0)
        late = np.concatenate([np.zeros(round(delay_s / 0.001)), np.repeat(commands, STEPS_PER_SAMPLE)])
        data, readings = mujoco.MjData(model), []
        for k in range(len(times_s)):
            readings.append(data.qpos[0] + 3e-4 * rng.standard_normal())
            for step in range(STEPS_PER_SAMPLE):
                data.ctrl[0] = late[STEPS_PER_SAMPLE * k + step]
                mujoco.mj_step(model, data)
        table = np.stack([times_s, commands, readings], axis=1)
        np.savetxt(folder / "logs" / f"run{run}.csv", table, delimiter=",", header="time_s,u,q", comments="")


@pytest.mark.parametrize(
    ("seed", "delay_s"),
    [(1, 0.060), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, 0.043), (3, 0.051)))],
)
def test_a_delay_is_in_its_interval(tmp_path: Path, seed: int, delay_s: float) -> None:
    record(tmp_path, delay_s, np.random.default_rng(seed))
    result = identify(tmp_path)
    (found,) = (p for p in result.parameters if p.target == "actuator/*/delay")
    assert abs(found.value - delay_s) < 0.001  # the first command of each interval, held, made it 0.0025 too short
    assert found.low <= delay_s <= found.high
    assert any("rate_hz" in note.text for note in result.notes)
