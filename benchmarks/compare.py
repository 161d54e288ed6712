"""One real set: the stock model, the peer and ours, side by side; then the class's limit and the floor."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import ours as ours_module
from cases import Case, Say
from limit import best_row
from ours import Ours
from score import Run

from gapless.project.load import load_project

SAME = 0.01  # scores that differ by less count as the same


class RefusedError(Exception):
    """Ours refused to fit: there is nothing to compare."""


@dataclass(frozen=True)
class Timing:
    """CPU seconds of all threads."""

    total: float
    parts: dict[str, float]
    to_peer: float | None
    """Until the first iterate within `SAME` of the best of the peer on the scored logs; None: never."""
    iterates: int
    best: float | None = None
    """The best error of any iterate, one number for all joints."""


@dataclass(frozen=True)
class Comparison:
    """Everything that was measured on one set; errors are RMSEs per joint."""

    case: Case
    stock: np.ndarray
    peer: np.ndarray | None
    neutral: np.ndarray
    as_fitted: np.ndarray
    compared: np.ndarray
    """The one of the two above that stands for ours."""
    limit: np.ndarray | None
    floor: np.ndarray
    peer_time: Timing | None
    our_time: Timing
    notes: tuple[str, ...]
    later: dict[str, np.ndarray]
    """Errors of stock, peer and ours on the later windows alone; empty where they are not asked for."""


def compare(case: Case, say: Say, *, with_peer: bool = True, with_limit: bool = True) -> Comparison:
    """Fits and scores one set. Scoring takes place after the fits and is no part of their time.

    Raises:
        RefusedError: If ours refuses to fit.
    """
    runs = case.held_runs()
    with tempfile.TemporaryDirectory() as folder:
        place = case.project(Path(folder), case.fitted)
        written = mujoco.MjModel.from_xml_path(str(load_project(place).model_path))
        stock = case.score(written, {}, runs).rmse
        say(f"stock {case.one_number(stock, stock):.5g}; fitting ours")
        fit = ours_module.fit(place)
        if fit.result.verdict == "refused":
            raise RefusedError("; ".join(fit.result.reasons))
        judge, neutral, as_fitted, notes = _judge(case, fit, runs)
        compared = judge(fit.row)
        say(f"ours {case.one_number(compared, stock):.5g} in {fit.cpu_seconds:.0f} s of CPU")
        peer, peer_time, peer_model = _peer(case, runs, stock, say) if with_peer else (None, None, None)
        target = None if peer_time is None else (1 + SAME) * peer_time.best
        say("scoring the steps of ours")
        our_time = _timing(fit.iterates, fit.cpu_seconds, {}, target, lambda row: case.one_number(judge(row), stock))
        best = best_row(case, fit, runs, say) if with_limit else fit.row
        limit = judge(best) if with_limit else None
        say("floor")
        floor = case.floor(*ours_module.model_of(fit, best), runs)
        models = {"stock": (written, {}), "peer": peer_model, "ours": ours_module.model_of(fit, fit.row)}
        later = {name: case.score_later(*model, runs).rmse for name, model in models.items() if model and case.later_s}
        about = (_kept_terms(fit), f"Verdict of ours: {fit.result.verdict}. {'; '.join(fit.result.reasons)}.")
    notes = (*notes, *about)
    return Comparison(
        *(case, stock, peer, neutral, as_fitted, compared, limit, floor, peer_time, our_time),
        tuple(n for n in notes if n),
        later,
    )


def _judge(
    case: Case, fit: Ours, runs: list[Run]
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray, np.ndarray, tuple[str, ...]]:
    """Returns how rows are judged (RMSE per joint), both scores of the fit, and what to say about it."""
    neutral = ours_module.score_model(case, fit, fit.row, runs).rmse
    as_fitted = ours_module.score_as_fitted(case, fit, fit.row, runs).rmse
    same = bool(np.all(np.abs(as_fitted / neutral - 1) < SAME))
    if same or not fit.outside:
        text = "" if same else "The two scores of ours differ although an MJCF could hold all that was fitted."
        return lambda row: ours_module.score_model(case, fit, row, runs).rmse, neutral, as_fitted, (text,)
    text = f"No MJCF can hold {', '.join(fit.outside)}: ours is judged as fitted."
    return lambda row: ours_module.score_as_fitted(case, fit, row, runs).rmse, neutral, as_fitted, (text,)


def _peer(
    case: Case, runs: list[Run], stock: np.ndarray, say: Say
) -> tuple[np.ndarray, Timing, tuple[mujoco.MjModel, dict[str, float]]]:
    """Returns the errors of what the peer found, its times (its best step is known from the scored logs), its model."""
    found = case.fit_peer(case.fitted, say)
    say("scoring the steps of the peer")
    errors = [case.score(*found.rebuild(vector), runs).rmse for _, vector in found.iterates]
    errors.append(case.score(found.model, found.biases, runs).rmse)
    times = [moment for moment, _ in found.iterates] + [found.cpu_seconds]
    values = [case.one_number(error, stock) for error in errors]
    first = next(k for k, value in enumerate(values) if value <= (1 + SAME) * min(values))
    say(f"peer {values[-1]:.5g} at the end, {min(values):.5g} at best, in {found.cpu_seconds:.0f} s of CPU")
    timing = Timing(found.cpu_seconds, found.parts, times[first], len(found.iterates) - 1, min(values))
    return errors[-1], timing, (found.model, found.biases)


def _timing(
    iterates: Sequence[tuple[float, np.ndarray]],
    total: float,
    parts: dict[str, float],
    target: float | None,
    judge: Callable[[np.ndarray], float],
) -> Timing:
    """Returns times, with the first iterate that is at most the target; looks no further than that."""
    reached, last = None, None
    for moment, row in iterates:
        if target is None or reached is not None:
            break
        if last is None or not np.array_equal(row, last):
            reached = moment if judge(row) <= target else None
        last = row
    return Timing(total, parts, reached, len(iterates))


def _kept_terms(fit: Ours) -> str:
    """Tells which terms entered, and what each saved on windows that it was not fitted to."""
    kept = [f"{' + '.join(t.targets)} ({100 * t.saving:.1f} %)" for t in fit.result.tried if t.kept]
    tried = len(fit.result.tried)
    return f"{len(fit.result.parameters)} parameters; of {tried} terms tried these stayed: {', '.join(kept) or 'none'}."
