"""The table of one real set, and what it has to reach."""

from collections.abc import Callable, Sequence

import numpy as np
from cases import HORIZON_S
from compare import Comparison
from tables import Bar, Table, number


def table(found: Comparison) -> Table:
    """Returns the set's table: errors by horizon, per joint and of all, then times."""
    case = found.case
    header = ["error", "stock", "peer", "ours", "ours/peer", "ours/stock", "class limit", "floor"]
    best = {"class limit": found.limit, "floor": found.floor}
    rows: list[dict] = []
    for length, errors in found.horizons.items():
        errors = errors | (best if length == HORIZON_S else {})
        label = "whole runs" if length is None else f"{length:g} s"
        rows += [
            {"error": f"{label}, {joint} [{unit}]"} | {name: _at(error, k) for name, error in errors.items()}
            for k, (joint, unit) in enumerate(zip(case.joints, case.units, strict=True))
        ]
        overall = {name: e if e is None else case.one_number(e, errors["stock"]) for name, e in errors.items()}
        rows.append({"error": f"{label}, {case.one_number_means}"} | overall)
    for row in rows:
        row["ours/stock"] = row["ours"] / row["stock"]
    rows += [{"error": label, "peer": peer, "ours": ours} for label, peer, ours in _times(found)]
    for row in rows:
        row["ours/peer"] = row["ours"] / row["peer"] if row["ours"] and row.get("peer") else None
    cells = [[row["error"], *(number(row.get(name)) for name in header[1:])] for row in rows]
    floor = f"Floor: {case.floor_means}."
    limit = (
        "Class limit: the parameters of ours, fitted to the very logs that are scored by a local search; at most that."
    )
    return Table(case.title, header, cells, bars(found), [*_peer_notes(found), limit, floor, *case.notes, *found.notes])


def summary_table(every: Sequence[Comparison]) -> Table:
    """Returns ours / peer of all sets by horizon, with the bars that they reach together."""
    rows = [
        [
            found.case.name,
            *(number(found.to_peer(length)) for length in found.horizons),
            number(found.our_time.total),
            number(found.peer_time and found.peer_time.total),
            number(_speed(found)),
        ]
        for found in every
    ]
    lengths = ["whole runs" if length is None else f"{length:g} s" for length in every[0].horizons]
    header = ("set", *lengths, "ours, CPU s", "peer, CPU s", "to the peer's error, times sooner")
    shares, speeds = [found.to_peer() for found in every], [_speed(found) for found in every]
    known = not any(share is None for share in shares)
    spent = [sum(found.our_time.total for found in every), sum(f.peer_time.total for f in every if f.peer_time)]
    reached = [
        Bar(f"sets with ours / peer at most 0.85 at {HORIZON_S:g} s", _count(shares, lambda s: s <= 0.85), 3, False),
        Bar(f"largest ours / peer at {HORIZON_S:g} s", max(shares) if known else None, 1.0),
        Bar("CPU s of all sets, ours / peer", spent[0] / spent[1] if known else None, 1.0),
        Bar("sets at the peer's error at least 5 times sooner", _count(speeds, lambda s: s >= 5), 3, False),
    ]
    return Table("All sets: ours / peer", header, rows, reached)


def _count(values: Sequence[float | None], reached: Callable[[float], bool]) -> int:
    return sum(value is not None and reached(value) for value in values)


def _at(error: np.ndarray | None, joint: int) -> float | None:
    return None if error is None else float(error[joint])


def bars(found: Comparison) -> list[Bar]:
    """Returns what the set has to reach on its own."""
    case, whole = found.case, found.horizons[None]
    result = []
    if case.to_stock is not None:
        share = case.one_number(whole["ours"], whole["stock"]) / case.one_number(whole["stock"], whole["stock"])
        result.append(Bar("ours / stock, mean of whole runs", share, case.to_stock))
    return [*result, Bar(f"ours / peer at {HORIZON_S:g} s, mean", found.to_peer(), 1.0)]


def _speed(found: Comparison) -> float | None:
    """Returns how many times sooner ours is as good as the peer ever gets; 0: never; None: the peer was not run."""
    if found.peer_time is None or found.peer_time.to_peer is None:
        return None
    to_peer = found.our_time.to_peer
    return 0.0 if to_peer is None else found.peer_time.to_peer / max(to_peer, 1e-3)


def _times(found: Comparison) -> list[tuple[str, float | None, float | None]]:
    peer, ours = found.peer_time, found.our_time
    return [
        ("CPU s in total", peer and peer.total, ours.total),
        ("CPU s to the peer's best, within 1 %", peer and peer.to_peer, ours.to_peer),
    ]


def _peer_notes(found: Comparison) -> list[str]:
    if found.peer_time is None:
        return ["The peer was not run."]
    parts = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in found.peer_time.parts.items())
    end = found.case.one_number(found.peer, found.stock)
    best = f"its best step has {found.peer_time.best:.4g} on the scored logs, its result {end:.4g}"
    return [f"The peer: {found.peer_time.iterates} steps; {best}; CPU time: {parts}."]
