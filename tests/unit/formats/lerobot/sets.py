"""LeRobot data sets for tests: written, then changed as people and accidents change them."""

import json
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from architecture.tree import ROOT
from gapless.core.recording import Recording, Skipped, Video
from gapless.formats.format import ReadOptions
from gapless.formats.lerobot import LEROBOT_V21, LEROBOT_V30
from gapless.formats.lerobot.read import read_lerobot

KINDS = {"v2.1": LEROBOT_V21, "v3.0": LEROBOT_V30}
VERSIONS = pytest.mark.parametrize("version", list(KINDS))
FPS = 20.0


def find_real_set(name: str) -> Path:
    """Returns the folder of a real data set; skips where it is absent."""
    folder = Path(os.environ.get("GAPLESS_DATA", ROOT.parent / "shared" / "data")) / "lerobot" / name
    if not folder.is_dir():
        pytest.skip(f"no real data set {name} here: set GAPLESS_DATA")
    return folder


def make_recording(number: int = 0, num_rows: int = 30, **changes: Any) -> Recording:
    """Returns an episode whose times float32 does not hold exactly."""
    rng = np.random.default_rng(number)
    columns = {
        "observation.state.a": rng.normal(size=num_rows),
        "observation.state.b": rng.normal(size=num_rows),
        "action.a": rng.normal(size=num_rows),
        "touch": (rng.random(num_rows) > 0.5).astype(float),
    }
    given = {"columns": columns, "types": {"touch": "bool"}, "times_s": np.arange(num_rows) / FPS}
    return Recording(name=f"run_{number}", **{**given, **changes})


def write_set(folder: Path, version: str, recordings: list[Recording] | None = None) -> Path:
    """Writes a set of three episodes, or others; nothing may be left out."""
    path = folder / f"set_{version}"
    write = KINDS[version].write
    assert write is not None
    given = [make_recording(number) for number in range(3)] if recordings is None else recordings
    assert list(write(iter(given), path)) == []
    return path


def read_set(path: Path, **options: Any) -> tuple[list[Recording], list[Skipped]]:
    """Returns recordings and what was skipped."""
    found = list(read_lerobot(path, ReadOptions(**options)))
    return [r for r in found if isinstance(r, Recording)], [s for s in found if isinstance(s, Skipped)]


def edit_info(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Changes info.json in place."""
    info = json.loads((path / "meta/info.json").read_text(encoding="utf-8"))
    change(info)
    (path / "meta/info.json").write_text(json.dumps(info), encoding="utf-8")


def edit_table(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Changes a Parquet file in place."""
    pq.write_table(change(pq.read_table(file)), file)


def replace_column(table: pa.Table, key: str, values: Any) -> pa.Table:
    """Returns a table with other values in a column, of the same type where they have none of their own."""
    array = values if isinstance(values, pa.Array) else pa.array(values, table.schema.field(key).type)
    return table.set_column(table.column_names.index(key), key, array)


def list_data(path: Path) -> list[Path]:
    """Returns the data files of a set."""
    return sorted((path / "data").rglob("*.parquet"))


def make_video(path: Path, num_frames: int, codec: str = "libx264", fps: int = int(FPS), gop: int = 2) -> Path:
    """Writes a small video that becomes lighter from frame to frame."""
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=fps, options={"g": str(gop)})
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        stream.time_base = Fraction(1, fps)
        for number in range(num_frames):
            image = np.full((64, 64, 3), 4 * number % 256, dtype=np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(image, format="rgb24")))
        container.mux(stream.encode(None))
    return path


def count_frames(video: Video) -> int:
    """Returns how many frames of a video an episode has, by decoding them."""
    av = pytest.importorskip("av")
    end_s = np.inf if video.end_s is None else video.end_s - 0.5 / FPS
    with av.open(str(video.path)) as container:
        times_s = [float(frame.pts * frame.time_base) for frame in container.decode(video=0)]
    return sum(video.begin_s - 0.5 / FPS <= time_s < end_s for time_s in times_s)
