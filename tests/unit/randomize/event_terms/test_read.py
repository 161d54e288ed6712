"""Event configurations as people write them, read as ranges."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from gapless.core.distribution import Range, ranges_from_text
from gapless.core.errors import InputError
from gapless.project.load import load_project
from gapless.randomize.event_terms import isaaclab, mjlab
from gapless.randomize.event_terms.files import read_event_ranges
from gapless.sim.blueprint import CompiledProject, compile_project
from unit.randomize.export.robots import arm, job, make_job

ISAAC = '''
"""Randomisation of our arm."""
import math
import isaaclab.envs.mdp as mdp
from isaaclab.managers import EventTermCfg as EventTerm
from isaaclab.managers import SceneEntityCfg
from isaaclab.utils import configclass

MASS = (0.8, 1.25)
LIMBS = ["upper", "fore"]


@configclass
class EventCfg:
    """Events."""

    # startup
    physics_material: EventTerm = EventTerm(
        func=mdp.randomize_rigid_body_material,
        mode="startup",
        params={
            "asset_cfg": SceneEntityCfg("robot", body_names=".*"),
            "static_friction_range": (0.8, 0.8),
            "dynamic_friction_range": (0.6, 0.6),
            "restitution_range": (0.0, 0.0),
            "num_buckets": 64,
        },
    )
    limb_mass = EventTerm(
        func=mdp.randomize_rigid_body_mass,
        mode="startup",
        params={
            "asset_cfg": SceneEntityCfg("robot", body_names=LIMBS + ["hand"]),
            "mass_distribution_params": MASS,
            "operation": "scale",
        },
    )
    add_base_mass = EventTerm(
        func=mdp.randomize_rigid_body_mass,
        mode="startup",
        params={
            "asset_cfg": SceneEntityCfg("robot", body_names="base"),
            "mass_distribution_params": (-5.0, 5.0),
            "operation": "add",
        },
    )
    gains = EventTerm(
        func=mdp.randomize_actuator_gains,
        mode="reset",
        params={
            "asset_cfg": SceneEntityCfg("robot", joint_names="(shoulder|elbow)"),
            "stiffness_distribution_params": (0.75, 1.5),
            "damping_distribution_params": (0.3, 3.0),
            "operation": "scale",
            "distribution": "log_uniform",
        },
    )
    joints = EventTerm(
        func=mdp.randomize_joint_parameters,
        min_step_count_between_reset=720,
        mode="reset",
        params={
            "asset_cfg": SceneEntityCfg("robot", joint_names=[".*"]),
            "friction_distribution_params": (0.02, 0.01),
            "lower_limit_distribution_params": (0.0, 0.01),
            "operation": "add",
            "distribution": "gaussian",
        },
    )
    gravity = EventTerm(
        func=mdp.randomize_physics_scene_gravity,
        mode="interval",
        is_global_time=True,
        interval_range_s=(36.0, 36.0),
        params={
            "gravity_distribution_params": ([0.0, 0.0, 0.0], [0.0, 0.0, 0.4]),
            "operation": "add",
            "distribution": "gaussian",
        },
    )
    centre = EventTerm(
        func=mdp.randomize_rigid_body_com,
        mode="startup",
        params={
            "asset_cfg": SceneEntityCfg("robot", body_names="wrist"),
            "com_range": {"x": (-0.01, 0.01), "y": (0.0, 0.0), "z": (-math.pi / 100, math.pi / 100)},
        },
    )
    push_robot = EventTerm(
        func=mdp.push_by_setting_velocity, mode="interval", interval_range_s=(10.0, 15.0), params={"velocity_range": {}}
    )
    scale = EventTerm(func=mdp.randomize_rigid_body_scale, mode="prestartup", params={"scale_range": (0.9, 1.1)})


class ArmEnvCfg:
    events: EventCfg = EventCfg()

    def __post_init__(self):
        self.events.push_robot = None
        self.events.add_base_mass.params["asset_cfg"].body_names = "wrist"
        self.events.add_base_mass.params["mass_distribution_params"] = (-0.1, 0.3)
        self.events.reset_base.params = {"pose_range": {}}


class ArmEnvCfg_PLAY(ArmEnvCfg):
    def __post_init__(self):
        self.events.limb_mass = None
'''


class Read(NamedTuple):
    ranges: tuple[Range, ...]
    notes: tuple[str, ...]


def read(folder: Path, text: str, name: str = "events.py") -> Read:
    blueprint = arm(folder)
    (folder / name).write_text(text)
    return Read(*read_event_ranges(folder / name, blueprint.project, blueprint.model))


def test_an_isaac_configuration_as_people_write_it(tmp_path: Path) -> None:
    found = read(tmp_path, ISAAC)
    ranges = {item.target: item for item in found.ranges}
    # Static friction, of the shapes that can touch something: not the upper arm, not the box, not the floor.
    assert {t for t in ranges if t.startswith("geom/")} == {"geom/fore/friction", "geom/wrist/friction"}
    assert (ranges["geom/fore/friction"].kind, ranges["geom/fore/friction"].mean) == ("fixed", 0.8)
    # A factor on the model's 1.2 kg.
    upper = ranges["body/upper/mass"]
    assert (upper.kind, upper.per, upper.reason) == ("uniform", "robot", "limb_mass of events.py")
    assert (upper.low, upper.high) == (pytest.approx(0.96), pytest.approx(1.5))
    # Changed below the class: added to the wrist's 0.2 kg.
    assert (ranges["body/wrist/mass"].low, ranges["body/wrist/mass"].high) == pytest.approx((0.1, 0.5))
    # Factors on kp 60 and kd 2, log-uniform.
    assert ranges["actuator/shoulder/kp"].kind == "log-uniform"
    assert (ranges["actuator/shoulder/kp"].low, ranges["actuator/shoulder/kp"].high) == pytest.approx((45.0, 90.0))
    assert (ranges["actuator/elbow/kd"].low, ranges["actuator/elbow/kd"].high) == pytest.approx((0.6, 6.0))
    # 0.1 + normal(0.02, 0.01); a joint without friction: 0 + normal(0.02, 0.01), cut at 0.
    assert (ranges["joint/shoulder/frictionloss"].mean, ranges["joint/shoulder/frictionloss"].std) == (
        pytest.approx(0.12),
        0.01,
    )
    assert (ranges["joint/elbow/frictionloss"].low, ranges["joint/elbow/frictionloss"].high) == (
        0.0,
        pytest.approx(0.06),
    )
    # -9.81 + normal(0, 0.4) upwards.
    assert (ranges["world/gravity"].mean, ranges["world/gravity"].std) == (pytest.approx(9.81), pytest.approx(0.4))
    # The wrist's centre is at x = 0.02, z = 0.
    assert (ranges["body/wrist/com/x"].low, ranges["body/wrist/com/x"].high) == pytest.approx((0.01, 0.03))
    assert "body/wrist/com/y" not in ranges
    assert ranges["body/wrist/com/z"].high == pytest.approx(0.0314159)


def test_what_is_not_read_is_told(tmp_path: Path) -> None:
    notes = "\n".join(read(tmp_path, ISAAC).notes)
    for said in (
        "physics_material (randomize_rigid_body_material): static and dynamic friction differ",
        "limb_mass (randomize_rigid_body_mass): no body is called 'hand'",
        "joints (randomize_joint_parameters): left out: lower_limit_distribution_params",
        "joints (randomize_joint_parameters): changed: a friction of the joint in the unit of PhysX",
        "gravity (randomize_physics_scene_gravity): world/gravity: drawn anew every so often there",
        "scale (randomize_rigid_body_scale): left out: no parameter here is like it",
        "reset_base: changed here, but it is not in this file",
        "ArmEnvCfg_PLAY: not read",
    ):
        assert said in notes
    assert "push_robot" not in notes  # taken out by the file itself


MJLAB = """
from mjlab.envs import mdp
from mjlab.envs.mdp import dr
from mjlab.managers.event_manager import EventTermCfg
from mjlab.managers.scene_entity_config import SceneEntityCfg

