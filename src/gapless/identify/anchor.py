"""What the scale of all forces and masses rests on.

Without a measured force, logs show accelerations only: twice all forces on twice all masses is the same motion. Then
one mass has to be taken as written, and whatever was fitted is as right as that mass.
"""

from collections.abc import Sequence

import mujoco

from gapless.core.results import FittedParameter
from gapless.sim.blueprint import Blueprint

_STRENGTHS = ("/gain", "/kp", "/motorconst")


def anchor_reason(blueprint: Blueprint, parameters: Sequence[FittedParameter]) -> str | None:
    """Returns which mass the fitted forces and masses are relative to; None where forces are known or not fitted."""
    project, model = blueprint.project, blueprint.model
    fitted = {p.target for p in parameters if p.identifiable}
    driven = [item.actuator for item in project.commands]
    free = all(any(f"actuator/{name}{ending}" in fitted for ending in _STRENGTHS) for name in driven)
    measured = any(item.element in ("actuator", "sensor") or item.quantity == "effort" for item in project.measurements)
    kept = [body for body in _moving(model) if f"body/{model.body(body).name}/mass" not in fitted]
    if not driven or not free or measured or not kept:
        return None
    heaviest = max(kept, key=lambda body: float(model.body_mass[body]))
    return (
        "no force is measured, so forces and masses are known only relative to each other: all of them hold if "
        f"{model.body(heaviest).name or f'body {heaviest}'} weighs {model.body_mass[heaviest]:.3g} kg, as in the model"
    )


def _moving(model: mujoco.MjModel) -> list[int]:
    """Returns the bodies with a mass that joints can move."""
    return [body for body in range(1, model.nbody) if model.body_weldid[body] != 0 and model.body_mass[body] > 0]
