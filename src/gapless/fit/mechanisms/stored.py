"""Explanations kept in a file: `identify` and `diagnose` search once for the same logs."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gapless.fit.mechanisms.problem import MechanismProblem
from gapless.fit.mechanisms.search import Explanation

FIELDS = ("point", "held_out", "prior_cost")  # of explanations, that are kept as they are


def save_explanations(path: Path, found: Sequence[Explanation], problem: MechanismProblem) -> None:
    """Writes explanations to a file; where nothing can be written, they are searched again next time."""
    number = {mechanism: k for k, mechanism in enumerate(problem.mechanisms)}
    chosen = np.zeros((len(found), len(number)), dtype=np.bool_)
    for row, one in enumerate(found):
        chosen[row, [number[mechanism] for mechanism in one.mechanisms]] = True
    residual, which = np.unique(np.stack([one.residual for one in found]), axis=0, return_inverse=True)
    partial = path.with_suffix(f".{os.getpid()}.npz")
    with contextlib.suppress(OSError):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            points, held_out, prior = ([getattr(one, name) for one in found] for name in FIELDS)
            np.savez(
                partial,
                chosen=chosen,
                point=points,
                held_out=held_out,
                prior_cost=prior,
                residual=residual,
                which=which,
            )
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)


def load_explanations(path: Path, problem: MechanismProblem) -> tuple[Explanation, ...] | None:
    """Returns the explanations in a file; None where there is none, or it is not whole."""
    try:
        with np.load(path) as kept:
            parts = {name: kept[name] for name in ("chosen", *FIELDS, "residual", "which")}
    except (OSError, ValueError, KeyError):
        return None
    if parts["chosen"].shape[1] != len(problem.mechanisms):
        return None
    found: list[Explanation] = []
    for row, chosen in enumerate(parts["chosen"]):
        mechanisms = tuple(problem.mechanisms[int(k)] for k in np.flatnonzero(chosen))
        residual = parts["residual"][int(parts["which"].ravel()[row])]
        prior_cost = float(parts["prior_cost"][row])
        found.append(Explanation(mechanisms, parts["point"][row], parts["held_out"][row], residual, prior_cost))
    return tuple(found)
