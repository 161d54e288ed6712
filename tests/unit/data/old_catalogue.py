"""A catalogue as the version before wrote it: a small file of samples per episode, and a table without chunks.

As a program: `old_catalogue.py PROJECT` opens it and prints `done`.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from gapless.core.episode import Episode
from gapless.core.provenance import Provenance, content_id, episode_content
from gapless.data.catalogue import Catalogue

TEXTS = ("id", "name", "source", "outcome", "failed_in", "conditions", "recorded_at", "added_at")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in TEXTS),
        ("duration_s", pa.float64()),
        *((name, pa.string()) for name in ("made_by", "code_version", "config")),
        ("parents", pa.list_(pa.string())),
        ("seed", pa.int64()),
    ]
)


def write_old_catalogue(project: Path, items: Sequence[tuple[Episode, Provenance]]) -> list[str]:
    """Writes episodes, each in a commit of its own, and returns their ids."""
    return [add_old_episode(project, *item, f"2026-01-01T00:00:{k:02d}") for k, item in enumerate(items)]


def add_old_episode(project: Path, episode: Episode, provenance: Provenance, added_at: str) -> str:
    """Adds an episode as the version before did."""
    id = content_id(episode_content(episode), provenance)
    row = {name: getattr(episode, name) for name in ("name", "source", "outcome", "failed_in", "recorded_at")}
    row |= {name: getattr(provenance, name) for name in ("made_by", "code_version", "seed")}
    row |= {"parents": list(provenance.parents), "config": json.dumps(provenance.config)}
    row |= {"id": id, "conditions": json.dumps(episode.conditions), "duration_s": episode.duration_s}
    write_old_samples(project / ".gapless" / "samples" / id[:2] / f"{id}.parquet", episode)
    place = project / ".gapless" / "tables" / "episodes"
    place.parent.mkdir(parents=True, exist_ok=True)
    data = pa.Table.from_pylist([row | {"added_at": added_at}], schema=SCHEMA)
    write_deltalake(place, data, mode="append", partition_by=["source"])
    return id


def write_old_samples(path: Path, episode: Episode) -> None:
    """Writes the samples of an episode, a row per signal and time."""
    parts, about = [], []
    for signal, series in (("command", episode.commands), ("measurement", episode.measurements)):
        count = len(series.times_s)
        about.append({"names": series.names, "units": series.units, "num_samples": count})
        for k, name in enumerate(series.names or (None,)):
            texts = {"signal": signal, "name": name, "unit": series.units[k] if name else None}
            columns = {key: pa.array([text] * count, pa.string()) for key, text in texts.items()}
            values = series.values[:, k] if name else np.full(count, np.nan)
            parts.append(pa.table({**columns, "time_s": series.times_s, "value": values}))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.concat_tables(parts).replace_schema_metadata({b"gapless": json.dumps(about)}), path)


if __name__ == "__main__":
    Catalogue.open(Path(sys.argv[1]))
    print("done", flush=True)
