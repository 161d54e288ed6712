"""Three robots that no other test uses, with logs as their owners have them; each returns its model and its logs."""

from collections.abc import Sequence
from pathlib import Path

import mujoco
import numpy as np

RATE_HZ, STEPS = 100, 5  # of control, and engine steps of 2 ms in each
ARM_JOINTS = tuple(
    f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
)
ARM_LINKS = ((0.16, 8.0), (0.42, 8.4), (0.39, 2.3), (0.13, 1.2), (0.1, 1.2), (0.1, 0.2))  # length [m], mass [kg]


def arm_model(payload_kg: float = 1e-9, elbow_friction_nm: float = 0.0) -> str:
    """Returns a six-axis arm on a table with position servos, as public collections have it."""
    axes, text, end = ("0 0 1", "0 1 0", "0 1 0", "0 1 0", "0 0 1", "0 1 0"), "", ""
    for k, (joint, (length, mass)) in enumerate(zip(ARM_JOINTS, ARM_LINKS, strict=True)):
        friction = elbow_friction_nm if joint == "elbow_joint" else 0.0
        above = 0.02 if k == 0 else ARM_LINKS[k - 1][0]
        text += f"""<body name="{joint.removesuffix("_joint")}_link" pos="0 0 {above}">
          <joint name="{joint}" axis="{axes[k]}" range="-3 3" damping="2" armature="0.1" frictionloss="{friction}"/>
          <geom type="capsule" size="0.04" fromto="0 0 0 0 0 {length}" mass="{mass}" contype="0" conaffinity="0"/>"""
        end += "</body>"
    load = f'<geom type="sphere" size="0.04" pos="0 0 0.1" mass="{payload_kg}" contype="0" conaffinity="0"/>'
    servos = "".join(
        f'<position name="{joint.removesuffix("_joint")}" joint="{joint}" kp="{kp}" kv="{kp / 20}"/>'
        for joint, kp in zip(ARM_JOINTS, (2000, 2000, 2000, 500, 500, 500), strict=True)
    )
    return f"""<mujoco model="six axes"><compiler angle="radian"/>
      <option timestep="0.002" integrator="implicitfast"/><worldbody>
      <geom name="table" type="plane" size="2 2 0.1"/>{text}{load}{end}
      </worldbody><actuator>{servos}</actuator></mujoco>"""


def make_arm(folder: Path) -> tuple[Path, list[Path]]:
    """Makes an arm whose commands are 60 ms late, whose elbow rubs and which carries 1 kg; logs of ROS topics."""
    rest = np.array([0.0, -0.6, 1.2, -0.6, 0.3, 0.0])
    real = mujoco.MjModel.from_xml_string(arm_model(payload_kg=1.0, elbow_friction_nm=6.0))
    topics = [f"/forward_position_controller/commands.data[{k}]" for k in range(6)]
    topics += [f"/joint_states.{what}.{joint}" for what in ("position", "velocity", "effort") for joint in ARM_JOINTS]
    logs: list[Path] = []
    for run in range(3):
        rng = np.random.default_rng(run)
        targets = rest + move(rng, 2000, 6, 0.35)
        data, rows = mujoco.MjData(real), []
        data.qpos[:] = rest
        for step in range(len(targets)):
            data.ctrl[:] = targets[max(0, step - 6)]
            noise = rng.standard_normal(18) * np.repeat([1e-4, 1e-3, 0.05], 6)
            seen = np.concatenate([data.qpos, data.qvel, data.actuator_force]) + noise
            rows.append([1.76e9 + 100 * run + step / RATE_HZ, *targets[step], *seen])
            mujoco.mj_step(real, data, STEPS)
        logs.append(write_csv(folder / f"run_{run}.csv", ["__time", *topics], rows))
    model = folder / "arm.xml"
    model.write_text(arm_model())
    return model, logs


def base_model(gain: float = 0.1) -> str:
    """Returns a cart with two driven wheels and a smooth caster on a floor."""
    wheels = "".join(
        f"""<body name="wheel_{side}" pos="0 {y} 0.05"><joint name="wheel_{side}_joint" axis="0 1 0" damping="0.005"/>
        <geom name="tyre_{side}" type="cylinder" size="0.05 0.01" quat="0.7071 0.7071 0 0" mass="0.2"
        friction="1 0.005 0.0001"/></body>"""
        for side, y in (("left", 0.12), ("right", -0.12))
    )
    motors = "".join(
        f'<velocity name="wheel_{side}_motor" joint="wheel_{side}_joint" kv="{gain}"/>' for side in ("left", "right")
    )
    return f"""<mujoco model="cart"><option timestep="0.002" integrator="implicitfast"/>
      <worldbody><geom type="plane" size="20 20 0.1"/>
      <body name="base_link" pos="0 0 0"><freejoint name="root"/>
      <geom type="box" size="0.15 0.1 0.03" pos="0 0 0.08" mass="3"/>
      <geom name="caster" type="sphere" size="0.02" pos="0.12 0 0.02" priority="1" condim="1" mass="0.1"/>
      <geom name="caster_back" type="sphere" size="0.02" pos="-0.12 0 0.02" priority="1" condim="1" mass="0.1"/>
      {wheels}</body></worldbody><actuator>{motors}</actuator></mujoco>"""


