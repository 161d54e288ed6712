"""For each layer, and for targets that are none: a small robot, a knob away from ideal, and how to find it again."""

from dataclasses import dataclass, field

MOTOR = """<mujoco><option timestep="0.005"/><worldbody>
<body name="pole"><joint name="hinge" axis="0 1 0" damping=".05"/>
<geom type="capsule" fromto="0 0 0 0 0 -.4" size=".01" mass=".3"/><site name="tip" pos="0 0 -.3"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator>
<sensor><gyro name="gyro" site="tip"/><force name="force" site="tip"/><torque name="torque" site="tip"/></sensor>
</mujoco>"""
SERVO = """<mujoco><option timestep="0.002" gravity="0 0 0"/><worldbody><light name="lamp"/>
<body name="pole"><joint name="hinge" axis="0 0 1" damping=".2" armature=".01"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".01" mass=".3"/></body></worldbody>
<actuator><position name="motor" joint="hinge" kp="8" kv=".3"/></actuator></mujoco>"""
CART = """<mujoco><option timestep="0.005" gravity="0 0 0"/><worldbody>
<body name="cart"><joint name="hinge" type="slide" axis="1 0 0" damping="20" stiffness="40"/>
<geom type="box" size=".1 .1 .1" mass="10"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator></mujoco>"""
SLOPE = """<mujoco><option timestep="0.005" gravity="{gravity}"/><worldbody>
<geom name="floor" type="plane" size="50 50 .1" friction=".3 .005 .0001"/>
<body name="box" pos="0 0 .05"><freejoint name="box"/>
<geom name="box" type="box" size=".1 .1 .05" mass="1" friction=".3 .005 .0001"/></body></worldbody></mujoco>"""
SLIDING = SLOPE.format(gravity="4 0 -9")
TABLE = """<mujoco><option timestep="0.002" cone="elliptic" impratio="10"/><worldbody>
<geom name="floor" type="plane" size="9 9 .1" friction=".3"/>
<body name="box" pos="0 0 .05"><joint name="hinge" type="slide" axis="1 0 0"/>
<joint name="up" type="slide" axis="0 0 1"/><geom name="box" type="box" size=".1 .1 .05" mass="1" friction=".3"/></body>
{wall}</worldbody><actuator><position name="motor" joint="hinge" {gains}/></actuator></mujoco>"""
WALL = TABLE.format(wall='<geom name="wall" type="box" size=".05 1 .2" pos=".6 0 .2"/>', gains='kp="100" kv="10"')
TABLE = TABLE.format(wall="", gains='kp="20" kv="6"')
BALL = """<mujoco><option timestep="0.002"/><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="box" pos="0 0 .3"><freejoint name="box"/>
<geom name="box" type="sphere" size=".05" mass=".2" solref="-20000 -30" condim="1"/></body></worldbody></mujoco>"""
ANGLE = {"q": "{joint: hinge, quantity: position, noise: 0.001}"}
PLACE = {"x": "{body: box, quantity: x, noise: 0.001}", "z": "{body: box, quantity: z, noise: 0.0005}"}


@dataclass(frozen=True)
class Case:
    """How a layer is recovered.

    Attributes:
        target: The knob, or the target that is the same.
        truth: Its value in the logs.
        bounds: Text of its bounds in the project.
        model: MJCF.
        readings: Column -> mapping.
        size: Of the commands.
        most_hz: Fastest part of the commands.
        num_logs: How many logs.
        seconds: Length of each [s].
        rate_hz: Control rate.
        window_s: Length of windows; None lets the logs decide.
        tolerance: Relative error that is allowed where the interval misses the truth; 0 for none.
        start: Joint -> lowest and highest start.
        by_hand: Whether the effect is put on commands or readings outside the simulation, which has a target for it.
    """

    target: str
    truth: float
    bounds: str = ""
    model: str = SERVO
    readings: dict[str, str] = field(default_factory=lambda: ANGLE)
    size: float = 1.0
    most_hz: float = 2.0
    num_logs: int = 4
    seconds: float = 4.0
    rate_hz: float = 50.0
    window_s: float | None = None
    tolerance: float = 0.0
    start: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    by_hand: bool = False


def _sensor(*names: str) -> dict[str, str]:
    return {f"{name}_{k}": f"{{sensor: {name}, axis: {k}, noise: 0.005}}" for name in names for k in range(3)}


