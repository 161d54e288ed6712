"""Causes of a gap, by dimension: each changes reality by a severity that is drawn from a stated range.

A cause is a function of (reality, robot, rng, scene) that returns the changed reality and a text with the severity.
Ranges are what people find on real robots; `gap_cases.py` draws again what does not show in the logs. The changed
reality says where it was changed: `places`, all parameter targets that express the cause, each with its true value.
Of several ways to say the same (damping of a joint or of its servo, commands or readings that are late) all are there;
None stands for a target at the right place whose form is another, so that no value of it is the true one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from gap_robots import Robot
from gap_world import Places, Reality

from gapless.core.dimensions import Dimension

Edit = Callable[[mujoco.MjSpec], None]
FINE_S = 0.0005  # time step of reality where the model's is too coarse
LINKS = {"arm": ("upper", "fore"), "cartpole": ("pole",), "torquearm": ("upper", "fore")}
TIPS = {"arm": ("tool", (0.0, 0.0, 0.0)), "cartpole": ("pole", (0.0, 0.0, -0.6)), "torquearm": ("finger", (0, 0, 0))}
CARRYING = ("arm", "torquearm")  # robots whose drives carry weight: they must not drop it
SURFACES = {"pusher": ("table", "box"), "torquearm": ("wall", "finger")}
ANY_ZERO = ("cart", "q_yaw")  # the cart's zero never shows, and that of the yaw looks just like a pull on it
LOADED = {"arm": ("shoulder", "elbow"), "pusher": ("tip_x", "tip_y"), "cartpole": ("cart",)}
"""Joints that a cable may pull on. Not the arm's yaw: where gravity does not act, a pull is like a wrong zero."""


@dataclass(frozen=True)
class Scene:
    """What causes scale with, of the model as written under the case's motions.

    Attributes:
        efforts: Actuator -> largest force [N·m, N].
        speeds: Joint -> root mean square of its speed [rad/s, m/s].
    """

    efforts: Mapping[str, float]
    speeds: Mapping[str, float]


Change = Callable[[Reality, Robot, np.random.Generator, Scene], tuple[Reality, str]]


def some_joint(robot: Robot, rng: np.random.Generator) -> str:
    """Returns one of the driven joints."""
    return str(rng.choice(list(robot.drives)))


def marked(reality: Reality, places: Places) -> Reality:
    """Returns a reality with more targets that express how it was changed."""
    return replace(reality, places={**reality.places, **places})


def edited(reality: Reality, edit: Edit, places: Places) -> Reality:
    """Returns a reality with one more change of its model, and the targets that express it."""
    return marked(replace(reality, edits=(*reality.edits, edit)), places)


def late_by(robot: Robot, delay_s: float) -> Places:
    """Returns the targets of a delay: logs do not tell whether commands act late or all readings are old."""
    names = ["actuator/*", "measurement/*", *(f"actuator/{a}" for a in robot.commands.values() if robot.has_one_drive)]
    return {f"{name}/delay": float(delay_s) for name in names}


def tilt_angles(gravity: Sequence[float]) -> tuple[float, float]:
    """Returns the floor's angles about x and y [rad] that give a gravity: turned about x first, then about y."""
    size = float(np.linalg.norm(gravity))
    return float(-np.arcsin(gravity[1] / size)), float(np.arctan2(gravity[0], -gravity[2]))


def _damping_places(robot: Robot, joint: str, more: float) -> Places:
    """Returns the targets of more damping [N·m·s/rad]: the joint's or, where there is one, its servo's."""
    model, actuator = robot.model(), robot.drives[joint]
    own, servo = float(model.dof_damping[model.joint(joint).dofadr[0]]), -float(model.actuator(actuator).biasprm[2])
    found = {f"joint/{joint}/damping": own + more, f"actuator/{actuator}/kd": servo + more}
    return {target: value for target, value in found.items() if value >= 0 and (robot.servo or "kd" not in target)}


