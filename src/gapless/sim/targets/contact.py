"""What MuJoCo makes of the surfaces of two geoms that touch."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.signal import Array

_SMALL = 1e-15  # mjMINVAL
_RATIOS = np.concatenate([np.linspace(0.0, 2.0, 401), np.geomspace(2.01, 20.0, 100)])  # of damping


@dataclass(frozen=True)
class Surface:
    """How a contact behaves."""

    condim: int  # 1 without friction, 3 with sliding, 4 with torsional, 6 with rolling friction
    friction: Array  # (3,) sliding, torsional and rolling friction
    solref: Array  # (2,) time constant and damping ratio, or -stiffness and -damping
    solimp: Array  # (5,) impedance


def surface_of(model: mujoco.MjModel, geom: int) -> Surface:
    """Returns how contacts of a geom behave.

    They may differ from partner to partner. Then those count that it touches where the model starts, else
    those that never move, else all; and of them the one with the most friction.
    """
    data = mujoco.MjData(model)
    mujoco.mj_fwdPosition(model, data)
    pairs = [(int(a), int(b)) for a, b in data.contact.geom]
    touched = sorted({b if a == geom else a for a, b in pairs if geom in (a, b)})
    found = touched or [g for g in range(model.ngeom) if _may_touch(model, geom, g)]
    fixed = [g for g in found if model.body_weldid[model.geom_bodyid[g]] == 0]
    surfaces = [_mix_surfaces(model, geom, other) for other in fixed or found]
    return max(surfaces or [_own_surface(model, geom)], key=lambda surface: float(surface.friction[0]))


def _may_touch(model: mujoco.MjModel, geom: int, other: int) -> bool:
    same = model.body_weldid[model.geom_bodyid[geom]] == model.body_weldid[model.geom_bodyid[other]]
    one_way, back = ((model.geom_contype[a] & model.geom_conaffinity[b]) for a, b in ((other, geom), (geom, other)))
    return bool(one_way | back) and not same


def _own_surface(model: mujoco.MjModel, geom: int) -> Surface:
    fields = (model.geom_friction, model.geom_solref, model.geom_solimp)
    return Surface(int(model.geom_condim[geom]), *(field[geom].copy() for field in fields))


def _mix_surfaces(model: mujoco.MjModel, geom: int, other: int) -> Surface:
    """Returns the surface of a contact: of the higher priority, else mixed as MuJoCo does."""
    first, second = _own_surface(model, geom), _own_surface(model, other)
    ahead = int(model.geom_priority[geom]) - int(model.geom_priority[other])
    if ahead:
        return first if ahead > 0 else second
    one, two = float(model.geom_solmix[geom]), float(model.geom_solmix[other])
    share = one / (one + two) if min(one, two) >= _SMALL else 0.5 if max(one, two) < _SMALL else float(one >= _SMALL)
    both_times = first.solref[0] > 0 and second.solref[0] > 0
    return Surface(
        max(first.condim, second.condim),
        np.maximum(first.friction, second.friction),
        share * first.solref + (1 - share) * second.solref if both_times else np.minimum(first.solref, second.solref),
        share * first.solimp + (1 - share) * second.solimp,
    )


def restitution(ratio: Array | float) -> Array:
    """Returns how fast a body leaves a spring with damping, as a share of how fast it came.

    x'' = -2 r w x' - w^2 x from x = 0 until the force is gone, which is before x = 0: contacts do not pull.
    With s = sqrt(|1 - r^2|) the time is t w = (pi - 2 asin(r)) / s below r = 1 and 2 acosh(r) / s above it, and the
    speed has fallen to exp(-r t w) (Schwager and Poeschel, 2007). Gravity during the impact is left out.
    """
    ratio = np.asarray(ratio, dtype=np.float64)
    root = np.sqrt(np.abs(1 - ratio**2))
    close = root < 1e-6
    below = np.pi - 2 * np.arcsin(np.minimum(ratio, 1.0))
    above = 2 * np.arccosh(np.maximum(ratio, 1.0))
    time = np.where(close, 2.0, np.where(ratio < 1, below, above) / np.where(close, 1.0, root))
    return np.exp(-ratio * time)


def damping_ratio(share: Array) -> Array:
    """Returns the damping ratio that gives a restitution; the inverse of `restitution`, between 0 and 20."""
    return np.interp(-np.asarray(share), -restitution(_RATIOS), _RATIOS)
