"""Robots of any number of joints, with logs made in plain MuJoCo by a robot that differs: what `growth.py` times."""

from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np
import yaml

RATE_HZ, SUBSTEPS = 100, 5  # control rate, and engine steps of 2 ms in each interval
NOISE_RAD = 1e-4


def arm_xml(num_joints: int, payload_kg: float = 1e-9, friction_nm: float = 0.0) -> str:
    """Returns an arm with position servos; its middle joint has friction, and its tip may carry a load."""
    bodies, end, servos = "", "", ""
    for k in range(num_joints):
        strong = k < (num_joints + 1) // 2
        length, mass, kp = (0.35, 6.0, 2000) if strong else (0.12, 1.0, 500)
        friction = friction_nm if k == num_joints // 2 else 0.0
        above = 0.1 if k == 0 else (0.35 if k <= (num_joints + 1) // 2 else 0.12)
        bodies += f"""<body name="link{k}" pos="0 0 {above}">
          <joint name="j{k}" axis="{"0 0 1" if k % 3 == 0 else "0 1 0"}" damping="2" armature="0.1"
            frictionloss="{friction}"/>
          <geom type="capsule" size="0.04" fromto="0 0 0 0 0 {length}" mass="{mass}"/>"""
        end += "</body>"
        servos += f'<position name="a{k}" joint="j{k}" kp="{kp}" kv="{kp / 20}"/>'
    load = f'<geom type="sphere" size="0.04" pos="0 0 0.1" mass="{payload_kg}"/>'
    return _robot_xml(f"{bodies}{load}{end}", servos)


def hung_xml(armature: Sequence[float], damping: Sequence[float], friction: Sequence[float]) -> str:
    """Returns a four-legged robot whose trunk hangs in the air, with 12 position servos."""
    legs, servos = "", ""
    for leg, (x, y) in enumerate(((0.2, 0.12), (0.2, -0.12), (-0.2, 0.12), (-0.2, -0.12))):
        joints = [
            f'<joint name="j{k}" axis="{axis}" damping="{damping[k]}" armature="{armature[k]}" '
            f'frictionloss="{friction[k]}"/>'
            for k, axis in zip(range(3 * leg, 3 * leg + 3), ("1 0 0", "0 1 0", "0 1 0"), strict=True)
        ]
        legs += f"""<body name="hip{leg}" pos="{x} {y} 0">{joints[0]}<geom type="sphere" size=".04" mass=".6"/>
          <body name="thigh{leg}">{joints[1]}<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".8"/>
          <body name="shank{leg}" pos="0 0 -.2">{joints[2]}
          <geom type="capsule" fromto="0 0 0 0 0 -.2" size=".012" mass=".25"/></body></body></body>"""
        servos += "".join(f'<position name="a{k}" joint="j{k}" kp="40" kv="1"/>' for k in range(3 * leg, 3 * leg + 3))
    trunk = f'<body name="trunk" pos="0 0 1"><geom type="box" size=".25 .1 .05" mass="8"/>{legs}</body>'
    return _robot_xml(trunk, servos)


def _robot_xml(bodies: str, servos: str) -> str:
    return f"""<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"/>
      <default><geom contype="0" conaffinity="0"/></default><worldbody>{bodies}</worldbody>
      <actuator>{servos}</actuator></mujoco>"""


def write_arm(folder: Path, num_joints: int, num_logs: int, seconds: float) -> Path:
    """Writes an arm whose reality carries 1 kg, has friction in a joint and answers 60 ms late; `auto` parameters."""
    return _write(
        folder, arm_xml(num_joints), arm_xml(num_joints, 1.0, 6.0), num_joints, num_logs, seconds, "auto", 6, 0.35
    )


def write_hung(folder: Path, num_logs: int = 4, seconds: float = 20.0) -> Path:
    """Writes the hung robot with what teams fit: armature, damping, friction, offset per joint, one delay."""
    rng = np.random.default_rng(3)
    reality = hung_xml(*(rng.uniform(low, high, 12) for low, high in ((0.01, 0.03), (0.2, 0.8), (0.1, 0.5))))
    names = [f"joint/j{k}/{field}" for k in range(12) for field in ("armature", "damping", "frictionloss")]
    names += [f"measurement/q{k}/bias" for k in range(12)]
    parameters = [{"target": target} for target in (*names, "actuator/*/delay")]
    written = hung_xml([0.01] * 12, [0.3] * 12, [0.1] * 12)
    return _write(folder, written, reality, 12, num_logs, seconds, parameters, 2, 0.6)


def _write(
    folder: Path,
    written: str,
    reality: str,
    num_joints: int,
    num_logs: int,
    seconds: float,
    parameters: object,
    delay_steps: int,
    size_rad: float,
) -> Path:
    """Writes a project: the model as written, and logs of reality following chirps."""
    (folder / "logs").mkdir(parents=True)
    (folder / "robot.xml").write_text(written)
    model, count = mujoco.MjModel.from_xml_string(reality), round(seconds * RATE_HZ)
    for run in range(num_logs):
        rng = np.random.default_rng(10 + run)
        targets, data, rows = _chirps(rng, count, num_joints, size_rad), mujoco.MjData(model), []
        for step in range(count):
            data.ctrl[:] = targets[max(0, step - delay_steps)]
            seen = data.qpos + NOISE_RAD * rng.standard_normal(num_joints)
            rows.append([step / RATE_HZ, *targets[step], *seen])
            mujoco.mj_step(model, data, SUBSTEPS)
        names = ["time_s", *(f"c{k}" for k in range(num_joints)), *(f"q{k}" for k in range(num_joints))]
        path = folder / "logs" / f"run{run:02}.csv"
        np.savetxt(path, np.array(rows), delimiter=",", header=",".join(names), comments="")
    document = {
        "gapless": 1,
        "name": "growth",
        "model": "robot.xml",
        "rate_hz": RATE_HZ,
        "commands": {f"c{k}": {"actuator": f"a{k}"} for k in range(num_joints)},
        "measurements": {f"q{k}": {"joint": f"j{k}", "quantity": "position"} for k in range(num_joints)},
        "logs": "logs",
        "parameters": parameters,
    }
    (folder / "gapless.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    return folder


def _chirps(rng: np.random.Generator, count: int, num_joints: int, size_rad: float) -> np.ndarray:
    """Returns three chirps per joint, from about 0.2 to 1.4 Hz, (count, num_joints) [rad]."""
    times_s = np.arange(count) / RATE_HZ
    found = np.zeros((count, num_joints))
    for joint in range(num_joints):
        for _ in range(3):
            low, high, phase = rng.uniform(0.1, 0.3), rng.uniform(0.8, 2.0), rng.uniform(0.0, 2 * np.pi)
            turns = low * times_s + (high - low) * times_s**2 / (2 * times_s[-1])
            found[:, joint] += size_rad / 3 * np.sin(2 * np.pi * turns + phase)
    return found * np.minimum(1.0, times_s)[:, None]
