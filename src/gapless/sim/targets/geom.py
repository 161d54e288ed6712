"""What can be wrong in a geom: its surface and its size."""

from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.sim.targets.contact import Surface, damping_ratio, restitution, surface_of
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.target import Index, NamedElements, Target, set_field, size_target


def geom_target(named: NamedElements) -> Target:
    """Returns a target of geoms."""
    named.require_field()
    makers = {"friction": _friction_target, "restitution": _restitution_target, "stiffness": _stiffness_target}
    return makers.get(named.field, _size_target)(named)


def _size_target(named: NamedElements) -> Target:
    axis = "xyz".index(named.field[-1])
    ids = named.ids[named.model.geom_size[named.ids, axis] > 0]
    if not len(ids):
        raise named.error(f"this shape has no {named.field}; write size/x")
    base = named.model.geom_size[ids, axis].copy()
    return size_target(replace(named, ids=ids), "object", "m", base, set_field("geom_size", axis, constants=True))


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
