"""Measured states of some logs, as the engine has them: a sample of all rows."""

import copy
from collections.abc import Iterator, Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.restart import StateReader

NUM_STATES = 300  # about as many, at most twice


def measured_states(blueprint: CompiledProject, tracks: Sequence[Track]) -> tuple[Array, Array, Array]:
    """Returns positions, velocities and the commands in force in some rows of the logs that are wholly known."""
    readings, slopes, commands = (
        np.concatenate([getattr(track, name) for track in tracks]) for name in ("smooth", "slope", "commands")
    )
    some = np.flatnonzero(np.isfinite(readings).all(axis=1))
    some = some[:: max(1, len(some) // NUM_STATES)]
    qpos, qvel = StateReader.of(blueprint.project, blueprint.model).state(readings[some], slopes[some])
    return qpos, qvel, commands[some]


def find_near_pairs(blueprint: CompiledProject, tracks: Sequence[Track], near_m: float) -> Iterator[NDArray[np.int32]]:
    """Yields the pairs of geoms that can collide and are nearer than this, (num_pairs, 2), in each measured state."""
    model = copy.copy(blueprint.model)
    model.geom_margin[:] += near_m
    data = mujoco.MjData(model)
    for state in measured_states(blueprint, tracks)[0]:
        data.qpos = state
        mujoco.mj_fwdPosition(model, data)
        yield data.contact.geom.copy()
