"""What the scale of all forces and masses rests on.

Without a measured force, logs show accelerations only: twice all forces on twice all masses is the same motion. Then
one mass has to be taken as written, and whatever was fitted is as right as that mass. Where most of what a drive moves
is its own rotor, the forces of that joint rest on the rotor's inertia instead.
"""

from collections.abc import Sequence

import mujoco

from gapless.core.results import FittedParameter
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint

MIN_DRIVE_SHARE = 0.5  # of a joint's inertia, from which on its forces rest on the drive's inertia
_STRENGTHS = ("/gain", "/kp", "/motorconst")


def describe_force_reference(blueprint: CompiledProject, parameters: Sequence[FittedParameter]) -> str | None:
    """Returns which mass the fitted forces and masses are relative to; None where forces are known or not fitted."""
    project, model = blueprint.project, blueprint.model
    fitted = {p.target for p in parameters if p.identifiable}
    driven = [item.actuator for item in project.commands]
    fitted_forces = all(any(f"actuator/{name}{ending}" in fitted for ending in _STRENGTHS) for name in driven)
    measured = any(item.element in ("actuator", "sensor") or item.quantity == "effort" for item in project.measurements)
    unfitted = [body for body in _moving_bodies(model) if f"body/{model.body(body).name}/mass" not in fitted]
    if not driven or not fitted_forces or measured or not unfitted:
        return None
    heaviest = max(unfitted, key=lambda body: float(model.body_mass[body]))
    reason = (
        "no force is measured, so forces and masses are known only relative to each other: all of them hold if "
        f"{model.body(heaviest).name or f'body {heaviest}'} weighs {model.body_mass[heaviest]:.3g} kg, as in the model"
    )
    heavy = [name for name in _find_heavy_drives(blueprint) if f"joint/{name}/armature" not in fitted]
    if heavy:
        reason += f", and those of {', '.join(heavy)} if the inertia of their drives (armature) is as written there"
    return reason


def _find_heavy_drives(blueprint: CompiledProject) -> list[str]:
    """Returns the driven joints most of whose inertia, as written, is that of the drive."""
    model, found = blueprint.model, list[str]()
    for item in blueprint.project.commands:
        joint = driven_joint(model, model.actuator(item.actuator).id)
        if joint is None:
            continue
        dof = int(model.jnt_dofadr[joint])
        if model.dof_armature[dof] > MIN_DRIVE_SHARE * model.dof_M0[dof]:
            found.append(model.joint(joint).name or f"joint {joint}")
    return found


def _moving_bodies(model: mujoco.MjModel) -> list[int]:
    """Returns the bodies with a mass that joints can move."""
    return [body for body in range(1, model.nbody) if model.body_weldid[body] != 0 and model.body_mass[body] > 0]
