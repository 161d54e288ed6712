"""How the catalogue grows: to a million episodes, 50,000 of them with samples of 500 rows of 12 columns.

    python benchmarks/catalogue.py [--folder DIR] [--small]

adds recordings to one catalogue, and beside it writes a folder as LeRobot v2.1 lays it out (a Parquet file per
episode, and `meta/episodes.jsonl`). Both answer the same questions at several sizes. Times are medians of many
repeats, with the files in the machine's page cache, and of whole calls as a user makes them. The folder needs about
15 GB and is deleted afterwards. `--small` does the same with a thousandth of the episodes, for tests.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tables import Bar, Table, markdown

from gapless.core.provenance import Provenance
from gapless.core.recording import Origin, Recording
from gapless.data.catalogue import Catalogue

NUM_ROWS, NUM_COLUMNS = 500, 12
SIZES = (10_000, 50_000, 100_000, 1_000_000)  # episodes at which both are asked
NUM_WITH_SAMPLES = 50_000  # the first of them
NUM_FOLDER_FILES = 10_000  # of the folder's: the more, the slower its questions about samples
REPEATS = 31
FILTER = "source = 'real' AND outcome = 'failure' AND policy_version = 'v3' AND site = 'lab2'"
PARAMETER = "source = 'sim' AND (parameters->>'friction')::DOUBLE > 0.9"
MEAN = "SELECT avg(value) AS mean FROM samples WHERE name = 'joint3'"


class Maker:
    """Recordings that differ: parts of a long random walk, so that making one costs little."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self._walk = rng.normal(size=(1_000_000 + NUM_ROWS, NUM_COLUMNS)).cumsum(axis=0)
        self._jitter = rng.uniform(0.009, 0.011, 100_000 + NUM_ROWS)
        self._choices = rng.integers(0, 60, size=(1_100_000, 4))
        self.spent_s = 0.0

    def said(self, k: int) -> dict:
        """Returns what is said of an episode."""
        a, b, c, d = (int(x) for x in self._choices[k])
        return {
            "source": ("real", "sim", "sim", "twin")[a % 4],
            "outcome": ("success", "failure")[b % 2],
            "policy_version": f"v{c % 10}",
            "site": f"lab{d % 5}",
            "friction": d / 60,
        }

    def columns(self, k: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Returns the times and columns of an episode."""
        first = (k * 7919) % 100_000
        times_s = np.concatenate([[0.0], np.cumsum(self._jitter[first : first + NUM_ROWS - 1])])
        cells = self._walk[(k * 104_729) % 1_000_000 :][:NUM_ROWS]
        return times_s, {f"joint{n}": np.ascontiguousarray(cells[:, n]) for n in range(NUM_COLUMNS)}

    def recording(self, k: int, with_samples: bool) -> Recording:
        """Returns an episode."""
        start = time.perf_counter()
        said = self.said(k)
        times_s, columns = self.columns(k) if with_samples else (np.empty(0), {})
        origin = Origin(
            robot="so101",
            simulator="mujoco",
            simulator_version="3.3",
            parameters={"friction": said["friction"], "mass": 1.0 + k / 7},
            policy="act",
            policy_version=said["policy_version"],
            site=said["site"],
            participants=(f"person{k % 40}",),
        )
        about = {"source": said["source"], "outcome": said["outcome"], "origin": origin}
        made = Recording(f"take{k:07d}", times_s, columns, **about)
        self.spent_s += time.perf_counter() - start
        return made


def median_ms(ask: Callable[[], object], repeats: int = REPEATS) -> tuple[float, float]:
    """Returns the median time of a call, and of the processor in it [ms], after one call that is not counted."""
    times = list[tuple[float, float]]()
    for _ in range(repeats + 1):
        start, start_cpu = time.perf_counter(), time.process_time()
        ask()
        times.append((time.perf_counter() - start, time.process_time() - start_cpu))
    wall, cpu = (1e3 * statistics.median(column) for column in zip(*times[1:], strict=True))
    return wall, cpu


def peak_mb() -> float:
    """Returns the most memory that this process has held since the last call [MB]."""
    text = Path("/proc/self/status").read_text()
    Path("/proc/self/clear_refs").write_text("5")
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM")) / 1e3


def add(catalogue: Catalogue, maker: Maker, first: int, end: int, with_samples: bool) -> tuple[tuple[str, ...], float]:
    """Adds episodes and returns their ids and the seconds it took, without making them."""
    provenance = Provenance("benchmark", "0", (), {}, None)
    start, maker.spent_s = time.perf_counter(), 0.0
    ids = catalogue.add_recordings((maker.recording(k, with_samples), provenance) for k in range(first, end))
    return ids, time.perf_counter() - start - maker.spent_s


def write_folder(folder: Path, maker: Maker, first: int, end: int, num_files: int) -> None:
    """Writes episodes as LeRobot v2.1 lays them out."""
    (folder / "meta").mkdir(parents=True, exist_ok=True)
    with (folder / "meta" / "episodes.jsonl").open("a") as file:
        for k in range(first, end):
            said = {"episode_index": k, "tasks": ["pick"], "length": NUM_ROWS, **maker.said(k)}
            file.write(json.dumps(said) + "\n")
            if k < num_files:
                times_s, columns = maker.columns(k)
                path = folder / f"data/chunk-{k // 1000:03d}/episode_{k:06d}.parquet"
                path.parent.mkdir(parents=True, exist_ok=True)
                pq.write_table(pa.table({"timestamp": times_s, **columns}), path)


def scan_count(folder: Path) -> int:
    """Returns how many episodes of the folder `FILTER` holds for, as its readers find out."""
    wanted = {"source": "real", "outcome": "failure", "policy_version": "v3", "site": "lab2"}
    with (folder / "meta" / "episodes.jsonl").open() as file:
        return sum(all(said[key] == value for key, value in wanted.items()) for said in map(json.loads, file))


def scan_mean(folder: Path) -> float:
    """Returns the mean of a column over all files of the folder."""
    files = f"read_parquet('{folder}/data/*/*.parquet')"
    return duckdb.sql(f"SELECT avg(joint3) FROM {files}").fetchall()[0][0]


def ask(
    catalogue: Catalogue, folder: Path, ids: list[str], maker: Maker, size: int, small: bool
) -> dict[str, tuple[float, float]]:
    """Returns how long each question takes at one size [ms]."""
    rng, repeats = np.random.default_rng(1), 3 if small else REPEATS
    some = iter(ids[k] for k in rng.integers(0, len(ids), 10 * REPEATS))
    files = sorted((folder / "data").glob("*/*.parquet"))
    paths = iter(files[k] for k in rng.integers(0, len(files), 10 * REPEATS))
    count = f"SELECT count(*) AS n FROM episodes WHERE {FILTER}"
    new = iter(range(1_050_000, 1_100_000))
    provenance = Provenance("benchmark", "0", (), {"at": size}, None)
    found = catalogue.query(count)["n"][0].as_py()
    assert found == scan_count(folder), "both count the same"
    times = {
        "count": median_ms(lambda: catalogue.query(count), repeats),
        "parameter": median_ms(lambda: catalogue.query(f"SELECT count(*) FROM episodes WHERE {PARAMETER}"), repeats),
        "ids": median_ms(lambda: catalogue.select_ids(FILTER), repeats),
        "open": median_ms(lambda: catalogue.recording(next(some)), repeats),
        "folder count": median_ms(lambda: scan_count(folder), 3),
        "folder open": median_ms(lambda: pq.read_table(next(paths)), repeats),
    }
    size_before = len(catalogue.query("SELECT id FROM episodes"))
    items = [(maker.recording(next(new), True), provenance) for _ in range(repeats + 1)]
    given = iter(items)
    times["add one"] = median_ms(lambda: catalogue.add_recordings([next(given)]), repeats)
    assert len(catalogue.query("SELECT id FROM episodes")) == size_before + len(items)
    return times


def measure(place: Path, small: bool) -> Iterator[Table]:
    """Yields the tables."""
    scale = 1000 if small else 1
    with_samples, num_files = NUM_WITH_SAMPLES // scale, NUM_FOLDER_FILES // scale
    maker, folder = Maker(), place / "lerobot"
    (place / "project").mkdir()
    catalogue = Catalogue.open(place / "project")
    ids, rows, begin = list[str](), list[dict[str, Any]](), 0
    say(f"peak memory before: {peak_mb():.0f} MB")
    seconds, peaks = 0.0, list[float]()
    for size in (size // scale for size in SIZES):
        for first, end, sampled in ((begin, min(size, with_samples), True), (max(begin, with_samples), size, False)):
            if first < end:
                new, took_s = add(catalogue, maker, first, end, sampled)
                ids += new if sampled else ()
                seconds += took_s if sampled else 0.0
                say(f"added {end - first} {'with' if sampled else 'without'} samples in {took_s:.1f} s")
        write_folder(folder, maker, begin, size, num_files)
        begin = size
        peaks.append(peak_mb())
        start = time.perf_counter()
        catalogue.compact()
        compact_s = time.perf_counter() - start
        peak_compact = peak_mb()
        rows.append(ask(catalogue, folder, ids, maker, size, small) | {"size": size, "compact": compact_s})
        rows[-1] |= {"peak compact": peak_compact, "peak ask": peak_mb()}
        say(json.dumps(rows[-1]))
    yield growth_table(rows, len(ids) * NUM_ROWS / seconds, peaks)
    yield samples_table(catalogue, place, len(ids), num_files, 1 if small else 3)


def growth_table(rows: list[dict[str, Any]], rate: float, peaks: list[float]) -> Table:
    """Returns how long questions take as the catalogue grows."""
    header = ("episodes", "filter and count", "ids", "by a parameter", "open one", "add one", "folder: count")
    keys = ("count", "ids", "parameter", "open", "add one", "folder count", "folder open")
    cells = [
        [f"{row['size']:,.0f}", *("{:.1f} ({:.1f})".format(*row[key]) for key in keys), f"{row['compact']:.1f}"]
        for row in rows
    ]
    last = rows[-1]
    bars = (
        Bar("filter and count, most of all sizes [ms]", max(row["count"][0] for row in rows), 100),
        Bar("open one episode, most of all sizes [ms]", max(row["open"][0] for row in rows), 20),
        Bar(f"rows of {NUM_COLUMNS} columns appended per second", rate, 10_000, at_most=False),
    )
    asking, joining = (max(row[key] for row in rows) for key in ("peak ask", "peak compact"))
    notes = (
        f"peak memory: {max(peaks):.0f} MB adding, {joining:.0f} MB in `compact`, {asking:.0f} MB asking",
        f"counting {last['size']:,.0f} episodes: folder / catalogue = {last['folder count'][0] / last['count'][0]:.0f}",
    )
    return Table(
        "A catalogue that grows [ms; in brackets, of the processor]",
        (*header, "folder: open", "compact [s]"),
        cells,
        bars,
        notes,
    )


def samples_table(catalogue: Catalogue, place: Path, num: int, num_files: int, repeats: int) -> Table:
    """Returns how long a question about samples takes."""
    ours, _ = median_ms(lambda: catalogue.query(MEAN), repeats)
    theirs, _ = median_ms(lambda: scan_mean(place / "lerobot"), repeats)
    sizes = [sum(f.stat().st_size for f in p.rglob("*") if f.is_file()) / 1e6 for p in (place / "project", place)]
    rows = [
        ["catalogue", f"{num:,}", f"{ours:.0f}", f"{1e3 * ours / num:.0f}", f"{sizes[0]:.0f}"],
        ["folder", f"{num_files:,}", f"{theirs:.0f}", f"{1e3 * theirs / num_files:.0f}", f"{sizes[1] - sizes[0]:.0f}"],
    ]
    header = ("mean of one column", "episodes with samples", "ms", "µs per episode", "MB on disk")
    return Table("A question about samples", header, rows)


def describe_run() -> str:
    """Returns the command, the commit, the date and the machine."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    memory_gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    machine = f"{os.cpu_count()} cores ({platform.machine()}), {memory_gb:.0f} GB, load {os.getloadavg()[0]:.1f}"
    command = " ".join(["python", "benchmarks/catalogue.py", *sys.argv[1:]])
    return f"`{command}`, {date.today()}, commit {commit.stdout.strip()}, {machine}\n"


def say(text: str) -> None:
    """Prints progress."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Reads the command line and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to work; None for the system's folder of temporary files")
    parser.add_argument("--small", action="store_true", help="a thousandth of the episodes")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        print(describe_run())
        for table in measure(place, options.small):
            print(markdown(table))
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