ALL = SceneEntityCfg("robot", joint_names=(".*",))


def arm_env_cfg(play: bool = False):
    names = ("shoulder", "elbow")
    cfg = base()
    cfg.events = {
        "friction": EventTermCfg(
            mode="startup",
            func=dr.geom_friction,
            params={
                "asset_cfg": SceneEntityCfg("robot", geom_names=("fore", "wrist")),
                "operation": "abs",
                "ranges": (0.3, 1.2),
                "shared_random": True,
            },
        ),
        "spin": EventTermCfg(
            mode="startup",
            func=dr.geom_friction,
            params={"asset_cfg": SceneEntityCfg("box"), "operation": "abs", "axes": [1], "ranges": (1e-4, 2e-2)},
        ),
        "bias": EventTermCfg(
            mode="reset", func=dr.encoder_bias, params={"asset_cfg": ALL, "bias_range": (-0.015, 0.015)}
        ),
        "centre": EventTermCfg(
            mode="startup",
            func=dr.body_com_offset,
            params={
                "asset_cfg": SceneEntityCfg("box", body_names=("box",)),
                "ranges": {0: (-0.02, 0.02), 2: (-0.03, 0.03)},
            },
        ),
        "damping": EventTermCfg(
            mode="reset",
            func=dr.joint_damping,
            params={"operation": "scale", "ranges": {"shoulder": (0.5, 2.0), "(elbow|wrist)": (0.8, 1.2)}},
        ),
        "armature": EventTermCfg(
            mode="reset",
            func=dr.dof_armature,
            params={"asset_cfg": ALL, "operation": "scale", "ranges": (0.9, 1.1), "shared_random": True},
        ),
        "inertia": EventTermCfg(
            mode="startup",
            func=dr.pseudo_inertia,
            params={
                "asset_cfg": SceneEntityCfg("robot", body_names=("upper",)),
                "alpha_range": (-0.1, 0.1),
                "d_range": (-0.1, 0.1),
            },
        ),
        "load": EventTermCfg(
            mode="reset",
            func=dr.body_mass,
            params={
                "asset_cfg": SceneEntityCfg("robot", body_names=("wrist",)),
                "operation": "add",
                "ranges": (0.0, 0.3),
            },
        ),
        "gains": EventTermCfg(
            mode="startup",
            func=dr.pd_gains,
            params={
                "asset_cfg": SceneEntityCfg("robot", actuator_names=names),
                "kp_range": (0.9, 1.1),
                "kd_range": (1.0, 1.0),
            },
        ),
        "effort": EventTermCfg(
            mode="startup",
            func=dr.effort_limits,
            params={
                "asset_cfg": SceneEntityCfg("robot", actuator_names=["elbow"]),
                "effort_limit_range": (9.0, 12.0),
                "operation": "abs",
            },
        ),
        "old": EventTermCfg(
            mode="startup",
            func=mdp.randomize_field,
            domain_randomization=True,
            params={
                "asset_cfg": SceneEntityCfg("robot", joint_names=["wrist"]),
                "field": "dof_frictionloss",
                "ranges": (0.01, 0.05),
            },
        ),
        "odd": EventTermCfg(mode="startup", func=dr.joint_damping, params={"ranges": pick(), "asset_cfg": ALL}),
        "reset": EventTermCfg(func=mdp.reset_root_state_uniform, mode="reset", params={}),
    }
    cfg.events["friction"].params["ranges"] = (0.4, 0.9)
    if play:
        cfg.events.pop("friction")
    return cfg
