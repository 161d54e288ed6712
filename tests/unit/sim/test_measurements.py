"""Columns show what the engine computes."""

from pathlib import Path

import mujoco
import numpy as np

from gapless.core.protocols import Start
from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.measurements import yaw_of
from gapless.sim.simulation import Simulation
from unit.sim.scenes import ARM_COMMANDS, POSE, arm, run, things, waves, write_project

WRIST = """<mujoco><option timestep=".002"/><worldbody>
<body name="base" pos=".1 .2 .3" euler="10 20 30"><joint name="a" axis="0 0 1"/>
<geom type="box" size=".1 .05 .03" pos=".05 0 0"/>
<body name="hand" pos=".2 0 .1" euler="0 40 15"><joint name="b" axis="1 1 0"/>
<geom type="box" size=".05 .02 .04" pos=".02 .03 0"/></body></body>
<body name="float" pos="0 0 2" euler="30 0 0"><freejoint name="float"/>
<geom type="box" size=".1 .2 .3" pos=".05 .02 0"/></body></worldbody>
<actuator><motor name="ma" joint="a"/><motor name="mb" joint="b"/></actuator></mujoco>"""


def wrist(folder: Path) -> CompiledProject:
    columns = {f"{b}_{q}": f"{{body: {b}, quantity: {q}}}" for b in ("hand", "float") for q in POSE}
    commands = {"ua": "{actuator: ma}", "ub": "{actuator: mb}"}
    return compile_project(load_project(write_project(folder, WRIST, commands, columns)))


def expected_columns(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> np.ndarray:
    body = data.body(name)
    world, local = np.zeros(6), np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body.id, world, 0)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body.id, local, 1)
    frame = data.xmat[body.id].reshape(3, 3)
    yaw = np.arctan2(frame[1, 0], frame[0, 0])
    return np.concatenate([body.xpos, body.xquat, [yaw], world[3:], local[:3]])


def test_pose_and_velocity_of_a_hand_and_of_a_free_body(tmp_path: Path) -> None:
    blueprint = wrist(tmp_path)
    model, data = blueprint.model, mujoco.MjData(blueprint.model)
    world = Simulation(blueprint, 1, EMPTY_SPACE, 1)
    world.reset(Start({}, np.zeros((1, 0))), np.random.default_rng(0))
    spin = np.array([[0.3, -0.4, 0.1, 2.0, 1.0, -3.0]])
    data.qvel[2:] = spin
    state = np.concatenate([[1.0, -2.0], spin[0]])
    data.qvel[:] = state
    shown = [world.restart(data.qpos[None], state[None], np.zeros((1, 0, 2)))[0]]
    truth = []
    for command in waves(blueprint, num_steps=20)[:, 0]:
        mujoco.mj_forward(model, data)
        truth.append(np.concatenate([expected_columns(model, data, b) for b in ("hand", "float")]))
        shown.append(world.step(command[None]).measured[0])
        data.ctrl[:] = command
        mujoco.mj_step(model, data, nstep=blueprint.num_substeps)
    # A free body's quaternion is that of its joint, not yet normalised: hence not to the last bit.
    np.testing.assert_allclose(shown[:-1], truth, rtol=0, atol=1e-12)


def test_efforts_forces_and_sensors(tmp_path: Path) -> None:
    columns = {
        "tau": "{joint: elbow, quantity: effort}",
        "force": "{actuator: servo, quantity: force}",
        "fz": "{sensor: wrist, axis: 2}",
        "wy": "{sensor: gyro, axis: 1}",
        "q": "{joint: elbow, quantity: position}",
    }
    blueprint = arm(tmp_path, measurements=columns, gear=2.0)
    data = mujoco.MjData(blueprint.model)
    shown = run(Simulation(blueprint, 1, EMPTY_SPACE, 1), waves(blueprint))[:, 0]
    for command, seen in zip(waves(blueprint)[:, 0], shown[1:], strict=True):
        data.ctrl[:] = command
        mujoco.mj_step(blueprint.model, data, nstep=5)
        mujoco.mj_forward(blueprint.model, data)  # all columns show the new state
        forces = [data.joint("elbow").qfrc_actuator[0], data.actuator("servo").force[0]]
        sensors = [data.sensor("wrist").data[2], data.sensor("gyro").data[1], data.joint("elbow").qpos[0]]
        np.testing.assert_allclose(seen, [*forces, *sensors], rtol=0, atol=1e-12)
        np.testing.assert_allclose(seen[0], 2 * seen[1], rtol=1e-12)  # the gear


