"""Reads LeRobot data sets, v2.1 and v3.0: file by file, row group by row group."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gapless.core.errors import LogError
from gapless.core.recording import Origin, Recording, Skipped, Video
from gapless.core.signal import Array
from gapless.formats.arrays import Rows, as_object, convert_column
from gapless.formats.format import ReadOptions
from gapless.formats.lerobot.features import BOOKKEEPING, MAX_COLUMNS, NUMBERS, TIMES
from gapless.formats.lerobot.layout import DataSet, EpisodeEntry, open_data_set
from gapless.formats.source import explain_damage, log_error, require_memory, skip_damaged

_DERIVED = ("timestamp", "frame_index", "index", "task_index")  # left out where times and the order of rows say them
_NUMBER_BYTES = 24  # memory for one number: as read, as float64, and as kept


def read_lerobot(folder: Path, options: ReadOptions) -> Iterator[Recording | Skipped]:
    """Yields each episode of a data set, and what was left out of it."""
    reader = _Reader(open_data_set(folder))
    episodes = reader.data_set.episodes
    if (total := reader.data_set.info.get("total_episodes")) != len(episodes):
        yield Skipped(f"{folder.name}", f"info.json counts {total} episodes and its metadata list {len(episodes)}")
    files: dict[Path, dict[int, EpisodeEntry]] = {}
    for entry in episodes:
        wanted = files.setdefault(entry.data, {})
        if reader.data_set.name_episode(entry.index) not in options.known:
            wanted[entry.index] = entry
    for path, wanted in files.items():
        if wanted:
            yield from reader.read_file(path, wanted)
    yield from reader.list_left_out()


@dataclass
class _Reader:
    """Reads the files of one data set, and counts what it leaves out of episodes."""

    data_set: DataSet
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)  # (what, why) -> episodes

    def read_file(self, path: Path, wanted: dict[int, EpisodeEntry]) -> Iterator[Recording | Skipped]:
        """Yields the episodes of one file; those that damage makes unreadable as skipped."""
        try:
            for index, table in split_episodes(path, set(wanted), sum(map(len, self.data_set.columns.values()))):
                if entry := wanted.pop(index, None):
                    found = self._read_episode(entry, table)
                    yield from skip_damaged(
                        self.data_set.name_episode(index), found, path, "rows of a LeRobot data set"
                    )
        except LogError as error:
            if wanted:
                first, last = (self.data_set.name_episode(pick(wanted)) for pick in (min, max))
                yield Skipped(first if len(wanted) == 1 else f"{len(wanted)} episodes, {first} to {last}", str(error))
            return
        for index in wanted:
            yield Skipped(self.data_set.name_episode(index), f"its file holds no row of it: delete its entry ({path})")

    def list_left_out(self) -> Iterator[Skipped]:
        """Yields what was left out of episodes, once for all of them."""
        for camera in self.data_set.list_features("image"):
            yield Skipped(camera, "images inside of Parquet files are not read: convert them to videos")
        for (what, why), count in self.left_out.items():
            yield Skipped(f"{what} of {count} episodes", why)

    def _read_episode(self, entry: EpisodeEntry, table: pa.Table) -> Iterator[Recording | Skipped]:
        if table.num_rows != entry.num_frames:
            counts = f"{entry.num_frames} frames by its metadata, {table.num_rows} in the data"
            raise log_error(f"{counts}: correct one of them", entry.data)
        name, rows = self.data_set.name_episode(entry.index), Rows(details=self._describe(entry, table))
        times = read_numbers(table, TIMES if TIMES in table.column_names else "timestamp", 1, entry.data)[0]
        taken = set(chain.from_iterable(self.data_set.columns.values()))
        own = {key: [key] for key in _DERIVED if key in table.column_names and key not in taken}
        for key, names in {**self.data_set.columns, **own}.items():
            try:
                values, dtype = read_numbers(table, key, len(names), entry.data)
            except LogError as error:
                self.left_out[key, str(error).rsplit(" (", 1)[0]] += 1
                continue
            rows.columns |= dict(zip(names, values.T, strict=True))
            rows.types |= dict.fromkeys(names, dtype or "float64")
        self._count_left_out(table)
        robot, tasks = rows.details.get("robot_type"), list(rows.details["tasks"].values())
        task = {"task": tasks[0]} if len(tasks) == 1 and tasks[0] else {}
        said = {**entry.said, "conditions": {**as_object(entry.said.get("conditions")), **task}}
        origin, videos = Origin(robot=robot if isinstance(robot, str) else None), self._find_videos(entry)
        for found in rows.make_recording(name, times[:, 0], said, origin=origin, videos=videos):
            yield _leave_out_derived(found, entry, own) if isinstance(found, Recording) else found

    def _count_left_out(self, table: pa.Table) -> None:
        """Counts the features that hold no numbers, or too many, and the columns that are no feature."""
        features = self.data_set.info["features"]
        for key in sorted(set(features) - set(self.data_set.columns) - {*BOOKKEEPING, TIMES}):
            dtype = features[key]["dtype"]
            if dtype in NUMBERS:
                self.left_out[key, f"it has more than {MAX_COLUMNS} numbers in a row: save it as a video"] += 1
            elif dtype not in ("video", "image") and not _is_constant(table, key):
                self.left_out[key, f"it holds {dtype}, not numbers: delete it, or save it as numbers"] += 1
        for key in sorted(set(table.column_names) - set(features) - set(BOOKKEEPING)):
            self.left_out[key, "info.json does not list it among its features: add it"] += 1

    def _describe(self, entry: EpisodeEntry, table: pa.Table) -> dict[str, Any]:
        """Returns what the set says of an episode that a recording has no place for."""
        info, known = self.data_set.info, self.data_set.tasks
        used = pc.unique(table["task_index"]).to_pylist() if "task_index" in table.column_names else []
        tasks = {str(index): known[index] for index in used if index in known}
        texts = [key for key in self.data_set.list_features("string") if _is_constant(table, key)]
        more = {
            "robot_type": info.get("robot_type"),
            "split": _find_split(info, entry.index),
            "episode": entry.details,
            "strings": {key: table[key][0].as_py() for key in texts},
        }
        tasks = tasks or {str(place): task for place, task in enumerate(entry.tasks)}
        said = {"fps": info["fps"], "features": info["features"], "tasks": tasks}
        return said | {key: value for key, value in more.items() if value}

    def _find_videos(self, entry: EpisodeEntry) -> tuple[Video, ...]:
        for camera in sorted({*self.data_set.list_features("video")} - {video.camera for video in entry.videos}):
            self.left_out[camera, "info.json names no video_path: give it"] += 1
        for video in entry.videos:
            if not video.path.is_file():
                self.left_out[video.camera, "the video file is missing: download it to have the images"] += 1
        return tuple(video for video in entry.videos if video.path.is_file())


def _leave_out_derived(found: Recording, entry: EpisodeEntry, own: Iterable[str]) -> Recording:
    """Returns a recording without those columns of the format's `own` that follow from times and the order of rows."""
    rows, columns = np.arange(len(found.times_s)), dict(found.columns)
    derived = {"timestamp": found.times_s, "frame_index": rows, "index": entry.first_row + rows}
    for key in [key for key in own if key in columns]:
        expected = derived.get(key, columns[key][:1].repeat(len(rows)))
        if np.array_equal(columns[key], expected.astype(found.types.get(key, "float64"))):
            del columns[key]
    types = {name: kind for name, kind in found.types.items() if name in columns}
    return replace(found, columns=columns, types=types)


