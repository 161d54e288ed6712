"""Writes LeRobot data sets, v2.1 and v3.0: rows at once, metadata when all episodes are written."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gapless.core.errors import GaplessError, InputError
from gapless.core.recording import Recording, Skipped, Video, describe_recording
from gapless.core.signal import Array
from gapless.formats.arrays import as_object, restore_type
from gapless.formats.lerobot import video
from gapless.formats.lerobot.data_files import DataFiles, build_column
from gapless.formats.lerobot.features import BOOKKEEPING, TIMES, Feature, group_columns, is_feature, name_feature
from gapless.formats.lerobot.layout import TIMESTAMP_TOLERANCE_S, VIDEO_PATHS, number_file
from gapless.formats.lerobot.metadata import WrittenEpisode, write_metadata
from gapless.formats.lerobot.statistics import Statistics, compute_statistics

_OWN_DETAILS = ("fps", "robot_type", "features", "tasks")  # of a recording: the written set says them itself


def write_lerobot(version: str, recordings: Iterable[Recording], folder: Path) -> Iterator[Skipped]:
    """Writes a LeRobot data set of a version; yields what it cannot hold."""
    draft = _Draft(folder, version, DataFiles(folder, version))
    for recording in recordings:
        if reason := draft.refuse(recording):
            yield Skipped(recording.name, reason)
        else:
            draft.add(recording)
    if not draft.rows:
        raise InputError("no episode can be written as a LeRobot data set: choose others, or resample them")
    yield from draft.finish()


@dataclass
class _Draft:
    """A data set that is being written; its first episode determines features, cameras and rate."""

    folder: Path
    version: str
    files: DataFiles
    fps: float = 0.0
    features: list[Feature] = field(default_factory=list)
    dtypes: dict[str, str] = field(default_factory=dict)  # feature -> type that holds all episodes' numbers
    has_times: bool = False  # whether an episode has times that float32 does not hold
    num_frames: int = 0
    tasks: dict[str, int] = field(default_factory=dict)
    rows: list[WrittenEpisode] = field(default_factory=list)
    cameras: dict[str, dict[str, Any]] = field(default_factory=dict)  # those that all episodes have -> their feature
    seen: Counter[str] = field(default_factory=Counter)  # camera -> episodes that have a video of it
    dropped: dict[str, str] = field(default_factory=dict)  # camera -> why it is left out; empty where episodes lack it

    def refuse(self, recording: Recording) -> str:
        """Returns why a recording cannot be an episode of this set; empty where it can."""
        if not len(recording.times_s) or not recording.columns:
            return "it has no rows or no columns: delete it"
        fps = find_rate(recording.times_s, recording.details.get("fps"), self.fps)
        if fps is None:
            return "its rows are not regular within 0.1 ms, and LeRobot has one rate: resample it"
        if self.fps and not is_regular(recording.times_s, self.fps):
            return f"its rate is {fps:g} Hz, of the set {self.fps:g} Hz: resample it, or write it to another set"
        named = {column for feature in self.features for column in feature.columns}
        if self.features and (odd := named ^ set(_list_columns(recording))):
            return f"its columns are not those of the set, such as {min(odd)}: write it to another set"
        self.fps = self.fps or fps
        return ""

    def add(self, recording: Recording) -> None:
        """Writes the rows and videos of an episode."""
        if not self.rows:
            self.features = group_columns(_list_columns(recording), recording.details.get("features"))
        index = len(self.rows)
        numbers, tasks = self._number_rows(recording, index)
        matrices = {each.key: np.stack([recording.columns[c] for c in each.columns], axis=1) for each in self.features}
        types = {each.key: _find_type(each, recording) for each in self.features}
        for key, dtype in types.items():
            self.dtypes[key] = dtype if self.dtypes.get(key, dtype) == dtype else "float64"
        arrays = {f.key: build_column(matrices[f.key], f.shape, types[f.key]) for f in self.features}
        arrays |= {key: pa.array(values.astype(BOOKKEEPING[key])) for key, values in numbers.items()}
        if np.any(recording.times_s.astype(np.float32) != recording.times_s):
            self.has_times = True
            arrays[TIMES] = pa.array(recording.times_s)
        place = self.files.add(pa.table(arrays), index)
        statistics = {key: compute_statistics(matrix) for key, matrix in matrices.items()}
        statistics |= {key: compute_statistics(values[:, None]) for key, values in numbers.items()}
        statistics[TIMES] = compute_statistics(recording.times_s[:, None])
        statistics |= self._copy_videos(recording, index)
        self.num_frames += len(recording.times_s)
        self.rows.append(WrittenEpisode(index, len(recording.times_s), tasks, place, statistics, *_describe(recording)))

    def finish(self) -> Iterator[Skipped]:
        """Writes the metadata; yields the cameras that were left out."""
        entries = {each.key: each.describe(self.dtypes[each.key]) for each in self.features} | self.cameras
        entries |= {key: {"dtype": dtype, "shape": [1], "names": None} for key, dtype in BOOKKEEPING.items()}
        if self.has_times:
            entries[TIMES] = {"dtype": "float64", "shape": [1], "names": None}
        self.files.finish(entries)
        write_metadata(self.folder, self.version, self.fps, entries, list(self.tasks), self.rows)
        for camera, why in self.dropped.items():
            lacking = f"{len(self.rows) - self.seen[camera]} of {len(self.rows)} episodes have no video"
            yield Skipped(camera, why or f"{lacking}, LeRobot wants one for each: write those with one to another set")

    def _number_rows(self, recording: Recording, index: int) -> tuple[dict[str, Array], list[str]]:
        """Returns the format's own columns, and the tasks of the episode."""
        rows = np.arange(float(len(recording.times_s)))
        texts, old = {0.0: recording.conditions.get("task", "")}, np.zeros(len(rows))
        if "task_index" in set(recording.columns) - set(_list_columns(recording)):
            texts, old = _read_tasks(recording), recording.columns["task_index"]
        numbers = {each: self.tasks.setdefault(texts[each], len(self.tasks)) for each in dict.fromkeys(old.tolist())}
        own = {
            "timestamp": recording.times_s,
            "frame_index": rows,
            "episode_index": np.full(len(rows), float(index)),
            "index": rows + self.num_frames,
            "task_index": np.array([float(numbers[each]) for each in old.tolist()]),
        }
        return own, [texts[each] for each in numbers]

    def _copy_videos(self, recording: Recording, index: int) -> dict[str, Statistics]:
        """Returns camera -> statistics of its images; drops cameras of which an episode has no video."""
        given = {name_feature(each.camera, [f.key for f in self.features]): each for each in recording.videos}
        self.seen.update(list(given))
        found: dict[str, Statistics] = {}
        for camera in {**self.cameras, **given}:
            reason = ""
            if camera in given and (not index or camera in self.cameras):
                try:
                    found[camera] = self._copy_video(camera, given[camera], index, recording)
                    continue
                except GaplessError as error:
                    reason = str(error)
            self._drop_camera(camera, reason)
        return found

    def _copy_video(self, camera: str, given: Video, index: int, recording: Recording) -> Statistics:
        path = self.folder / VIDEO_PATHS[self.version].format(video_key=camera, **number_file(index, index))
        video.copy_video(given, path, len(recording.times_s), self.fps)
        if not index:
            entry = as_object(recording.details.get("features")).get(camera)
            if is_feature(entry) and entry["dtype"] == "video":
                self.cameras[camera] = {**entry}
            else:
                self.cameras[camera] = video.describe_camera(path, self.fps)
        return video.sample_image_statistics(path)

    def _drop_camera(self, camera: str, reason: str) -> None:
        self.dropped.setdefault(camera, reason)
        self.cameras.pop(camera, None)
        for folder in [self.folder / "videos" / camera, *self.folder.glob(f"videos/*/{camera}")]:
            shutil.rmtree(folder, ignore_errors=True)


