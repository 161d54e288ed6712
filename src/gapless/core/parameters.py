"""Parameters: the numbers that a model may have wrong. One row of them is one possible world."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError, nearest
from gapless.core.signal import Array

Sharing = Literal["robot", "episode"]


@dataclass(frozen=True)
class Parameter:
    """A number that the model may have wrong."""

    target: str  # path of what it sets, such as `joint/elbow/damping`
    dimension: Dimension  # the dimension of the gap it belongs to
    unit: str  # SI unit of its values, `1` for a factor
    nominal: float  # value that leaves the model as it was written
    low: float  # smallest value considered
    high: float  # largest value considered
    per: Sharing = "robot"  # all runs of a `robot` share one value, or each `episode` has its own, as people have
    run: int | None = None  # the one run whose own value this is; None for a value that runs share

    def __post_init__(self) -> None:
        """Refuses bounds that leave no room."""
        if not self.low < self.high:
            text = f"low {self.low:g} is not below high {self.high:g}: write the smaller number as low"
            raise InputError(f"{self.target}: {text}")


@dataclass(frozen=True)
class ParameterSpace:
    """Parameters in a fixed order: the columns of every row of parameters.

    A target stands once, or, after `for_runs`, once for each run that has its own value of it.
    """

    parameters: tuple[Parameter, ...]

    def __post_init__(self) -> None:
        """Refuses a target that stands twice."""
        seen: set[tuple[str, int | None]] = set()
        for parameter in self.parameters:
            if (parameter.target, parameter.run) in seen:
                raise InputError(f"parameter {parameter.target} is listed twice: keep one")
            seen.add((parameter.target, parameter.run))

    def __len__(self) -> int:
        return len(self.parameters)

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets, in column order."""
        return tuple(parameter.target for parameter in self.parameters)

    @property
    def nominal(self) -> Array:
        """The row that leaves the model as it was written, (num_parameters,)."""
        return np.array([parameter.nominal for parameter in self.parameters], dtype=np.float64)

    @property
    def low(self) -> Array:
        """Lower bounds, (num_parameters,)."""
        return np.array([parameter.low for parameter in self.parameters], dtype=np.float64)

    @property
    def high(self) -> Array:
        """Upper bounds, (num_parameters,)."""
        return np.array([parameter.high for parameter in self.parameters], dtype=np.float64)

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions that have a parameter here, in order of first appearance."""
        return tuple(dict.fromkeys(parameter.dimension for parameter in self.parameters))

    def index(self, target: str) -> int:
        """Returns the column of a target; if there is none, an `InputError` lists what exists."""
        try:
            return self.targets.index(target)
        except ValueError:
            raise InputError(f"no parameter {target}; choose from: {nearest(target, self.targets)}") from None

    def for_runs(self, runs: Sequence[int]) -> "ParameterSpace":
        """Returns the space in which every run has its own column of each per-run parameter."""
        own = ([replace(p, run=run) for run in runs] if p.per == "episode" else [p] for p in self.parameters)
        return ParameterSpace(tuple(one for group in own for one in group))

    @property
    def shared(self) -> "ParameterSpace":
        """The space with each target once: what a world has a column of."""
        return ParameterSpace(tuple({p.target: replace(p, run=None) for p in self.parameters}.values()))

    def of(self, *dimensions: Dimension) -> "ParameterSpace":
        """Returns the part of the space that belongs to these dimensions."""
        return ParameterSpace(tuple(p for p in self.parameters if p.dimension in dimensions))
