"""Every target that is part of a model sets what a person would have edited in the XML."""

from pathlib import Path

import numpy as np
import pytest

from gapless.sim.targets import resolve
from unit.sim.scenes import arm, run_plain, run_rows, things

ARM_EDITS = [
    ("joint/shoulder/damping", 0.7, {"damping": 0.7}),
    ("joint/shoulder/frictionloss", 0.4, {"frictionloss": 0.4}),
    ("joint/shoulder/armature", 0.05, {"armature": 0.05}),
    ("joint/shoulder/stiffness", 2.0, {"stiffness": 2.0}),
    ("joint/*/damping", 2.5, {"damping": 0.5, "damping2": 0.25}),
    ("joint/*/armature", 3.0, {"armature": 0.03}),
    ("actuator/motor/gain", 0.4, {"gain": 0.6}),
    ("actuator/servo/gain", 0.5, {"kp": 4.0, "kd": 0.15}),
    ("actuator/*/gain", 0.5, {"gain": 0.75, "kp": 4.0, "kd": 0.15}),
    ("actuator/servo/kp", 3.0, {"kp": 3.0}),
    ("actuator/*/kp", 0.5, {"kp": 4.0}),
    ("actuator/servo/kd", 0.9, {"kd": 0.9}),
    ("actuator/motor/limit", 1.1, {"limit": 'forcerange="-1.1 1.1"'}),
    ("body/upper/mass", 1.6, {"mass": 1.6, "inertia": ".012 .012 .002"}),
    ("body/upper/inertia", 3.0, {"inertia": ".018 .018 .003"}),
    ("body/upper/com/x", 0.06, {"com": 0.06}),
    ("world/gravity", 5.0, {"gravity": "0 0 -5"}),
]

# Gravity seen from a floor turned by +a about y: (g sin a, 0, -g cos a); about x: (0, -g sin a, -g cos a).
SINE, COSINE = 9.81 * np.sin(0.1), 9.81 * np.cos(0.1)
ARM_EDITS.append(("world/tilt/y", 0.1, {"gravity": f"{SINE:.17g} 0 {-COSINE:.17g}"}))
ARM_EDITS.append(("world/tilt/x", 0.1, {"gravity": f"0 {-SINE:.17g} {-COSINE:.17g}"}))

THING_EDITS = [
    # MuJoCo takes the larger friction of two geoms: by hand both must be edited.
    ("geom/box/friction", 0.1, {"friction": "0.1 .005 .0001", "floor_friction": "0.1 .005 .0001"}),
    ("geom/box/friction", 0.6, {"friction": "0.6 .005 .0001"}),
    # Time constant t and ratio 1: stiffness 1 / t^2 = 1 / 0.05^2 = 400.
    ("geom/box/stiffness", 400.0, {"solref": ".05 1", "floor_solref": ".05 1"}),
    ("geom/ball/size/x", 0.13, {"radius": 0.13}),
    ("geom/ball/size/x", 0.07, {"radius": 0.07}),
    ("body/box/mass", 1.0, {"mass": 1.0, "inertia": ".003 .004 .006"}),
]


@pytest.mark.parametrize(("target", "value", "edit"), ARM_EDITS, ids=[f"{t}={v}" for t, v, _ in ARM_EDITS])
def test_arm_is_as_if_edited_by_hand(tmp_path: Path, target: str, value: float, edit: dict) -> None:
    by_target = run_rows(arm(tmp_path / "a"), {target: value})[:, 0]
    by_hand = run_plain(arm(tmp_path / "b", **edit))
    np.testing.assert_allclose(by_target, by_hand, rtol=0, atol=1e-9)
    if target != "world/tilt/x":  # across the axes of the joints nothing is to be seen
        assert np.abs(by_hand - run_plain(arm(tmp_path / "a"))).max() > 1e-4


@pytest.mark.parametrize(("target", "value", "edit"), THING_EDITS, ids=[f"{t}={v}" for t, v, _ in THING_EDITS])
def test_things_are_as_if_edited_by_hand(tmp_path: Path, target: str, value: float, edit: dict) -> None:
    by_target = run_rows(things(tmp_path / "a"), {target: value})[:, 0]
    by_hand = run_plain(things(tmp_path / "b", **edit))
    np.testing.assert_allclose(by_target, by_hand, rtol=0, atol=1e-9)
    if not target.endswith("mass"):  # a free body slides alike whatever it weighs
        assert np.abs(by_hand - run_plain(things(tmp_path / "a"))).max() > 1e-4


