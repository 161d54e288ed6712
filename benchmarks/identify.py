"""Identification against `mujoco.sysid` on real logs, how time grows, and what twins say about honesty.

    python benchmarks/identify.py [--sets so101 qube cartpole double_pendulum cube crazyflie] [--scaling] [--twins]

Twins 20 to 29 are for the table, those from 100 on for tuning: `--sets --twins --seeds 100 101`.

Per set one table: the model as its maker wrote it (stock), MuJoCo's own toolbox set up with care and with hand-picked
starting values (peer: `peer.py`), and `gapless identify` on the same logs, which starts from the stock model and
chooses everything itself (ours). All are scored by one neutral scorer in plain MuJoCo (`score.py`) on logs that
nobody fitted, by how far ahead they predict: 0.1, 0.5, 1 s and whole runs. Besides: the best that ours's class of model
can do, fitted to the very logs that are scored (`limit.py`), and what no model can predict (`floors.py`). CPU seconds
are of all threads; scoring is not counted.

It needs the logs ($GAPLESS_DATA, or `shared/data` beside the repository) and the extra `peer`.
"""

import argparse
import importlib
import importlib.util
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import mujoco
from cases import CASES, Say
from compare import Comparison, RefusedError, compare
from compare_table import summary_table, table
from sets import data_folder
from tables import Bar, Table, markdown
from twin_logs import FAMILIES

import gapless

OWN_TABLES = ("crazyflie",)
"""Sets that are not motions of joints: a module of that name beside this one has `table(say) -> tables.Table`."""


def teller(prefix: str) -> Say:
    """Returns a function that writes progress to standard error, with the minutes since it was made."""
    began = time.monotonic()
    return lambda text: print(
        f"[{(time.monotonic() - began) / 60:5.1f} min] {prefix}: {text}", file=sys.stderr, flush=True
    )


def why_not(name: str, with_peer: bool = True) -> str | None:
    """Returns why a set cannot be run here, or None."""
    if not (data_folder() / name).is_dir():
        return f"no logs of {name}: set GAPLESS_DATA to the folder that holds them"
    if name in OWN_TABLES:
        return None if importlib.util.find_spec(name) else f"benchmarks/{name}.py is not there yet"
    return no_peer() if with_peer else None


def no_peer() -> str | None:
    """Returns why the peer cannot be run here, or None. Without what it imports, the toolbox is there but empty."""
    toolbox = importlib.import_module("mujoco.sysid")
    return None if hasattr(toolbox, "optimize") else "the peer is not installed: pip install -e '.[peer]'"


def set_table(
    name: str,
    with_peer: bool,
    with_limit: bool,
    peer_cache: Path | None = None,
    done: list[Comparison] | None = None,
) -> Table:
    """Runs one set and returns its table; what was compared is added to `done`."""
    reason = why_not(name, with_peer)
    if reason:
        return Table(name, ("not run",), (), notes=(reason,))
    say = teller(name)
    if name in OWN_TABLES:
        return importlib.import_module(name).table(say)
    try:
        found = compare(CASES[name](), say, with_peer=with_peer, with_limit=with_limit, peer_cache=peer_cache)
    except RefusedError as refusal:
        bar = Bar("ours fits it at all", 0.0, 1.0, at_most=False)
        return Table(name, ("refused",), (), (bar,), (str(refusal),))
    if done is not None:
        done.append(found)
    return table(found)


def heading(arguments: Sequence[str], script: str = "identify") -> str:
    """Returns what a reader needs to run it again: command, date, commit, versions, machine."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    ask = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    commit = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    return (
        f"`python benchmarks/{script}.py {shlex.join(arguments)}`, {datetime.now(UTC).date()}, gapless "
        f"{gapless.__version__} at {commit}, mujoco {mujoco.__version__}, {os.cpu_count()} cores, {memory_gb:.0f} GB.\n"
    )


def main() -> None:
    """Reads the command line, runs, prints every table as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = [*CASES, *OWN_TABLES]
    parser.add_argument("--sets", nargs="*", choices=every, default=every, help="real sets; none: `--sets` alone")
    parser.add_argument("--no-peer", action="store_true", help="leave the peer out: it takes most of the time")
    parser.add_argument("--peer-cache", type=Path, help="folder that keeps fits of the peer: none runs twice")
    parser.add_argument("--no-limit", action="store_true", help="leave the class limit out")
    parser.add_argument("--scaling", action="store_true", help="how time grows with logs and parameters")
    parser.add_argument("--twins", action="store_true", help="synthetic twins: is the truth found, do the flags hold")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(20, 30)), help="twins; tune on 100 and up")
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=FAMILIES, help="of twins; all unless said")
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    options = parser.parse_args()
    pieces = [heading(sys.argv[1:])]
    print(pieces[0], flush=True)
    for found in _tables(options):
        pieces.append(markdown(found))
        print(pieces[-1], flush=True)
        if options.out:
            options.out.write_text("\n".join(pieces))


def _tables(options: argparse.Namespace) -> Iterator[Table]:
    """Yields the tables that were asked for."""
    done: list[Comparison] = []
    for name in options.sets:
        yield set_table(name, not options.no_peer, not options.no_limit, options.peer_cache, done)
    if len(done) > 1:
        yield summary_table(done)
    if options.scaling:
        import growth

        yield from growth.tables(teller("scaling"), with_peer=not options.no_peer)
    if options.twins:
        import twins

        yield from twins.tables(options.seeds, teller("twins"), options.families)


if __name__ == "__main__":
    main()