CASES: dict[str, Case] = {
    # by an ordinary fit
    "torque-speed curve": Case("joint/hinge/torque-speed-curve/stall", 0.4, model=MOTOR, size=0.5),
    "rate limit": Case("actuator/motor/rate-limit/rate", 6.0, ", low: 0.5, high: 50"),
    "heating": Case(
        *("joint/hinge/heating/loss", 5e4, ", low: 0, high: 1.0e+5", MOTOR),
        size=0.5,
        num_logs=12,
        window_s=3.9,
    ),
    "battery sag": Case("joint/hinge/battery-sag/resistance_ohm", 5.0, ", low: 0, high: 10", MOTOR, size=2.0),
    "series elasticity": Case("joint/hinge/series-elasticity/rotor_inertia", 0.02, model=MOTOR, size=0.5),
    "friction": Case("joint/hinge/friction/hump", 0.15, model=MOTOR, size=0.3, most_hz=0.5),
    "load-dependent friction": Case("joint/hinge/load-dependent-friction/share", 0.3, model=MOTOR, size=0.5),
    "LuGre friction": Case("joint/hinge/lugre-friction/coulomb", 0.1, model=MOTOR, size=0.5),
    "cogging": Case("joint/hinge/cogging/amplitude", 0.1, model=MOTOR, size=0.3, most_hz=0.5),
    "shared bus": Case("actuator/motor/shared-bus/cycle_s", 0.02, ", low: 0, high: 0.05"),
    "inference time": Case("actuator/motor/inference-time/inference_s", 0.06, ", low: 0, high: 0.2"),
    "encoder backlash": Case(*("measurement/q/encoder-backlash/width", 0.08), num_logs=12, seconds=2.0, window_s=1.9),
    "inertial sensor": Case(
        *("measurement/gyro_0/inertial-sensor/misalignment", 0.05, "", MOTOR, ANGLE | _sensor("gyro")), size=0.5
    ),
    "force-torque sensor": Case(
        *("measurement/force_0/force-torque-sensor/crosstalk", 0.05, "", MOTOR, ANGLE | _sensor("force", "torque")),
        size=0.5,
    ),
    "wind": Case("joint/hinge/wind/steady", 0.2, model=MOTOR, size=0.5),
    "cable drag": Case("joint/hinge/cable-drag/stiffness", 0.8, model=MOTOR, size=0.5),
    "temperature": Case("world/temperature/warmth_k", 20.0),
    "spread": Case("actuator/motor/spread/fleet", 0.4, model=MOTOR, size=0.5),
    "uneven mass": Case("body/pole/uneven-mass/share", 0.5, model=MOTOR, size=0.5),
    "size": Case(  # the box rattles by up to 1.5 mm as it slides, and windows start it level: its tilt is not read
        "geom/box/size/offset_m", 0.01, ", low: -0.03, high: 0.03", SLIDING, PLACE, seconds=2.0, tolerance=0.05
    ),
    "softness": Case("geom/box/softness/compliance", 1e-4, "", BALL, PLACE, rate_hz=200.0, seconds=1.0),
    "restitution": Case("geom/box/restitution/fall", 0.3, "", BALL, PLACE, rate_hz=200.0, seconds=1.5),
    "learned actuator": Case("joint/hinge/learned-actuator/share", 0.6, model=MOTOR, size=0.5),
    # from how runs scatter; 8 logs where 4 show too few gaps or patches for an interval below 0.4 of the range
    "clutter": Case("geom/wall/clutter/spread_m", 0.1, ", low: 0, high: 0.4", WALL, num_logs=8, seconds=3.0),
    "jitter": Case("actuator/motor/jitter/jitter_s", 0.05, ", low: 0, high: 0.1"),
    "dropped packets": Case("actuator/motor/dropped-packets/share", 0.2, ", low: 0, high: 0.5"),
    "duplicated packets": Case("actuator/motor/duplicated-packets/share", 0.05, ", low: 0, high: 0.3", num_logs=8),
    "slower sensor": Case("measurement/q/slower-sensor/period_s", 0.1, ", low: 0, high: 0.3"),
    "noise": Case("measurement/q/noise/noise", 0.01, ", low: 0, high: 0.1"),
    "quantisation": Case("measurement/q/quantisation/step", 0.02, ", low: 0, high: 0.1"),
    "outliers": Case("measurement/q/outliers/share", 0.03, ", low: 0, high: 0.2"),
    "occlusion": Case("measurement/q/occlusion/share", 0.2, ", low: 0, high: 0.5", num_logs=8),
    "range sensor": Case("measurement/q/range-sensor/dropout", 0.05, ", low: 0, high: 0.3"),
    "depth camera": Case("measurement/q/depth-camera/base_m", 0.01, ", low: 0, high: 0.1"),
    "pushes": Case("joint/hinge/pushes/rate_hz", 1.0, ", low: 0, high: 5", CART, size=20.0, num_logs=6),
    "uneven friction": Case("geom/box/uneven-friction/amplitude", 0.5, ", low: 0, high: 1", TABLE, num_logs=8),
    "floor patches": Case("geom/box/floor-patches/spread", 0.3, ", low: 0, high: 1", TABLE, num_logs=8),
    # targets that are no layers
    "gain": Case("actuator/motor/gain", 0.8, model=MOTOR, size=0.5, by_hand=True),
    "lag": Case("actuator/*/lag", 0.05, by_hand=True, tolerance=0.1),
    "backlash": Case("joint/hinge/backlash", 0.1, by_hand=True),
    "command delay": Case("actuator/*/delay", 0.05, by_hand=True),
    "reading delay": Case("measurement/q/delay", 0.03, by_hand=True),
    "scale and bias": Case("measurement/q/scale", 1.1, by_hand=True),
    "surface friction": Case("geom/box/friction", 0.21, model=TABLE),
    "contact stiffness": Case("geom/box/stiffness", 1e4, "", BALL, PLACE, rate_hz=200.0, seconds=1.0),
    "mass": Case("body/pole/mass", 0.36, model=MOTOR, size=0.5),
    # The fit is pulled towards the model as written, and its interval does not count that.
    "shifted centre": Case("body/pole/com/z", -0.17, model=MOTOR, size=0.5, tolerance=0.01),
    "tilt": Case("world/tilt/y", 0.05, model=MOTOR, size=0.5),
}
QUICK = {  # the others take more than about two seconds
    *("wind", "cable drag", "mass", "tilt", "gain", "scale and bias", "temperature", "spread", "uneven mass"),
    *("inference time", "reading delay", "inertial sensor", "quantisation"),
}
