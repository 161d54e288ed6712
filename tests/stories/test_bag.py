"""From a ROS 2 bag to its cause in three commands: an arm whose joint states come 20 ms late."""

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_typestore

from gapless.cli.main import run

ARM = """<mujoco model="arm"><option timestep="0.002"/><worldbody>
<body name="upper" pos="0 0 .5"><joint name="shoulder" axis="0 1 0" damping=".4" armature=".02"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/>
<body name="fore" pos=".3 0 0"><joint name="elbow" axis="0 1 0" damping=".2" armature=".01"/>
<geom type="capsule" fromto="0 0 0 .25 0 0" size=".025" mass=".6"/></body></body></worldbody>
<actuator><position name="shoulder" joint="shoulder" kp="60" kv="3"/>
<position name="elbow" joint="elbow" kp="40" kv="2"/></actuator></mujoco>"""
STEP_NS = 2_000_000  # 500 Hz of the inertial sensor; joint states and commands at every fifth step
TRANSPORT_NS = 20_000_000
STORE = get_typestore(Stores.ROS2_HUMBLE)


def make(name: str, *values: object) -> object:
    return STORE.types[name](*values)


def write_bag(folder: Path, run_number: int, duration_s: float = 8.0) -> None:
    rng, model = np.random.default_rng(run_number), mujoco.MjModel.from_xml_string(ARM)
    data, start_ns = mujoco.MjData(model), 1_760_000_000_000_000_000 + run_number * 10**11
    rate_hz, phase, size = rng.uniform(0.3, 1.6, (2, 3)), rng.uniform(0, 6, (2, 3)), rng.uniform(0.1, 0.3, (2, 3))
    messages: list[tuple[int, str, object]] = []
    vector, nine = "geometry_msgs/msg/Vector3", np.zeros(9)
    for k in range(int(duration_s * 1e9 / STEP_NS)):
        now_ns = start_ns + k * STEP_NS
        stamp = make("builtin_interfaces/msg/Time", now_ns // 10**9, now_ns % 10**9)
        header = make("std_msgs/msg/Header", stamp, "base")
        if k % 5 == 0:
            data.ctrl[:] = np.sum(size * np.sin(2 * np.pi * rate_hz * k * STEP_NS / 1e9 + phase), axis=1)
            layout = make("std_msgs/msg/MultiArrayLayout", [], 0)
            messages.append((now_ns, "/arm/commands", make("std_msgs/msg/Float64MultiArray", layout, data.ctrl.copy())))
            position, velocity = data.qpos + rng.normal(0, 2e-4, 2), data.qvel + rng.normal(0, 2e-3, 2)
            state = (header, ["elbow", "shoulder"], position[::-1].copy(), velocity[::-1].copy(), np.zeros(0))
            messages.append((now_ns + TRANSPORT_NS, "/joint_states", make("sensor_msgs/msg/JointState", *state)))
        gyro, gravity = make(vector, *rng.normal(0, 0.01, 3)), make(vector, 0.0, 0.0, 9.81)
        level = make("geometry_msgs/msg/Quaternion", 0.0, 0.0, 0.0, 1.0)
        imu = make("sensor_msgs/msg/Imu", header, level, nine, gyro, nine, gravity, nine)
        messages.append((now_ns + TRANSPORT_NS, "/imu", imu))
        mujoco.mj_step(model, data)
    with Writer(folder, version=9) as writer:
        kinds = {topic: type(message).__msgtype__ for _, topic, message in messages}  # type: ignore[attr-defined]
        opened = {topic: writer.add_connection(topic, kind, typestore=STORE) for topic, kind in kinds.items()}
        for time_ns, topic, message in sorted(messages, key=lambda each: each[0]):
            writer.write(opened[topic], time_ns, STORE.serialize_cdr(message, kinds[topic]))


@pytest.mark.slow
def test_a_bag_becomes_a_project_and_its_delay_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "bags").mkdir()
    for number in range(4):
        write_bag(tmp_path / "bags" / f"run{number}", number)
    bags = [str(path) for path in sorted((tmp_path / "bags").iterdir())]
    project = str(tmp_path / "arm")
    assert run(["new", str(tmp_path / "arm.xml"), *bags, project]) == 0
    assert "transport latency 20.0 ms (20.0 to 20.0)" in capsys.readouterr().out
    assert run(["check", project]) == 0
    assert run(["diagnose", project, "--json", str(tmp_path / "found.json")]) == 0
    found = json.loads((tmp_path / "found.json").read_text())
    causes = {cause["dimension"]: cause["probability"] for cause in found["causes"]}
    assert [name for name, probability in causes.items() if probability > 0.5] == ["latency"]
    (mechanism,) = next(cause["mechanisms"] for cause in found["causes"] if cause["dimension"] == "latency")
    assert mechanism["value"] == pytest.approx(0.02, abs=0.001)