def gain(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Weaker drives: kp of a servo, or the gain of a motor, x0.5-0.8; of one joint or all."""
    joints = list(robot.drives) if rng.random() < 0.4 else [some_joint(robot, rng)]
    factor = rng.uniform(0.5, 0.8)

    def edit(spec: mujoco.MjSpec) -> None:
        for name in (robot.drives[joint] for joint in joints):
            actuator = spec.actuator(name)
            actuator.gainprm[0] *= factor
            actuator.biasprm[1] *= factor

    names, field = [robot.drives[joint] for joint in joints], "kp" if robot.servo else "gain"
    sizes = {a: float(robot.model().actuator(a).gainprm[0]) if robot.servo else 1.0 for a in names}
    places = {f"actuator/{a}/{field}": factor * size for a, size in sizes.items()}
    if len(joints) == len(robot.drives):
        places[f"actuator/*/{field}"] = factor
    return edited(reality, edit, places), f"gain x{factor:.2f} of {', '.join(joints)}"


def servo_damping(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Servo damping kd x0.3-0.6 or x1.7-3."""
    joint = some_joint(robot, rng)
    factor = rng.uniform(0.3, 0.6) if rng.random() < 0.5 else rng.uniform(1.7, 3.0)

    def edit(spec: mujoco.MjSpec) -> None:
        spec.actuator(robot.drives[joint]).biasprm[2] *= factor

    written = -float(robot.model().actuator(robot.drives[joint]).biasprm[2])
    places = _damping_places(robot, joint, (factor - 1) * written)
    return edited(reality, edit, places), f"kd x{factor:.2f} of {joint}"


def damping(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Joint damping x2-4."""
    joint, factor = some_joint(robot, rng), rng.uniform(2.0, 4.0)

    def edit(spec: mujoco.MjSpec) -> None:
        spec.joint(joint).damping[0] *= factor

    model = robot.model()
    places = _damping_places(robot, joint, (factor - 1) * float(model.dof_damping[model.joint(joint).dofadr[0]]))
    return edited(reality, edit, places), f"damping x{factor:.2f} of {joint}"


def coulomb(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Dry friction of 8-25 % of the largest effort."""
    joint = some_joint(robot, rng)
    size = rng.uniform(0.08, 0.25) * scene.efforts[robot.drives[joint]]

    def edit(spec: mujoco.MjSpec) -> None:
        spec.joint(joint).frictionloss += size

    model = robot.model()
    places = {f"joint/{joint}/frictionloss": float(model.dof_frictionloss[model.joint(joint).dofadr[0]]) + size}
    return edited(reality, edit, places), f"dry friction +{size:.2f} of {joint}"


def limit(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """A force limit at 60-85 % of the largest effort, 40-70 % where it carries no weight."""
    joint, low, high = some_joint(robot, rng), *((0.6, 0.85) if robot.name in CARRYING else (0.4, 0.7))
    size = rng.uniform(low, high) * scene.efforts[robot.drives[joint]]

    def edit(spec: mujoco.MjSpec) -> None:
        spec.actuator(robot.drives[joint]).forcerange = [-size, size]

    places = {f"actuator/{robot.drives[joint]}/limit": size}
    return edited(reality, edit, places), f"limit {size:.2f} of {joint}"


def armature(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Rotor inertia x2.5-6."""
    joint, factor = some_joint(robot, rng), rng.uniform(2.5, 6.0)

    def edit(spec: mujoco.MjSpec) -> None:
        spec.joint(joint).armature *= factor

    model = robot.model()
    places = {f"joint/{joint}/armature": factor * float(model.dof_armature[model.joint(joint).dofadr[0]])}
    return edited(reality, edit, places), f"armature x{factor:.2f} of {joint}"


def backlash(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Play of 0.04-0.1 rad or 3-8 mm between the servo and its joint, which is what is read."""
    joint = "yaw" if robot.name == "arm" else some_joint(robot, rng)  # gravity would hold the others to one side
    hinge = robot.name == "arm"
    gap = rng.uniform(0.04, 0.1) if hinge else rng.uniform(0.003, 0.008)
    drag = 0.01 * scene.efforts[robot.drives[joint]]
    return second_joint(reality, joint, gap=gap, drag=drag), f"play {gap:.4f} of {joint}"


def second_joint(reality: Reality, joint: str, *, gap: float | None, drag: float) -> Reality:
    """Returns a reality where a joint has a second one on its axis, behind the motor: with play, or that slips.

    Args:
        reality: To be changed.
        joint: Which joint; its armature is the motor's, and stays before the second one.
        gap: Play from end to end; None: without limits.
        drag: Dry friction within the play, or the force at which it slips.
    """
    name = f"{joint}_second"

    def edit(spec: mujoco.MjSpec) -> None:
        first = spec.joint(joint)
        second = first.parent.add_joint(name=name, type=first.type, axis=first.axis, pos=first.pos)
        second.frictionloss, second.armature = drag, 1e-4
        second.damping = [0.2 * first.damping[0], 0, 0]
        second.solimp_friction = [0.99, 0.999, 0.001, 0.5, 2]
        if gap is not None:
            turns = spec.compiler.degree and first.type == mujoco.mjtJoint.mjJNT_HINGE
            half = (np.degrees(gap) if turns else gap) / 2
            second.limited, second.range = mujoco.mjtLimited.mjLIMITED_TRUE, [-half, half]
            second.solref_limit = [0.005, 1]

    places = {} if gap is None else {f"joint/{joint}/backlash": None}  # that one plays before the motor
    return replace(edited(reality, edit, places), seconds={**reality.seconds, joint: name})


def command_delay(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Commands act 15-60 ms late."""
    delay_s = rng.uniform(0.015, 0.06)
    found = marked(replace(reality, command_delay_s=delay_s), late_by(robot, delay_s))
    return found, f"commands {1000 * delay_s:.0f} ms late"


def reading_delay(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Readings are 15-60 ms old."""
    delay_s = rng.uniform(0.015, 0.06)
    found = marked(replace(reality, reading_delay_s=delay_s), late_by(robot, delay_s))
    return found, f"readings {1000 * delay_s:.0f} ms late"


def joint_bias(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """A joint's zero is off by 0.02-0.1 rad, or a slide's by 4-12 mm."""
    names = [c.name for c in robot.columns if c.kind == "joint" and c.quantity == "position"]
    names = [name for name in names if name not in ANY_ZERO]
    column = str(rng.choice(names))
    size = rng.uniform(0.004, 0.012) if robot.name == "pusher" else rng.uniform(0.02, 0.1)
    bias = float(rng.choice([-1, 1])) * size
    found = replace(reality, bias={**reality.bias, column: bias})
    return marked(found, {f"measurement/{column}/bias": bias}), f"bias {bias:+.4f} of {column}"


def joint_scale(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """A joint's readings are 5-15 % too large."""
    names = [c.name for c in robot.columns if c.kind == "joint" and c.quantity == "position"]
    column, factor = str(rng.choice(names)), rng.uniform(1.05, 1.15)
    found = replace(reality, scale={**reality.scale, column: factor})
    both = [c.name for c in robot.columns if c.name in (column, column.replace("q_", "v_"))]  # and speeds with it
    return marked(found, {f"measurement/{name}/scale": factor for name in both}), f"scale x{factor:.3f} of {column}"


def box_bias(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """The tracker of the box is off by 1-3 cm."""
    size, turn = rng.uniform(0.01, 0.03), rng.uniform(-np.pi, np.pi)
    off = {"box_x": size * np.cos(turn), "box_y": size * np.sin(turn)}
    found = marked(replace(reality, bias={**reality.bias, **off}), {f"measurement/{c}/bias": b for c, b in off.items()})
    return found, f"box pose off by {100 * size:.1f} cm at {turn:+.2f} rad"


def box_mass(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """The box weighs x0.4-0.6 or x1.6-2."""
    factor = rng.uniform(0.4, 0.6) if rng.random() < 0.4 else rng.uniform(1.6, 2.0)

    def edit(spec: mujoco.MjSpec) -> None:
        spec.geom("box").mass *= factor

    places = {"body/box/mass": factor * float(robot.model().body("box").mass[0])}
    return edited(reality, edit, places), f"box mass x{factor:.2f}"


def box_centre(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """The centre of the box lies 40-70 % of its half length, or half width, off the middle."""
    shares = rng.uniform(0.4, 0.7, 2) * rng.choice([-1, 1], 2) * (rng.permutation([1.0, 0.3]))

    def edit(spec: mujoco.MjSpec) -> None:
        half, mass = np.array(spec.geom("box").size), spec.geom("box").mass
        body = spec.body("box")
        body.mass, body.explicitinertial = mass, True
        body.ipos = [shares[0] * half[0], shares[1] * half[1], 0.0]
        body.inertia = (
            mass / 3 * np.array([half[1] ** 2 + half[2] ** 2, half[0] ** 2 + half[2] ** 2, half[0] ** 2 + half[1] ** 2])
        )
        body.iquat = [1, 0, 0, 0]

    places = dict(zip(("body/box/com/x", "body/box/com/y"), shares * robot.model().geom("box").size[:2], strict=True))
    return edited(reality, edit, places), f"box centre off by {shares[0]:+.2f}, {shares[1]:+.2f} of its half size"


def payload(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Something at the tip that weighs 10-30 % of what moves; of the torque arm, which shows it most, 4-12 %."""
    total = {"arm": 2.05, "cartpole": 0.5, "torquearm": 0.6}[robot.name]  # kg
    mass, (body, place) = rng.uniform(0.1, 0.3) * total, TIPS[robot.name]

    def edit(spec: mujoco.MjSpec) -> None:
        spec.body(body).add_geom(
            name="load",
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[0.02, 0, 0],
            pos=place,
            mass=mass,
            contype=0,
            conaffinity=0,
        )

    found = edited(reality, edit, {})
    link, own = (found.model(robot).body(body), robot.model().body(body))
    places = {f"body/{body}/mass": float(link.mass[0])}
    if np.allclose(own.ipos, place):
        places[f"body/{body}/payload"] = mass
    else:
        spread = float((link.inertia[0] / link.mass[0]) / (own.inertia[0] / own.mass[0]))
        at_tip = {f"body/{body}/tip_payload": mass, f"body/{body}/com/z": float(link.ipos[2])}
        places |= {**at_tip, f"body/{body}/inertia": spread}
    return marked(found, places), f"payload {mass:.3f} kg"


def link_mass(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """A link weighs x0.5-0.7 or x1.4-2."""
    link = str(rng.choice(LINKS[robot.name]))
    factor = rng.uniform(0.5, 0.7) if rng.random() < 0.4 else rng.uniform(1.4, 2.0)

    def edit(spec: mujoco.MjSpec) -> None:
        spec.geom(link).mass *= factor

    places = {f"body/{link}/mass": factor * float(robot.model().body(link).mass[0])}
    return edited(reality, edit, places), f"mass x{factor:.2f} of {link}"


def friction(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Friction of the surface x0.4-0.7 or x1.5-2."""
    factor = rng.uniform(0.4, 0.7) if rng.random() < 0.5 else rng.uniform(1.5, 2.0)

    def edit(spec: mujoco.MjSpec) -> None:
        for name in SURFACES[robot.name]:
            spec.geom(name).friction[0] *= factor

    written = {name: float(robot.model().geom(name).friction[0]) for name in SURFACES[robot.name]}
    places = {f"geom/{name}/friction": factor * size for name, size in written.items()}
    places["geom/*/friction"] = factor
    return edited(reality, edit, places), f"friction x{factor:.2f} of {' and '.join(SURFACES[robot.name])}"


def softness(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Contacts give more: their time constant x2-4 at the wall, x7-12 between tip and box, which are harder."""
    factor = rng.uniform(2.0, 4.0) if robot.box is None else rng.uniform(7.0, 12.0)
    names = SURFACES[robot.name] if robot.box is None else ("tip", "box")

    def edit(spec: mujoco.MjSpec) -> None:
        for name in names:
            spec.geom(name).solref[0] *= factor

    time_s = float(robot.model().geom(names[0]).solref[0])
    places: Places = {f"geom/{name}/stiffness": (factor * time_s) ** -2 for name in names}
    if robot.box is None:
        places["geom/*/stiffness"] = factor**-2
    else:  # the box is softer on its table, too, but less: a contact takes the mean of both
        places |= {"geom/box/stiffness": None, "geom/table/stiffness": ((factor + 1) / 2 * time_s) ** -2}
    return edited(reality, edit, places), f"contact time constant x{factor:.2f} of {' and '.join(names)}"


def tilt(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """The base is tilted by 2-6 degrees, 3-6 where servos resist; about y where all moves in one plane."""
    planar = robot.name in ("cartpole", "torquearm")
    angle = np.radians(rng.uniform(3.0 if robot.servo else 2.0, 6.0))
    turn = float(rng.choice([0.0, np.pi])) if planar else rng.uniform(-np.pi, np.pi)
    gravity = 9.81 * np.array([np.sin(angle) * np.cos(turn), np.sin(angle) * np.sin(turn), -np.cos(angle)])
    places = {f"world/tilt/{axis}": a for axis, a in zip("xy", tilt_angles(gravity), strict=True) if abs(a) > 1e-6}
    return marked(
        replace(reality, gravity=tuple(gravity)), places
    ), f"tilt {np.degrees(angle):.1f} deg towards {turn:+.2f} rad"


def side_load(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """A cable pulls on a joint with 10-25 % of its largest effort; 20-40 % of the arm's.

    There a pull and a wrong zero differ only in how gravity changes with the angle: pulls of 10 % do not show.
    """
    joint = str(rng.choice(LOADED.get(robot.name, tuple(robot.drives))))
    share = rng.uniform(0.2, 0.4) if robot.name == "arm" else rng.uniform(0.1, 0.25)
    load = float(rng.choice([-1, 1])) * share * scene.efforts[robot.drives[joint]]
    found = replace(reality, load={**reality.load, joint: load})
    return marked(found, {f"joint/{joint}/load": load}), f"load {load:+.2f} on {joint}"


def coarse(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Reality is fine; the project's model has a coarse step (`Robot.coarse`)."""
    return replace(reality, timestep_s=FINE_S), "the model's time step is too coarse"


CAUSES: dict[Dimension, dict[str, tuple[Change, tuple[str, ...]]]] = {
    "actuator": {
        "gain": (gain, ("arm", "pusher", "cartpole", "torquearm")),
        "kd": (servo_damping, ("arm", "pusher")),
        "damping": (damping, ("arm", "pusher", "cartpole", "torquearm")),
        "coulomb": (coulomb, ("arm", "pusher", "cartpole", "torquearm")),
        "limit": (limit, ("arm", "pusher", "cartpole", "torquearm")),
        "armature": (armature, ("arm", "torquearm")),
        "backlash": (backlash, ("arm", "pusher")),
    },
    "latency": {
        "command delay": (command_delay, ("arm", "pusher", "cartpole", "torquearm")),
        "reading delay": (reading_delay, ("arm", "pusher", "cartpole", "torquearm")),
    },
    "sensor": {
        "bias": (joint_bias, ("arm", "pusher", "cartpole", "torquearm")),
        "scale": (joint_scale, ("arm", "pusher", "cartpole", "torquearm")),
        "box bias": (box_bias, ("pusher",)),
    },
    "object": {
        "box mass": (box_mass, ("pusher",)),
        "box centre": (box_centre, ("pusher",)),
        "payload": (payload, ("arm", "cartpole", "torquearm")),
        "link mass": (link_mass, ("arm", "cartpole", "torquearm")),
    },
    "contact": {
        "friction": (friction, ("pusher", "torquearm")),
        "softness": (softness, ("pusher", "torquearm")),
    },
    "environment": {
        "tilt": (tilt, ("arm", "pusher", "cartpole", "torquearm")),
        "load": (side_load, ("arm", "pusher", "cartpole", "torquearm")),
    },
    "numerics": {"coarse step": (coarse, ("arm", "pusher", "cartpole", "torquearm"))},
}
"""Dimension -> name -> (what it changes, robots whose logs can show it)."""


def names_of(dimension: Dimension, robot: str) -> list[str]:
    """Returns the causes of a dimension that the logs of a robot can show."""
    return [name for name, (_, robots) in CAUSES[dimension].items() if robot in robots]
