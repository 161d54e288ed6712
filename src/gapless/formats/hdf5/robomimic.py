"""HDF5 as robomimic keeps demonstrations (`data/demo_0`), and as ACT and ALOHA keep an episode (`action`).

A demonstration holds `actions`, `obs/KEY`, `next_obs/KEY`, `rewards`, `dones` and `states`; `data` says in `env_args`
which environment they are of. What `describe_recording` says is JSON in the attribute `gapless` of a demonstration, and
`timestamps` the time of each row.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.errors import LogError
from gapless.core.recording import DESCRIPTION_KEY, Origin, Recording, Skipped, describe_recording
from gapless.formats.arrays import (
    Rows,
    SteadyRate,
    as_object,
    group_columns,
    read_description,
    read_rate,
    skip_once,
    skip_videos,
    stack_columns,
)
from gapless.formats.format import Format, ReadOptions
from gapless.formats.hdf5.tree import SUFFIXES, find_group, list_arrays, open_hdf5, read_arrays, read_attributes
from gapless.formats.source import choose_name, list_files, log_error, read_files, skip_damaged

SIMULATORS = {1: "robosuite", 2: "gym", 3: "iGibson"}  # `type` of robomimic's env_args; others may be a robot
USUAL_RATE_HZ = 20.0  # of robosuite, where env_args say none
ACT_RATE_HZ = 50.0  # of ACT's and ALOHA's recorder
_TIMES = ("timestamps", "timestamp")
_OWN_PLACES = ("actions", "rewards", "dones", "states")  # beside `obs`


def is_robomimic(path: Path) -> bool:
    """Returns whether a file is HDF5, or a folder holds such files, by their names."""
    return bool(list_files(path, SUFFIXES))


def read_robomimic(path: Path, options: ReadOptions) -> Iterator[Recording | Skipped]:
    """Yields the demonstrations of a file, or of the files in a folder."""
    yield from skip_once(read_files(list_files(path, SUFFIXES), path, partial(_read_file, options, path)))


def _read_file(options: ReadOptions, source: Path, path: Path) -> Iterator[Recording | Skipped]:
    with open_hdf5(path) as file:
        data = find_group(file, "data")
        if data is not None:
            yield from _read_demos(file, data, path, options, f"{path.stem}_" if source.is_dir() else "")
        elif "action" not in file:
            there = ", ".join(list(file)[:8]) or "nothing"
            raise log_error(f"neither data/demo_0 nor action, but {there}: save it as robomimic or ACT does", path)
        elif path.stem not in options.known:
            yield from _read_act(file, path)


@dataclass(frozen=True)
class _Demonstrations:
    """What all demonstrations of a file share."""

    path: Path
    prefix: str  # of their names; empty where the source is one file
    env_args: dict[str, Any]
    filters: dict[str, list[Any]]  # filter key -> the demonstrations in it
    taken: set[str] = field(default_factory=set[str])  # names

    def read(self, key: str, demo: Any, options: ReadOptions) -> Iterator[Recording | Skipped]:
        """Yields one of them."""
        about = read_attributes(demo)
        text = about.pop(DESCRIPTION_KEY, None)
        said = read_description(text, self.path, "its description by gapless") if text is not None else {}
        named = said.get("name")
        name = choose_name(named if isinstance(named, str) else key, self.taken)
        if self.prefix + name in options.known:
            return
        rows = Rows() if said else self._make_details(key, about)
        if "model_file" in about:
            yield Skipped("model_file", "the simulator's model stays in the file; details say its hash")
        yield from read_arrays(demo, name, self.path, rows, as_object(said.get("columns")))
        if (stated := about.get("num_samples", rows.num_rows)) != rows.num_rows:
            yield Skipped(f"{name}: num_samples", f"it says {stated}; the {rows.num_rows} rows that there are are read")
        about, times = {} if said else _read_env(self.env_args), rows.take_times(_TIMES, self._find_rate())
        if said:
            rows.details.pop("time", None)
        yield from rows.make_recording(self.prefix + name, times, said, **about)

    def _make_details(self, key: str, about: dict[str, Any]) -> Rows:
        details = {name: value for name, value in about.items() if name not in ("model_file", "num_samples")}
        if "model_file" in about:
            details["model_sha256"] = hashlib.sha256(str(about["model_file"]).encode()).hexdigest()
        masks = [name for name, keys in self.filters.items() if key.encode() in keys]
        return Rows(details={**details, "env_args": self.env_args, **({"masks": masks} if masks else {})})

    def _find_rate(self) -> SteadyRate:
        rate = as_object(self.env_args.get("env_kwargs")).get("control_freq")
        return read_rate(rate, "control_freq in env_args") or SteadyRate(USUAL_RATE_HZ)


def _read_demos(file: Any, data: Any, path: Path, options: ReadOptions, prefix: str) -> Iterator[Recording | Skipped]:
    env_args: dict[str, Any] = {}
    try:
        env_args = read_description(read_attributes(data).get("env_args", "{}"), path, "env_args")
    except LogError as error:
        yield Skipped("env_args", str(error))
    masks = dict(list_arrays(group)) if (group := find_group(file, "mask")) is not None else {}
    filters = {name: np.ravel(mask[()]).tolist() for name, mask in masks.items() if not isinstance(mask, str)}
    shared = _Demonstrations(path, prefix, env_args, filters)
    for key in sorted(data, key=lambda key: [int(part) for part in re.findall(r"\d+", key)]):
        demo = find_group(data, key)
        if demo is None:
            yield Skipped(f"{path.name}: {key}", "it is a link or no group: copy the demonstration into its place")
        else:
            yield from skip_damaged(f"{path.name}: {key}", shared.read(key, demo, options), path, "HDF5")


def _read_env(env_args: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what env_args say of an episode, as arguments of `Recording`."""
    simulator = SIMULATORS.get(env_args["type"]) if isinstance(env_args.get("type"), int) else None
    robots = as_object(env_args.get("env_kwargs")).get("robots")
    robot = robots[0] if isinstance(robots, list) and len(robots) == 1 else robots
    version, task = env_args.get("env_version"), env_args.get("env_name")
    origin = Origin(
        robot=robot if isinstance(robot, str) else None,
        simulator=simulator,
        simulator_version=version if simulator and isinstance(version, str) else None,
    )
    conditions = {"task": task} if isinstance(task, str) and task else {}
    return {"source": "sim" if simulator else None, "origin": origin, "conditions": conditions}


