"""Layers by path, the order in which a signal passes them, and the knobs that nobody named.

Whoever names one knob of a layer switches the layer on. Each knob that is not named takes its typical value if, with
the named ones at ideal, the layer then still changes nothing; else its ideal. So a named knob at its ideal leaves the
model as it was written, and what only shapes an effect (a Stribeck speed, a wavelength) needs no name.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import Knob, Layer, Moment, Target, play
from gapless.sim.realism.registry import LAYERS

NUM_STEPS, MANY_STEPS, STEP_S = 6, 150, 0.02
SIZES = (1e-3, 1.0, 1e3)  # of the signals and of what moments tell: a limit of 5 is none to a signal of 1


def path_of(layer: Layer) -> str:
    """Returns a layer's part of a path: its name in lower case, hyphens for spaces."""
    return layer.name.lower().replace(" ", "-")


BY_PATH: Mapping[str, Layer] = {path_of(layer): layer for layer in LAYERS}


def in_order(acts_on: Target) -> tuple[Layer, ...]:
    """Returns the layers of a signal as it passes them: commands are late first, readings are late last."""
    chosen = [layer for layer in LAYERS if layer.acts_on == acts_on]
    late = [layer for layer in chosen if layer.dimension == "latency"]
    others = [layer for layer in chosen if layer.dimension != "latency"]
    return (*late[::-1], *others) if acts_on == "command" else (*others, *late)


def as_written(knob: Knob) -> float:
    """Returns the value that leaves the model as it was written: the ideal, or the top of the range for no limit."""
    return knob.ideal if np.isfinite(knob.ideal) else knob.high


@lru_cache(maxsize=1024)
def not_named(layer: Layer, named: frozenset[str]) -> Mapping[str, float]:
    """Returns the values of the knobs that are not named."""
    values = {knob.name: as_written(knob) if knob.name in named else knob.ideal for knob in layer.knobs}
    for knob in layer.knobs:
        typical = values | {knob.name: knob.typical}
        if knob.name not in named and typical != values and _changes_nothing(layer, typical):
            values = typical
    return {name: value for name, value in values.items() if name not in named}


@lru_cache(maxsize=1024)
def is_random_knob(layer: Layer, name: str) -> bool:
    """Tells whether a knob shows only in how runs scatter: not in the median run, or in what is drawn once per run.

    A prediction then says nothing of it: it is estimated from statistics of what predictions leave (`fit.scatter`).
    """
    knob = next(knob for knob in layer.knobs if knob.name == name)
    typical = {knob.name: knob.typical for knob in layer.knobs}
    other = typical | {name: knob.low if knob.typical != knob.low else knob.high}
    expected = (Draws(0, _ONE, median=True),)
    drawn = [_played(layer, values, _ANY, MANY_STEPS) for values in (typical, other)]
    if all(map(np.array_equal, _played(layer, typical, expected), _played(layer, other, expected))):
        return not all(map(np.array_equal, *drawn))
    return "place" in layer.needs  # a pattern on the floor, drawn once per run


class _Whatever(Draws):
    """Draws with which everything happens that may."""

    def uniform(self, stream: str, columns: int | NDArray[np.int64]) -> Array:
        """Returns numbers below any chance but none."""
        return np.full(self._shape(columns), 1e-9)

    def normal(self, stream: str, columns: int | NDArray[np.int64]) -> Array:
        """Returns ones."""
        return np.ones(self._shape(columns))


_ONE = np.zeros(1, dtype=np.uint64)
_ANY = (_Whatever(0, _ONE), Draws(0, _ONE))


def _changes_nothing(layer: Layer, values: Mapping[str, float]) -> bool:
    """Tells whether small and large signals come out as they went in."""
    return all(map(np.array_equal, _played(layer, values, _ANY), _signals(layer, len(_ANY))))


def _signals(layer: Layer, times: int, num_steps: int = NUM_STEPS) -> list[Array]:
    """Returns small and large signals, (num_steps, 1, num_columns) each, each so many times."""
    shape = (num_steps, 1, len(layer.columns) or 2)
    return [size * np.random.default_rng(0).normal(size=shape) for size in SIZES for _ in range(times)]


def _played(
    layer: Layer, values: Mapping[str, float], any_draws: tuple[Draws, ...], num_steps: int = NUM_STEPS
) -> list[Array]:
    """Returns what becomes of small and large signals."""
    width = len(layer.columns) or 2
    knobs = {name: np.full((1, 1), value) for name, value in values.items()}
    shapes = {"place": (width, 2), "warmth_k": (1,)}
    out: list[Array] = []
    for k, signals in enumerate(_signals(layer, len(any_draws), num_steps)):
        size, draws, rng = SIZES[k // len(any_draws)], any_draws[k % len(any_draws)], np.random.default_rng(1)
        seen = {name: size * rng.normal(size=(num_steps, 1, *shapes.get(name, (width,)))) for name in layer.needs}
        out.append(play(layer, signals, knobs, Moment(STEP_S, draws), **seen))
    return out