def find_rate(times_s: Array, stated: Any, wanted: float) -> float | None:
    """Returns the rate of rows [Hz]: the wanted one, the stated one, a round one or another; None where irregular."""
    stated = stated if isinstance(stated, int | float) and stated > 0 else 0.0
    if len(times_s) < 2:
        return float(wanted or stated) or None
    rate = (len(times_s) - 1) / float(times_s[-1])
    tried = (wanted, stated, round(rate), round(rate, 3), rate)
    return next((float(fps) for fps in tried if fps and is_regular(times_s, fps)), None)


def is_regular(times_s: Array, fps: float) -> bool:
    """Returns whether rows come at a rate, within the format's tolerance."""
    off_s = np.abs(times_s - np.arange(len(times_s)) / fps).max(initial=0.0)
    return bool(max(off_s, np.abs(np.diff(times_s) - 1 / fps).max(initial=0.0)) <= TIMESTAMP_TOLERANCE_S)


def _read_tasks(recording: Recording) -> dict[float, str]:
    """Returns task index -> task string, as the set said that a recording came from."""
    texts = as_object(recording.details.get("tasks")).items()
    return {float(index): str(text) for index, text in texts if str(index).isdecimal()}


def _list_columns(recording: Recording) -> list[str]:
    """Returns the columns that become features: all but a `task_index` whose tasks are known, numbered anew."""
    known = set(recording.columns.get("task_index", ())) <= set(_read_tasks(recording))
    return [name for name in recording.columns if name != "task_index" or not known]


def _find_type(feature: Feature, recording: Recording) -> str:
    """Returns the type that columns were recorded in; float64 where that does not hold every number of the feature."""
    names = feature.columns
    named = {restore_type(recording.columns[name], recording.types.get(name)).dtype.name for name in names}
    return named.pop() if len(named) == 1 else "float64"


def _describe(recording: Recording) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns what the format has no place for, and the types of columns."""
    said = describe_recording(recording)
    said.pop("types", None)
    details = dict(recording.details)
    if "fps" in details and "features" in details:
        details = {key: value for key, value in details.items() if key not in _OWN_DETAILS}
    said["details"] = details
    said["conditions"] = {key: text for key, text in recording.conditions.items() if key != "task"}  # a task of the set
    said = {key: value for key, value in said.items() if value != {}}
    types = {name: recording.types.get(name, "float64") for name in recording.columns}
    return {"name": recording.name, **json.loads(json.dumps(said, default=str))}, types
