"""What a curriculum is, and which there are."""

from typing import Literal, Protocol, get_args

import numpy as np

from gapless.core.distribution import Distribution
from gapless.core.signal import Array, Flags
from gapless.learn.curriculum.adr import Adr
from gapless.learn.curriculum.max_entropy import MaxEntropy

Name = Literal["none", "adr", "max-entropy"]
CURRICULA: tuple[Name, ...] = get_args(Name)


class Curriculum(Protocol):
    """Draws the rows of runs, is told how they ended, and moves its ranges between rollouts."""

    distribution: Distribution

    def draw(self, rng: np.random.Generator, count: int) -> Array:
        """Returns rows to train in, (count, num_parameters)."""
        ...

    def told(self, rows: Array, success: Flags) -> None:
        """Takes note of how runs in these rows ended, (num_runs, num_parameters) and (num_runs,)."""
        ...

    def advance(self) -> None:
        """Moves the ranges, if enough was seen since they moved last; called after each rollout."""
        ...

    def restore(self, distribution: Distribution) -> None:
        """Goes on from ranges that it had before it was interrupted."""
        ...


def make_curriculum(name: Name, limits: Distribution) -> Curriculum | None:
    """Returns a curriculum that begins at the centre of ranges and may grow to their ends; None for `none`.

    Args:
        name: Which.
        limits: The ranges; a parameter begins at its `mean`, those of `uniform` kinds at the model's own value.
    """
    if name == "none":
        return None
    return Adr(limits) if name == "adr" else MaxEntropy(limits)
