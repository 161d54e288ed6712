"""Which readings each parameter moves, so that slopes of many parameters come from one prediction.

On a robot whose joints are driven by servos, the friction of one joint hardly shows in the readings of the others.
Parameters that show in different columns are then moved in one prediction, and each takes the change of its own
columns (compressed finite differences; Curtis, Powell and Reid, 1974). The same holds for errors of start states.
What couples is measured on a few windows of these very logs, so that strongly coupled robots keep a prediction per
parameter. Slopes that judge a solution are never compressed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array

MIN_EFFECT = 0.05  # share of the largest effect of a parameter, or on a column, from which on the two couple


@dataclass(frozen=True)
class Coupling:
    """What moves which readings."""

    # (num_parameters, num_measurements) whether a parameter of the predictor's space shows in a column
    parameters: NDArray[np.bool_]
    # (num_measurements, num_measurements) whether the start value or slope of a column shows in another
    starts: NDArray[np.bool_]


def find_pattern(effects: Array) -> NDArray[np.bool_]:
    """Returns which causes show in which columns from the sizes of their effects, (num_causes, num_columns).

    A cause without any effect here may have one elsewhere: it counts as showing in every column.
    """
    of_cause = effects.max(axis=1, keepdims=True)
    on_column = effects.max(axis=0, keepdims=True)
    shows = (effects > MIN_EFFECT * of_cause) | (effects > MIN_EFFECT * on_column)
    return shows | (of_cause <= 0.0)


def group_independent(pattern: NDArray[np.bool_]) -> list[list[int]]:
    """Returns groups of causes no two of which show in one column; greedy, the widest causes first."""
    groups: list[list[int]] = []
    taken: list[NDArray[np.bool_]] = []
    for cause in np.argsort(-pattern.sum(axis=1), kind="stable").tolist():
        for number, columns in enumerate(taken):
            if not np.any(columns & pattern[cause]):
                groups[number].append(cause)
                taken[number] = columns | pattern[cause]
                break
        else:
            groups.append([cause])
            taken.append(pattern[cause])
    return groups


def spread_changes(changes: Array, groups: Sequence[Sequence[int]], pattern: NDArray[np.bool_]) -> Array:
    """Returns the change that each cause made, (num_causes, ..., num_columns), 0 in columns that it does not show in.

    Causes of a group were moved together; `changes` are those of the groups, (num_groups, ..., num_columns).
    """
    found = np.zeros((len(pattern), *changes.shape[1:]))
    for change, group in zip(changes, groups, strict=True):
        for cause in group:
            found[cause] = np.where(pattern[cause], change, 0.0)
    return found