def test_friction_on_one_geom_leaves_the_contacts_of_others(tmp_path: Path) -> None:
    blueprint = things(tmp_path)
    balls = [k for k, name in enumerate(blueprint.project.measurement_names) if name.startswith("ball")]
    changed = run_rows(blueprint, {"geom/box/friction": 0.05})[:, 0]
    # One solver for all contacts: the others move by its tolerance.
    np.testing.assert_allclose(changed[:, balls], run_plain(blueprint)[:, balls], rtol=0, atol=1e-9)


def test_a_shared_factor_on_friction_multiplies_every_contact(tmp_path: Path) -> None:
    edit = {"friction": "0.1 .005 .0001", "floor_friction": "0.05 .005 .0001"}
    doubled = {"friction": "0.2 .005 .0001", "floor_friction": "0.1 .005 .0001"}
    blueprint = things(tmp_path / "a", **edit)
    boxes = [k for k, name in enumerate(blueprint.project.measurement_names) if name.startswith("box")]
    by_target = run_rows(blueprint, {"geom/*/friction": 2.0})[:, 0]
    by_hand = run_plain(things(tmp_path / "b", **doubled))
    np.testing.assert_allclose(by_target[:, boxes], by_hand[:, boxes], rtol=0, atol=1e-9)


def test_a_geom_of_lower_priority_has_the_friction_of_its_partner(tmp_path: Path) -> None:
    blueprint = things(tmp_path, floor_priority=2, friction="0.9 .005 .0001")
    assert resolve("geom/box/friction", blueprint.project, blueprint.model).nominal == 0.2
    assert resolve("geom/floor/friction", blueprint.project, blueprint.model).nominal == 0.2


def test_two_parameters_of_one_surface_do_not_undo_each_other(tmp_path: Path) -> None:
    edit = {"friction": "0.1 .005 .0001", "floor_friction": "0.1 .005 .0001"}
    by_hand = run_plain(things(tmp_path / "b", solref=".05 1", floor_solref=".05 1", **edit))
    rows = {"geom/box/friction": 0.1, "geom/box/stiffness": 400.0}
    for order in (list(rows), list(rows)[::-1]):
        by_target = run_rows(things(tmp_path / "a"), {name: rows[name] for name in order})[:, 0]
        np.testing.assert_allclose(by_target, by_hand, rtol=0, atol=1e-9)


def test_a_limit_that_is_not_symmetric_keeps_its_shape(tmp_path: Path) -> None:
    by_target = run_rows(arm(tmp_path / "a", limit='forcerange="-2 1"'), {"actuator/motor/limit": 1.0})[:, 0]
    by_hand = run_plain(arm(tmp_path / "b", limit='forcerange="-1 0.5"'))
    np.testing.assert_allclose(by_target, by_hand, rtol=0, atol=1e-9)


def test_an_actuator_without_limit_can_be_given_one(tmp_path: Path) -> None:
    by_target = run_rows(arm(tmp_path / "a", limit=""), {"actuator/motor/limit": 1.0})[:, 0]
    by_hand = run_plain(arm(tmp_path / "b", limit='forcerange="-1 1"'))
    np.testing.assert_allclose(by_target, by_hand, rtol=0, atol=1e-9)


def test_tilts_turn_one_after_the_other(tmp_path: Path) -> None:
    # About x by a, then about y by b, of (0, 0, -g): (g cos a sin b, -g sin a, -g cos a cos b).
    a, b, g = 0.1, -0.07, 9.81
    edit = f"{g * np.cos(a) * np.sin(b):.17g} {-g * np.sin(a):.17g} {-g * np.cos(a) * np.cos(b):.17g}"
    by_target = run_rows(arm(tmp_path / "a"), {"world/tilt/x": a, "world/tilt/y": b})[:, 0]
    np.testing.assert_allclose(by_target, run_plain(arm(tmp_path / "b", gravity=edit)), rtol=0, atol=1e-9)
