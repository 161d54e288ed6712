"""The whole loop on many twins of each example: is the gap real, is it closed, does that beat wide ranges?

    python benchmarks/loop.py [--examples balance push] [--seeds 20 21 ... 29] [--trials 100] [--out FILE.json]

Per example: one policy is trained in the model as written, and three are trained on from it: `longer` in the model
as written (the control: is it only the training?), `wide` in ranges hand-set as one would without any log, and
`family` in the very ranges that the twins are drawn from, which nobody has of a real robot. Per twin: all are tried,
then `gapless loop` closes the gap with at most 12 episodes of that twin and the same number of training steps, and
its policy is tried. Trials only score; no one sees them.

Twin 0 is the demo's, and twins 100 and up were used while tuning; 20 to 29 are for the table.
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
        "actuator/*/delay": (0.0, 0.1),
        "actuator/motor/gain": (0.3, 1.6),
        "joint/cart/damping": (0.0, 3.0),
        "joint/cart/frictionloss": (0.0, 1.0),
        "joint/pole/damping": (0.0, 0.02),
        "body/pole/mass": (0.075, 0.3),
        "measurement/pole/bias": (-0.05, 0.05),
        "world/tilt/y": (-0.05, 0.05),
    },
    "push": {
        "actuator/*/delay": (0.0, 0.15),
        "actuator/servo_x/kp": (36.0, 240.0),
        "actuator/servo_y/kp": (36.0, 240.0),
        "joint/tip_x/damping": (0.5, 8.0),
        "joint/tip_y/damping": (0.5, 8.0),
        "joint/tip_x/frictionloss": (0.0, 2.0),
        "joint/tip_y/frictionloss": (0.0, 2.0),
        "geom/puck/friction": (0.1, 1.0),
        "body/puck/mass": (0.1, 0.6),
        "measurement/puck_x/bias": (-0.04, 0.04),
        "measurement/puck_y/bias": (-0.04, 0.04),
        "world/tilt/x": (-0.05, 0.05),
        "world/tilt/y": (-0.05, 0.05),
    },
}
FAMILY = {
    "balance": {
        "actuator/*/delay": (0.05, 0.08),
        "actuator/motor/gain": (0.35, 0.55),
        "joint/cart/damping": (0.5, 1.5),
        "joint/cart/frictionloss": (0.2, 0.6),
        "joint/pole/damping": (0.001, 0.004),
        "body/pole/mass": (0.12, 0.21),
        "measurement/pole/bias": (-0.02, 0.02),
    },
    "push": {
        "actuator/*/delay": (0.02, 0.06),
        "actuator/servo_x/kp": (60.0, 96.0),
        "actuator/servo_y/kp": (60.0, 96.0),
        "joint/tip_x/frictionloss": (0.1, 0.6),
        "joint/tip_y/frictionloss": (0.1, 0.6),
        "joint/tip_x/backlash": (0.0, 0.003),
        "joint/tip_y/backlash": (0.0, 0.003),
        "geom/puck/friction": (0.18, 0.32),
        "body/puck/mass": (0.175, 0.375),
        "measurement/puck_x/bias": (-0.01, 0.01),
        "measurement/puck_y/bias": (-0.01, 0.01),
        "world/tilt/x": (-0.01, 0.01),
        "world/tilt/y": (-0.01, 0.01),
    },
}
COLUMNS = ("before", "longer", "wide", "family", "closed")


def write_ranges(limits: dict[str, tuple[float, float]], path: Path) -> Path:
    """Writes ranges as `randomize` would."""
    ranges = tuple(
        Range(target, "uniform", low, high, (low + high) / 2, reason="hand-set")
        for target, (low, high) in limits.items()
    )
    path.write_text(json.dumps(to_json(RandomizeResult((), ranges, str(path), 0))))
    return path


def run_example(example: str, seeds: list[int], trials: int, scratch: Path) -> dict:
    """Runs one example on some twins; returns the rows of its table."""
    config = LoopConfig(num_trials=trials)
    base = copy_example(example, scratch / f"{example}-base")
    shutil.rmtree(base / "logs", ignore_errors=True)
    first = train(base, config=config.first, seed=0)
    others = {"longer": train(base, start=first.policy, config=config.last, seed=0)}
    others |= {
        name: train(
            base,
            write_ranges(table[example], scratch / f"{name}.json"),
            start=first.policy,
            config=config.last,
            seed=0,
        )
        for name, table in (("wide", WIDE), ("family", FAMILY))
    }
    simulation = evaluate(base, first.policy, where="simulation", num_trials=4 * trials, seed=1).success
    print(f"\n{example}: first policy in simulation {simulation.percent()} of {simulation.n}", flush=True)
    print("  twin" + "".join(f"{name:>16}" for name in COLUMNS) + "  episodes  seconds  verdict  causes", flush=True)
    rows = []
    for seed in seeds:
        began = time.monotonic()
        place = copy_example(example, scratch / f"{example}-{seed}")
        shutil.rmtree(place / "logs", ignore_errors=True)
        result = loop(place, config=config, policy=first.policy, seed=0, reality_seed=seed)
        row = {"twin": seed, "before": result.before, "closed": result.after, "seconds": time.monotonic() - began}
        for name, other in others.items():
            row[name] = evaluate(base, other.policy, num_trials=trials, seed=0, reality_seed=seed).success
        found = result.diagnose.causes if result.diagnose else ()
        causes = ", ".join(f"{c.dimension} {c.probability:.2f}" for c in found[:3])
        if result.decision and result.decision.action != "train":
            causes += f" ({result.decision.action}: {result.decision.reason})"
        verdict = result.identify.verdict if result.identify else "-"
        shown = "".join(f"{row[name].percent():>16}" for name in COLUMNS)
        tail = f"{result.real_episodes:>10}{row['seconds']:>9.0f}  {verdict:7}  {causes}"
        print(f"{seed:>6}{shown}{tail}", flush=True)
        rows.append(row | {"episodes": result.real_episodes, "causes": found})
        shutil.rmtree(place)
    medians = {name: statistics.median(row[name].value for row in rows) for name in COLUMNS}
    better = sum(row["closed"].value > row["wide"].value for row in rows)
    print("median" + "".join(f"{100 * medians[name]:>14.0f} %" for name in COLUMNS), end="")
    print(f"  closed above wide on {better} of {len(rows)} twins", flush=True)
    return {"simulation": simulation, "rows": rows, "medians": medians, "steps": others["wide"].num_steps}


def main() -> None:
    """Reads the command line, runs, prints one table per example."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", nargs="+", default=["balance", "push"])
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(20, 30)))
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
