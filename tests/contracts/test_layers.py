"""Every realism layer through the public checker, and the checker itself on layers that break the contract."""

from dataclasses import replace

import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.sim.realism.contract import check_layer
from gapless.sim.realism.layer import Knob, Layer
from gapless.sim.realism.registry import LAYERS


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_a_layer_keeps_the_contract(layer: Layer) -> None:
    check_layer(layer)


def test_names_are_unique() -> None:
    assert len({layer.name for layer in LAYERS}) == len(LAYERS)


def _add(state, signal, knobs, moment):
    return state, signal + knobs["size"]


SIZE = Knob("size", "1", 0.0, 0.0, 1.0, 0.5, "made up")
SOUND = Layer("sound", "sensor", "reading", (SIZE,), _add)


def _not_identity(state, signal, knobs, moment):
    return state, (1 + knobs["size"]) * signal / 3 * 3  # rounds


def _of_the_batch(state, signal, knobs, moment):
    return state, signal + knobs["size"] * signal.mean()


def _of_the_place(state, signal, knobs, moment):
    return state, signal + knobs["size"] * np.arange(len(signal))[:, None]


def _own_generator(state, signal, knobs, moment):
    return state, signal + knobs["size"] * np.random.default_rng(0).normal(size=signal.shape)


def _not_finite(state, signal, knobs, moment):
    return state, signal / (knobs["size"] != 1.0)  # at the end of the range only


def _unstable(state, signal, knobs, moment):
    (before,) = state
    after = np.where(knobs["size"] > 0, before - 1e12 * (1 + before**2), 0.0)
    return (after,), signal + after


def _global(state, signal, knobs, moment):
    return state, signal + knobs["size"] * np.random.normal(size=signal.shape)


class _Hidden:
    """Remembers on its own instead of in the state."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, state, signal, knobs, moment):
        self.count += 1
        return state, signal + knobs["size"] * self.count


def _in_place(state, signal, knobs, moment):
    signal += knobs["size"]
    return state, signal


def _state_in_place(state, signal, knobs, moment):
    state[0][:] += knobs["size"]
    return state, signal + state[0]


def _shapeless(state, signal, knobs, moment):
    return state, signal[:, 0]


def _single(state, signal, knobs, moment):
    return state, (signal + knobs["size"]).astype(np.float32)


def _zeros(signal, knobs, moment):
    return (np.zeros_like(signal),)


def _scalar_state(state, signal, knobs, moment):
    return (np.zeros(7),), signal + knobs["size"]


def _common_clock(state, signal, knobs, moment):
    (time_s,) = state
    return (time_s + moment.step_s,), signal + knobs["size"] * time_s.max()


def _clock(signal, knobs, moment):
    return (np.zeros((len(signal), 1)),)


BREACHES = {
    "common clock": (replace(SOUND, act=_common_clock, start=_clock), "begins anew in a batch differs"),
    "not identity": (replace(SOUND, act=_not_identity), "at ideal its signal changes"),
    "mean of the batch": (replace(SOUND, act=_of_the_batch), "a batch of one differs"),
    "place in the batch": (replace(SOUND, act=_of_the_place), "a batch of one differs"),
    "own generator": (replace(SOUND, act=_own_generator), "a batch of one differs"),
    "not finite": (replace(SOUND, act=_not_finite), "not finite with size = 1"),
    "unstable": (replace(SOUND, act=_unstable, start=_zeros), "not finite with size"),
    "global generator": (replace(SOUND, act=_global), "another result"),
    "hidden state": (replace(SOUND, act=_Hidden()), "another result"),
    "signal in place": (replace(SOUND, act=_in_place), "writes to its arguments"),
    "state in place": (replace(SOUND, act=_state_in_place, start=_zeros), "writes to its arguments"),
    "shape": (replace(SOUND, act=_shapeless), "comes out as"),
    "float32": (replace(SOUND, act=_single), "comes out as float32"),
    "state without worlds": (replace(SOUND, act=_scalar_state), "its state has shapes"),
    "no knobs": (replace(SOUND, knobs=()), "has no knobs"),
    "knob twice": (replace(SOUND, knobs=(SIZE, SIZE)), "stands twice"),
    "endless range": (replace(SOUND, knobs=(replace(SIZE, high=np.inf),)), "finite range"),
    "typical outside": (replace(SOUND, knobs=(replace(SIZE, typical=2.0),)), "outside its range"),
    "ideal outside": (replace(SOUND, knobs=(replace(SIZE, ideal=-1.0),)), "at ideal, outside"),
    "no source": (replace(SOUND, knobs=(replace(SIZE, source=""),)), "no source"),
    "unknown need": (replace(SOUND, needs=("mood",)), "it needs"),
    "unknown target": (replace(SOUND, acts_on="nothing"), "acts on"),
    "unknown dimension": (replace(SOUND, dimension="magic"), "its dimension"),
}


def test_the_sound_layer_that_the_breaches_are_made_of_passes() -> None:
    check_layer(SOUND)


@pytest.mark.parametrize("name", BREACHES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_breach_is_named_with_its_likely_cause(name: str) -> None:
    layer, found = BREACHES[name]
    with pytest.raises(InputError, match="breaks the contract") as caught:
        check_layer(layer)
    assert found in str(caught.value)
    assert "likely cause" in str(caught.value)
    assert "\n" not in str(caught.value)
