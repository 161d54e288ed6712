"""Every mistake in a project folder gets one line that helps."""

from pathlib import Path

import pytest

from gapless.core.errors import ProjectError
from gapless.project.load import load_project

MAPPED = "  q1: {joint: shoulder, quantity: position, noise: 5e-4}"
U1 = "  u1: {actuator: m1}"
AUTO = "parameters: auto"


def entry(text: str) -> tuple[str, str]:
    return MAPPED, f"  q1: {{{text}}}"


def listed(text: str) -> tuple[str, str]:
    return AUTO, f"parameters:\n  - {text}"


MISTAKES = {
    "unknown actuator": ((U1, "  u1: {actuator: m3}"), ["no actuator m3", "m1, m2", "line 6"]),
    "unknown joint": (entry("joint: sholder, quantity: position"), ["no joint sholder", "are: shoulder, "]),
    "other kind": (entry("joint: m1, quantity: position"), ["m1 is an actuator"]),
    "unknown body": (entry("body: bx, quantity: x"), ["no body bx", "are: box"]),
    "world body": (entry("body: world, quantity: x"), ["no body world", "box"]),
    "unknown sensor": (entry("sensor: force"), ["no sensor force", "tip_force"]),
    "unknown key": (("logs: logs", "log: logs"), ["unknown key log", "from: logs", "line 11"]),
    "unknown inner key": (entry("joint: shoulder, quantty: position"), ["quantty", "from: quantity"]),
    "unknown command key": ((U1, "  u1: {actuator: m1, gain: 2}"), ["commands.u1.gain", "scale"]),
    "degrees": (
        entry("joint: shoulder, quantity: degrees"),
        ["use position", "in degrees has scale: 0.01745"],
    ),
    "torque": (entry("joint: shoulder, quantity: torque"), ["no quantity torque", "effort (the force or torque)"]),
    "unknown quantity": (entry("body: box, quantity: vxx"), ["no quantity vxx", "from: vx,"]),
    "roll": (entry("body: box, quantity: roll"), ["only yaw", "qw qx qy qz"]),
    "actuator position": (entry("actuator: m1, quantity: position"), ["force", "joint: NAME"]),
    "sensor quantity": (entry("sensor: tip_force, quantity: z"), ["delete quantity", "axis"]),
    "no quantity": (entry("joint: shoulder"), ["quantity is missing", "position, velocity, effort"]),
    "no element": (entry("quantity: position"), ["names nothing", "joint, body, actuator, sensor"]),
    "two elements": (entry("joint: shoulder, body: box, quantity: x"), ["joint and body", "exactly one"]),
    "joint twice": (
        entry("joint: elbow, quantity: position"),
        ["q1 and q2_deg both map joint elbow position"],
    ),
    "actuator twice": ((U1, "  u1: {actuator: m2}"), ["u1 and u2 both map actuator m2 command"]),
    "both ways": ((MAPPED, MAPPED.replace("q1", "u1")), ["u1", "command and as measurement"]),
    "time mapped": ((MAPPED, MAPPED.replace("q1", "time_s")), ["time_s is the time"]),
    "axis too large": (entry("sensor: tip_force, axis: 3"), ["axis 3", "0 to 2"]),
    "negative axis": (entry("sensor: tip_force, axis: -1"), ["axis: '-1' must be", "or equal to 0"]),
    "axis of joint": (entry("joint: shoulder, quantity: position, axis: 1"), ["axis is for sensors"]),
    "free joint": (entry("joint: box_free, quantity: position"), ["is free", "{body: box, quantity: x}"]),
    "ball joint": (entry("joint: swivel, quantity: position"), ["is a ball", "{body: wrist, quantity: qw}"]),
    "negative noise": (("noise: 5e-4", "noise: -0.1"), ["q1.noise: '-0.1' must be greater", "standard deviation"]),
    "scale 0": (("scale: 0.5", "scale: 0"), ["scale: '0' makes every value the same"]),
    "nan": (("scale: 0.5", "scale: nan"), ["'nan' must be a finite number"]),
    "infinite": (("offset: 1", "offset: inf"), ["'inf' must be a finite number"]),
    "text number": (("scale: 0.5", "scale: half"), ["'half' must be a valid number", "write scale: 0.5"]),
    "true is no number": (("scale: 0.5", "scale: true"), ["'true' must be a valid number"]),
    "entry not mapping": ((MAPPED, "  q1: shoulder"), ["measurements.q1", "write {joint: NAME"]),
    "commands a list": ((U1, "  - u1"), ["not YAML in line 7", "just above"]),
    "commands text": (
        (f"commands:\n{U1}\n  u2: {{actuator: m2}}", "commands: m1"),
        ["commands: 'm1' must be a valid dictionary", "{actuator: elbow}"],
    ),
    "tab": ((U1, "\tu1: {actuator: m1}"), ["not YAML in line 6", "by spaces, not tabs"]),
    "syntax": ((U1, "  u1: {actuator: m1"), ["not YAML in line", "indentation"]),
    "key twice": ((U1, f"{U1}\n{U1}"), ["key u1 stands twice", "line 6", "line 7"]),
    "top key twice": (("rate_hz: 100", "rate_hz: 100\nrate_hz: 50"), ["key rate_hz stands twice"]),
    "version": (("gapless: 1", "gapless: 2"), ["'2'", "write gapless: 1"]),
    "no version": (("gapless: 1\n", ""), ["gapless is missing", "gapless: 1"]),
    "no rate": (("rate_hz: 100\n", ""), ["rate_hz is missing", "rate_hz: 100"]),
    "rate 0": (("rate_hz: 100", "rate_hz: 0"), ["rate_hz: '0' must be greater", "write rate_hz: 100"]),
    "negative rate": (("rate_hz: 100", "rate_hz: -5"), ["'-5' must be greater"]),
    "negative horizon": (
        ("rate_hz: 100", "rate_hz: 100\nhorizon_s: -1"),
        ["horizon_s: '-1' must be greater than 0", "write horizon_s: 1"],
    ),
    "rate text": (("rate_hz: 100", "rate_hz: 100 Hz"), ["'100 Hz' must be a valid number"]),
    "model missing": (("robot.xml", "robt.xml"), ["no model file robt.xml", "robot.xml"]),
    "parameters": ((AUTO, "parameters: all"), ["'all'", "write parameters: auto, or a list"]),
    "parameter text": (listed("joint/elbow/damping"), ["parameters.0", "{target: "]),
    "target kind": (listed("{target: link/elbow/damping}"), ["'link/elbow/damping' is malformed", "a kind of joint"]),
    "target short": (listed("{target: joint/elbow}"), ["malformed", "joint/elbow/damping"]),
    "target hole": (listed("{target: joint//damping}"), ["malformed"]),
    "low above high": (listed("{target: joint/a/damping, low: 2, high: 1}"), ["low 2", "high 1"]),
    "low is high": (listed("{target: joint/a/damping, low: 1, high: 1}"), ["low 1", "high 1"]),
    "dimension": (
        listed("{target: joint/a/damping, dimension: actuators}"),
        ["'actuators' must be", "'actuator'", "'latency'"],
    ),
    "target twice": (listed("{target: world/gravity}\n  - {target: world/gravity}"), ["listed twice"]),
    "task form": ((AUTO, "task: task:Push"), ["FILE.py:NAME", "'task:Push'"]),
    "reality form": ((AUTO, "reality: twin.py"), ["FILE.py:NAME"]),
}


