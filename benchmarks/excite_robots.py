"""Robots of `excite.py`, and what plays reality: plain MuJoCo with other masses, damping, friction and delay.

Nothing of gapless takes part in reality. Each robot lists what its reality may differ in; how far is drawn per seed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import growth_robots
import mujoco
import numpy as np
import yaml

MODELS = Path(__file__).parent / "robots"
# What is drawn for reality: factors on what the model has, friction that it has none of, as a share of the range given.
FACTORS = {
    "damping": (0.5, 2.5),
    "frictionloss": (0.5, 2.5),
    "mass": (0.75, 1.4),
    "gain": (0.75, 1.25),
    "kd": (0.6, 1.6),
}
MAX_DELAY_S = 0.04


@dataclass(frozen=True)
class Robot:
    """A robot, what `excite` is asked for, and what its reality differs in."""

    name: str
    xml: str
    commands: Mapping[str, str]  # column -> actuator
    measurements: Mapping[str, tuple[str, str, float]]  # column -> joint, quantity, noise
    wanted: tuple[str, ...]  # targets
    differs: Mapping[str, float]  # target -> 0 for a factor on the model's value, else the largest value drawn
    rate_hz: float = 100.0
    first_log: bool = False  # whether the project has a log, and a fit of it, before `excite`
    listed: tuple[str, ...] = ()  # targets under `parameters` in gapless.yaml; none: auto
    options: Mapping[str, object] = field(default_factory=dict)  # of `excite`

    def draw_truth(self, seed: int) -> dict[str, float]:
        """Returns target -> value in reality, `delay` in seconds."""
        rng = np.random.default_rng([seed, sum(map(ord, self.name))])
        model, truth = mujoco.MjModel.from_xml_string(self.xml), dict[str, float]()
        for target, most in self.differs.items():
            low, high = FACTORS[target.rsplit("/", 1)[1]]
            factor = float(np.exp(rng.uniform(np.log(low), np.log(high))))
            truth[target] = rng.uniform(0.1, 1.0) * most if most else factor * read_value(model, target)
        steps = int(rng.integers(0, round(MAX_DELAY_S * self.rate_hz) + 1))
        return truth | {"actuator/*/delay": steps / self.rate_hz}

    def write(self, folder: Path) -> Path:
        """Writes the project without logs."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "robot.xml").write_text(self.xml)
        document = {
            "gapless": 1,
            "name": self.name,
            "model": "robot.xml",
            "rate_hz": self.rate_hz,
            "commands": {column: {"actuator": actuator} for column, actuator in self.commands.items()},
            "measurements": {
                column: {"joint": joint, "quantity": quantity, "noise": noise}
                for column, (joint, quantity, noise) in self.measurements.items()
            },
            "logs": "logs",
            "parameters": [{"target": target} for target in self.listed] or "auto",
        }
        (folder / "gapless.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        return folder


def read_value(model: mujoco.MjModel, target: str) -> float:
    """Returns the model's value of a target; of gains the factor 1."""
    _, name, what = target.split("/")
    if what == "gain":
        return 1.0
    if what == "mass":
        return float(model.body(name).mass[0])
    if what == "kd":
        return -float(model.actuator(name).biasprm[2])
    return float(getattr(model, f"dof_{what}")[model.joint(name).dofadr[0]])


def read_value_of(robot: Robot, truth: Mapping[str, float], target: str) -> float:
    """Returns the value of a target in reality: as drawn, or as the model has it."""
    return truth[target] if target in truth else read_value(mujoco.MjModel.from_xml_string(robot.xml), target)


def make_reality(robot: Robot, truth: Mapping[str, float]) -> mujoco.MjModel:
    """Returns the model of reality; masses change with their inertias."""
    model = mujoco.MjModel.from_xml_string(robot.xml)
    for target, value in truth.items():
        _, name, what = target.split("/")
        if what == "gain":
            model.actuator_gainprm[model.actuator(name).id, 0] *= value
        elif what == "kd":
            model.actuator_biasprm[model.actuator(name).id, 2] = -value
        elif what == "mass":
            body = model.body(name).id
            model.body_inertia[body] *= value / model.body_mass[body]
            model.body_mass[body] = value
        elif what != "delay":
            getattr(model, f"dof_{what}")[model.joint(name).dofadr[0]] = value
    mujoco.mj_setConst(model, mujoco.MjData(model))
    return model


def record(
    robot: Robot, truth: Mapping[str, float], commands: np.ndarray, start: Mapping[str, float], path: Path, seed: int
) -> None:
    """Plays commands, (num_steps, num_commands), in reality and writes the log; `start` is column -> reading."""
    model, rng = make_reality(robot, truth), np.random.default_rng(seed)
    data, late = mujoco.MjData(model), round(truth["actuator/*/delay"] * robot.rate_hz)
    for column, (joint, quantity, _) in robot.measurements.items():
        if quantity == "position":
            data.joint(joint).qpos[0] = start[column]
    substeps, rows = round(1 / robot.rate_hz / model.opt.timestep), []
    order = [model.actuator(name).id for name in robot.commands.values()]
    for k in range(len(commands)):
        data.ctrl[order] = commands[max(0, k - late)]
        seen = [
            (data.joint(joint).qpos if quantity == "position" else data.joint(joint).qvel)[0]
            + noise * rng.standard_normal()
            for joint, quantity, noise in robot.measurements.values()
        ]
        rows.append([k / robot.rate_hz, *commands[k], *seen])
        mujoco.mj_step(model, data, substeps)
    path.parent.mkdir(parents=True, exist_ok=True)
    header = ",".join(["time_s", *robot.commands, *robot.measurements])
    np.savetxt(path, np.array(rows), delimiter=",", header=header, comments="")


def first_motion(robot: Robot, seconds: float = 12.0, size: float = 0.15) -> tuple[np.ndarray, dict[str, float]]:
    """Returns what a user may have recorded before: slow sines of a share of each command's range, and its start."""
    model = mujoco.MjModel.from_xml_string(robot.xml)
    times_s = np.arange(round(seconds * robot.rate_hz)) / robot.rate_hz
    grown = np.clip((times_s - 0.3) / 1.0, 0.0, 1.0)
    half = [model.actuator(name).ctrlrange[1] for name in robot.commands.values()]
    waves = [
        size * most * grown * np.sin(2 * np.pi * (0.3 + 0.07 * k) * (times_s - 0.3)) for k, most in enumerate(half)
    ]
    return np.stack(waves, axis=1), dict.fromkeys(robot.measurements, 0.0)


def _free(bodies: str, actuators: str, damping: float = 0.0) -> str:
    return f"""<mujoco><compiler angle="radian"/><option timestep="0.002" integrator="implicitfast"/>
      <default><geom contype="0" conaffinity="0"/><joint damping="{damping}"/></default>
      <worldbody>{bodies}</worldbody><actuator>{actuators}</actuator></mujoco>"""


def _positions(joints: tuple[str, ...], noise: float) -> dict[str, tuple[str, str, float]]:
    return {f"q_{joint}": (joint, "position", noise) for joint in joints}


def _same(names: tuple[str, ...]) -> dict[str, str]:
    return {f"u_{name}": name for name in names}


def _six_axis_xml(damping: tuple[float, float], kv: tuple[float, float]) -> str:
    """Returns an arm with the masses and lengths of a UR5e and position servos; of the three large joints first."""
    links = (  # joint, where, axis, mass, shape, kp
        ("pan", "0 0 .163", "0 0 1", 3.76, "0 0 0 0 0 .1", 2000),
        ("lift", "0 .138 0", "0 1 0", 8.06, "0 0 0 .425 0 0", 2000),
        ("elbow", ".425 -.131 0", "0 1 0", 2.85, "0 0 0 .392 0 0", 2000),
        ("wrist1", ".392 0 0", "0 1 0", 1.37, "0 0 0 0 .127 0", 500),
        ("wrist2", "0 .127 0", "0 0 1", 1.3, "0 0 0 0 0 .1", 500),
        ("wrist3", "0 0 .1", "0 1 0", 0.37, "0 0 0 0 .1 0", 500),
    )
    bodies, end, servos = '<body name="base" pos="0 0 1">', "</body>", ""
    for joint, where, axis, mass, shape, kp in links:
        most, small = (150, 0) if kp > 1000 else (28, 1)
        bodies += f"""<body name="{joint}" pos="{where}"><joint name="{joint}" axis="{axis}" damping="{damping[small]}"
          armature="0.1" range="-3.1 3.1"/><geom type="capsule" size=".05" fromto="{shape}" mass="{mass}"/>"""
        servos += f"""<position name="{joint}" joint="{joint}" kp="{kp}" kv="{kv[small]}" ctrlrange="-3.1 3.1"
          forcerange="-{most} {most}"/>"""
        end += "</body>"
    return _free(bodies + end, servos)


def _scara_xml() -> str:
    """Returns four position servos: two turns about the vertical, a lift and a turn of the tool."""
    return _free(
        """<body name="one" pos="0 0 .6"><joint name="one" axis="0 0 1" damping="1" armature=".05" range="-2 2"/>
        <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0" mass="3"/>
        <body name="two" pos=".3 0 0"><joint name="two" axis="0 0 1" damping=".6" armature=".03" range="-2 2"/>
        <geom type="capsule" size=".035" fromto="0 0 0 .25 0 0" mass="1.8"/>
        <body name="quill" pos=".25 0 0"><joint name="quill" type="slide" axis="0 0 1" damping="20" range="-.15 .15"/>
        <geom type="capsule" size=".015" fromto="0 0 -.1 0 0 .1" mass=".8"/>
        </body></body></body>""",
        """<position name="one" joint="one" kp="120" kv="6" ctrlrange="-2 2" forcerange="-40 40"/>
        <position name="two" joint="two" kp="60" kv="3" ctrlrange="-2 2" forcerange="-20 20"/>
        <position name="quill" joint="quill" kp="3000" kv="60" ctrlrange="-.15 .15" forcerange="-100 100"/>""",
    )


_PENDULUM = _free(
    """<body name="bob" pos="0 0 1"><joint name="hinge" axis="0 1 0" damping=".05" armature=".002"/>
    <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.3" mass=".5"/></body>""",
    '<motor name="motor" joint="hinge" ctrlrange="-2 2"/>',
)
_PAN_TILT = _free(
    """<body name="pan" pos="0 0 .3"><joint name="pan" axis="0 0 1" damping=".1" armature=".01" range="-2 2"/>
    <geom type="cylinder" size=".05 .03" mass=".6"/>
    <body name="tilt" pos="0 0 .08"><joint name="tilt" axis="0 1 0" damping=".05" armature=".005" range="-1.2 1.2"/>
    <geom type="box" size=".08 .04 .03" pos=".06 0 0" mass=".5"/></body></body>""",
    """<position name="pan" joint="pan" kp="12" kv=".6" ctrlrange="-2 2" forcerange="-6 6"/>
    <position name="tilt" joint="tilt" kp="8" kv=".3" ctrlrange="-1.2 1.2" forcerange="-4 4"/>""",
)
_GANTRY = _free(
    """<body name="bridge" pos="0 0 1"><joint name="x" type="slide" axis="1 0 0" damping="8" range="-.6 .6"/>
    <geom type="box" size=".05 .4 .04" mass="4"/>
    <body name="carriage"><joint name="y" type="slide" axis="0 1 0" damping="5" range="-.4 .4"/>
    <geom type="box" size=".06 .06 .05" mass="1.5"/>
    <body name="load" pos="0 0 -.05"><joint name="swing" axis="0 1 0" damping=".01"/>
    <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.3" mass=".6"/></body></body></body>""",
    """<motor name="x" joint="x" ctrlrange="-30 30"/><motor name="y" joint="y" ctrlrange="-20 20"/>""",
)
_TWO_LINK = _free(
    """<body name="upper" pos="0 0 1.2"><joint name="shoulder" axis="0 1 0" damping=".3" armature=".01"/>
    <geom type="capsule" size=".03" fromto="0 0 0 0 0 -.35" mass="1.6"/>
    <body name="lower" pos="0 0 -.35"><joint name="elbow" axis="0 1 0" damping=".15" armature=".005"/>
    <geom type="capsule" size=".025" fromto="0 0 0 0 0 -.3" mass=".9"/></body></body>""",
    """<motor name="shoulder" joint="shoulder" ctrlrange="-12 12"/>
    <motor name="elbow" joint="elbow" ctrlrange="-5 5"/>""",
)
_VOLTAGE = _free(
    """<body name="rotor" pos="0 0 .8"><joint name="rotor" axis="0 1 0" damping=".003" armature=".004"/>
    <geom type="capsule" size=".015" fromto="0 0 0 0 0 -.2" mass=".2"/></body>""",
    """<general name="volts" joint="rotor" gainprm=".06" biastype="affine" biasprm="0 0 -.02" ctrlrange="-12 12"/>""",
)
_FLYWHEEL = _free(
    """<body name="wheel" pos="0 0 .3"><joint name="wheel" axis="0 0 1" damping=".02" frictionloss=".01"
    armature=".003"/><geom type="cylinder" size=".12 .01" mass="1.5"/></body>""",
    '<motor name="motor" joint="wheel" ctrlrange="-1 1"/>',
)
_LIFT = _free(
    """<body name="slide" pos="0 0 .8"><joint name="lift" type="slide" axis="0 0 1" damping="15" armature=".5"
    range="-.3 .3"/><geom type="box" size=".1 .1 .04" mass="3"/></body>""",
    '<position name="lift" joint="lift" kp="4000" kv="150" ctrlrange="-.3 .3" forcerange="-200 200"/>',
)
_FURUTA = _free(
    """<body name="arm" pos="0 0 .6"><joint name="arm" axis="0 0 1" damping=".02" armature=".004" range="-2 2"/>
    <geom type="capsule" size=".01" fromto="0 0 0 .2 0 0" mass=".25"/>
    <body name="bob" pos=".2 0 0"><joint name="swing" axis="1 0 0" damping=".0015"/>
    <geom type="capsule" size=".01" fromto="0 0 0 0 0 -.22" mass=".12"/></body></body>""",
    '<motor name="arm" joint="arm" ctrlrange="-1 1"/>',
)
_FINGERS = _free(
    """<body name="left" pos="-.05 0 .2"><joint name="left" type="slide" axis="1 0 0" damping="8" armature=".1"
    range="-.04 .04"/><geom type="box" size=".01 .02 .05" mass=".25"/></body>
    <body name="right" pos=".05 0 .2"><joint name="right" type="slide" axis="1 0 0" damping="8" armature=".1"
    range="-.04 .04"/><geom type="box" size=".01 .02 .05" mass=".25"/></body>""",
    """<position name="left" joint="left" kp="900" kv="25" ctrlrange="-.04 .04" forcerange="-30 30"/>
    <position name="right" joint="right" kp="900" kv="25" ctrlrange="-.04 .04" forcerange="-30 30"/>""",
)
_CART = (MODELS / "cartpole.xml").read_text(encoding="utf-8").replace('gear="1"', 'gear="1" ctrlrange="-15 15"')
_ARM = (MODELS / "arm.xml").read_text(encoding="utf-8").replace('kp="', 'ctrlrange="-1.5 1.5" kp="')
_SIX = ("pan", "lift", "elbow", "wrist1", "wrist2", "wrist3")
_CHAIN = tuple(f"j{k}" for k in range(6))
_CHAIN_XML = growth_robots.arm_xml(6).replace('kp="', 'ctrlrange="-1.5 1.5" kp="')
_DAMPINGS = ("joint/pan/damping", "joint/lift/damping", "joint/elbow/damping", "joint/wrist1/damping")

TUNING = (
    Robot(
        "pendulum", _PENDULUM, _same(("motor",)), _positions(("hinge",), 0.001),
        ("joint/hinge/damping", "joint/hinge/frictionloss", "actuator/motor/gain", "actuator/*/delay"),
        {"joint/hinge/damping": 0.0, "joint/hinge/frictionloss": 0.06, "actuator/motor/gain": 0.0},
    ),
    Robot(
        "cartpole", _CART, _same(("motor",)),
        {"x": ("cart", "position", 0.0003), "pole": ("pole", "position", 0.001)},
        ("joint/cart/damping", "joint/cart/frictionloss", "joint/pole/damping"),
        {"joint/cart/damping": 0.0, "joint/cart/frictionloss": 0.0, "joint/pole/damping": 0.0},
        options={"lowest_m": 0.2},
    ),
    Robot(
        "pantilt", _PAN_TILT, _same(("pan", "tilt")), _positions(("pan", "tilt"), 0.0005),
        ("actuator/pan/kd", "joint/tilt/frictionloss", "body/tilt/mass"),
        {"actuator/pan/kd": 0.0, "joint/tilt/frictionloss": 0.15, "body/tilt/mass": 0.0},
        first_log=True,
    ),
    Robot(
        "arm", _ARM, _same(("yaw", "shoulder", "elbow")), _positions(("yaw", "shoulder", "elbow"), 0.0005),
        ("actuator/yaw/kd", "actuator/shoulder/kd", "joint/elbow/frictionloss"),
        {"actuator/yaw/kd": 0.0, "actuator/shoulder/kd": 0.0, "joint/elbow/frictionloss": 0.0},
        first_log=True, options={"lowest_m": -0.5},
    ),
    Robot(
        "sixaxis", _six_axis_xml((150, 25), (0, 0)), _same(_SIX), _positions(_SIX, 0.0002),
        ("joint/pan/damping", "joint/lift/damping", "joint/elbow/frictionloss", "actuator/*/delay"),
        {"joint/pan/damping": 0.0, "joint/lift/damping": 0.0, "joint/elbow/frictionloss": 8.0},
    ),
    Robot(  # of the joints' damping a servo's own hides nearly all
        "faint", _six_axis_xml((1.5, 0.5), (400, 100)), _same(_SIX), _positions(_SIX, 0.0002),
        _DAMPINGS, dict.fromkeys(_DAMPINGS, 0.0), listed=(*_DAMPINGS, "actuator/*/delay"),
    ),
)  # fmt: skip
TEST = (
    Robot(
        "gantry", _GANTRY, _same(("x", "y")),
        {**_positions(("x", "y"), 0.0003), **_positions(("swing",), 0.001)},
        ("joint/x/damping", "joint/y/frictionloss", "joint/swing/damping"),
        {"joint/x/damping": 0.0, "joint/y/frictionloss": 3.0, "joint/swing/damping": 0.0},
        options={"lowest_m": 0.4},
    ),
    Robot(
        "twolink", _TWO_LINK, _same(("shoulder", "elbow")),
        {
            **_positions(("shoulder", "elbow"), 0.0005),
            "v_shoulder": ("shoulder", "velocity", 0.01), "v_elbow": ("elbow", "velocity", 0.01),
        },
        ("joint/shoulder/damping", "joint/elbow/frictionloss", "actuator/elbow/gain"),
        {"joint/shoulder/damping": 0.0, "joint/elbow/frictionloss": 0.3, "actuator/elbow/gain": 0.0},
        options={"lowest_m": 0.3},
    ),
    Robot(
        "voltage", _VOLTAGE, _same(("volts",)), _positions(("rotor",), 0.002),
        ("joint/rotor/damping", "joint/rotor/frictionloss", "actuator/*/delay"),
        {"joint/rotor/damping": 0.0, "joint/rotor/frictionloss": 0.03, "body/rotor/mass": 0.0},
        first_log=True,
    ),
    Robot(
        "scara", _scara_xml(), _same(("one", "two", "quill")), _positions(("one", "two", "quill"), 0.0003),
        ("actuator/one/kd", "joint/two/frictionloss", "body/two/mass"),
        {"actuator/one/kd": 0.0, "joint/two/frictionloss": 1.5, "body/two/mass": 0.0},
        first_log=True, options={"lowest_m": 0.2},
    ),
    Robot(
        "chain", _CHAIN_XML, _same(tuple(f"a{k}" for k in range(6))), _positions(_CHAIN, 0.0001),
        ("actuator/a0/kd", "actuator/a1/kd", "joint/j3/frictionloss", "actuator/*/delay"),
        {"actuator/a0/kd": 0.0, "actuator/a1/kd": 0.0, "joint/j3/frictionloss": 6.0},
        options={"lowest_m": 0.0},
    ),
    Robot(
        "flywheel", _FLYWHEEL, _same(("motor",)),
        {**_positions(("wheel",), 0.001), "v_wheel": ("wheel", "velocity", 0.02)},
        ("joint/wheel/damping", "joint/wheel/frictionloss", "actuator/*/delay"),
        {"joint/wheel/damping": 0.0, "joint/wheel/frictionloss": 0.0},
        options={"lowest_m": 0.0},
    ),
    Robot(
        "lift", _LIFT, _same(("lift",)), _positions(("lift",), 0.0001),
        ("actuator/lift/kd", "joint/lift/frictionloss", "actuator/*/delay"),
        {"actuator/lift/kd": 0.0, "joint/lift/frictionloss": 8.0},
        first_log=True, options={"lowest_m": 0.3},
    ),
    Robot(
        "furuta", _FURUTA, _same(("arm",)), _positions(("arm", "swing"), 0.001),
        ("joint/arm/damping", "joint/arm/frictionloss", "joint/swing/damping"),
        {"joint/arm/damping": 0.0, "joint/arm/frictionloss": 0.03, "joint/swing/damping": 0.0},
        options={"lowest_m": 0.1},
    ),
    Robot(
        "fingers", _FINGERS, _same(("left", "right")), _positions(("left", "right"), 0.00005),
        ("actuator/left/kd", "joint/right/frictionloss", "actuator/*/delay"),
        {"actuator/left/kd": 0.0, "joint/right/frictionloss": 2.0},
        options={"lowest_m": 0.0},
    ),
)  # fmt: skip
