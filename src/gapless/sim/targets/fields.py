"""Where parameters are written: per-world model fields, and the signal path around the engine."""

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.sim.active_layers.active_layer import ActiveLayer, LayerKey


class Fields:
    """Per-world values that parameter targets write to. Nothing here outlives `restore`."""

    def __init__(
        self, model: mujoco.MjModel, batch: Batch, num_measurements: int, active_layers: dict[LayerKey, ActiveLayer]
    ) -> None:
        """Makes the ideal signal path: no delay, no lag, no play, no bias."""
        self.model, self.batch, self.active_layers = model, batch, active_layers
        self.num_worlds = num_worlds = batch.nsim
        self.ids: NDArray[np.intp] = np.arange(num_worlds)
        self.needs_constants = False
        self.delay_s, self.lag_s, self.backlash, self.target_offset = np.zeros((4, num_worlds, model.nu))
        self.bias, self.reading_delay_s = np.zeros((2, num_worlds, num_measurements))
        self.scale = np.ones((num_worlds, num_measurements))
        self._per_world: dict[str, Array] = {}

    def restore(self, ids: NDArray[np.intp]) -> None:
        """Makes some worlds as the model was written, ready to be written to."""
        self.ids = ids
        for name, field in self._per_world.items():
            field[ids] = self.nominal(name)
        for ideal in (self.delay_s, self.lag_s, self.backlash, self.target_offset, self.bias, self.reading_delay_s):
            ideal[ids] = 0.0
        self.scale[ids] = 1.0
        for layer in self.active_layers.values():
            layer.restore(ids)

    @property
    def expanded(self) -> tuple[str, ...]:
        """Names of the model fields that have values per world."""
        return tuple(self._per_world)

    def nominal(self, name: str) -> Array:
        """Returns a model field as it was written."""
        return np.asarray(getattr(self.model.opt, name[4:])) if name.startswith("opt.") else getattr(self.model, name)

    def current(self, name: str) -> Array:
        """Returns the values of a model field, (num_worlds or 1, ...), without giving it values per world."""
        return self._per_world[name] if name in self._per_world else self.nominal(name)[None]

    def of(self, name: str, *, constants: bool = False) -> Array:
        """Returns the live (num_worlds, ...) values of a model field.

        Args:
            name: A field of MjModel, or `opt.NAME` of its options.
            constants: Whether constants derived from it must be computed anew.
        """
        if name not in self._per_world:
            self._per_world[name] = self.batch.expand(name)
        self.needs_constants |= constants
        return self._per_world[name]