def message(folder: Path) -> str:
    with pytest.raises(ProjectError) as caught:
        load_project(folder)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    assert text.endswith(")")
    assert str(folder) in text.rpartition("(")[2]
    assert "pydantic" not in text
    assert "Value error" not in text
    return text


@pytest.mark.parametrize(("change", "words"), MISTAKES.values(), ids=MISTAKES)
def test_mistake_is_one_helpful_line(arm: Path, change: tuple[str, str], words: list[str]) -> None:
    path = arm / "gapless.yaml"
    before = path.read_text()
    assert change[0] in before
    path.write_text(before.replace(change[0], change[1], 1))
    found = message(arm)
    assert all(word in found for word in words), found


def test_empty_measurements(arm: Path) -> None:
    head = (arm / "gapless.yaml").read_text().partition("measurements:")[0]
    (arm / "gapless.yaml").write_text(head + "measurements:\n")
    assert "measurements is empty" in message(arm)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"- a\n- b\n", "not a mapping"),
        (b"name: \xff\xfe", "UTF-8"),
        (b"a: \x00", "not YAML"),
    ],
)
def test_not_a_project_file(arm: Path, content: bytes, words: str) -> None:
    (arm / "gapless.yaml").write_bytes(content)
    assert words in message(arm)


def test_missing_file_and_folder_point_to_new(arm: Path) -> None:
    (arm / "gapless.yaml").unlink()
    assert "gapless new MODEL LOG... DIR" in message(arm)
    assert "no such project folder" in message(arm / "nowhere")


