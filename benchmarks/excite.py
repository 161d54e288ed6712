"""Does `identify` report what `excite` promised?

    python benchmarks/excite.py --split tuning --seeds 0
    python benchmarks/excite.py --split test --seeds 0 1 2

For each robot of `excite_robots.py`: `excite` for some parameters, with or without a first log and its fit; the motion
played twice in a reality that differs (plain MuJoCo, whose values nothing here reads); `identify` of all logs. Per
parameter that was promised to be identifiable: the width of the predicted interval and of the reported one, whether it
is identifiable, whether the interval holds the value of reality. CPU seconds are of all threads.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import excite_robots
import numpy as np
from excite_robots import Robot
from identify import heading, teller
from tables import Bar, Table, markdown, number

from gapless.excite.search import ExciteConfig
from gapless.excite.verb import excite
from gapless.identify.verb import identify

MAX_RATIO = 2.0  # of widths, either way
BRIEF = ExciteConfig(budget=1e6, min_motions=12, max_motions=24, num_generations=3)
MIN_NEAR, MAX_UNKNOWN = 0.8, 0.2  # the bars: share within the ratio; share of the promised that is not identifiable


@dataclass(frozen=True)
class Outcome:
    """What became of one promise."""

    robot: str
    seed: int
    target: str
    promised: bool  # whether `excite` said that it is identifiable
    outlook: str
    predicted: float  # width of the predicted interval, in its unit
    reported: float | None  # width of the reported one; None where it was not fitted
    identifiable: bool  # as `identify` reported
    holds: bool | None  # whether the reported interval holds the value of reality; None where that is not known
    interval: tuple[float, float] | None
    truth: float | None
    excite_cpu_s: float
    identify_cpu_s: float

    @property
    def ratio(self) -> float:
        """Reported width as a share of the predicted one."""
        return np.nan if self.reported is None else self.reported / max(self.predicted, 1e-300)

    @property
    def is_near(self) -> bool:
        """Whether the widths are within the ratio of the bar."""
        return bool(1 / MAX_RATIO <= self.ratio <= MAX_RATIO)


def run_robot(robot: Robot, seed: int, folder: Path, config: ExciteConfig) -> list[Outcome]:
    """Returns what became of the promises for one robot."""
    robot.write(folder)
    truth = robot.draw_truth(seed)
    if robot.first_log:
        commands, start = excite_robots.first_motion(robot)
        excite_robots.record(robot, truth, commands, start, folder / "logs" / "first.csv", 100 * seed)
        identify(folder)
    began = time.process_time()
    promise = excite(folder, robot.wanted, seed=seed, config=config, **robot.options)
    excite_cpu_s = time.process_time() - began
    if promise.path is None:
        raise RuntimeError(f"{robot.name}: {promise.advice}")
    commands = np.loadtxt(promise.path, delimiter=",", skiprows=1)[:, 1:]
    for k in range(2):
        path = folder / "logs" / f"motion{k}.csv"
        excite_robots.record(robot, truth, commands, promise.start, path, 100 * seed + 1 + k)
    began = time.process_time()
    found = {p.target: p for p in identify(folder).parameters}
    identify_cpu_s = time.process_time() - began
    values = {target: excite_robots.read_value_of(robot, truth, target) for target in robot.wanted}
    outcomes: list[Outcome] = []
    for p in (p for p in promise.parameters if p.wanted):
        fit, value = found.get(p.target), values[p.target]
        known = fit is not None and value is not None
        outcomes.append(
            Outcome(
                *(robot.name, seed, p.target, p.identifiable, p.outlook, p.high - p.low),
                reported=None if fit is None else fit.high - fit.low,
                identifiable=fit is not None and fit.identifiable,
                holds=bool(fit.low <= value <= fit.high) if known else None,
                interval=None if fit is None else (fit.low, fit.high),
                truth=value,
                excite_cpu_s=excite_cpu_s,
                identify_cpu_s=identify_cpu_s,
            )
        )
    return outcomes


def tables(outcomes: Sequence[Outcome], title: str) -> list[Table]:
    """Returns the table of all promises with its bars, and that of what was not promised."""
    promised = [one for one in outcomes if one.promised]
    share = lambda flags: float(np.mean(flags)) if flags else None  # noqa: E731
    bars = (
        Bar("promised, reported within a factor of two", share([one.is_near for one in promised]), MIN_NEAR, False),
        Bar("promised, then not identifiable", share([not one.identifiable for one in promised]), MAX_UNKNOWN),
    )
    known = [one.holds for one in outcomes if one.holds is not None]
    refused = [one for one in outcomes if not one.promised]
    runs = {(one.robot, one.seed): one for one in outcomes}.values()
    notes = (
        f"promised: {len(promised)} of {len(outcomes)} that were asked for; of the {len(refused)} others, identify "
        f"then identified {sum(one.identifiable for one in refused)}",
        f"reported intervals that hold the value of reality: {sum(known)} of {len(known)}",
        f"CPU s per robot, median (most): excite {np.median([one.excite_cpu_s for one in runs]):.0f} "
        f"({max(one.excite_cpu_s for one in runs):.0f}), "
        f"identify {np.median([one.identify_cpu_s for one in runs]):.0f} "
        f"({max(one.identify_cpu_s for one in runs):.0f})",
    )
    header = ("robot, seed", "parameter", "outlook", "predicted", "reported", "ratio", "identifiable", "holds reality")
    rows = [
        [
            f"{one.robot} {one.seed}", one.target, one.outlook, number(one.predicted), number(one.reported),
            number(one.ratio, ".2f"), "yes" if one.identifiable else "no",
            "-" if one.holds is None else "yes" if one.holds else "no",
        ]
        for one in outcomes
    ]  # fmt: skip
    return [Table(title, header, rows, bars, notes)]


def main() -> None:
    """Reads the command line, runs, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--split", choices=("tuning", "test"), default="tuning", help="which robots")
    parser.add_argument("--robots", nargs="*", help="only these; default: all of the split")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0], help="of reality, motions and noise")
    parser.add_argument("--brief", action="store_true", help="search motions briefly: for tuning what is promised")
    parser.add_argument("--keep", type=Path, help="leave the projects in this folder")
    parser.add_argument("--raw", type=Path, help="also write each promise as a line of JSON to this file")
    options = parser.parse_args()
    print(heading(sys.argv[1:], "excite"), flush=True)
    robots = excite_robots.TUNING if options.split == "tuning" else excite_robots.TEST
    config = BRIEF if options.brief else ExciteConfig()
    outcomes: list[Outcome] = []
    say = teller("excite")
    for seed in options.seeds:
        for robot in robots:
            if options.robots and robot.name not in options.robots:
                continue
            say(f"{robot.name}, seed {seed}")
            with tempfile.TemporaryDirectory() as place:
                folder = (options.keep or Path(place)) / f"{robot.name}{seed}"
                found = run_robot(robot, seed, folder, config)
            outcomes += found
            if options.raw:
                with options.raw.open("a") as lines:
                    lines.writelines(json.dumps(asdict(one)) + "\n" for one in found)
    for table in tables(outcomes, f"What excite promises: {options.split} robots"):
        print(markdown(table), flush=True)


if __name__ == "__main__":
    main()
