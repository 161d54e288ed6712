"""Predictions: many rows of parameters on many windows, in one batched call."""

import copy
from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.fit.prediction.windows import Windows
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.logged_states import find_near_pairs
from gapless.sim.measurements import StateReader
from gapless.sim.realism.draws import Bits
from gapless.sim.simulation import Simulation

MAX_WORLDS = 2048
NEAR_M = 0.01  # what comes nearer than this may touch in a prediction
_SPARED = int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
_UNSTABLE = [
    int(w)
    for w in (mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADQVEL, mujoco.mjtWarning.mjWARN_BADQACC)
]


class Predictor:
    """Predicts windows under rows of parameters. Keeps its worlds between calls.

    In a space made with `for_runs`, a window is predicted with the values of its own run.
    """

    def __init__(self, blueprint: CompiledProject, space: ParameterSpace) -> None:
        """Prepares predictions of a project with the parameters of a space.

        `num_diverged` counts the predictions of the last call that the engine found unstable.
        """
        self.blueprint = blueprint
        self.space = space
        self._shared = space.shared
        self._states = StateReader.of(blueprint.project, blueprint.model)
        self._worlds: dict[int, Simulation] = {}
        self.num_diverged = 0

    def predict(self, windows: Windows, rows: Array) -> Array:
        """Returns what rows predict of windows, (num_rows, num_windows, num_steps + 1, num_measurements)."""
        num_rows, num_windows = len(rows), len(windows)
        pairs = np.stack(np.meshgrid(np.arange(num_rows), np.arange(num_windows), indexing="ij"), -1).reshape(-1, 2)
        shown = self.predict_pairs(windows, rows, pairs)
        return shown.reshape(num_rows, num_windows, *shown.shape[1:])

    def predict_pairs(self, windows: Windows, rows: Array, pairs: NDArray[np.intp]) -> Array:
        """Returns what some rows predict of some windows, (num_pairs, num_steps + 1, num_measurements).

        `pairs` are row and window of each, (num_pairs, 2).
        """
        if len(self._shared) < len(self.space):
            worlds, which = np.unique(self._own(windows, rows, pairs), axis=0, return_inverse=True)
            return self._each(windows, worlds[:, 1:], worlds[:, 0].astype(np.intp))[which]
        return self._each(windows, rows[pairs[:, 0]], pairs[:, 1])

    def predict_pushed(self, windows: Windows, row: Array, which: NDArray[np.intp], forces: Array) -> Array:
        """Returns what a row predicts of some windows while forces push, (num_pushed, num_steps + 1, num_measurements).

        `which` says the window of each, (num_pushed,); `forces` are (num_pushed, num_steps, nv) [N·m, N].
        """
        return self._each(windows, self.rows_of_windows(windows, row)[which], which, forces)

    def rows_of_windows(self, windows: Windows, row: Array) -> Array:
        """Returns the values that each window is predicted with, (num_windows, num_shared): those of its own run."""
        pairs = np.stack([np.zeros(len(windows), np.intp), np.arange(len(windows))], axis=1)
        return self._own(windows, row[None], pairs)[:, 1:]

    def _own(self, windows: Windows, rows: Array, pairs: NDArray[np.intp]) -> Array:
        """Returns the window of each pair, and the values that its run has, (num_pairs, 1 + num_shared).

        Most pairs are then alike: what one run alone has of its own changes nothing in the others.
        """
        asked, track = rows[pairs[:, 0]], windows.track[pairs[:, 1]]
        found = np.tile(np.concatenate([[0.0], self._shared.nominal]), (len(pairs), 1))
        found[:, 0] = pairs[:, 1]
        for k, parameter in enumerate(self.space.parameters):
            here = slice(None) if parameter.run is None else track == parameter.run
            found[here, 1 + self._shared.index(parameter.target)] = asked[here, k]
        return found

    def _each(self, windows: Windows, rows: Array, which: NDArray[np.intp], forces: Array | None = None) -> Array:
        """Returns predicted measurements of one window under one row each, in equal shares of worlds."""
        out = np.empty((len(which), windows.num_steps + 1, windows.measured.shape[2]))
        num_worlds = _even_share(len(which))
        self.num_diverged = 0
        for first in range(0, len(which), num_worlds):
            chunk = np.arange(first, min(first + num_worlds, len(which)))
            padded = chunk[np.minimum(np.arange(num_worlds), len(chunk) - 1)]
            world = self._world(num_worlds)
            world.set_parameters(rows[padded])
            pushes = None if forces is None else forces[padded]
            shown = play_windows(world, self._states, windows.pick(which[padded]), forces=pushes)
            out[first : first + len(chunk)] = shown[: len(chunk)]
            warned = world.batch.warning[: len(chunk), _UNSTABLE, 1]
            self.num_diverged += int(warned.any(axis=1).sum())
        return out

    def _world(self, num_worlds: int) -> Simulation:
        if num_worlds not in self._worlds:
            self._worlds[num_worlds] = Simulation(self.blueprint, num_worlds, self._shared)
        return self._worlds[num_worlds]


def play_windows(
    world: Simulation,
    states: StateReader,
    windows: Windows,
    identity: Bits | None = None,
    forces: Array | None = None,
) -> Array:
    """Returns what a simulation says of windows, one per world, (num_windows, num_steps + 1, num_measurements).

    Its parameters are set. `identity` says whose random numbers each world has, see `Simulation.restart`; `forces`
    push on degrees of freedom, see `Simulation.rollout`.
    """
    fields = world.fields
    start, slope = windows.start_after(fields.reading_delay_s, world.rate_hz)
    value, rate = (start - fields.bias) / fields.scale, slope / fields.scale
    qpos, qvel = states.state(value, rate)
    delay_s = fields.reading_delay_s
    before = np.where(delay_s > 0, (start - windows.start) / np.where(delay_s > 0, delay_s, 1.0), slope) / fields.scale
    shown = np.empty((len(windows), windows.num_steps + 1, value.shape[1]))
    shown[:, 0] = world.restart(qpos, qvel, windows.history, before, identity)
    shown[:, 1:] = world.rollout(windows.commands, forces)
    return shown


def _even_share(count: int) -> int:
    """Returns how many worlds to run at once: equal shares, rounded up by an eighth so that few sizes are kept."""
    num_calls = max(1, -(-count // MAX_WORLDS))
    share = -(-count // num_calls)
    multiple = max(2, 2 ** max(0, share.bit_length() - 4))
    return multiple * max(1, -(-share // multiple))


def without_idle_contacts(blueprint: CompiledProject, tracks: Sequence[Track]) -> CompiledProject:
    """Returns a project whose contacts are switched off if nothing comes near anything in its logs; else the same.

    Predictions then cost a third less.
    """
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
