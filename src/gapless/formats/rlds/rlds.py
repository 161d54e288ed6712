"""RLDS data sets read as recordings, and written.

What `describe_recording` says is the text `episode_metadata/gapless` of an episode; `steps/timestamp` the time [s].
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gapless.core.errors import LogError
from gapless.core.recording import DESCRIPTION_KEY, Recording, Skipped, describe_recording
from gapless.formats.arrays import (
    Rows,
    SteadyRate,
    as_object,
    group_columns,
    read_description,
    read_rate,
    refuse_images,
    skip_once,
    skip_videos,
    stack_columns,
)
from gapless.formats.format import Format, ReadOptions
from gapless.formats.rlds.schema import STEPS, StepFeature, describe_features, list_features
from gapless.formats.rlds.tfrecord import parse_example, read_records, write_example, write_record
from gapless.formats.source import explain_damage, log_error, require_inside, skip_damaged

USUAL_RATE_HZ = 10.0  # RLDS states no rate; most sets of Open X-Embodiment were recorded at 3 to 15 Hz
_TIME, _SAID = "timestamp", f"episode_metadata/{DESCRIPTION_KEY}"
_RATES = ("fps", "control_hz", "control_freq", "control_frequency", "rate_hz", "hz")  # entries that may state it
_TASKS = ("language_instruction", "natural_language_instruction", "instruction", "task")
_OWN_KEYS = ("reward", "discount", "is_first", "is_last", "is_terminal")  # of a step, beside action and observation
MAX_SHARDS = 100_000  # of a split; a name that speaks of more is damaged
_SHARD = re.compile(r"(.*\.tfrecord)-\d+-of-(\d+)")


def is_rlds(path: Path) -> bool:
    """Returns whether a folder, or its only version, is a data set of TensorFlow Datasets."""
    return path.is_dir() and bool(_find_versions(path))


def _find_versions(path: Path) -> list[Path]:
    return [path] if (path / "features.json").is_file() else [file.parent for file in path.glob("*/features.json")]


def read_rlds(path: Path, options: ReadOptions) -> Iterator[Recording | Skipped]:
    """Yields the episodes of a data set, shard by shard."""
    folders = sorted(_find_versions(path))
    if len(folders) > 1:
        raise log_error(f"{len(folders)} versions, {', '.join(each.name for each in folders)}: give one of them", path)
    yield from skip_once(_read_set(folders[0], options))


def _read_set(folder: Path, options: ReadOptions) -> Iterator[Recording | Skipped]:
    objects = {}
    for name in ("features", "dataset_info", "metadata"):
        file = require_inside(folder, f"{name}.json")
        with explain_damage(file, "JSON"):
            objects[name] = read_description(file.read_bytes(), file, file.name) if file.is_file() else {}
    info, path = objects["dataset_info"], folder / "features.json"
    if (kind := info.get("fileFormat", "tfrecord")) not in ("", "tfrecord"):
        raise log_error(f"its files are {kind}, and only tfrecord is read: make it again as such", folder)
    with explain_damage(path, "features.json of TensorFlow Datasets"):
        features = dict(list_features(objects["features"], path))
    stated = (read_rate(objects["metadata"].get(key), "metadata.json") for key in _RATES)
    rate = next(filter(None, stated), SteadyRate(USUAL_RATE_HZ))
    numbers: Counter[str] = Counter()  # split -> episodes so far
    shards = sorted(file.name for file in folder.iterdir() if ".tfrecord" in file.name)
    yield from _find_missing(shards)
    for shard in shards:
        split = next(iter(re.findall(r"-(\w+)\.tfrecord", shard)), "train")
        try:
            for data in read_records(require_inside(folder, shard)):
                numbers[split] += 1
                name = f"{split}_{numbers[split] - 1:06d}"
                if data is None:
                    yield Skipped(name, f"its checksum is wrong: download {shard} again")
                elif name not in options.known:
                    found = _read_episode(data, name, folder / shard, features, rate)
                    yield from skip_damaged(name, found, folder / shard, "tf.train.Example")
        except LogError as error:
            yield Skipped(shard, str(error))


def _find_missing(shards: list[str]) -> Iterator[Skipped]:
    """Yields the shards that the names of the others speak of."""
    for stem, count in sorted({(found[1], int(found[2])) for each in shards if (found := _SHARD.fullmatch(each))}):
        wanted = (f"{stem}-{k:05d}-of-{count:05d}" for k in range(min(count, MAX_SHARDS)))
        yield from (Skipped(name, "this shard is missing: download it") for name in wanted if name not in shards)


def _read_episode(
    data: bytes, name: str, path: Path, features: dict[str, StepFeature], rate: SteadyRate
) -> Iterator[Recording | Skipped]:
    example = parse_example(data)
    text = example.pop(_SAID, None)
    said = read_description(text[0], path, "its description by gapless") if text else {}
    names, rows = as_object(said.get("columns")), Rows()
    for key, feature in features.items():
        if key != _SAID:
            column = key.removeprefix(f"{STEPS}/").replace("/", ".")
            values = example.get(key, example.get(f"{key}/value", []))
            try:
                yield from _read_feature(rows, key, column, feature, values, path, names.get(key))
            except LogError as error:
                yield Skipped(column, str(error))
    num_rows = max(map(len, rows.columns.values()), default=0)
    for column in [each for each, values in rows.columns.items() if len(values) != num_rows]:
        yield Skipped(f"{name}: {column}", f"it has {len(rows.columns.pop(column))} rows, and others have {num_rows}")
    times = rows.take_times([_TIME], _find_rate(rows, rate))
    if said:
        rows.details.pop("time", None)
    task = next((rows.details.pop(key) for key in list(rows.details) if key.rpartition(".")[2] in _TASKS), None)
    yield from rows.make_recording(name, times, said, conditions={"task": task} if task else {})


def _read_feature(
    rows: Rows, key: str, column: str, feature: StepFeature, values: Any, path: Path, names: Any
) -> Iterator[Skipped]:
    """Adds a feature to the rows, or to the details where it is of the episode as a whole."""
    if feature.is_text and not feature.is_ragged:
        yield from rows.add_texts(column, {value.decode(errors="replace") for value in values})
    elif feature.is_ragged or feature.kind not in ("tensor", "classLabel"):
        kind = "of another length in each step" if feature.is_ragged else feature.kind
        yield Skipped(column, f"{column} is {kind}, which is not read: use a tensor")
    elif not key.startswith(f"{STEPS}/"):
        rows.details[column] = np.ravel(feature.decode(values, column, path)).tolist()
    else:
        refuse_images(column, (0, *feature.shape), np.dtype(feature.dtype), path)
        rows.add(column, feature.decode(values, column, path), path, names if isinstance(names, list) else ())


def _find_rate(rows: Rows, usual: SteadyRate) -> SteadyRate:
    """Returns the rate that the details of an episode state, or the usual one."""
    single = {k: v[0] for k, v in rows.details.items() if isinstance(v, list) and len(v) == 1}
    stated = (read_rate(value, key) for key, value in single.items() if key.rpartition(".")[2] in _RATES)
    return next(filter(None, stated), usual)


def write_rlds(recordings: Iterable[Recording], folder: Path) -> Iterator[Skipped]:
    """Writes a data set of one shard; all episodes must have the columns of the first, as the format wants it."""
    folder.mkdir()
    shard, features, count = folder / "gapless-train.tfrecord-00000-of-00001", dict[str, StepFeature](), 0
    with shard.open("wb") as file:
        for recording in recordings:
            yield from skip_videos(recording)
            example, found = _make_example(recording)
            if features and features != found:
                differ = sorted({key for key in features.keys() | found.keys() if features.get(key) != found.get(key)})
                yield Skipped(recording.name, f"{differ[0]} differs from the first episode's: export it by itself")
                continue
            features, count = found, count + 1
            write_record(file, write_example(example))
    split = {"name": "train", "shardLengths": [str(count)], "numBytes": str(shard.stat().st_size)}
    split["filepathTemplate"] = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    info = {"name": "gapless", "version": "1.0.0", "fileFormat": "tfrecord", "splits": [split]}
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2))
    (folder / "features.json").write_text(json.dumps(describe_features(features), indent=2))


def _make_example(recording: Recording) -> tuple[dict[str, Any], dict[str, StepFeature]]:
    """Returns the features of an episode, and what they are; float64 is stored as bytes, as float lists are float32."""
    groups, num_rows = group_columns(recording.columns, _place_array), len(recording.times_s)
    arrays = {key: stack_columns(recording, names) for key, names in groups.items()}
    arrays[f"{STEPS}/{_TIME}"] = recording.times_s
    for key, row in (("is_first", 0), ("is_last", num_rows - 1), ("is_terminal", num_rows - 1)):
        arrays.setdefault(f"{STEPS}/{key}", np.arange(num_rows) == row)
    said = json.dumps({**describe_recording(recording), "columns": groups})
    example: dict[str, Any] = {_SAID: [said.encode()]}
    features = {_SAID: StepFeature("text")}
    for key, values in arrays.items():
        is_double, kind = values.dtype == np.float64, np.float32 if values.dtype.kind == "f" else np.int64
        example[key] = [row.tobytes() for row in values] if is_double else values.astype(kind)
        features[key] = StepFeature("tensor", values.shape[1:], values.dtype.name, "bytes" if is_double else "none")
    return example, features


def _place_array(key: str) -> str:
    """Returns which feature holds an array of some columns."""
    if key in ("action", "actions", *_OWN_KEYS):
        return f"{STEPS}/{key.rstrip('s') if key == 'actions' else key}"
    return f"{STEPS}/observation/{key.removeprefix('observation.')}"


RLDS = Format(
    "rlds",
    "RLDS data set, or TensorFlow data set of episodes",
    is_rlds,
    read_rlds,
    write_rlds,
    modules=("google.protobuf",),
)
