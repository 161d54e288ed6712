"""What could be wrong in things of their own: carried by a free joint, thrown, dropped or pushed."""

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.sim.targets.body import is_object

FEW = 3  # colliding geoms of an object that have a friction each; more share one factor


def object_paths(project: Project, model: mujoco.MjModel, body: int) -> list[str]:
    """Returns what is always fitted of an object.

    That is how it slides; its mass where something is driven; and where nothing is, how it bounces, and its centre if
    it is seen turning. What falls, bounces and slides does so alike whatever it weighs.
    """
    geoms, name = colliding_geoms(model, body), model.body(body).name
    paths = [f"body/{name}/mass"] if project.commands else []
    paths += [f"geom/{geom}/friction" for geom in geoms] if len(geoms) <= FEW else ["geom/*/friction"]
    if not project.commands:
        paths += [f"geom/{geom}/{field}" for geom in geoms[:FEW] for field in ("restitution", "stiffness")]
        paths += [f"body/{name}/com/{axis}" for axis in "xyz" if _turns(project, name)]
    return paths


def object_terms(project: Project, model: mujoco.MjModel) -> list[list[str]]:
    """Returns the centre of each driven object that is seen turning, and how far its mass spreads.

    How it tumbles depends on the ratios of its inertias; in contact they show against its mass, too.
    """
    groups: list[list[str]] = []
    for name in (model.body(k).name for k in range(1, model.nbody) if is_object(model, k)):
        if _turns(project, name):
            groups += [[f"body/{name}/com/{axis}" for axis in "xyz"]] if project.commands else []
            groups.append([f"body/{name}/spread/{axis}" for axis in "xyz"])
    return groups


def _turns(project: Project, body: str) -> bool:
    """Tells whether the orientation of a body, or its rate, is measured."""
    return any(
        item.element == "body" and item.name == body and item.quantity in ("qw", "wx") for item in project.measurements
    )


def colliding_geoms(model: mujoco.MjModel, body: int) -> list[str]:
    """Returns the names of the geoms of a body that can touch something."""
    geoms = [g for g in range(model.ngeom) if model.geom_bodyid[g] == body and model.geom(g).name]
    return [model.geom(g).name for g in geoms if model.geom_contype[g] or model.geom_conaffinity[g]]


def half_extent(model: mujoco.MjModel, body: int) -> Array:
    """Returns how far the geoms of a body reach from its frame, at most along any axis, (3,) [m]; 0 without geoms."""
    reach = np.zeros(3)
    for geom in range(model.ngeom):
        if model.geom_bodyid[geom] == body and np.isfinite(model.geom_rbound[geom]):
            frame = np.zeros(9)
            mujoco.mju_quat2Mat(frame, model.geom_quat[geom])
            centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
            turned = frame.reshape(3, 3)
            middle = model.geom_pos[geom] + turned @ centre
            reach = np.maximum(reach, np.abs(middle) + np.abs(turned) @ half)
    return reach