def split_episodes(path: Path, wanted: set[int], num_columns: int) -> Iterator[tuple[int, pa.Table]]:
    """Yields index and rows of each episode of a file, in their order; of row groups without any that is wanted, none.

    Metadata of column chunks, such as their statistics, are not looked at: pyarrow ends the process where those are
    damaged.
    """
    if not path.is_file():
        raise log_error("the file is missing: download it, or delete its episodes from the metadata", path)
    with explain_damage(path, "Parquet"):
        file = pq.ParquetFile(path, page_checksum_verification=True)
    with file:
        waiting: list[pa.Table] = []
        current = -1
        for group in range(file.metadata.num_row_groups):
            with explain_damage(path, "Parquet"):
                require_memory(file.metadata.row_group(group).num_rows * (num_columns + 1) * _NUMBER_BYTES, path)
                indices = file.read_row_group(group, columns=["episode_index"])["episode_index"].cast(pa.int64())
                indices = indices.fill_null(-1).to_numpy()
                table = _read_group(file, group) if wanted & set(indices.tolist()) else None
            if table is None:
                continue
            ends = [*(np.flatnonzero(np.diff(indices)) + 1).tolist(), len(indices)]
            for begin, end in zip([0, *ends], ends, strict=False):
                if indices[begin] != current and waiting:
                    yield current, pa.concat_tables(waiting)
                    waiting = []
                current = int(indices[begin])
                waiting.append(table.slice(begin, end - begin))
        if waiting:
            yield current, pa.concat_tables(waiting)


def _read_group(file: pq.ParquetFile, group: int) -> pa.Table:
    """Returns a row group without images."""
    keys = list_row_columns(file)
    table = file.read_row_group(group, columns=keys).select(keys)
    table.validate(full=True)
    return table


def list_row_columns(file: pq.ParquetFile) -> list[str]:
    """Returns the columns of a file that hold no images."""
    return [each.name for each in file.schema_arrow if not pa.types.is_struct(each.type)]


def is_list(kind: pa.DataType) -> bool:
    """Returns whether each cell of a type is a list."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def read_numbers(table: pa.Table, key: str, size: int, path: Path) -> tuple[Array, str | None]:
    """Returns a feature as (num_rows, size) float64, NaN where a cell is empty, and its type where not float64."""
    if key not in table.column_names:
        raise log_error("info.json lists it and the data do not hold it: correct one of them", path)
    array = table[key].combine_chunks()
    array = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    while is_list(array.type):
        lengths = pc.list_value_length(array)
        if array.null_count or pc.min(lengths) != pc.max(lengths):
            raise log_error("its rows have different lengths: correct the data", path)
        array = array.flatten()
    if len(array) != table.num_rows * size:
        raise log_error(f"info.json gives it {size} numbers in a row and the data others: correct one of them", path)
    values, dtype = convert_column(array, key, path)
    return values.reshape(-1, size), dtype


def _find_split(info: Mapping[str, Any], index: int) -> str | None:
    """Returns the split that holds an episode; splits are ranges of episodes such as `0:50`."""
    splits = info.get("splits")
    for name, text in splits.items() if isinstance(splits, dict) else ():
        begin, _, end = str(text).partition(":")
        if begin.isdecimal() and end.isdecimal() and int(begin) <= index < int(end):
            return name
    return None


def _is_constant(table: pa.Table, key: str) -> bool:
    column = table[key] if key in table.column_names else None
    return (
        column is not None
        and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type))
        and len(pc.unique(column)) == 1
    )