@pytest.mark.parametrize(
    ("xml", "words"),
    [
        ("<mujoco><worldbody><body></worldbody></mujoco>", "MISMATCHED"),
        ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "mass and inertia"),
        ("", "empty"),
        ("not xml", "MuJoCo cannot compile the model"),
    ],
)
def test_model_that_does_not_compile(arm: Path, xml: str, words: str) -> None:
    (arm / "robot.xml").write_text(xml)
    assert words in message(arm)


def test_sound_project(arm: Path) -> None:
    project = load_project(str(arm))
    assert project.rate_hz == 100.0
    assert project.command_names == ("u1", "u2")
    assert project.command_units == ("N·m", "rad")  # a motor, a position servo
    assert project.measurement_units == ("rad", "rad")
    assert project.measurements[0].noise == 5e-4  # YAML 1.1 would have read text
    assert (project.measurements[1].scale, project.measurements[1].offset) == (0.5, 1.0)
    assert project.parameters == "auto"
    assert project.task is None
    assert load_project(arm / "gapless.yaml") == project


def test_units_names_and_lists(arm: Path) -> None:
    path = arm / "gapless.yaml"
    more = (
        "  on: {joint: slider, quantity: velocity}\n  1: {body: box, quantity: yaw}\n  f: {actuator: m1}\n"
        "  fz: {sensor: tip_force, axis: 2}\n  e: {joint: slider, quantity: effort}\n"
        "  w: {body: box, quantity: wx}\n  qw: {body: box, quantity: qw}\n"
    )
    items = "[{target: joint/*/damping, low: 0, high: 2, dimension: actuator}, {target: world/gravity}]"
    text = path.read_text().replace(AUTO, f"parameters: {items}\ntask: my/task.py:Push")
    path.write_text(text.replace("logs: logs", more + "logs: logs"))
    project = load_project(arm)
    assert project.measurement_names[2:] == ("on", "1", "f", "fz", "e", "w", "qw")
    assert project.measurement_units[2:] == ("m/s", "rad", "N·m", "N", "N", "rad/s", "1")
    assert project.measurements[4].quantity == "force"
    assert project.measurements[5].axis == 2
    assert project.parameters != "auto"
    assert [(p.target, p.low, p.high, p.dimension) for p in project.parameters] == [
        ("joint/*/damping", 0.0, 2.0, "actuator"),
        ("world/gravity", None, None, None),
    ]
    assert project.task == "my/task.py:Push"


def test_no_commands_and_defaults(arm: Path) -> None:
    text = "gapless: 1\nmodel: robot.xml\nrate_hz: 50\nmeasurements:\n  x: {body: box, quantity: x}\n"
    (arm / "gapless.yaml").write_text(text)
    project = load_project(arm)
    assert project.commands == ()
    assert project.name == "arm"
    assert project.logs_path == arm / "logs"


def test_urdf(arm: Path) -> None:
    inertia = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (arm / "robot.urdf").write_text(
        f'<robot name="r"><link name="a"/><link name="b">{inertia}</link><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/><axis xyz="0 0 1"/></joint></robot>'
    )
    text = "gapless: 1\nmodel: robot.urdf\nrate_hz: 50\nmeasurements:\n  q: {joint: j, quantity: position}\n"
    (arm / "gapless.yaml").write_text(text)
    assert load_project(arm).measurements[0].name == "j"
