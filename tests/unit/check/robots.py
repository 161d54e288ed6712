"""Robots made with plain MuJoCo, logged as strangers log them: only what was recorded is known of them."""

from collections.abc import Callable, Mapping
from pathlib import Path

import mujoco
import numpy as np

from gapless.core.signal import Array
from unit.identify.realities import write_csv
from unit.sim.scenes import write_project

RATE_HZ = 50.0
STEPS_PER_ROW = 4
# A link on a position servo: reality has kp 45 and answers 0.04 s late, the model has kp 30 and does not.
SERVO = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody><body name="link">
<joint name="elbow" axis="0 1 0" damping="0.5" armature="0.05"/>
<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5" contype="0" conaffinity="0"/>
</body></worldbody><actuator>{actuator}</actuator></mujoco>"""
POSITION = '<position name="drive" joint="elbow" kp="{kp}" kv="1.5"/>'
VELOCITY = '<velocity name="drive" joint="elbow" kv="4"/>'
MOTOR = '<motor name="drive" joint="elbow"/>'
DELAY_ROWS = 2
SERVO_PARAMETERS = (
    "{target: actuator/drive/kp, low: 1, high: 600}",
    "{target: actuator/*/delay, low: 0, high: 0.1}",
    "{target: joint/elbow/damping, low: 0, high: 3}",
)
# A base that slides on a floor and is pushed along its own x axis: where it goes depends on its yaw.
BASE = """<mujoco><option timestep="0.005" integrator="implicitfast"/><worldbody>
<geom type="plane" size="9 9 .1" friction="0.02"/>
<body name="base" pos="0 0 .05"><freejoint/><geom type="box" size=".2 .15 .05" mass="2" friction="0.02"/>
<site name="hub"/></body></worldbody><actuator>
<general name="push" site="hub" gear="1 0 0 0 0 0"/><general name="turn" site="hub" gear="0 0 0 0 0 1"/>
</actuator></mujoco>"""
BASE_COMMANDS = {"push": "{actuator: push}", "turn": "{actuator: turn}"}
BASE_POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")


def wander(seed: int, size: float, num_rows: int, num_commands: int = 1) -> Array:
    """Returns commands of three slow sines that begin at 0, (num_rows, num_commands)."""
    rng = np.random.default_rng(seed)
    time_s = np.arange(num_rows)[:, None, None] / RATE_HZ
    rate, phase = rng.uniform(1.0, 5.0, (2, num_commands, 3))
    return size * np.sin(rate * time_s + phase).sum(axis=2) * np.clip(time_s[:, 0] / 0.5, 0.0, 1.0)


def play(xml: str, commands: Array, read: Callable[[mujoco.MjData], list[float]], delay_rows: int = 0) -> Array:
    """Returns what is read before each row of commands takes effect, (num_rows, num_readings)."""
    model = mujoco.MjModel.from_xml_string(xml)
    data, seen = mujoco.MjData(model), list[list[float]]()
    for row in range(len(commands)):
        seen.append(read(data))
        data.ctrl[:] = commands[max(0, row - delay_rows)]
        mujoco.mj_step(model, data, nstep=STEPS_PER_ROW)
    return np.array(seen)


def write_servo(
    folder: Path,
    measurements: Mapping[str, str],
    *,
    actuator: str = POSITION,
    log_command: Callable[[Array, Array], Array] = lambda target, position: target,
    num_logs: int = 3,
    num_rows: int = 250,
    size: float = 0.3,
) -> Path:
    """Writes the project of a driven link and its logs; `log_command` says what is logged of target and position."""
    write_project(
        *(folder, SERVO.format(actuator=actuator.format(kp=30)), {"cmd": "{actuator: drive}"}, measurements),
        rate_hz=RATE_HZ,
        parameters=SERVO_PARAMETERS if actuator == POSITION else None,
    )
    (folder / "logs").mkdir()
    rng = np.random.default_rng(0)
    for k in range(num_logs):
        target = wander(k, size, num_rows)
        reality = SERVO.format(actuator=actuator.format(kp=45))
        q, v = play(reality, target, lambda data: [data.qpos[0], data.qvel[0]], DELAY_ROWS).T
        q, v = q + 0.001 * rng.standard_normal(num_rows), v + 0.005 * rng.standard_normal(num_rows)
        columns = {"time_s": np.arange(num_rows) / RATE_HZ, "cmd": log_command(target[:, 0], q), "q": q, "v": v}
        write_csv(folder / "logs" / f"run{k}.csv", columns)
    return folder


def write_base(folder: Path, quantities: tuple[str, ...], *, num_logs: int = 3, tilt_rad: float = 0.0) -> Path:
    """Writes the project of a sliding base and its logs, of which some quantities are mapped.

    Args:
        folder: Where.
        quantities: Quantities of the base that are mapped, by columns of the same names.
        num_logs: How many logs.
        tilt_rad: How far readings of the orientation are rolled: as if the floor were.
    """
    mapped = {name: f"{{body: base, quantity: {name}}}" for name in quantities}
    write_project(folder, BASE, BASE_COMMANDS, mapped, rate_hz=RATE_HZ)
    (folder / "logs").mkdir()
    rng, num_rows = np.random.default_rng(0), 300
    for k in range(num_logs):
        commands = wander(10 + k, 1.0, num_rows, 2) * [1.5, 0.04]
        seen = play(BASE, commands, lambda data: [*data.qpos, *data.qvel])
        roll = np.array([np.cos(tilt_rad / 2), np.sin(tilt_rad / 2), 0.0, 0.0])
        for row in seen:
            mujoco.mju_mulQuat(row[3:7], row[3:7].copy(), roll)
        seen += 0.001 * rng.standard_normal(seen.shape)
        names = (*BASE_POSE, "vx", "vy", "vz", "wx", "wy", "wz")
        columns = dict(zip(names, seen.T, strict=True))
        yaw = np.unwrap(2 * np.arctan2(columns["qz"], columns["qw"]))
        columns |= {"time_s": np.arange(num_rows) / RATE_HZ, "yaw": yaw, "push": commands[:, 0], "turn": commands[:, 1]}
        write_csv(folder / "logs" / f"run{k}.csv", columns)
    return folder
