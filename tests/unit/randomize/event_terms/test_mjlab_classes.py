"""The exported event terms, run by mjlab's own scene, simulation and event manager.

mjlab is no dependency, so this is skipped where it is not installed. With mjlab 1.6.0, mujoco-warp 4.0.0 and torch
2.13.0 on a CPU it passed; it compiles kernels, which takes about a minute.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.stats import kstest

from gapless.randomize.event_terms import mjlab as exporter
from gapless.randomize.export.job import ExportJob
from unit.randomize.export.robots import MODEL, job

pytest.importorskip("mjlab", reason="mjlab is not installed: its classes are not run, only its schema is checked")

NUM_WORLDS = 1000
TEXT = """
joint/shoulder/damping       uniform 0.2 .. 0.8 per robot
joint/*/armature             uniform 0.5 .. 1.5
joint/shoulder/frictionloss  normal 0.1 +- 0.03 within 0.04 .. 0.16
joint/elbow/stiffness        log-uniform 0.4 .. 0.8 per step
joint/elbow/offset           uniform -0.02 .. 0.02
actuator/shoulder/kp         uniform 50 .. 70
actuator/shoulder/kd         normal 4 +- 0.5 within 3 .. 5
actuator/elbow/limit         beta 12 +- 1 within 10 .. 15
body/fore/mass               log-normal 0.6 +- 20 % within 0.3 .. 1.2
body/box/mass                uniform 0.3 .. 0.8
body/box/com/x               normal 0 +- 0.004 within -0.008 .. 0.008
body/wrist/payload           uniform 0 .. 0.1
geom/box/friction            mixture 0.7: 0.4 +- 0.05, 0.3: 0.6 +- 0.05 within 0.3 .. 0.7
geom/wrist/size/x            uniform 0.018 .. 0.022
"""


def arm_spec() -> mujoco.MjSpec:
    spec = mujoco.MjSpec.from_string(MODEL)
    spec.delete(spec.body("box"))
    return spec


def box_spec() -> mujoco.MjSpec:
    begin, end = MODEL.index('<body name="box"'), MODEL.index("</worldbody>")
    return mujoco.MjSpec.from_string(f"<mujoco><worldbody>{MODEL[begin:end]}</worldbody></mujoco>")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, ExportJob]:
    """Returns the environment after its terms have run, the manager, and what was exported."""
    import torch
    from mjlab.actuator import XmlActuatorCfg
    from mjlab.entity import EntityArticulationInfoCfg, EntityCfg
    from mjlab.managers.event_manager import EventManager
    from mjlab.scene import Scene, SceneCfg
    from mjlab.sim import Simulation, SimulationCfg

    worked = job(tmp_path_factory.mktemp("arm"), TEXT)
    space: dict[str, Any] = {}
    exec(exporter.write(worked, Path())[0], space)
    torch.manual_seed(0)
    joints = ("shoulder", "elbow", "wrist")
    servos = tuple(XmlActuatorCfg(target_names_expr=(name,)) for name in joints)
    robot = EntityCfg(spec_fn=arm_spec, articulation=EntityArticulationInfoCfg(actuators=servos))
    scene = Scene(SceneCfg(num_envs=NUM_WORLDS, entities={"robot": robot, "box": EntityCfg(spec_fn=box_spec)}), "cpu")
    simulation = Simulation(NUM_WORLDS, SimulationCfg(), scene.compile(), "cpu")
    scene.initialize(simulation.mj_model, simulation.model, simulation.data)
    env = SimpleNamespace(scene=scene, sim=simulation, num_envs=NUM_WORLDS, device="cpu")
    manager = EventManager(space["EVENTS"], env)  # type: ignore[arg-type]
    simulation.expand_model_fields(manager.domain_randomization_fields)
    manager.apply("startup")
    with pytest.warns(UserWarning, match="body_mass only"):  # what a payload at the centre is
        manager.apply("reset", env_ids=torch.arange(NUM_WORLDS), global_env_step_count=0)
    manager.apply("step", dt=0.02)
    return env, manager, worked


def column(env: Any, target: str) -> np.ndarray:
    """Returns what a target is in each world of mjlab's simulation."""
    model = env.sim.mj_model
    kind, name, field = target.split("/", 2)
    if field == "offset":
        joints = env.scene["robot"].joint_names
        return env.scene["robot"].data.encoder_bias[:, joints.index(name)].numpy()
    owner = "box" if name == "box" else "robot"
    number = getattr(model, kind)(f"{owner}/{name}").id if name != "*" else 0
    dof = int(model.jnt_dofadr[number]) if kind == "joint" and name != "*" else 0
    field_of = {
        "damping": ("dof_damping", dof),
        "armature": ("dof_armature", 0),
        "frictionloss": ("dof_frictionloss", dof),
        "stiffness": ("jnt_stiffness", number),
        "kp": ("actuator_gainprm", (number, 0)),
        "kd": ("actuator_biasprm", (number, 2)),
        "limit": ("actuator_forcerange", (number, 1)),
        "mass": ("body_mass", number),
        "payload": ("body_mass", number),
        "com/x": ("body_ipos", (number, 0)),
        "friction": ("geom_friction", (number, 0)),
        "size/x": ("geom_size", (number, 0)),
    }
    array, index = field_of[field]
    values = getattr(env.sim.model, array)[:].numpy()
    found = values[(slice(None), *np.atleast_1d(index))]
    return {"kd": -found, "payload": found - 0.2, "armature": found / 0.02}.get(field, found)


def test_all_terms_are_taken(played: tuple[Any, Any, ExportJob]) -> None:
    env, manager, worked = played
    assert sum(len(names) for names in manager.active_terms.values()) == len(worked.entries) - 1  # two gains, one term
    assert manager.active_terms["startup"] == ["joint_shoulder_damping"]
    assert manager.active_terms["step"] == ["joint_elbow_stiffness"]
    assert env.num_envs == NUM_WORLDS


def test_worlds_of_mjlab_are_distributed_as_the_ranges_say(played: tuple[Any, Any, ExportJob]) -> None:
    env, _, worked = played
    for entry in worked.entries:
        found = column(env, entry.target)
        reference = entry.range.draw(np.random.default_rng(7), 20000)
        assert found.min() >= entry.range.low - 1e-5, entry.target
        assert found.max() <= entry.range.high + 1e-5, entry.target
        assert kstest(found, reference).pvalue > 1e-4, entry.target


def test_inertia_goes_along_with_a_mass_and_one_factor_is_shared(played: tuple[Any, Any, ExportJob]) -> None:
    env, _, worked = played
    model = env.sim.mj_model
    body = model.body("robot/fore").id
    mass = env.sim.model.body_mass[:].numpy()[:, body] / 0.6
    inertia = np.sort(env.sim.model.body_inertia[:].numpy()[:, body], axis=1) / np.sort(
        worked.model.body("fore").inertia
    )
    assert inertia == pytest.approx(np.repeat(mass[:, None], 3, axis=1), rel=1e-3)
    armature = env.sim.model.dof_armature[:].numpy()
    assert armature[:, 0] / 0.02 == pytest.approx(armature[:, 1] / 0.01, rel=1e-5)


def test_mjlabs_own_bell_is_one_value_for_all_worlds() -> None:
    """Why bells are not written as "gaussian"; when this fails, they can be."""
    import torch
    from mjlab.envs.mdp import dr

    assert dr.gaussian.sample(torch.tensor([1.0]), torch.tensor([0.1]), (5, 2), "cpu").numel() == 1
