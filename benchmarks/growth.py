"""How time grows with the length of the logs and with the number of parameters, on the SO-101 arm."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import ours
import score
from cases import Case, Say, so101
from limit import write_project
from tables import Table, number

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
