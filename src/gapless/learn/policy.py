"""Policies as plain numbers: a small network that runs with numpy alone, on any robot."""

import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gapless.core.errors import InputError
from gapless.core.signal import Array


@dataclass(frozen=True)
class NetworkPolicy:
    """A network with tanh layers: a = clip(W_n tanh(... tanh(W_1 o + b_1)) + b_n, -1, 1).

    Attributes:
        weights: One (size_out, size_in) matrix per layer.
        biases: One (size_out,) vector per layer.
        history: How many observations and actions are stacked in the input.
    """

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    history: int

    def act(self, observation: Array) -> Array:
        """Returns actions in [-1, 1], (num_worlds, action_size)."""
        value = observation
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            value = np.tanh(value @ weight.T + bias)
        return np.clip(value @ self.weights[-1].T + self.biases[-1], -1.0, 1.0)

    def to_bytes(self) -> bytes:
        """Returns the policy as the content of an `.npz` file without pickles."""
        buffer = io.BytesIO()
        arrays = {f"weight{k}": weight for k, weight in enumerate(self.weights)}
        arrays |= {f"bias{k}": bias for k, bias in enumerate(self.biases)}
        about = json.dumps({"format": 1, "history": self.history, "layers": len(self.weights)})
        np.savez(buffer, about=np.array(about), **arrays)
        return buffer.getvalue()


def load_policy(path: str | Path) -> NetworkPolicy:
    """Reads a policy that `train` wrote.

    Raises:
        InputError: If the file is missing or is no policy.
    """
    place = Path(path)
    if not place.is_file():
        raise InputError(f"no policy there: make one with `gapless train`: {place}")
    try:
        with np.load(place, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            count = int(about["layers"])
            weights = tuple(stored[f"weight{k}"] for k in range(count))
            biases = tuple(stored[f"bias{k}"] for k in range(count))
            return NetworkPolicy(weights, biases, int(about["history"]))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"this is no policy that `gapless train` wrote ({error}): {place}") from None
