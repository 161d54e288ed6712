"""Which ranges to train on: final success on unseen twins, one training budget for all.

    python benchmarks/randomize.py [--example balance] [--seeds 20 21 ... 25] [--trials 100] --folder FOLDER

One first policy is trained in the model as written, and every method goes on from it for the same number of control
steps, as the loop does. Without real data: `none` goes on in the model as written; `wide` in ranges set by hand; `adr`
and `max-entropy`, curricula within the same hand-set ranges. With at most 10 real episodes per twin, recorded with the
first policy and a little exploration: `evidence`, what `gapless randomize` does without options, about a fit; `dropo`,
by offline likelihood; `combined`, a max-entropy curriculum within the ranges of `evidence`. Trials only score; no one
sees them.

Twins 20 to 25 are for the table; twin 0 is the demo's, 100 and up were used while tuning. What is done is kept in
FOLDER, so that a run that was interrupted goes on, and two runs with different seeds may share the work.
"""

import argparse
import json
import os
import shutil
import statistics
import time
from datetime import date
from pathlib import Path

import numpy as np
from loop import WIDE, write_ranges
from scipy.stats import t as student

import gapless
from gapless.core.results import plain
from gapless.identify.verb import identify
from gapless.learn.evaluate import evaluate, open_world, run_trials
from gapless.learn.train import TrainConfig, train
from gapless.project.load import load_project
from gapless.project.log.write import write_log
from gapless.randomize.verb import randomize
from gapless.verbs import copy_example

SHARED = {"none": "none", "wide": "none", "adr": "adr", "max-entropy": "max-entropy"}  # method -> curriculum
OWN = ("evidence", "dropo", "combined")
METHODS = (*SHARED, *OWN)
DEFAULT = "evidence"
REAL_EPISODES = 10
EXPLORATION = 0.3
FIRST_STEPS = 600_000


def first_policy(example: str, folder: Path) -> tuple[Path, str]:
    """Trains the policy that all go on from; returns its project and its path."""
    base = folder / "base"
    if not base.exists():
        copy_example(example, base)
        shutil.rmtree(base / "logs", ignore_errors=True)
    return base, train(base, config=TrainConfig(num_steps=FIRST_STEPS), seed=0).policy


def shared_policies(example: str, folder: Path, steps: int) -> dict[str, str]:
    """Trains the policies that need no real data; returns their paths."""
    base, first = first_policy(example, folder)
    ranges = write_ranges(WIDE[example], folder / "wide.json")
    policies = {}
    for name, curriculum in SHARED.items():
        config = TrainConfig(num_steps=steps, curriculum=curriculum)
        policies[name] = train(base, None if name == "none" else ranges, start=first, config=config, seed=0).policy
    return policies


def record(place: Path, policy: str, seed: int) -> int:
    """Records real episodes of a twin as logs; returns how many."""
    project = load_project(place)
    world = open_world(project, "reality", REAL_EPISODES, seed)
    runs = run_trials(project, world, policy, REAL_EPISODES, 1000, exploration=EXPLORATION, name="real-")
    for episode in runs.episodes:
        write_log(project, episode)
    return len(runs.episodes)


def own_policies(place: Path, first: str, steps: int) -> tuple[dict[str, str], dict[str, float]]:
    """Trains the policies that a twin's logs lead to; returns their paths and the seconds that ranges took."""
    seconds, ranges = {}, {}
    began = time.monotonic()
    identify(place, seed=0)
    ranges["evidence"] = randomize(place).path
    seconds["evidence"] = time.monotonic() - began
    began = time.monotonic()
    ranges["dropo"] = randomize(place, method="dropo", seed=0).path
    seconds["dropo"] = time.monotonic() - began
    ranges["combined"], seconds["combined"] = ranges["evidence"], seconds["evidence"]
    policies = {}
    for name in OWN:
        config = TrainConfig(num_steps=steps, curriculum="max-entropy" if name == "combined" else "none")
        policies[name] = train(place, ranges[name], start=first, config=config, seed=0).policy
    return policies, seconds


def run_twin(example: str, seed: int, folder: Path, steps: int, trials: int) -> dict:
    """Runs all methods on one twin; returns its row."""
    base, first = first_policy(example, folder)
    policies = shared_policies(example, folder, steps)
    place = folder / f"twin-{seed}"
    if not (place / "logs").exists():
        shutil.rmtree(place, ignore_errors=True)
        copy_example(example, place)
        shutil.rmtree(place / "logs", ignore_errors=True)
        record(place, first, seed)
    own, seconds = own_policies(place, first, steps)
    row = {"twin": seed, "episodes": REAL_EPISODES, "seconds": seconds, "success": {}}
    for name, policy in (policies | own).items():
        row["success"][name] = plain(evaluate(base, policy, num_trials=trials, seed=0, reality_seed=seed).success)
    return row


def mean_interval(values: list[float]) -> tuple[float, float, float]:
    """Returns a mean over twins with its 95 % interval by Student's t."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    half = float(student.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / np.sqrt(len(values))
    return mean, mean - half, mean + half


def show(rows: list[dict]) -> None:
    """Prints the table, the means, and how the default stands against each."""
    print("  twin" + "".join(f"{name:>17}" for name in METHODS))
    for row in rows:
        cells = [row["success"][name] for name in METHODS]
        shown = "".join(f"{100 * c['value']:>6.0f} [{100 * c['low']:3.0f}, {100 * c['high']:3.0f}]" for c in cells)
        print(f"{row['twin']:>6}{shown}")
    success = {name: [row["success"][name]["value"] for row in rows] for name in METHODS}
    means = {name: mean_interval(success[name]) for name in METHODS}
    print("  mean" + "".join(f"{100 * means[n][0]:>15.0f} %" for n in METHODS))
    print("differences to the default, per twin, mean with its 95 % interval:")
    for name in METHODS:
        if name != DEFAULT:
            mean, low, high = mean_interval([a - b for a, b in zip(success[name], success[DEFAULT], strict=True)])
            print(f"  {name:12} {100 * mean:+6.1f} [{100 * low:+6.1f}, {100 * high:+6.1f}] points")


def main() -> None:
    """Reads the command line, runs, prints the table of all twins in the folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--example", default="balance")
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(20, 26)))
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    budget = f"{FIRST_STEPS} and {options.steps} steps for each policy"
    size = f"{os.cpu_count()} cores, {budget}, {options.trials} trials per cell"
    print(f"gapless {gapless.__version__}, {date.today()}, {options.example}, {size}", flush=True)
    for seed in options.seeds:
        path = options.folder / f"row-{seed}.json"
        if not path.exists():
            row = run_twin(options.example, seed, options.folder, options.steps, options.trials)
            path.write_text(json.dumps(row))
            shown = ", ".join(f"{name} {100 * cell['value']:.0f}" for name, cell in row["success"].items())
            print(f"twin {seed}: {shown}", flush=True)
    show([json.loads(path.read_text()) for path in sorted(options.folder.glob("row-*.json"))])


if __name__ == "__main__":
    main()
