"""Mechanisms: the smallest things that can be wrong on their own, each with one or two numbers.

"Friction of the elbow", "all commands are late", "the base is tilted": a hypothesis is a set of them, and it pays for
every number that it frees. A dimension takes part where one of its mechanisms does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gapless.core.dimensions import Dimension
from gapless.core.parameters import ParameterSpace

SHARED_FIELDS = ("/tilt/", "/com/")  # entries of one vector are one mechanism
MAX_NUMBERS = 2  # that a mechanism pays for: own values of each run are drawn with a mean and a spread
NUMERICS = "numerics"  # target of the last entry of a point: a finer time step
MechanismSet = tuple[int, ...]  # indices of mechanisms, ascending


@dataclass(frozen=True)
class Mechanism:
    """Something that may be wrong on its own."""

    dimension: Dimension  # what it belongs to
    targets: tuple[str, ...]  # what it sets
    entries: tuple[int, ...]  # entries of a point that it frees

    @property
    def num_numbers(self) -> int:
        """How many numbers it pays for."""
        return min(len(self.entries), MAX_NUMBERS)


def list_mechanisms(space: ParameterSpace) -> tuple[Mechanism, ...]:
    """Returns the mechanisms of some parameters, and last a finer time step."""
    groups: dict[str, list[int]] = {}
    for k, target in enumerate(space.targets):
        shared = next((field for field in SHARED_FIELDS if field in f"/{target}"), None)
        groups.setdefault(target.rsplit("/", 1)[0] if shared else target, []).append(k)
    found = [
        Mechanism(
            space.parameters[entries[0]].dimension,
            tuple(dict.fromkeys(space.targets[k] for k in entries)),
            tuple(entries),
        )
        for entries in groups.values()
    ]
    return (*found, Mechanism("numerics", (NUMERICS,), (len(space),)))


def dimensions_of(mechanisms: Sequence[Mechanism], chosen: Iterable[int]) -> tuple[Dimension, ...]:
    """Returns the dimensions that some mechanisms belong to, each once."""
    return tuple(dict.fromkeys(mechanisms[k].dimension for k in chosen))
