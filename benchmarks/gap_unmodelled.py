"""Effects for `diagnose.py` that no parameter of a project expresses."""

from dataclasses import replace

import mujoco
import numpy as np
from gap_causes import CARRYING, Change, Scene, second_joint, some_joint
from gap_robots import Robot
from gap_world import Effect, Reality

STEP_S = 0.001  # of reality where an effect acts at every step


def lugre(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Friction of bristles: springs back from standstill, breaks away at 1.6-2.2 times what it is in motion.

    z' = v - |v| z / g(v) * stiffness, friction = stiffness z + damping z'; g falls from breakaway to sliding.
    """
    joint = some_joint(robot, rng)
    slides = rng.uniform(0.2, 0.35) * scene.efforts[robot.drives[joint]]
    breaks, speed = rng.uniform(1.6, 2.2) * slides, 0.15 * scene.speeds[joint]
    travel = rng.uniform(0.1, 0.25) * scene.speeds[joint] * 0.3  # bristles give this much, of what 0.3 s move
    stiffness = breaks / travel

    def make(model: mujoco.MjModel, step_s: float) -> Effect:
        dof, bent = int(model.joint(joint).dofadr[0]), [0.0]
        base = reality.load.get(joint, 0.0)

        def act(model: mujoco.MjModel, data: mujoco.MjData, time_s: float) -> None:
            v = float(data.qvel[dof])
            most = (slides + (breaks - slides) * np.exp(-((v / speed) ** 2))) / stiffness
            ahead = bent[0] + step_s * v
            bent[0] = ahead / (1 + step_s * abs(v) / most)  # implicit: never beyond what bristles bear
            data.qfrc_applied[dof] = base - stiffness * bent[0]

        return act

    text = f"LuGre on {joint}: slides at {slides:.2f}, breaks at {breaks:.2f}, bristles give {travel:.4f}"
    return replace(reality, effect=make, timestep_s=STEP_S), text


def cogging(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """A torque that repeats with the angle: 8-25 times per turn, or every 2-6 cm; 15-35 % of the largest effort."""
    joint, slide = some_joint(robot, rng), robot.name in ("pusher", "cartpole")
    wave = 2 * np.pi / rng.uniform(0.02, 0.06) if slide else float(rng.integers(8, 26))
    size, phase = rng.uniform(0.15, 0.35) * scene.efforts[robot.drives[joint]], rng.uniform(0, 2 * np.pi)

    def make(model: mujoco.MjModel, step_s: float) -> Effect:
        dof, place = int(model.joint(joint).dofadr[0]), int(model.joint(joint).qposadr[0])
        base = reality.load.get(joint, 0.0)

        def act(model: mujoco.MjModel, data: mujoco.MjData, time_s: float) -> None:
            data.qfrc_applied[dof] = base + size * np.sin(wave * float(data.qpos[place]) + phase)

        return act

    return replace(reality, effect=make, timestep_s=STEP_S), f"cogging {size:.2f} on {joint}, {wave:.0f} rad per unit"


def rough_places(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Friction that depends on the place: of a joint, or of the table under the box."""
    if robot.box is not None and rng.random() < 0.6:
        return rough_table(reality, rng)
    joint, slide = some_joint(robot, rng), robot.name in ("pusher", "cartpole")
    wave = 2 * np.pi / (rng.uniform(0.08, 0.2) if slide else rng.uniform(0.4, 1.0))
    size, phase = rng.uniform(0.3, 0.6) * scene.efforts[robot.drives[joint]], rng.uniform(0, 2 * np.pi)

    def act(model: mujoco.MjModel, data: mujoco.MjData, time_s: float) -> None:
        here, place = model.joint(joint), float(data.qpos[model.joint(joint).qposadr[0]])
        model.dof_frictionloss[here.dofadr[0]] = size * max(0.0, np.sin(wave * place + phase)) ** 2

    return replace(reality, slow_effect=act), f"friction of {joint} up to {size:.2f}, wave {2 * np.pi / wave:.2f}"


def rough_table(reality: Reality, rng: np.random.Generator) -> tuple[Reality, str]:
    """Friction between table and box that differs by place."""
    wave, phase = 2 * np.pi / rng.uniform(0.05, 0.09), rng.uniform(0, 2 * np.pi, 2)

    def act(model: mujoco.MjModel, data: mujoco.MjData, time_s: float) -> None:
        address = int(model.jnt_qposadr[model.body("box").jntadr[0]])
        x, y = data.qpos[address : address + 2]
        sticky = np.sin(wave * x + phase[0]) * np.sin(wave * y + phase[1])
        for name in ("table", "box"):
            model.geom_friction[model.geom(name).id, 0] = 0.35 * 3.0 ** float(np.clip(3 * sticky, -1, 1))

    return replace(reality, slow_effect=act), f"table friction x0.33-3 over patches of {np.pi / wave:.3f} m"


def slipping(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """A coupling that slips above 70-90 % of the largest effort, 50-70 % where it carries no weight.

    Motors without a servo are read before it: behind it, it would look just like a limit.
    """
    joint, low, high = some_joint(robot, rng), *((0.7, 0.9) if robot.name in CARRYING else (0.5, 0.7))
    size = rng.uniform(low, high) * scene.efforts[robot.drives[joint]]
    changed = second_joint(reality, joint, gap=None, drag=size)
    return replace(changed, motor_side=not robot.servo), f"coupling of {joint} slips at {size:.2f}"


def heating(reality: Reality, robot: Robot, rng: np.random.Generator, scene: Scene) -> tuple[Reality, str]:
    """Drives that lose 30-50 % of their gain over each log."""
    drop, slow_s = rng.uniform(0.3, 0.5), rng.uniform(1.5, 4.0)
    joints = list(robot.drives) if rng.random() < 0.7 else [some_joint(robot, rng)]
    written = mujoco.MjModel.from_xml_string(robot.text())

    def act(model: mujoco.MjModel, data: mujoco.MjData, time_s: float) -> None:
        left = 1 - drop * (1 - np.exp(-max(time_s, 0.0) / slow_s)) / (1 - np.exp(-5.0 / slow_s))
        for name in (robot.drives[joint] for joint in joints):
            here, there = model.actuator(name).id, written.actuator(name).id
            model.actuator_gainprm[here, 0] = left * written.actuator_gainprm[there, 0]
            model.actuator_biasprm[here, 1:3] = left * written.actuator_biasprm[there, 1:3]

    return replace(reality, slow_effect=act), f"gain of {', '.join(joints)} falls by {100 * drop:.0f} % over 5 s"


UNMODELLED: dict[str, Change] = {
    "LuGre": lugre,
    "cogging": cogging,
    "rough places": rough_places,
    "slipping": slipping,
    "heating": heating,
}
