"""Folders as DROID records them: one per episode, of `trajectory.h5`, `metadata_*.json` and `recordings/MP4`."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from gapless.core.recording import Origin, Recording, Skipped, Video
from gapless.formats.arrays import Rows, SteadyRate, read_description, skip_once
from gapless.formats.format import Format, ReadOptions
from gapless.formats.hdf5.tree import open_hdf5, read_arrays, read_attributes
from gapless.formats.source import choose_name, read_files, require_inside

TRAJECTORY = "trajectory.h5"
RATE_HZ = 15.0  # of DROID's control loop
MAX_STAMP_MS = 4e12  # in the year 2096
MAX_LEVELS = 5  # LAB/success/DATE/EPISODE/trajectory.h5 below the folder that is given
# columns [ms since 1970] that say when a step began, best first
_TIMES = ("observation.timestamp.control.step_start", "observation.timestamp.robot_state.read_start")
_CAMERAS = ("wrist", "ext1", "ext2")


def is_droid(path: Path) -> bool:
    """Returns whether a folder, or one a few levels below, holds a `trajectory.h5`; or a path is one."""
    patterns = ("*/" * level + TRAJECTORY for level in range(MAX_LEVELS))
    return path.name == TRAJECTORY or (path.is_dir() and any(next(path.glob(p), None) for p in patterns))


def read_droid(path: Path, options: ReadOptions) -> Iterator[Recording | Skipped]:
    """Yields the episodes in a folder, sorted by their paths."""
    files = sorted(path.rglob(TRAJECTORY)) if path.is_dir() else [path]
    yield from skip_once(read_files(files, path, partial(_read_episode, options, set())))


def _read_episode(options: ReadOptions, taken: set[str], path: Path) -> Iterator[Recording | Skipped]:
    folder, found = path.parent, sorted(path.parent.glob("metadata*.json"))
    text = require_inside(folder, found[0].name).read_bytes() if found else "{}"
    metadata = read_description(text, path, "the metadata beside it")
    uuid = metadata.get("uuid")
    name = choose_name(uuid if isinstance(uuid, str) and uuid else folder.resolve().name, taken)
    if name in options.known:
        return
    if not found:
        yield Skipped(f"{name}: metadata", "no metadata_*.json: who recorded it, and for what, is not known")
    with open_hdf5(path) as file:
        attributes = read_attributes(file)
        rows = Rows(details={"attributes": attributes, "metadata": metadata})
        yield from read_arrays(file, name, path, rows)
    videos, missing = _find_videos(folder, name, metadata)
    yield from missing
    if next(folder.glob("recordings/SVO/*.svo*"), None):
        yield Skipped("recordings/SVO", "only MP4 is read: convert it with the camera's tools")
    about = {**_read_about(attributes, metadata, path), "videos": videos}
    stamps = next((rows.columns[column] for column in _TIMES if column in rows.columns), None)
    if stamps is None or not len(stamps):
        yield from rows.make_recording(name, SteadyRate(RATE_HZ), {}, **about)
        return
    rows.details["time"] = "step_start or read_start in observation/timestamp, in ms"
    start_ns = int(stamps[0]) * 10**6 if 0 < stamps[0] < MAX_STAMP_MS else None
    yield from rows.make_recording(name, 1e-3 * (stamps - stamps[0]), {}, start_ns=start_ns, **about)


def _read_about(attributes: dict[str, Any], metadata: dict[str, Any], path: Path) -> dict[str, Any]:
    """Returns what attributes, metadata and folders say of an episode, as arguments of `Recording`."""
    said = {**attributes, **metadata}

    def find_text(*keys: str) -> str | None:
        return next((str(said[key]) for key in keys if said.get(key) not in (None, "", [])), None)

    parts = {part for part in path.parts if part in ("success", "failure")}
    success = said.get("success", "success" in parts if len(parts) == 1 else None)
    conditions = {"task": find_text("current_task"), "building": find_text("building"), "scene": find_text("scene_id")}
    when = re.fullmatch(r"(\d{4}-\d\d-\d\d)-(\d\d)h-(\d\d)m-(\d\d)s", str(metadata.get("timestamp")))
    serial = find_text("robot_serial", "robot_serial_number")
    return {
        "source": "real" if serial else None,
        "outcome": None if success is None else "success" if success else "failure",
        "conditions": {key: text for key, text in conditions.items() if text},
        "recorded_at": f"{when[1]}T{when[2]}:{when[3]}:{when[4]}" if when else None,
        "origin": Origin(robot_serial=serial, site=find_text("lab"), operator=find_text("user", "user_id")),
    }


def _find_videos(folder: Path, name: str, metadata: dict[str, Any]) -> tuple[tuple[Video, ...], list[Skipped]]:
    """Returns the videos of an episode, by what the metadata call their cameras, and those that are not there."""
    paths = {camera: metadata.get(f"{camera}_mp4_path") for camera in _CAMERAS}
    named = {Path(str(path)).name: camera for camera, path in paths.items() if path}
    files = [require_inside(folder, str(p.relative_to(folder))) for p in sorted(folder.glob("recordings/MP4/*.mp4"))]
    gone = {name: camera for name, camera in named.items() if name not in {file.name for file in files}}
    missing = [Skipped(f"{name}: video {camera}", f"no recordings/MP4/{file}") for file, camera in gone.items()]
    return tuple(Video(named.get(file.name, file.stem), file) for file in files), missing


DROID = Format("droid", "folder of DROID", is_droid, read_droid, modules=("h5py",))
