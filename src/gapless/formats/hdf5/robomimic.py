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
from gapless.core.signal import Array
from gapless.formats.arrays import Rows, SteadyRate, group_columns, read_description, skip_once, stack_columns
from gapless.formats.format import Format, ReadOptions
from gapless.formats.hdf5.tree import SUFFIXES, find_group, list_arrays, open_hdf5, read_arrays, read_attributes
from gapless.formats.source import explain_damage, log_error, read_files

SIMULATORS = {1: "robosuite", 2: "gym", 3: "iGibson"}  # `type` of robomimic's env_args; others may be a robot
USUAL_RATE_HZ = 20.0  # of robosuite, where env_args say none
MAX_RATE_HZ = 1e6
ACT_RATE_HZ = 50.0  # of ACT's and ALOHA's recorder
_TIMES = ("timestamps", "timestamp")
_OWN_PLACES = ("actions", "rewards", "dones", "states")  # beside `obs`


def is_robomimic(path: Path) -> bool:
    """Returns whether a file is HDF5, or a folder holds such files, by their names."""
    return bool(_list_files(path))


def _list_files(path: Path) -> list[Path]:
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [file for file in files if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")]


def read_robomimic(path: Path, options: ReadOptions) -> Iterator[Recording | Skipped]:
    """Yields the demonstrations of a file, or of the files in a folder."""
    yield from skip_once(read_files(_list_files(path), path, partial(_read_file, options, path)))


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
        names = (said.get("name"), key, f"{key}_{len(self.taken)}")
        name = next(each for each in names if isinstance(each, str) and each not in self.taken)
        self.taken.add(name)
        if self.prefix + name in options.known:
            return
        rows = Rows() if said else self._make_details(key, about)
        if "model_file" in about:
            yield Skipped("model_file", "the simulator's model stays in the file; details say its hash")
        columns = said.get("columns")
        yield from read_arrays(demo, name, self.path, rows, columns if isinstance(columns, dict) else {})
        if (stated := about.get("num_samples", rows.num_rows)) != rows.num_rows:
            yield Skipped(f"{name}: num_samples", f"it says {stated}; the {rows.num_rows} rows that there are are read")
        about, times = {} if said else _read_env(self.env_args), _take_times(rows, self._find_rate())
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
        kwargs = self.env_args.get("env_kwargs")
        rate = kwargs.get("control_freq") if isinstance(kwargs, dict) else None
        is_stated = isinstance(rate, int | float) and 0 < rate < MAX_RATE_HZ
        return SteadyRate(float(rate), "control_freq in env_args") if rate and is_stated else SteadyRate(USUAL_RATE_HZ)


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
            continue
        try:
            with explain_damage(path, "HDF5"):
                yield from shared.read(key, demo, options)
        except LogError as error:
            yield Skipped(f"{path.name}: {key}", str(error))


def _read_env(env_args: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what env_args say of an episode, as arguments of `Recording`."""
    simulator = SIMULATORS.get(env_args["type"]) if isinstance(env_args.get("type"), int) else None
    kwargs = env_args.get("env_kwargs")
    robots = kwargs.get("robots") if isinstance(kwargs, dict) else None
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
    yield from rows.make_recording(path.stem, _take_times(rows, SteadyRate(ACT_RATE_HZ)), {}, source=source)


def _take_times(rows: Rows, usual: SteadyRate) -> Array | SteadyRate:
    """Takes the time out of the columns of an episode [s]; returns the usual rate where there is none."""
    found = next((column for column in _TIMES if column in rows.columns), None)
    if found is None:
        return usual
    rows.types.pop(found, None)
    rows.details["time"] = f"{found}, taken as seconds"
    return rows.columns.pop(found)


def write_robomimic(recordings: Iterable[Recording], path: Path) -> Iterator[Skipped]:
    """Writes each recording as a demonstration: columns such as `action.hip` in `actions`, others in `obs`.

    Numbers, and in this version of HDF5 all else, have checksums. Texts have a fixed length: what is damaged in the
    heap where HDF5 keeps others can bring the library itself down.
    """
    import h5py

    with h5py.File(path, "w", libver="latest") as file:
        data, total, env_args = file.create_group("data"), 0, None
        for number, recording in enumerate(recordings):
            yield from (Skipped(f"{recording.name}: video {v.camera}", "not written") for v in recording.videos)
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
