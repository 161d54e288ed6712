"""Which columns a feature of a LeRobot data set has, and into which features columns go."""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeGuard

NUMBERS = (
    "bool",
    "float16",
    "float32",
    "float64",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
BOOKKEEPING = {
    "timestamp": "float32",
    "frame_index": "int64",
    "episode_index": "int64",
    "index": "int64",
    "task_index": "int64",
}
TIMES = "gapless.times_s"  # feature that holds the times of rows where float32 does not [s]
COLUMNS_KEY = "columns"  # of a feature in info.json: its columns, where the format's rules give other names
MAX_COLUMNS = 1000  # of one feature; more are pixels or points, not signals

_COMMANDS = {"action", "actions", "cmd", "command", "commanded", "commands", "ctrl", "desired", "setpoint"}


@dataclass(frozen=True)
class Feature:
    """Columns that are written as one vector."""

    key: str
    columns: tuple[str, ...]
    shape: tuple[int, ...]
    names: Any = None  # of its elements, as info.json has them
    more: Mapping[str, Any] = field(default_factory=dict)  # what else info.json said of it

    def describe(self, dtype: str) -> dict[str, Any]:
        """Returns its entry in info.json."""
        entry = {**self.more, "dtype": dtype, "shape": list(self.shape), "names": self.names}
        named = name_columns({self.key: entry}).get(self.key)
        return entry if named == self.columns else {**entry, COLUMNS_KEY: list(self.columns)}


def name_columns(features: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Returns numeric feature -> the names of its columns, row by row where it has several dimensions.

    A feature of one element is the column `KEY`, a vector `KEY.NAME` by the names in info.json, however they are
    nested, and `KEY_0`, `KEY_1` where there are none, too few or repeated ones.
    """
    found: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for key, feature in features.items():
        size = math.prod(feature["shape"])
        if key in BOOKKEEPING or key == TIMES or feature["dtype"] not in NUMBERS or size > MAX_COLUMNS:
            continue
        names = _list_names(feature.get("names"))
        stated = feature.get(COLUMNS_KEY)
        choices = [[key]] if size == 1 else [[f"{key}.{name}" for name in names], [f"{key}_{i}" for i in range(size)]]
        choices = [_list_names(stated), *choices, [f"{key}[{i}]" for i in range(size)]]
        found[key] = tuple(next(each for each in choices if len({*each} - taken) == len(each) == size))
        taken |= set(found[key])
    return found


def list_features(features: Mapping[str, Any], *dtypes: str) -> list[str]:
    """Returns the features of some types."""
    return [key for key, said in features.items() if said["dtype"] in dtypes]


def _list_names(names: Any) -> list[str]:
    """Returns the names of a vector's elements from lists and mappings as data sets nest them."""
    if isinstance(names, str):
        return [names]
    if isinstance(names, dict):
        if all(isinstance(place, int) for place in names.values()):
            return sorted(map(str, names), key=lambda name: names[name])
        names = list(names.values())
    return [name for inner in names for name in _list_names(inner)] if isinstance(names, list) else []


def group_columns(columns: Collection[str], stated: Any) -> list[Feature]:
    """Returns the features into which columns go, every column into one.

    As `stated` in the info.json that they came from, where all columns of a feature are there; else `observation.state`
    from columns that begin so, `action` from those that begin so or whose name says a command, others on their own.
    """
    left = dict.fromkeys(columns)
    found: dict[str, Feature] = {}
    good = {key: said for key, said in stated.items() if is_feature(said)} if isinstance(stated, Mapping) else {}
    for key, names in name_columns(good).items():
        if names and set(names) <= set(left) and "/" not in key:
            more = {k: v for k, v in good[key].items() if k not in ("dtype", "shape", "names", COLUMNS_KEY)}
            found[key] = Feature(key, names, tuple(good[key]["shape"]), good[key].get("names"), more)
            left = {name: None for name in left if name not in names}
    vectors = {"observation.state": [c for c in left if c.startswith("observation.state.")]}
    vectors["action"] = [c for c in left if c not in vectors["observation.state"] and _is_command(c)]
    for key, names in vectors.items():
        if names and key not in found and (len(names) > 1 or names != [key]):
            shown = [name.removeprefix(f"{key}.") for name in names]
            found[key] = Feature(key, tuple(names), (len(names),), shown)
            left = {name: None for name in left if name not in names}
    for name in left:
        key = name_feature(name, found)
        found[key] = Feature(key, (name,), (1,))
    return list(found.values())


def name_feature(name: str, taken: Iterable[str]) -> str:
    """Returns the key of a feature for one column or camera: the format allows no `/` and keeps some names."""
    key = name.strip("/").replace("/", ".") or "column"
    key = f"gapless.{key}" if key in BOOKKEEPING or key == TIMES else key
    taken = set(taken)
    return next(each for each in (key, *(f"{key}_{i}" for i in range(2, len(taken) + 3))) if each not in taken)


def is_feature(said: Any) -> TypeGuard[Mapping[str, Any]]:
    """Returns whether an entry of info.json tells type and shape of a feature."""
    shape = said.get("shape") if isinstance(said, Mapping) else None
    whole = isinstance(shape, Sequence) and all(isinstance(size, int) and size >= 0 for size in shape)
    return whole and isinstance(said.get("dtype"), str)


def _is_command(column: str) -> bool:
    return column.startswith("action") or bool(_COMMANDS & set(re.split(r"[^a-z0-9]+", column.lower())))
