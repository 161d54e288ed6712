"""The whole loop on many twins of each example: is the gap real, is it closed, and does that beat wide ranges?

    python benchmarks/loop.py [--examples balance push] [--seeds 10 11 ... 19] [--trials 100] [--out FILE.json]

Per example: one policy is trained in the model as written, and one is trained on from it with hand-set wide
ranges. Per twin: both are tried, then `gapless loop` closes the gap with at most 12 episodes of that twin and the
same number of training steps, and its policy is tried. Trials only score; no one sees them.

The wide ranges are hand-set as one would without logs, and hold every twin (they were written with the twins'
ranges in sight, which is in their favour). Twin 0 is the demo's and twins 100 and up were used while tuning; 10 to 19 are for the table.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from datetime import date
from pathlib import Path

import gapless
from gapless.core.distribution import Range
from gapless.core.results import RandomizeResult, plain, to_json
from gapless.learn.evaluate import evaluate
from gapless.learn.train import train
from gapless.loop.verb import LoopConfig, loop
from gapless.verbs import copy_example

WIDE = {
    "balance": {
        "actuator/*/delay": (0.0, 0.06),
        "actuator/motor/gain": (0.5, 1.5),
        "joint/cart/damping": (0.1, 2.0),
        "joint/cart/frictionloss": (0.0, 0.6),
        "joint/pole/damping": (0.0, 0.01),
        "body/pole/mass": (0.1, 0.25),
        "measurement/pole/bias": (-0.03, 0.03),
    },
    "push": {
        "actuator/*/delay": (0.0, 0.12),
        "actuator/servo_x/kp": (50.0, 190.0),
        "actuator/servo_y/kp": (50.0, 190.0),
        "joint/tip_x/frictionloss": (0.0, 1.0),
        "joint/tip_y/frictionloss": (0.0, 1.0),
        "geom/puck/friction": (0.12, 0.7),
        "body/puck/mass": (0.12, 0.5),
        "measurement/puck_x/bias": (-0.025, 0.025),
        "measurement/puck_y/bias": (-0.025, 0.025),
        "world/tilt/x": (-0.02, 0.02),
        "world/tilt/y": (-0.02, 0.02),
    },
}


def write_wide(example: str, path: Path) -> Path:
    """Writes the hand-set wide ranges as `randomize` would."""
    ranges = tuple(
        Range(target, "uniform", low, high, (low + high) / 2, reason="hand-set")
        for target, (low, high) in WIDE[example].items()
    )
    path.write_text(json.dumps(to_json(RandomizeResult((), ranges, str(path), 0))))
    return path


def run_example(example: str, seeds: list[int], trials: int, scratch: Path) -> dict:
    """Runs one example on some twins; returns the rows of its table."""
    config = LoopConfig(num_trials=trials)
    base = copy_example(example, scratch / f"{example}-base")
    shutil.rmtree(base / "logs", ignore_errors=True)
    first = train(base, config=config.first, seed=0)
    wide = train(base, write_wide(example, scratch / "wide.json"), start=first.policy, config=config.last, seed=0)
    simulation = evaluate(base, first.policy, where="simulation", num_trials=4 * trials, seed=1).success
    print(f"\n{example}: first policy in simulation {simulation.percent()} of {simulation.n}", flush=True)
    print(
        f"{'twin':>6}{'before':>16}{'wide':>16}{'closed':>16}{'episodes':>10}{'seconds':>9}  verdict  cause",
        flush=True,
    )
    rows = []
    for seed in seeds:
        began = time.monotonic()
        place = copy_example(example, scratch / f"{example}-{seed}")
        shutil.rmtree(place / "logs", ignore_errors=True)
        result = loop(place, config=config, policy=first.policy, seed=0, reality_seed=seed)
        seconds = time.monotonic() - began
        broad = evaluate(base, wide.policy, num_trials=trials, seed=0, reality_seed=seed).success
        cause = ", ".join(f"{c.dimension} {c.probability:.2f}" for c in result.diagnose.causes[:3])
        print(
            f"{seed:>6}{result.before.percent():>16}{broad.percent():>16}{result.after.percent():>16}"
            f"{result.real_episodes:>10}{seconds:>9.0f}  {result.identify.verdict:7}  {cause}",
            flush=True,
        )
        rows.append({"twin": seed, "before": result.before, "wide": broad, "closed": result.after, "seconds": seconds})
        rows[-1] |= {"episodes": result.real_episodes, "causes": result.diagnose.causes}
        shutil.rmtree(place)
    medians = {key: statistics.median(row[key].value for row in rows) for key in ("before", "wide", "closed")}
    shown = "".join(f"{100 * medians[key]:>14.0f} %" for key in medians)
    print(
        f"median{shown}   closed better than wide on {sum(r['closed'].value > r['wide'].value for r in rows)}"
        f" of {len(rows)} twins",
        flush=True,
    )
    return {"simulation": simulation, "rows": rows, "medians": medians, "steps": wide.num_steps}


def main() -> None:
    """Reads the command line, runs, prints one table per example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", nargs="+", default=["balance", "push"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(10, 20)))
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(f"gapless {gapless.__version__}, {date.today()}, {os.cpu_count()} cores, {options.trials} trials per cell")
    with tempfile.TemporaryDirectory() as scratch:
        found = {name: run_example(name, options.seeds, options.trials, Path(scratch)) for name in options.examples}
    if options.out:
        options.out.write_text(json.dumps(plain(found), indent=1))


if __name__ == "__main__":
    main()
