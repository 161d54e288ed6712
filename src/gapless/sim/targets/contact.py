"""What MuJoCo makes of the surfaces of two geoms that touch."""

from dataclasses import dataclass

import mujoco
import numpy as np

from gapless.core.signal import Array

_SMALL = 1e-15  # mjMINVAL


@dataclass(frozen=True)
class Surface:
    """How a contact behaves.

    Attributes:
        condim: 1 without friction, 3 with sliding, 4 with torsional, 6 with rolling friction.
        friction: (3,) sliding, torsional and rolling friction.
        solref: (2,) time constant and damping ratio, or -stiffness and -damping.
        solimp: (5,) impedance.
    """

    condim: int
    friction: Array
    solref: Array
    solimp: Array


def effective_friction(model: mujoco.MjModel, geom: int) -> float:
    """Returns the sliding friction of a geom's contacts; where they differ, see `surface_of`."""
    return float(surface_of(model, geom).friction[0])


def surface_of(model: mujoco.MjModel, geom: int) -> Surface:
    """Returns how contacts of a geom behave.

    They may differ from partner to partner. Then those count that it touches where the model starts, else
    those that never move, else all; and of them the one with the most friction.
    """
    found = _touched(model, geom) or [g for g in range(model.ngeom) if _may_touch(model, geom, g)]
    fixed = [g for g in found if model.body_weldid[model.geom_bodyid[g]] == 0]
    surfaces = [_mixed(model, geom, other) for other in fixed or found]
    return max(surfaces or [_own(model, geom)], key=lambda surface: float(surface.friction[0]))


def _touched(model: mujoco.MjModel, geom: int) -> list[int]:
    data = mujoco.MjData(model)
    mujoco.mj_fwdPosition(model, data)
    pairs = [(int(a), int(b)) for a, b in data.contact.geom]
    return sorted({b if a == geom else a for a, b in pairs if geom in (a, b)})


def _may_touch(model: mujoco.MjModel, geom: int, other: int) -> bool:
    same = model.body_weldid[model.geom_bodyid[geom]] == model.body_weldid[model.geom_bodyid[other]]
    masks = (model.geom_contype[other] & model.geom_conaffinity[geom]) | (
        model.geom_contype[geom] & model.geom_conaffinity[other]
    )
    return bool(masks) and not same


def _own(model: mujoco.MjModel, geom: int) -> Surface:
    return Surface(
        int(model.geom_condim[geom]),
        model.geom_friction[geom].copy(),
        model.geom_solref[geom].copy(),
        model.geom_solimp[geom].copy(),
    )


def _mixed(model: mujoco.MjModel, geom: int, other: int) -> Surface:
    """Returns the surface of a contact: of the higher priority, else mixed as MuJoCo does."""
    first, second = _own(model, geom), _own(model, other)
    ahead = int(model.geom_priority[geom]) - int(model.geom_priority[other])
    if ahead:
        return first if ahead > 0 else second
    share = _share(float(model.geom_solmix[geom]), float(model.geom_solmix[other]))
    both_times = first.solref[0] > 0 and second.solref[0] > 0
    return Surface(
        max(first.condim, second.condim),
        np.maximum(first.friction, second.friction),
        share * first.solref + (1 - share) * second.solref if both_times else np.minimum(first.solref, second.solref),
        share * first.solimp + (1 - share) * second.solimp,
    )


def _share(first: float, second: float) -> float:
    if first >= _SMALL and second >= _SMALL:
        return first / (first + second)
    if first < _SMALL and second < _SMALL:
        return 0.5
    return 1.0 if first >= _SMALL else 0.0