def _read_act(file: Any, path: Path) -> Iterator[Recording | Skipped]:
    rows = Rows(details=read_attributes(file))
    is_sim = rows.details.pop("sim", None)
    yield from read_arrays(file, path.stem, path, rows)
    source = None if is_sim is None else "sim" if is_sim else "real"
    yield from rows.make_recording(path.stem, rows.take_times(_TIMES, SteadyRate(ACT_RATE_HZ)), {}, source=source)


def write_robomimic(recordings: Iterable[Recording], path: Path) -> Iterator[Skipped]:
    """Writes each recording as a demonstration: columns such as `action.hip` in `actions`, others in `obs`.

    Numbers, and in this version of HDF5 all else, have checksums. Texts have a fixed length: what is damaged in the
    heap where HDF5 keeps others can bring the library itself down.
    """
    import h5py

    with h5py.File(path, "w", libver="latest") as file:
        data, total, env_args = file.create_group("data"), 0, None
        for number, recording in enumerate(recordings):
            yield from skip_videos(recording)
            demo, groups = data.create_group(f"demo_{number}"), group_columns(recording.columns, _place_array)
            for place, names in groups.items():
                values = stack_columns(recording, names)
                values = values[:, 0] if place in ("rewards", "dones") else values
                demo.create_dataset(place, data=values, chunks=True, fletcher32=True)
            demo.create_dataset(_TIMES[0], data=recording.times_s, chunks=True, fletcher32=True)
            demo.attrs["num_samples"] = len(recording.times_s)
            columns = {place.replace("/", "."): names for place, names in groups.items()}
            said = {**describe_recording(recording), "name": recording.name, "columns": columns}
            demo.attrs[DESCRIPTION_KEY] = np.bytes_(json.dumps(said))
            task = recording.conditions.get("task", "")
            env_args = env_args or recording.details.get("env_args") or {"env_name": task, "env_kwargs": {}}
            total += len(recording.times_s)
        data.attrs["total"] = total
        data.attrs["env_args"] = np.bytes_(json.dumps(env_args or {}))


def _place_array(key: str) -> str:
    """Returns where an array of some columns lies in a demonstration."""
    key = key.replace("\0", "_")
    group, _, rest = key.partition(".")
    if key in ("action", *_OWN_PLACES):
        return "actions" if key == "action" else key
    return f"{group}/{rest}" if group in ("obs", "next_obs") and rest.strip(".") else f"obs/{key}"


ROBOMIMIC = Format(
    "robomimic",
    "HDF5 file of robomimic or ACT, or folder of them",
    is_robomimic,
    read_robomimic,
    write_robomimic,
    suffix=".hdf5",
    modules=("h5py",),
)
