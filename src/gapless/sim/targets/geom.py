"""What can be wrong in a geom: its surface and its size."""

from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array
from gapless.sim.targets.contact import Surface, damping_ratio, restitution, surface_of
from gapless.sim.targets.fields import Fields
from gapless.sim.targets.target import Block, Place, Target, sized


def geom_target(place: Place) -> Target:
    """Returns a target of geoms."""
    place.require_field()
    if place.field == "friction":
        return _friction(place)
    if place.field == "restitution":
        return _restitution(place)
    return _stiffness(place) if place.field == "stiffness" else _size(place)


def _size(place: Place) -> Target:
    axis = "xyz".index(place.field[-1])
    ids = place.ids[place.model.geom_size[place.ids, axis] > 0]
    if not len(ids):
        raise InputError(f"parameter {place.path}: this shape has no {place.field}; write size/x")

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        fields.of("geom_size", constants=True)[(*here, axis)] = sizes

    place = replace(place, ids=ids)
    return sized(place, "object", "m", place.model.geom_size[ids, axis].copy(), put)


def take_over(fields: Fields, here: Block, surfaces: list[Surface], model: mujoco.MjModel) -> None:
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


def _friction(place: Place) -> Target:
    """Returns the target of the sliding friction of all contacts of a geom, or of a factor on all frictions.

    With several partners of different friction, one number cannot be the model as written for all of them:
    the nominal value is that of the partners of `surface_of`, and contacts with others take it too.
    """
    model = place.model
    if place.shared:  # max(factor * a, factor * b) = factor * max(a, b): no geom needs to decide
        base = model.geom_friction[place.ids, 0].copy()

        def put_all(fields: Fields, here: Block, sizes: Array) -> None:
            factor = sizes.max(axis=1, keepdims=True) / base.max()
            fields.of("geom_friction")[(*here, 0)] *= factor  # what a geom that decides alone has is not its own

        return sized(place, "contact", "1", base, put_all)
    surfaces = [surface_of(model, int(g)) for g in place.ids]

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        take_over(fields, here, surfaces, model)
        fields.of("geom_friction")[(*here, 0)] = sizes

    return sized(place, "contact", "1", np.array([s.friction[0] for s in surfaces]), put)


def _stiffness(place: Place) -> Target:
    """Returns the target of a contact's stiffness, with its damping ratio kept.

    With time constant t and ratio r the stiffness is 1 / (t r)^2 and the damping 2 / t, both to be divided by
    the impedance (MuJoCo manual, Solver parameters); written as -stiffness and -damping.
    """
    model = place.model
    if place.shared:
        return _shared_stiffness(place)
    surfaces = [surface_of(model, int(g)) for g in place.ids]
    base, ratio = np.array([springs(model, s.solref) for s in surfaces]).T

    def put(fields: Fields, here: Block, sizes: Array) -> None:
        take_over(fields, here, surfaces, model)
        fields.of("geom_solref")[here] = np.stack([-sizes, -2 * ratio * np.sqrt(sizes)], axis=-1)

    return sized(place, "contact", "1/s²", base, put)


def _shared_stiffness(place: Place) -> Target:
    """Returns the target of one factor on all: times shrink by its root, dampings grow by it."""
    is_time = place.model.geom_solref[place.ids, 0] > 0

    def write(fields: Fields, values: Array) -> None:
        here, root = np.ix_(fields.ids, place.ids), np.sqrt(values)[:, None]
        solref = fields.of("geom_solref")
        solref[(*here, 0)] *= np.where(is_time, 1 / root, root**2)
        solref[(*here, 1)] *= np.where(is_time, 1.0, root)

    return Target(place.path, "contact", "1", 1.0, write)


def _restitution(place: Place) -> Target:
    """Returns the target of how fast a geom leaves what it hits, as a share of how fast it came; stiffness kept."""
    model = place.model
    if place.shared:
        raise InputError(f"parameter {place.path}: a restitution belongs to one geom; name it")
    surfaces = [surface_of(model, int(place.ids[0]))]
    nominal = float(restitution(springs(model, surfaces[0].solref)[1]))

    def write(fields: Fields, values: Array) -> None:
        ids = fields.ids[values != nominal]
        here = np.ix_(ids, place.ids)
        take_over(fields, here, surfaces, model)
        solref = fields.of("geom_solref")[ids, place.ids[0]]
        stiffness = springs(model, solref)[0]
        damping = 2 * damping_ratio(values[values != nominal]) * np.sqrt(stiffness)
        fields.of("geom_solref")[ids, place.ids[0]] = np.stack([-stiffness, -damping], axis=1)

    return Target(place.path, "contact", "1", nominal, write, turn=1)


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
