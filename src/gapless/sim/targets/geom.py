"""What can be wrong in a geom: its surface and its size; and what MuJoCo makes of two surfaces that touch."""

from dataclasses import dataclass, replace

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.sim.targets.target import Fields, Index, NamedElements, Target, field_target, size_target

_SMALL = 1e-15  # mjMINVAL
_RATIOS = np.concatenate([np.linspace(0.0, 2.0, 401), np.geomspace(2.01, 20.0, 100)])  # of damping


@dataclass(frozen=True)
class Surface:
    """How a contact behaves."""

    condim: int  # 1 without friction, 3 with sliding, 4 with torsional, 6 with rolling friction
    friction: Array  # (3,) sliding, torsional and rolling friction
    solref: Array  # (2,) time constant and damping ratio, or -stiffness and -damping
    solimp: Array  # (5,) impedance


def geom_target(named: NamedElements) -> Target:
    """Returns a target of geoms."""
    makers = {"friction": _friction_target, "restitution": _restitution_target, "stiffness": _stiffness_target}
    if named.field in makers:
        return makers[named.field](named)
    axis = "xyz".index(named.field[-1])
    ids = named.ids[named.model.geom_size[named.ids, axis] > 0]
    if not len(ids):
        raise named.error(f"this shape has no {named.field}; write size/x")
    return field_target(replace(named, ids=ids), "m", "geom_size", axis, constants=True)


def decide_alone(fields: Fields, here: Index, surfaces: list[Surface], model: mujoco.MjModel) -> None:
    """Lets geoms decide on their contacts alone, by priority, as these were before.

    Without priority MuJoCo takes the larger friction of the two geoms, so that a smaller one would not show.
    Geoms that decide already, because another parameter of theirs was written, are left as they are.
    """
    priority = fields.of("geom_priority")
    rank = max(10, int(model.geom_priority.max()) + 1)
    worlds, places = np.nonzero(priority[here] != rank)
    if not len(worlds):
        return
    those = (here[0][worlds, 0], here[1][0, places])
    fields.of("geom_condim")[those] = np.array([s.condim for s in surfaces])[places]
    for name in ("friction", "solref", "solimp"):
        field, written = fields.of(f"geom_{name}"), fields.nominal(f"geom_{name}")[those[1]]
        factor = np.divide(field[those], written, out=np.ones(written.shape), where=written != 0)  # of `*`, if any
        field[those] = np.stack([getattr(s, name) for s in surfaces])[places] * factor
    priority[those] = rank


def _friction_target(named: NamedElements) -> Target:
    """Returns the target of the sliding friction of all contacts of a geom, or of a factor on all frictions.

    With several partners of different friction, one number cannot be the model as written for all of them:
    the nominal value is that of the partners of `surface_of`, and contacts with others take it too.
    """
    model = named.model
    if named.shared:  # max(factor * a, factor * b) = factor * max(a, b): no geom needs to decide
        base = model.geom_friction[named.ids, 0].copy()

        def write_all(fields: Fields, here: Index, sizes: Array) -> None:
            factor = sizes.max(axis=1, keepdims=True) / base.max()
            fields.of("geom_friction")[(*here, 0)] *= factor  # what a geom that decides alone has is not its own

        return size_target(named, "contact", "1", base, write_all)
    surfaces = [surface_of(model, int(g)) for g in named.ids]

    def write_sizes(fields: Fields, here: Index, sizes: Array) -> None:
        decide_alone(fields, here, surfaces, model)
        fields.of("geom_friction")[(*here, 0)] = sizes

    return size_target(named, "contact", "1", np.array([s.friction[0] for s in surfaces]), write_sizes)


def _stiffness_target(named: NamedElements) -> Target:
    """Returns the target of a contact's stiffness, with its damping ratio kept, or of a factor on all stiffnesses.

    With time constant t and ratio r the stiffness is 1 / (t r)^2 and the damping 2 / t, both to be divided by
    the impedance (MuJoCo manual, Solver parameters); written as -stiffness and -damping. A factor shrinks times by its
    root, or lets dampings grow by it.
    """
    model = named.model
    if named.shared:
        is_time = model.geom_solref[named.ids, 0] > 0

        def write_factor(fields: Fields, values: Array) -> None:
            here, root = np.ix_(fields.ids, named.ids), np.sqrt(values)[:, None]
            solref = fields.of("geom_solref")
            solref[(*here, 0)] *= np.where(is_time, 1 / root, root**2)
            solref[(*here, 1)] *= np.where(is_time, 1.0, root)

        return Target(named.path, "contact", "1", 1.0, write_factor)
    surfaces = [surface_of(model, int(g)) for g in named.ids]
    base, ratio = np.array([springs(model, s.solref) for s in surfaces]).T

    def write_sizes(fields: Fields, here: Index, sizes: Array) -> None:
        decide_alone(fields, here, surfaces, model)
        fields.of("geom_solref")[here] = np.stack([-sizes, -2 * ratio * np.sqrt(sizes)], axis=-1)

    return size_target(named, "contact", "1/s²", base, write_sizes)


def _restitution_target(named: NamedElements) -> Target:
    """Returns the target of how fast a geom leaves what it hits, as a share of how fast it came; stiffness kept."""
    named.require_one("a restitution")
    model, geom = named.model, int(named.ids[0])
    surface = surface_of(model, geom)
    nominal = float(restitution(springs(model, surface.solref)[1]))

    def write(fields: Fields, values: Array) -> None:
        ids = fields.ids[values != nominal]
        decide_alone(fields, np.ix_(ids, named.ids), [surface], model)
        solref = fields.of("geom_solref")
        stiffness = springs(model, solref[ids, geom])[0]
        damping = 2 * damping_ratio(values[values != nominal]) * np.sqrt(stiffness)
        solref[ids, geom] = np.stack([-stiffness, -damping], axis=1)

    return Target(named.path, "contact", "1", nominal, write, turn=1)


def springs(model: mujoco.MjModel, solref: Array) -> tuple[Array, Array]:
    """Returns stiffness [1/s²] and damping ratio [1] of contacts' references, (..., 2)."""
    first, second = solref[..., 0], solref[..., 1]
    stiffness = np.maximum(-first, 1e-9)
    safe = not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_REFSAFE
    time_s = np.maximum(first, 2 * model.opt.timestep if safe else 1e-6)
    ratio = np.maximum(second, 1e-3)
    direct = first <= 0
    return (
        np.where(direct, stiffness, 1 / (time_s * ratio) ** 2),
        np.where(direct, -second / (2 * np.sqrt(stiffness)), ratio),
    )


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
