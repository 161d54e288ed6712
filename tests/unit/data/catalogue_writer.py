"""Episodes for the tests of the catalogue, and a process of its own that writes them.

As a program: `catalogue_writer.py PROJECT FIRST COUNT [artefacts]` prints `open`, then each id once added.
"""

import sys
from pathlib import Path

import numpy as np

from gapless.core.episode import Episode
from gapless.core.provenance import Provenance
from gapless.core.signal import TimeSeries
from gapless.data.catalogue import Catalogue


def make_episode(seed: int = 0, **changes) -> Episode:
    rng = np.random.default_rng(seed)
    times_s = np.arange(50) / 100
    about = {
        "name": f"run{seed:04d}",
        "source": "sim",
        "commands": TimeSeries(times_s, rng.normal(size=(50, 2)), ("cmd_a", "cmd_b"), ("rad", "N·m")),
        "measurements": TimeSeries(times_s, rng.normal(size=(50, 3)), ("q_a", "q_b", "cmd_a"), ("rad", "rad", "1")),
        "outcome": "success",
        "conditions": {"object": "mug"},
    }
    return Episode(**(about | changes))


def make_provenance(**changes) -> Provenance:
    about = {"made_by": "test", "code_version": "0.1", "parents": (), "config": {"rate_hz": 100}, "seed": 1}
    return Provenance(**(about | changes))


def same_episode(one: Episode, other: Episode) -> bool:
    fields = ("name", "source", "outcome", "failed_in", "conditions", "recorded_at")
    return (
        all(getattr(one, field) == getattr(other, field) for field in fields)
        and one.commands.equals(other.commands)
        and one.measurements.equals(other.measurements)
    )


def main(project: Path, first: int, count: int, kind: str = "episodes") -> None:
    catalogue = Catalogue.open(project)
    print("open", flush=True)
    for k in range(first, first + count):
        if kind == "artefacts":
            content = {"fit.json": b"%d" % k, "a/b": b"x" * 50_000}
            id = catalogue.add_artefact("fit", content, make_provenance(seed=k))
        else:
            id = catalogue.add_episode(make_episode(k), make_provenance())
        print(id, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
