"""The table of one real set, and what it has to reach."""

import numpy as np
from compare import SAME, Comparison
from tables import Bar, Table, number


def table(found: Comparison) -> Table:
    """Returns the set's table: errors per joint and of all, then times."""
    case = found.case
    differ = bool(np.any(np.abs(found.as_fitted / found.neutral - 1) >= SAME))
    errors = {"stock": found.stock, "peer": found.peer, "ours": found.compared}
    errors |= {"ours, plain MuJoCo": found.neutral, "ours, as fitted": found.as_fitted} if differ else {}
    after = {"class limit": found.limit, "floor": found.floor}
    header = ["joint", *errors, "ours/peer", "ours/stock", *after]
    rows = [
        {"joint": f"{joint} [{unit}]"} | {name: _at(error, k) for name, error in (errors | after).items()}
        for k, (joint, unit) in enumerate(zip(case.joints, case.units, strict=True))
    ]
    rows += [
        {"joint": f"{joint}, from {case.later_s} s [{unit}]"} | {name: float(e[k]) for name, e in found.later.items()}
        for k, (joint, unit) in enumerate(zip(case.joints, case.units, strict=True))
        if found.later
    ]
    overall = {name: e if e is None else case.one_number(e, found.stock) for name, e in (errors | after).items()}
    rows.append({"joint": case.one_number_means} | overall)
    for row in rows:
        row["ours/stock"] = row["ours"] / row["stock"]
    rows += [{"joint": label, "peer": peer, "ours": ours} for label, peer, ours in _times(found)]
    for row in rows:
        row["ours/peer"] = row["ours"] / row["peer"] if row["ours"] and row.get("peer") else None
    cells = [[row["joint"], *(number(row.get(name)) for name in header[1:])] for row in rows]
    floor = f"Floor: {case.floor_means}."
    limit = (
        "Class limit: the parameters of ours, fitted to the very logs that are scored by a local search; at most that."
    )
    return Table(case.title, header, cells, bars(found), [*_peer_notes(found), limit, floor, *case.notes, *found.notes])


def _at(error: np.ndarray | None, joint: int) -> float | None:
    return None if error is None else float(error[joint])


def bars(found: Comparison) -> list[Bar]:
    """Returns what the set has to reach."""
    case, stock, ours = found.case, found.stock, found.compared
    result = []
    if case.to_stock is not None:
        share = case.one_number(ours, stock) / case.one_number(stock, stock)
        result.append(Bar("ours / stock, mean", share, case.to_stock))
    peer = found.peer
    if case.every_joint:
        for k, joint in enumerate(case.joints):
            share = None if peer is None else float(ours[k] / peer[k])
            result.append(Bar(f"ours / peer, {joint}", share, case.to_peer))
    else:
        share = None if peer is None else case.one_number(ours, stock) / case.one_number(peer, stock)
        result.append(Bar("ours / peer, mean", share, case.to_peer))
    text = "CPU time of the peer to its best error / of ours to the same error (0: never)"
    return [*result, Bar(text, _speed(found), 5.0, at_most=False)]


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
