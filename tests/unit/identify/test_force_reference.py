"""Without a measured force the result says which mass all forces and masses rest on."""

from pathlib import Path

from gapless.core.results import FittedParameter
from gapless.identify.verdict import describe_force_reference
from unit.sim.scenes import arm


def fitted(*targets: str, identifiable: bool = True) -> list[FittedParameter]:
    return [
        FittedParameter(t, "actuator", "1", 1.0, 1.0, 0.5, 2.0, 0.95, identifiable, False, 0.1, 10.0) for t in targets
    ]


STRENGTHS = ("actuator/motor/gain", "actuator/servo/kp")


def test_the_heaviest_link_whose_mass_is_not_fitted_is_named(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    masses = {
        blueprint.model.body(k).name: float(blueprint.model.body_mass[k]) for k in range(1, blueprint.model.nbody)
    }
    heaviest, other = sorted(masses, key=lambda name: -masses[name])[:2]
    told = describe_force_reference(blueprint, fitted(*STRENGTHS))
    assert told is not None
    assert f"hold if {heaviest} weighs {masses[heaviest]:.3g} kg" in told
    told = describe_force_reference(blueprint, fitted(*STRENGTHS, f"body/{heaviest}/mass"))
    assert told is not None
    assert f"hold if {other} weighs" in told


def test_joints_that_move_mostly_their_own_drive_rest_on_its_inertia(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    assert "armature" not in (describe_force_reference(blueprint, fitted(*STRENGTHS)) or "")
    joint = blueprint.model.joint(blueprint.model.actuator("servo").trnid[0])
    blueprint.model.dof_M0[joint.dofadr[0]] += 9.0
    blueprint.model.dof_armature[joint.dofadr[0]] = 9.0
    told = describe_force_reference(blueprint, fitted(*STRENGTHS))
    assert told is not None
    assert told.endswith(f"and those of {joint.name} if the inertia of their drives (armature) is as written there")
    known = describe_force_reference(blueprint, fitted(*STRENGTHS, f"joint/{joint.name}/armature"))
    assert "armature" not in (known or "")


def test_where_one_strength_is_known_nothing_is_said(tmp_path: Path) -> None:
    blueprint = arm(tmp_path)
    assert describe_force_reference(blueprint, fitted(STRENGTHS[0])) is None
    assert describe_force_reference(blueprint, fitted(*STRENGTHS, identifiable=False)) is None
