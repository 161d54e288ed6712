"""A layer at work: its knobs, its state, and the part of a signal that it acts on."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import Moment, State, restarted
from gapless.sim.targets.use import Use

Ids = NDArray[np.intp]
Seen = Mapping[str, Array]  # fields of a moment, for all columns of the whole signal
WITH_COLUMNS = ("position", "velocity", "load", "place")


class Playing:
    """A use of a layer with its state."""

    def __init__(self, use: Use, whole: Ids) -> None:
        """Makes a layer that acts on some columns of a signal.

        Args:
            use: The layer, its elements and its knobs.
            whole: (num_columns,) elements of the whole signal; with several columns per element, each as often.
        """
        self.use = use
        self.state: State | None = None
        self._name = f"{use.kind} {use.layer.name} {use.ids.tolist()}"
        found = [int(np.flatnonzero(whole == element)[k]) for element in use.ids for k in range(use.width)]
        self._everything = found == list(range(len(whole)))
        self._columns = np.array(found, np.intp)

    def act(self, signal: Array, step_s: float, draws: Draws, seen: Seen) -> Array:
        """Returns the whole signal after this layer, (num_worlds, num_columns); begins where it has not."""
        part = signal if self._everything else signal[:, self._columns]
        moment = self._moment(step_s, draws, seen)
        if self.state is None:
            self.state = self.use.layer.begin(part, self.use.values, moment)
        self.state, out = self.use.layer.act(self.state, part, self.use.values, moment)
        if self._everything:
            return out
        signal = signal.copy()
        signal[:, self._columns] = out
        return signal

    def first(self, signal: Array, step_s: float, draws: Draws, seen: Seen, ids: Ids) -> Array:
        """Begins anew in some worlds and returns the whole signal after this layer there; elsewhere as it was."""
        before = self.state
        self.begin(signal, step_s, draws, seen, ids)
        if before is None or len(ids) == len(signal):
            return self.act(signal, step_s, draws, seen)
        begun = self.state
        out = self.act(signal, step_s, draws, seen)
        assert begun is not None
        assert self.state is not None
        self.state = restarted(begun, tuple(part[ids] for part in self.state), ids)
        return out

    def begin(self, signal: Array, step_s: float, draws: Draws, seen: Seen, ids: Ids | None) -> None:
        """Begins anew in some worlds, as if the signal, (num_worlds, num_columns), had always been there."""
        part = signal if self._everything else signal[:, self._columns]
        moment = self._moment(step_s, draws, seen)
        if ids is None or self.state is None or len(ids) == len(signal):
            self.state = self.use.layer.begin(part, self.use.values, moment)
            return
        given = {name: getattr(moment, name)[ids] for name in self.use.layer.needs}
        fresh = self.use.layer.begin(part[ids], self.use.rows(ids), replace(moment, draws=draws.rows(ids), **given))
        self.state = restarted(self.state, fresh, ids)

    def _moment(self, step_s: float, draws: Draws, seen: Seen) -> Moment:
        given = {name: self._part(name, seen[name]) for name in self.use.layer.needs}
        return Moment(step_s, draws.named(self._name), **given)

    def _part(self, name: str, values: Array) -> Array:
        return values if self._everything or name not in WITH_COLUMNS else values[:, self._columns]
