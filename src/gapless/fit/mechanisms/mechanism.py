"""Mechanisms: the smallest things that can be wrong on their own, each with one number or two.

"Friction of the elbow", "all drives are too weak", "commands are late", "the base is tilted": an explanation is a set
of them, and it pays for every number that it frees. A dimension takes part where one of its mechanisms does.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.sim.targets.target import split_target

VECTOR_FIELDS = ("tilt/", "com/")  # entries of one vector are one mechanism
# what all drives or surfaces of a robot share when they share a maker, a battery or a floor: one number for all
SHARED_FIELDS = ("gain", "kp", "kd", "damping", "frictionloss", "armature", "backlash", "friction", "limit")
MAX_NUMBERS = 2  # that a mechanism pays for: own values of each run are drawn with a mean and a spread
NUMERICS = "numerics"  # target of the last entry of a point: a finer time step


@dataclass(frozen=True)
class Mechanism:
    """Something that may be wrong on its own."""

    dimension: Dimension  # what it belongs to
    targets: tuple[str, ...]  # what it sets
    entries: tuple[int, ...]  # entries of a point that it moves
    tied: bool = False  # whether one number moves all entries together, each by its typical error

    @property
    def price(self) -> int:
        """How many numbers it pays for."""
        return 1 if self.tied else min(len(self.entries), MAX_NUMBERS)

    def directions(self, typical: Array) -> Array:
        """Returns how each of its numbers moves a point, (num_numbers, num_entries); 1 is a typical error."""
        moves = np.diag(typical)[list(self.entries)]
        return moves.sum(axis=0, keepdims=True) if self.tied else moves


def is_vector_entry(target: str) -> bool:
    """Tells whether a target is one entry of a vector, such as the x of a tilt."""
    return split_target(target).field.startswith(VECTOR_FIELDS)


def list_mechanisms(space: ParameterSpace, unseen: Collection[int] = ()) -> tuple[Mechanism, ...]:
    """Returns the mechanisms of some parameters, and last a finer time step; entries that are `unseen` are in none."""
    groups: dict[str, list[int]] = {}
    kinds: dict[tuple[str, str], list[int]] = {}
    for k, parameter in enumerate(space.parameters):
        if k in unseen:
            continue
        target = parameter.target
        groups.setdefault(target.rsplit("/", 1)[0] if is_vector_entry(target) else target, []).append(k)
        path = split_target(target)
        if path.field in SHARED_FIELDS and path.name != "*" and parameter.run is None:
            kinds.setdefault((path.kind, path.field), []).append(k)
    alone = [_join_entries(space, entries) for entries in groups.values()]
    shared = [_join_entries(space, entries, tied=True) for entries in kinds.values() if len(entries) > 1]
    return (*alone, *shared, Mechanism("numerics", (NUMERICS,), (len(space),)))


def _join_entries(space: ParameterSpace, entries: Sequence[int], *, tied: bool = False) -> Mechanism:
    targets = tuple(dict.fromkeys(space.targets[k] for k in entries))
    return Mechanism(space.parameters[entries[0]].dimension, targets, tuple(entries), tied)
