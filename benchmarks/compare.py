"""One real set: the stock model, the peer and ours, side by side; then the class's limit and the floor."""

import hashlib
import pickle
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import ours as ours_module
import score
from cases import HORIZON_S, Case, Say
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
    """Everything that was measured on one set; errors are RMSEs per joint, at `HORIZON_S` where not said."""

    case: Case
    stock: np.ndarray
    peer: np.ndarray | None
    compared: np.ndarray
    """Of ours: of its corrected MJCF, or as fitted where no MJCF can hold it."""
    limit: np.ndarray | None
    floor: np.ndarray | None
    peer_time: Timing | None
    our_time: Timing
    notes: tuple[str, ...]
    horizons: dict[float | None, dict[str, np.ndarray]]
    """Errors of stock, peer and ours by horizon [s], whole runs last (None)."""

    def to_peer(self, horizon_s: float | None = HORIZON_S) -> float | None:
        """Returns the error of ours at a horizon as a share of the peer's, one number for all joints."""
        found = self.horizons[horizon_s]
        if "peer" not in found:
            return None
        return self.case.one_number(found["ours"], found["stock"]) / self.case.one_number(found["peer"], found["stock"])


def compare(
    case: Case, say: Say, *, with_peer: bool = True, with_limit: bool = True, peer_cache: Path | None = None
) -> Comparison:
    """Fits and scores one set. Scoring takes place after the fits and is no part of their time.

    `peer_cache` is a folder in which fits of the peer are kept: with the same set-up and logs none runs twice.

    Raises:
        RefusedError: If ours refuses to fit.
    """
    runs = case.held_runs()
    with_limit &= not case.free_body
    with tempfile.TemporaryDirectory() as folder:
        place = case.project(Path(folder), case.fitted)
        written = mujoco.MjModel.from_xml_path(str(load_project(place).model_path))
        stock = case.score(written, {}, runs).rmse
        say(f"stock {case.one_number(stock, stock):.5g}; fitting ours")
        fit = ours_module.fit(place)
        if fit.result.verdict == "refused":
            raise RefusedError("; ".join(fit.result.reasons))
        judge, about = _judge(case, fit, runs)
        compared = judge(fit.row)
        say(f"ours {case.one_number(compared, stock):.5g} in {fit.cpu_seconds:.0f} s of CPU")
        peer, peer_time, peer_model = _peer(case, runs, stock, say, peer_cache) if with_peer else (None, None, None)
        target = None if peer_time is None else (1 + SAME) * peer_time.best
        say("scoring the steps of ours")
        our_time = _timing(fit.iterates, fit.cpu_seconds, {}, target, lambda row: case.one_number(judge(row), stock))
        best = best_row(case, fit, runs, say) if with_limit else fit.row
        limit = judge(best) if with_limit else None
        say("floor and horizons")
        floor = case.floor(*ours_module.model_of(fit, best), runs) if case.floor else None
        models = {"stock": (written, {}), "peer": peer_model}
        horizons = {
            length: {name: case.score(*model, runs, length).rmse for name, model in models.items() if model}
            | {"ours": judge(fit.row, length)}
            for length in score.HORIZONS_S
        }
        notes = (about, _kept_terms(fit), f"Verdict of ours: {fit.result.verdict}. {'; '.join(fit.result.reasons)}.")
    return Comparison(
        *(case, stock, peer, compared, limit, floor, peer_time, our_time), tuple(n for n in notes if n), horizons
    )


def _judge(case: Case, fit: Ours, runs: list[Run]) -> tuple[Callable[..., np.ndarray], str]:
    """Returns how rows are judged (RMSE per joint at a horizon), and what to say about it."""
    neutral = ours_module.score_model(case, fit, fit.row, runs).rmse
    as_fitted = neutral if case.free_body else ours_module.score_as_fitted(case, fit, fit.row, runs).rmse
    same = bool(np.all(np.abs(as_fitted / neutral - 1) < SAME))
    outside = not same and bool(fit.outside)
    judged = ours_module.score_as_fitted if outside else ours_module.score_model
    text = "" if same else "The two scores of ours differ although an MJCF could hold all that was fitted."
    if outside:
        text = f"No MJCF can hold {', '.join(fit.outside)}: ours is judged as fitted"
        text += "." if case.from_rest else ", over whole runs by its MJCF without those."

    def judge(row: np.ndarray, horizon_s: float | None = HORIZON_S) -> np.ndarray:
        needs_mjcf = horizon_s is None and not case.from_rest
        by = ours_module.score_model if needs_mjcf else judged
        return by(case, fit, row, runs, horizon_s).rmse

    return judge, text


def _peer(
    case: Case, runs: list[Run], stock: np.ndarray, say: Say, cache: Path | None
) -> tuple[np.ndarray, Timing, tuple[mujoco.MjModel, dict[str, float]]]:
    """Returns the errors of what the peer found, its times (its best step is known from the scored logs), its model."""
    import peer  # only who runs it needs its extra

    task = case.peer_task()
    kept = None if cache is None else cache / f"{case.name}-{_digest_peer(case)}.pickle"
    if kept is not None and kept.exists():
        found = pickle.loads(kept.read_bytes())
    else:
        found = peer.run_toolbox(task, case.peer_iters, say)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(pickle.dumps(found))
    say("scoring the steps of the peer")
    errors = [case.score(*peer.rebuild(task, vector), runs).rmse for _, vector in found.iterates]
    model = peer.rebuild(task, found.vector)
    errors.append(case.score(*model, runs).rmse)
    times = [moment for moment, _ in found.iterates] + [found.cpu_seconds]
    values = [case.one_number(error, stock) for error in errors]
    first = next(k for k, value in enumerate(values) if value <= (1 + SAME) * min(values))
    say(f"peer {values[-1]:.5g} at the end, {min(values):.5g} at best, in {found.cpu_seconds:.0f} s of CPU")
    timing = Timing(found.cpu_seconds, found.parts, times[first], len(found.iterates) - 1, min(values))
    return errors[-1], timing, model


def _digest_peer(case: Case) -> str:
    """Returns a digest of the peer's set-up: its code and the logs that it fits."""
    here, module = Path(__file__).parent, case.peer.split(":")[0]
    code = b"".join((here / f"{name}.py").read_bytes() for name in ("peer", module))
    return hashlib.sha256(code + repr([case.peer_iters, *map(str, case.fitted)]).encode()).hexdigest()[:12]


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
