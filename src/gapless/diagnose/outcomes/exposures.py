"""The ways in which a factor may matter: which runs are exposed to what makes them fail, and how much."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from gapless.core.signal import Array
from gapless.diagnose.outcomes.factors import FactorColumn

SIZE_RATIO = 0.3  # how much less likely it is that k + 1 values are bad than k
FALLING_SHARE = 0.1  # of trends over time that go down: robots wear
OWN_EFFECTS_SHARE = 0.05  # that all values of a factor differ, instead of some that are bad
MAX_SETS = 60  # sets of values of one factor; larger sets are left out where there are more


@dataclass(frozen=True)
class Exposure:
    """One way in which a factor may matter."""

    factor: int  # index of the factor's column
    share: float  # probability of this way, given that the factor matters
    basis: Array  # (num_runs, num_effects) [1]
    # whether `basis` is one column in [0, 1] that raises failures: 1 in exposed runs, 0 in others, the mean exposure in
    # runs that do not name the condition. Otherwise it has an effect for each value, either way
    raises: bool


def list_exposures(columns: Sequence[FactorColumn]) -> list[Exposure]:
    """Returns the ways in which each factor may matter, of all factors in order."""
    return [exposure for k, column in enumerate(columns) for exposure in _expose(k, column)]


def _expose(factor: int, column: FactorColumn) -> list[Exposure]:
    if column.basis.shape[1] == 1:  # a trend: rising or falling
        line, known = column.basis[:, 0], column.known
        rising = np.where(known, (line - line[known].min()) / np.ptp(line[known]), 0.0)
        ways = [(1 - FALLING_SHARE, rising), (FALLING_SHARE, 1 - rising)]
        return [Exposure(factor, share, _fill_unknown(way, column), True) for share, way in ways]
    sets = _list_sets(len(column.values), column.ordered)
    own = OWN_EFFECTS_SHARE if len(column.values) > 2 else 0.0
    weights = np.array([weight for weight, _ in sets])
    shares = (1 - own) * weights / weights.sum()
    found = [
        Exposure(factor, float(share), _fill_unknown(np.isin(column.level, chosen).astype(float), column), True)
        for share, (_, chosen) in zip(shares, sets, strict=True)
    ]
    return [*found, Exposure(factor, own, column.basis, False)] if own else found


def _list_sets(num_values: int, ordered: bool) -> list[tuple[float, tuple[int, ...]]]:
    """Returns sets of bad values with their weights: small ones first, of ordered values only neighbours."""
    found: list[tuple[float, tuple[int, ...]]] = []
    for size in range(1, num_values):
        number = num_values + 1 - size if ordered else comb(num_values, size)
        if size > 1 and len(found) + number > MAX_SETS:
            break
        chosen = combinations(range(num_values), size)
        kept = [some for some in chosen if not ordered or some[-1] - some[0] == size - 1]
        found += [(SIZE_RATIO ** (size - 1) / len(kept), some) for some in kept]
    return found


def _fill_unknown(exposed: Array, column: FactorColumn) -> Array:
    """Returns exposures, (num_runs, 1), with the mean of known ones where the run does not name the condition."""
    return np.where(column.known, exposed, exposed[column.known].mean())[:, None]
