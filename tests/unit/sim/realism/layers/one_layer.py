"""Plays one layer on one column or many, with short arguments."""

from dataclasses import replace

import numpy as np

from gapless.core.signal import Array
from gapless.sim.realism.draws import Draws
from gapless.sim.realism.layer import Knobs, Layer, LayerContext, State


def run_layer(layer: Layer, signals: Array, knobs: Knobs, context: LayerContext, **varying: Array) -> Array:
    """Returns the output of a layer over time for signals, (num_steps, num_worlds, num_columns) each.

    `context` is that of the first step; `varying` are fields of it that change, each with num_steps in front.
    """
    out = np.empty_like(signals)
    state: State = ()
    for k, signal in enumerate(signals):
        now = {name: values[k] for name, values in varying.items()}
        here = replace(context, draws=context.draws.at(context.draws.step + k), **now)
        if k == 0:
            state = layer.begin(signal, knobs, here)
        state, out[k] = layer.act(state, signal, knobs, here)
    return out


def run(
    layer: Layer,
    signal: np.ndarray,
    *,
    step_s: float = 0.01,
    num_worlds: int = 1,
    seed: int = 0,
    seen: dict[str, np.ndarray] | None = None,
    **knobs: float | np.ndarray,
) -> np.ndarray:
    """Returns what a layer makes of a signal, (num_steps, num_worlds, num_columns).

    `signal` and what is `seen` are (num_steps,), (num_steps, num_columns) or whole; knobs that are not given are ideal.
    """

    def whole(values: np.ndarray) -> np.ndarray:
        values = np.asarray(values, dtype=np.float64)
        values = values[:, None] if values.ndim == 1 else values
        values = values[:, None] if values.ndim == 2 else values
        return np.broadcast_to(values, (len(values), num_worlds, *values.shape[2:])).copy()

    values = layer.ideal(num_worlds)
    for name, value in knobs.items():
        assert name in values, name
        row = np.atleast_2d(np.asarray(value, dtype=np.float64))
        values[name] = np.broadcast_to(row, (num_worlds, row.shape[1])).copy()
    context = LayerContext(step_s, Draws(seed, np.arange(num_worlds, dtype=np.uint64)))
    first = {name: whole(item) for name, item in (seen or {}).items()}
    return run_layer(layer, whole(signal), values, context, **first)


def flat(layer: Layer, signal: np.ndarray, **arguments: object) -> np.ndarray:
    """Returns the only column of the only world, (num_steps,)."""
    return run(layer, signal, **arguments)[:, 0, 0]  # type: ignore[arg-type]