"""


def test_an_mjlab_configuration_as_people_write_it(tmp_path: Path) -> None:
    found = read(tmp_path, MJLAB)
    ranges = {item.target: item for item in found.ranges}
    ends = {target: (item.low, item.high) for target, item in ranges.items()}
    assert ends["geom/fore/friction"] == ends["geom/wrist/friction"] == (0.4, 0.9)
    assert ends["joint/wrist/offset"] == (-0.015, 0.015)
    assert ends["body/box/com/x"] == (-0.02, 0.02)
    assert "body/box/com/y" not in ends
    assert ends["joint/shoulder/damping"] == pytest.approx((0.2, 0.8))
    assert ends["joint/wrist/damping"] == pytest.approx((0.08, 0.12))
    assert ends["joint/*/armature"] == (0.9, 1.1)
    assert ranges["body/upper/mass"].kind == "log-uniform"
    assert ends["body/upper/mass"] == pytest.approx((1.2 * 0.818731, 1.2 * 1.221403), rel=1e-5)  # exp(-0.2), exp(0.2)
    assert ends["body/wrist/payload"] == (0.0, 0.3)
    assert ends["actuator/shoulder/kp"] == pytest.approx((54.0, 66.0))
    assert "actuator/shoulder/kd" not in ends
    assert ends["actuator/elbow/limit"] == (9.0, 12.0)
    assert ends["joint/wrist/frictionloss"] == (0.01, 0.05)
    assert [ranges[t].per for t in ("joint/wrist/offset", "geom/fore/friction")] == ["episode", "robot"]
    notes = "\n".join(found.notes)
    for said in (
        "friction (geom_friction): changed: fore, wrist draw one value there",
        "spin (geom_friction): left out: axis 1",
        "inertia (pseudo_inertia): left out: d_range",
        "odd (joint_damping): left out: ranges is no pair of numbers",
        "reset (reset_root_state_uniform): left out: it sets the state",
        "if play: not read",
    ):
        assert said in notes


DUMP = """
seed: 42
events:
  physics_material:
    func: isaaclab.envs.mdp.events:randomize_rigid_body_material
    mode: startup
    interval_range_s: null
    params:
      asset_cfg:
        name: robot
        joint_names: null
        joint_ids: !!python/object/apply:builtins.slice
        - null
        - null
        - null
        body_names: wrist
      static_friction_range: !!python/tuple
      - 0.5
      - 1.0
      dynamic_friction_range: !!python/tuple
      - 0.5
      - 1.0
      restitution_range: !!python/tuple
      - 0.1
      - 0.3
      num_buckets: 64
  push_robot: null
  reset_base:
    func: isaaclab.envs.mdp.events:reset_root_state_uniform
    mode: reset
    params: {}
