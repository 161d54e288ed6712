"""How the time of a fit grows: with joints, logs and parameters.

    python benchmarks/growth.py --joints 1 2 4 6 9 12 --logs 2 8 40 --hung

fits arms of some numbers of joints to two logs of a minute, an arm of six joints to some numbers of logs, and a hung
robot of twelve joints to four logs of 20 s. It prints CPU seconds of all threads, and millions of engine steps, which
do not depend on what else the machine does. `identify.py --scaling` asks for `tables`: the SO-101, beside the peer.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import growth_robots
import numpy as np
import ours
import score
from cases import Case, Say, so101
from limit import write_project
from tables import Table, markdown, number

from gapless.core.results import IdentifyResult
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows
from gapless.identify.verb import identify

SECONDS = (10.0, 20.0, 40.0)  # of each fitted motion: 1/4, 1/2 and 1 of what the peer is given
COUNTS = (4, 8, 16, 32)
PEER_STEPS = 2  # steps of the peer that are timed; all cost about the same
_KINDS = (
    ("actuator/{}/kp", "kp {}"),
    ("measurement/q_{}/bias", "bias {}"),
    ("joint/{}/damping", "damping {}"),
    ("joint/{}/frictionloss", "frictionloss {}"),
    ("joint/{}/armature", "armature {}"),
    ("actuator/{}/kd", "kv {}"),
)


def parameter_names() -> list[tuple[str, str | None]]:
    """Returns 32 parameters of the arm, as ours and the peer call them; the last is one that the peer lacks."""
    names = [(ours.format(joint), peer.format(joint)) for ours, peer in _KINDS for joint in score.SO101_SCORED]
    return [("actuator/*/delay", "delay"), *names, ("actuator/shoulder_lift/limit", None)]


def tables(say: Say, *, with_peer: bool) -> Iterator[Table]:
    """Yields the table."""
    case, rows = so101(), []
    for seconds in SECONDS:
        say(f"{seconds:g} s of each motion")
        fit = _fit(case, seconds, "auto")
        peer = _peer_step_s(case, seconds, None) if with_peer else None
        rows.append(_row(f"{seconds:g} s, parameters chosen by ours", fit, peer))
    for count in COUNTS:
        say(f"{count} parameters")
        chosen = parameter_names()[:count]
        fit = _fit(case, SECONDS[-1], [{"target": target} for target, _ in chosen])
        peer = _peer_step_s(case, SECONDS[-1], [name for _, name in chosen if name]) if with_peer else None
        rows.append(_row(f"{SECONDS[-1]:g} s, a list of {count}", fit, peer))
    header = ("first seconds of each of ten motions", "fitted by ours", "ours, CPU s", "peer, CPU s per step")
    notes = (
        "The peer takes up to 12 steps; it has 31 parameters in the first three rows, and no force limit in the last.",
        "Ours tries further terms only where it chooses the parameters.",
    )
    yield Table("How time grows: SO-101", header, rows, notes=notes)


def _row(label: str, fit: ours.Ours, peer_step_s: float | None) -> list[str]:
    return [label, str(len(fit.result.parameters)), number(fit.cpu_seconds), number(peer_step_s)]


def _fit(case: Case, seconds: float, parameters: object) -> ours.Ours:
    """Fits ours to the first seconds of the fitted motions."""
    runs = [score.so101_run(name, seconds) for name in case.fitted]
    with tempfile.TemporaryDirectory() as place:
        return ours.fit(write_project(Path(place), case, runs, parameters))


def _peer_step_s(case: Case, seconds: float, only: list[str] | None) -> float:
    """Returns the CPU seconds that a step of the peer takes."""
    import peer
    import peer_so101

    fit = peer.run_toolbox(peer_so101.task(list(case.fitted), seconds, only), PEER_STEPS)
    return fit.iterates[-1][0] / max(1, len(fit.iterates) - 1)


def growth_table(joints: list[int], logs: list[int], *, hung: bool, say: Say) -> Table:
    """Returns the table of fits to robots that are made here."""
    cases: list[tuple[str, Callable[[Path], Path]]] = []
    cases += [
        (f"{n} joints, 2 logs of 60 s, auto", lambda place, n=n: growth_robots.write_arm(place, n, 2, 60.0))
        for n in joints
    ]
    cases += [
        (f"6 joints, {n} logs of 20 s, auto", lambda place, n=n: growth_robots.write_arm(place, 6, n, 20.0))
        for n in logs
    ]
    cases += [("12 joints, hung, 4 logs of 20 s, a list of 49", growth_robots.write_hung)] if hung else []
    rows: list[list[str]] = []
    for label, write in cases:
        say(label)
        with tempfile.TemporaryDirectory() as place:
            fit, cpu_seconds, million_steps = _timed(write(Path(place) / "project"))
        after = "-" if fit.held_out.after is None else f"{fit.held_out.after / (fit.held_out.before or np.nan):.3f}"
        rows.append([label, str(len(fit.parameters)), number(cpu_seconds), number(million_steps), fit.verdict, after])
    header = ("robot and logs", "fitted", "CPU s", "million engine steps", "verdict", "held-out error of the model's")
    return Table("How the time of a fit grows", header, rows)


def _timed(folder: Path) -> tuple[IdentifyResult, float, float]:
    """Returns a fit, its CPU seconds, and how many million engine steps its predictions took."""
    steps, predict = [0], Predictor.predict_pairs

    def count(self: Predictor, windows: Windows, rows: np.ndarray, pairs: np.ndarray) -> np.ndarray:
        steps[0] += len(pairs) * windows.num_steps * self.blueprint.num_substeps
        return predict(self, windows, rows, pairs)

    Predictor.predict_pairs = count
    try:
        start = time.process_time()
        fit = identify(folder)
        return fit, time.process_time() - start, steps[0] / 1e6
    finally:
        Predictor.predict_pairs = predict


def main() -> None:
    """Reads the command line and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--joints", type=int, nargs="*", default=[], metavar="N", help="arms of so many joints")
    parser.add_argument("--logs", type=int, nargs="*", default=[], metavar="N", help="six joints with so many logs")
    parser.add_argument("--hung", action="store_true", help="a hung robot of twelve joints")
    options = parser.parse_args()
    joints = options.joints or ([] if options.logs or options.hung else [6])
    print(markdown(growth_table(joints, options.logs, hung=options.hung, say=lambda text: print(text, flush=True))))


if __name__ == "__main__":
    main()