def make_base(folder: Path) -> tuple[Path, list[Path]]:
    """Makes a cart with weak motors, of whose pose x, y, and two of four numbers of its orientation are logged."""
    real = mujoco.MjModel.from_xml_string(base_model(gain=0.03))
    sides, pose = ("left", "right"), "/odom.pose.pose"
    names = [f"/wheel_commands.wheel_{side}_joint" for side in sides]
    names += [f"{pose}.position.x", f"{pose}.position.y", f"{pose}.orientation.z", f"{pose}.orientation.w"]
    names += [f"/joint_states.velocity.wheel_{side}_joint" for side in sides]
    logs: list[Path] = []
    for run in range(3):
        rng = np.random.default_rng(100 + run)
        speeds = 4.0 + move(rng, 1000, 2, 3.0)
        data, rows = mujoco.MjData(real), []
        for step in range(len(speeds)):
            data.ctrl[:] = speeds[step]
            x, y, _, qw, _, _, qz = data.qpos[:7]
            noise = rng.standard_normal(6) * np.repeat([1e-3, 1e-2], [4, 2])
            seen = np.array([x, y, qz, qw, *data.qvel[6:]]) + noise
            stamp_ns = 1_760_000_000_000_000_000 + step * 10_000_000
            rows.append([stamp_ns // 10**9, stamp_ns % 10**9, *speeds[step], *seen])
            mujoco.mj_step(real, data, STEPS)
        stamps = ["/odom.header.stamp.sec", "/odom.header.stamp.nanosec"]
        logs.append(write_csv(folder / f"drive_{run}.csv", [*stamps, *names], rows))
    model = folder / "cart.xml"
    model.write_text(base_model())
    return model, logs


def gripper_model(kp: float = 400.0) -> str:
    """Returns two fingers that one tendon closes."""
    fingers = "".join(
        f"""<body name="{side}_finger" pos="0 {y} 0"><joint name="{side}_finger_joint" type="slide" axis="0 {axis} 0"
        range="0 0.04" damping="4"/><geom type="box" size="0.01 0.005 0.03" mass="0.1" contype="0" conaffinity="0"/>
        </body>"""
        for side, y, axis in (("left", 0.05, -1), ("right", -0.05, 1))
    )
    return f"""<mujoco model="gripper"><option timestep="0.002" gravity="0 0 0"/><worldbody>{fingers}</worldbody>
      <tendon><fixed name="split"><joint joint="left_finger_joint" coef="0.5"/>
      <joint joint="right_finger_joint" coef="0.5"/></fixed></tendon>
      <equality><joint joint1="left_finger_joint" joint2="right_finger_joint"/></equality>
      <actuator><position name="fingers" tendon="split" kp="{kp}" ctrlrange="0 0.04"/></actuator></mujoco>"""


def make_gripper(folder: Path) -> tuple[Path, list[Path]]:
    """Makes a gripper that is half as stiff as modelled; time in ms, lengths in mm."""
    real = mujoco.MjModel.from_xml_string(gripper_model(kp=200.0))
    logs: list[Path] = []
    for run in range(4):
        rng = np.random.default_rng(200 + run)
        targets = 0.02 + move(rng, 1000, 1, 0.015)
        data, rows = mujoco.MjData(real), []
        data.qpos[:] = 0.02
        for step in range(len(targets)):
            data.ctrl[:] = targets[step]
            seen_mm = 1000 * data.qpos + 0.01 * rng.standard_normal(2)
            rows.append([10 * step, 1000 * float(targets[step, 0]), *seen_mm])
            mujoco.mj_step(real, data, STEPS)
        names = ["timestamp_ms", "fingers_setpoint_mm", "left_finger_position_mm", "right_finger_position_mm"]
        logs.append(write_csv(folder / f"grip_{run}.csv", names, rows))
    model = folder / "gripper.xml"
    model.write_text(gripper_model())
    return model, logs


def move(rng: np.random.Generator, num_steps: int, num_columns: int, size: float) -> np.ndarray:
    """Returns a smooth motion that begins at 0, (num_steps, num_columns)."""
    times_s = np.arange(num_steps)[:, None, None] / RATE_HZ
    rates, phases = rng.uniform(0.5, 5.0, (2, num_columns, 3)) * [[[1.0]], [[1.2]]]
    waves = (np.sin(rates * times_s + phases) - np.sin(phases)).sum(axis=2)
    return size * waves / np.abs(waves).max()


def write_csv(path: Path, names: Sequence[str], rows: Sequence[Sequence[float]]) -> Path:
    """Writes a log with whole numbers as they are and others to ten digits."""
    lines = [",".join(str(v) if isinstance(v, int) else f"{v:.13g}" for v in row) for row in rows]
    path.write_text("\n".join([",".join(names), *lines]) + "\n")
    return path
