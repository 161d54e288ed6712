"""The model without what never acts in some logs: contacts, where nothing touches. Predictions cost a third less."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import mujoco

from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.logged_states import find_near_pairs

NEAR_M = 0.01  # what comes nearer than this may touch in a prediction
_SPARED = int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_ISLAND)


def without_idle_contacts(blueprint: CompiledProject, tracks: Sequence[Track]) -> CompiledProject:
    """Returns a project whose contacts are switched off if nothing comes near anything in its logs; else the same."""
    if not tracks or _may_touch(blueprint, tracks):
        return blueprint
    model = copy.copy(blueprint.model)
    model.opt.disableflags |= _SPARED
    return replace(blueprint, model=model)


def is_smooth(blueprint: CompiledProject) -> bool:
    """Tells whether nothing can touch: what is predicted then hardly jumps as parameters move."""
    return bool(blueprint.model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CONTACT))


def _may_touch(blueprint: CompiledProject, tracks: Sequence[Track]) -> bool:
    """Tells whether any pair that can collide comes near in measured states; it may where no state is known."""
    model, num_states = blueprint.model, 0
    if not (model.geom_contype.any() or model.geom_conaffinity.any() or model.npair):
        return False
    for pairs in find_near_pairs(blueprint, tracks, NEAR_M):
        if len(pairs):
            return True
        num_states += 1
    return num_states == 0
