"""Where parameters are written: per-world model fields, and the signal path around the engine."""

import mujoco
import numpy as np
from mujoco.batch import Batch
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.sim.targets.use import Use, UseKey


class Fields:
    """Per-world values that parameter targets write to. Nothing here outlives `restore`."""

    def __init__(self, model: mujoco.MjModel, num_worlds: int, num_measurements: int) -> None:
        """Makes the ideal signal path: no delay, no lag, no play, no bias."""
        self.model = model
        self.batch: Batch | None = None
        self.num_worlds = num_worlds
        self.ids: NDArray[np.intp] = np.arange(num_worlds)
        self.needs_constants = False
        num_actuators = model.nu
        self.delay_s = np.zeros((num_worlds, num_actuators))
        self.lag_s = np.zeros((num_worlds, num_actuators))
        self.backlash = np.zeros((num_worlds, num_actuators))
        self.target_offset = np.zeros((num_worlds, num_actuators))
        self.bias = np.zeros((num_worlds, num_measurements))
        self.scale = np.ones((num_worlds, num_measurements))
        self.reading_delay_s = np.zeros((num_worlds, num_measurements))
        self.uses: dict[UseKey, Use] = {}
        self._touched: dict[str, Array] = {}

    def restore(self, ids: NDArray[np.intp]) -> None:
        """Makes some worlds as the model was written, ready to be written to."""
        self.ids = ids
        for name, field in self._touched.items():
            field[ids] = self.nominal(name)
        for ideal in (self.delay_s, self.lag_s, self.backlash, self.target_offset, self.bias, self.reading_delay_s):
            ideal[ids] = 0.0
        self.scale[ids] = 1.0
        for use in self.uses.values():
            use.restore(ids)

    @property
    def expanded(self) -> tuple[str, ...]:
        """Names of the model fields that have values per world."""
        return tuple(self._touched)

    def nominal(self, name: str) -> Array:
        """Returns a model field as it was written."""
        if name.startswith("opt."):
            return np.asarray(getattr(self.model.opt, name[4:]))
        return getattr(self.model, name)

    def now(self, name: str) -> Array:
        """Returns the values of a model field, (num_worlds or 1, ...), without giving it values per world."""
        return self._touched[name] if name in self._touched else self.nominal(name)[None]

    def of(self, name: str, *, constants: bool = False) -> Array:
        """Returns the live (num_worlds, ...) values of a model field.

        Args:
            name: A field of MjModel, or `opt.NAME` of its options.
            constants: Whether constants derived from it must be computed anew.
        """
        if name not in self._touched:
            if self.batch is None:
                raise RuntimeError("fields have no batch yet")
            self._touched[name] = self.batch.expand(name)
        self.needs_constants |= constants
        return self._touched[name]
