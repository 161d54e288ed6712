"""The model without what never acts in some logs: contacts, where nothing touches. Predictions cost a third less."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.sim.blueprint import Blueprint
from gapless.sim.prediction.restart import StateReader
from gapless.tracks.track import Track

NEAR_M = 0.01  # what comes nearer than this may touch in a prediction
NUM_STATES = 300
_SPARED = int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_ISLAND)


def lean(blueprint: Blueprint, tracks: Sequence[Track]) -> Blueprint:
    """Returns a project whose contacts are switched off if nothing comes near anything in its logs; else the same."""
    if not tracks or _may_touch(blueprint, np.concatenate([track.smooth for track in tracks])):
        return blueprint
    model = copy.copy(blueprint.model)
    model.opt.disableflags |= _SPARED
    return replace(blueprint, model=model)


def is_smooth(blueprint: Blueprint) -> bool:
    """Tells whether nothing can touch: what is predicted then hardly jumps as parameters move."""
    return bool(blueprint.model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_CONTACT))


def _may_touch(blueprint: Blueprint, measured: Array) -> bool:
    """Tells whether any pair that can collide comes near in measured states, (num_states, num_measurements)."""
    model = copy.copy(blueprint.model)
    if not (model.geom_contype.any() or model.geom_conaffinity.any() or model.npair):
        return False
    model.geom_margin[:] += NEAR_M
    some = measured[np.isfinite(measured).all(axis=1)]
    some = some[:: max(1, len(some) // NUM_STATES)]
    qpos, _ = StateReader.of(blueprint.project, model).state(some, np.zeros_like(some))
    data = mujoco.MjData(model)
    for state in qpos:
        data.qpos = state
        mujoco.mj_fwdPosition(model, data)
        if data.ncon:
            return True
    return not len(qpos)