rewards:
  alive:
    func: isaaclab.envs.mdp.rewards:is_alive
    params: {}
"""


def test_a_dump_of_a_run(tmp_path: Path) -> None:
    found = read(tmp_path, DUMP, "env.yaml")
    ends = {item.target: (item.kind, item.low, item.high) for item in found.ranges}
    assert ends == {"geom/wrist/friction": ("uniform", 0.5, 1.0), "geom/wrist/restitution": ("uniform", 0.1, 0.3)}
    assert len(found.notes) == 1
    term = {"func": "mjlab.envs.mdp.dr.joint:joint_damping", "mode": "reset"}
    term |= {"params": {"asset_cfg": {"name": "robot", "joint_names": ["elbow"]}, "ranges": [0.1, 0.3]}}
    again = read(tmp_path, json.dumps({"env": {"events": {"damping": term}}}), "env.json")
    assert [(item.target, item.low, item.high) for item in again.ranges] == [("joint/elbow/damping", 0.1, 0.3)]


def test_functions_as_python_prints_them(tmp_path: Path) -> None:
    term = {"func": "<function joint_damping at 0x7f00>", "mode": "reset", "params": {"ranges": [0.1, 0.3]}}
    found = read(tmp_path, json.dumps({"events": {"damping": term}}), "env.json")
    assert [item.target for item in found.ranges] == [
        f"joint/{name}/damping" for name in ("shoulder", "elbow", "wrist")
    ]


def test_a_dump_runs_nothing(tmp_path: Path) -> None:
    bomb = "events:\n  x:\n    func: a:b\n    mode: reset\n    params:\n"
    bomb += f"      y: !!python/object/apply:os.mkdir ['{tmp_path}/boom']\n"
    read(tmp_path, bomb, "env.yaml")
    assert not (tmp_path / "boom").exists()


CARRIED = """
joint/shoulder/damping       uniform 0.2 .. 0.8 per robot
joint/*/armature             uniform 0.5 .. 1.5
joint/shoulder/frictionloss  normal 0.1 +- 0.03 within 0.04 .. 0.16
joint/elbow/stiffness        log-uniform 0.4 .. 0.8 per step
joint/elbow/offset           uniform -0.02 .. 0.02
actuator/shoulder/kp         uniform 50.0 .. 70.0
actuator/shoulder/kd         normal 4.0 +- 0.5 within 3.0 .. 5.0
actuator/elbow/kp            normal 40.0 +- 4.0 within 30.0 .. 50.0
actuator/elbow/kd            log-uniform 1.0 .. 3.0
actuator/elbow/limit         beta 12.0 +- 1.0 within 10.0 .. 15.0
body/fore/mass               log-normal 0.6 +- 20 % within 0.3 .. 1.2
body/box/mass                uniform 0.3 .. 0.8
body/box/com/x               normal 0.0 +- 0.004 within -0.008 .. 0.008
body/wrist/payload           uniform 0.0 .. 0.1
geom/box/friction            mixture 0.7: 0.4 +- 0.05, 0.3: 0.6 +- 0.05 within 0.3 .. 0.7
geom/wrist/size/x            uniform 0.018 .. 0.022
joint/wrist/damping          fixed 0.3
"""
ISAAC_CARRIED = """
joint/elbow/armature         log-uniform 0.005 .. 0.02 per robot
joint/shoulder/frictionloss  uniform 0.05 .. 0.2
actuator/shoulder/kp         normal 60.0 +- 5.0 within 40.0 .. 80.0
actuator/elbow/kd            uniform 1.0 .. 3.0 per step
body/fore/mass               uniform 0.3 .. 1.2 per robot
body/wrist/payload           uniform 0.0 .. 0.1
body/box/com/x               uniform -0.01 .. 0.02 per robot
body/box/com/z               uniform -0.005 .. 0.005 per robot
geom/box/friction            uniform 0.3 .. 0.7
geom/box/restitution         uniform 0.1 .. 0.3
world/gravity                uniform 9.7 .. 9.9
"""


WALKER = """
<mujoco><worldbody><body name="trunk"><freejoint name="root"/><geom name="trunk" size=".1" mass="3"/>
<body name="leg"><joint name="hip" damping="1"/><geom size=".1" mass="1"/></body></body>
<body name="ball"><freejoint/><geom name="ball" size=".1" mass=".4"/></body></worldbody>
<actuator><position name="hip" joint="hip" kp="20" kv="1"/></actuator></mujoco>
"""


def walker(folder: Path) -> CompiledProject:
    (folder / "logs").mkdir()
    (folder / "robot.xml").write_text(WALKER)
    measured = "measurements:\n  q: {joint: hip, quantity: position}\n"
    (folder / "gapless.yaml").write_text(f"gapless: 1\nname: w\nmodel: robot.xml\nrate_hz: 50\n{measured}")
    return compile_project(load_project(folder))


def test_a_robot_on_a_free_joint_is_the_robot(tmp_path: Path) -> None:
    blueprint = walker(tmp_path)
    terms = ", ".join(
        f'"{name}": EventTerm(func=mdp.randomize_rigid_body_mass, mode="startup", params={{"asset_cfg": '
        f'SceneEntityCfg("{name}"), "mass_distribution_params": (0.5, 2.0), "operation": "scale"}})'
        for name in ("robot", "ball")
    )
    (tmp_path / "events.py").write_text(f"EVENTS = {{{terms}}}\n")
    found = Read(*read_event_ranges(tmp_path / "events.py", blueprint.project, blueprint.model))
    ends = {item.target: (item.low, item.high, item.reason.split()[0]) for item in found.ranges}
    assert ends == {
        "body/trunk/mass": (1.5, 6.0, "robot"),
        "body/leg/mass": (0.5, 2.0, "robot"),
        "body/ball/mass": (0.2, 0.8, "ball"),
    }
    source, _ = isaaclab.write(make_job(blueprint, found.ranges, ()), tmp_path)
    assert "SceneEntityCfg(ROBOT, body_names=['trunk'])" in source
    assert "SceneEntityCfg(BALL, body_names=['ball'])" in source


def test_a_name_that_gapless_gave_is_not_written_out(tmp_path: Path) -> None:
    # The leg's geom has no name in the file; here it is called `leg`.
    blueprint = walker(tmp_path)
    ranges, _ = ranges_from_text("geom/leg/friction uniform 0.5 .. 1\ngeom/ball/friction uniform 0.5 .. 1\n")
    source, notes = mjlab.write(make_job(blueprint, ranges, ()), tmp_path)
    assert source.count("dr.geom_friction") == 1
    assert notes[0] == "geom/leg/friction: left out: the model's geoms have no names"


@pytest.mark.parametrize(("stack", "text"), [(mjlab, CARRIED), (isaaclab, ISAAC_CARRIED)])
def test_what_was_written_comes_back(stack: object, text: str, tmp_path: Path) -> None:
    worked = job(tmp_path, text)
    source, notes = stack.write(worked, tmp_path)  # type: ignore[attr-defined]
    assert not [note for note in notes if "left out" in note]
    found = {item.target: item for item in read(tmp_path, source).ranges}
    assert set(found) == {entry.target for entry in worked.entries}
    for entry in worked.entries:
        ours, back = entry.range, found[entry.target]
        assert (back.kind, back.per) == (ours.kind, ours.per), entry.target
        for name in ("low", "high", "mean", "std"):
            assert getattr(back, name) == pytest.approx(getattr(ours, name), rel=1e-9, abs=1e-12), (entry.target, name)
        assert [part.mean for part in back.parts] == pytest.approx([part.mean for part in ours.parts])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("events.py", "x = 1\n", "no event terms in it"),
        ("events.py", "x = (\n", "this is no Python"),
        ("env.yaml", "- 1\n- 2\n", "no event terms in it"),
        ("env.yaml", "a: [1,\n", "this is no YAML"),
        ("env.json", "{", "this is no JSON"),
        ("events.toml", "", "event terms are in .py, .yaml, .yml, .json files"),
    ],
)
def test_a_file_without_terms_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said) as caught:
        read(tmp_path, text, name)
    assert str(caught.value).endswith(name)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        read_event_ranges(tmp_path / "no.py", blueprint.project, blueprint.model)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ('"ranges": (0.5, 0.1)', "goes backwards"),
        ('"ranges": (0.5, 0.6), "operation": "invert"', "no operation 'invert'"),
        ('"ranges": (0.5, 0.6), "distribution": cauchy(1)', "a cauchy that is abs is not known here"),
        ('"ranges": (0.5, float("inf"))', "no pair of numbers"),
        ('"ranges": (0.5, 0.6), "asset_cfg": SceneEntityCfg("cat")', "the model has no 'cat'"),
        ('"ranges": (0.5, 0.6), "asset_cfg": SceneEntityCfg("cat", joint_names=".*")', "the model has no 'cat'"),
        ('"ranges": (0.5, 0.6), "asset_cfg": SceneEntityCfg("robot", joint_names=pick())', "names were not read"),
        ('"ranges": (0.5, 0.6), "asset_cfg": CFG', "asset_cfg was not read"),
        (
            '"ranges": (0.5, 0.6), "operation": "scale", "asset_cfg": SceneEntityCfg("robot", joint_names="elbow")',
            "scales what",
        ),
    ],
)
def test_a_term_that_makes_no_sense_is_told(params: str, said: str, tmp_path: Path) -> None:
    text = f'EVENTS = {{"odd": EventTermCfg(func=dr.joint_friction, mode="reset", params={{{params}}})}}\n'
    found = read(tmp_path, text)
    assert found.ranges == ()
    assert said in "\n".join(found.notes)
