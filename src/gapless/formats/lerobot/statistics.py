"""Statistics of a feature over an episode, and over episodes, as LeRobot data sets keep them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gapless.core.signal import Array

QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}  # v3.0 has them, v2.1 not
BASIC = ("min", "max", "mean", "std", "count")

Statistics = Mapping[str, Array]  # such as `min` -> (num_elements,); `count` -> (1,)


def compute_statistics(matrix: Array) -> Statistics:
    """Returns the statistics of one feature over an episode: of its finite cells, 0 where an element has none.

    Args:
        matrix: (num_rows, num_elements).
    """
    finite = np.isfinite(matrix)
    cells = np.where(finite, matrix, np.nan)
    cells[:, ~finite.any(axis=0)] = 0.0
    some = "" if finite.all() else "nan"  # numpy's functions that leave out NaN are many times slower
    found = {name: getattr(np, some + name)(cells, axis=0) for name in ("min", "max", "mean", "std")}
    quantiles = getattr(np, f"{some}quantile")(cells, list(QUANTILES.values()), axis=0)
    return {**found, **dict(zip(QUANTILES, quantiles, strict=True)), "count": np.array([float(len(matrix))])}


def merge_statistics(episodes: Sequence[Statistics]) -> Statistics:
    """Returns the statistics of a data set from those of its episodes.

    Exact but for quantiles, which are weighted means of those of episodes, as the format has them.
    """
    stacked = {name: np.stack([each[name] for each in episodes]) for name in episodes[0]}
    counts = stacked["count"].reshape(-1, *[1] * (stacked["mean"].ndim - 1))
    weights = counts / counts.sum()
    found = {name: np.sum(weights * stacked[name], axis=0) for name in ("mean", *QUANTILES) if name in stacked}
    variance = np.sum(weights * (stacked["std"] ** 2 + (stacked["mean"] - found["mean"]) ** 2), axis=0)
    limits = {"min": stacked["min"].min(axis=0), "max": stacked["max"].max(axis=0)}
    return {**limits, **found, "std": np.sqrt(variance), "count": stacked["count"].sum(axis=0)}


def format_statistics(found: Statistics, dtype: str, names: Sequence[str]) -> dict[str, Any]:
    """Returns statistics as plain JSON: limits in the feature's own type."""
    whole = np.dtype(dtype).kind if dtype != "video" else "f"
    kind = {"b": bool, "i": np.int64, "u": np.int64}.get(whole, np.float64)
    kinds = {"min": kind, "max": kind, "count": np.int64}
    return {name: found[name].astype(kinds.get(name, np.float64)).tolist() for name in names if name in found}
