"""Policies as plain numbers: a small network that runs with numpy alone, on any robot."""

import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.errors import InputError
from gapless.core.protocols import Task
from gapless.core.run import Memory
from gapless.core.signal import Array


@dataclass(frozen=True)
class NetworkPolicy:
    """A network with tanh layers: a = clip(W_n tanh(... tanh(W_1 o + b_1)) + b_n, -1, 1)."""

    weights: tuple[Array, ...]  # one (size_out, size_in) matrix per layer
    biases: tuple[Array, ...]  # one (size_out,) vector per layer
    history: int  # how many observations and actions are stacked in the input

    def act(self, observation: Array) -> Array:
        """Returns actions in [-1, 1], (num_worlds, action_size)."""
        value = observation
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            value = np.tanh(value @ weight.T + bias)
        return np.clip(value @ self.weights[-1].T + self.biases[-1], -1.0, 1.0)

    def to_bytes(self) -> bytes:
        """Returns the policy as the content of an `.npz` file without pickles."""
        buffer = io.BytesIO()
        about = json.dumps({"format": 1, "history": self.history, "layers": len(self.weights)})
        arrays: dict[str, Any] = {"about": np.array(about)}
        arrays |= {f"weight{k}": weight for k, weight in enumerate(self.weights)}
        arrays |= {f"bias{k}": bias for k, bias in enumerate(self.biases)}
        np.savez(buffer, **arrays)
        return buffer.getvalue()


def load_policy(path: str | Path) -> NetworkPolicy:
    """Reads a policy that `train` wrote."""
    place = Path(path)
    if not place.is_file():
        raise InputError(f"no policy there: make one with `gapless train`: {place}")
    try:
        with np.load(place, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            count = int(about["layers"])
            weights = tuple(stored[f"weight{k}"] for k in range(count))
            biases = tuple(stored[f"bias{k}"] for k in range(count))
            if not count or any(weight.ndim != 2 for weight in weights):
                raise ValueError("no layers: train it again")
            return NetworkPolicy(weights, biases, int(about["history"]))
    except (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
        raise InputError(f"this is no policy that `gapless train` wrote, or it is damaged: {place}") from None


def check_fits(policy: NetworkPolicy, task: Task, path: str | Path) -> None:
    """Refuses a policy that was made for a task with other observations or actions."""
    wanted = (Memory.size(policy.history, task.observation_size, task.action_size), task.action_size)
    found = (policy.weights[0].shape[1], policy.weights[-1].shape[0])
    if found != wanted:
        sizes = f"it maps {found[0]} numbers to {found[1]}, the task needs {wanted[0]} to {wanted[1]}"
        raise InputError(f"this policy is for another task ({sizes}): train one for this project: {path}")