def test_forces_at_the_start_are_those_of_the_start(tmp_path: Path) -> None:
    # Servos rest where their joints are, so they push with nothing, whatever ran before.
    columns = {"force": "{actuator: servo, quantity: force}", "tau": "{joint: elbow, quantity: effort}"}
    world = Simulation(arm(tmp_path, measurements=columns), 3, EMPTY_SPACE, 1)
    start = Start({"elbow": np.array([[0.3], [-0.2], [0.9]])}, np.zeros((3, 0)))
    assert np.allclose(world.reset(start, np.random.default_rng(0)), 0.0, atol=1e-12)
    for _ in range(5):
        last = world.step(np.full((3, 2), 2.0)).measured
    start = Start({"elbow": np.array([[0.4]])}, np.zeros((1, 0)))
    again = world.reset(start, np.random.default_rng(0), np.array([1]))
    np.testing.assert_allclose(again[1], 0.0, atol=1e-12)
    assert np.array_equal(again[[0, 2]], last[[0, 2]])


def test_resetting_some_worlds_leaves_the_others_on_their_way(tmp_path: Path) -> None:
    columns = {"fz": "{sensor: wrist, axis: 2}", "tau": "{joint: elbow, quantity: effort}"}
    blueprint = arm(tmp_path, measurements=columns)
    commands = waves(blueprint, 3)
    whole = run(Simulation(blueprint, 3, EMPTY_SPACE, 1), commands)
    world = Simulation(blueprint, 3, EMPTY_SPACE, 1)
    run(world, commands[:30])
    start = Start({"elbow": np.array([[0.4], [0.5]])}, np.zeros((2, 0)))
    world.reset(start, np.random.default_rng(0), np.array([2, 0]))
    assert world.batch.bind("qpos")[2, 1] == 0.4
    assert world.batch.bind("qpos")[0, 1] == 0.5
    rest = np.stack([world.step(command).measured for command in commands[30:]])
    assert np.array_equal(rest[:, 1], whole[31:, 1])


def test_yaw_turns_with_the_body() -> None:
    angle = np.linspace(-3, 3, 13)
    quaternion = np.stack([np.cos(angle / 2), 0 * angle, 0 * angle, np.sin(angle / 2)], axis=1)
    np.testing.assert_allclose(yaw_of(quaternion), angle, atol=1e-12)
    np.testing.assert_allclose(yaw_of(-quaternion), angle, atol=1e-12)


def test_a_free_body_starts_where_it_is_put(tmp_path: Path) -> None:
    world = Simulation(things(tmp_path), 2, EMPTY_SPACE, 1)
    pose = np.array([[0.1, 0.2, 0.3, 1, 0, 0, 0], [1, 2, 3, 0, 0, 0, 1]])
    seen = world.reset(Start({"box": pose}, np.zeros((2, 0))), np.random.default_rng(0))
    assert np.array_equal(seen[:, :7], pose)


def test_a_servo_on_a_tendon_does_not_look_for_a_joint(tmp_path: Path) -> None:
    xml = """<mujoco><worldbody><body><joint name="a" axis="0 1 0"/><geom size=".1"/>
    <body><joint name="b" axis="0 1 0"/><geom size=".1" pos="0 0 .3"/></body></body></worldbody>
    <tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/></fixed></tendon>
    <actuator><position name="s" tendon="t" kp="3"/></actuator></mujoco>"""
    columns = {"q": "{joint: a, quantity: position}"}
    blueprint = compile_project(load_project(write_project(tmp_path, xml, {"u": "{actuator: s}"}, columns)))
    assert np.isfinite(run(Simulation(blueprint, 1, EMPTY_SPACE, 1), np.ones((5, 1, 1)))).all()


def test_the_project_of_these_tests_commands_both_actuators(tmp_path: Path) -> None:
    assert arm(tmp_path).actuator_ids == (0, 1)
    assert list(ARM_COMMANDS) == list(arm(tmp_path).project.command_names)
