"""All formats, and which of them a source is."""

import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

from gapless.core.errors import InputError, LogError, nearest
from gapless.core.recording import Recording, Skipped
from gapless.formats.format import Format, ReadOptions
from gapless.formats.hdf5.droid import DROID
from gapless.formats.hdf5.robomimic import ROBOMIMIC
from gapless.formats.lerobot import LEROBOT_V21, LEROBOT_V30
from gapless.formats.rlds.rlds import RLDS
from gapless.formats.ros.formats import MCAP, ROSBAG1, ROSBAG2
from gapless.formats.table.files import CONVERT_WITH
from gapless.formats.table.formats import TABLES

FORMATS: tuple[Format, ...] = (LEROBOT_V30, LEROBOT_V21, MCAP, ROSBAG2, ROSBAG1, DROID, ROBOMIMIC, RLDS, *TABLES)
_EXTRA = "pip install 'gapless[formats]'"


def find_format(source: Path) -> Format:
    """Returns the format of a file or folder; raises LogError where it is none that is known."""
    if not source.exists():
        there = nearest(source.name, (p.name for p in source.parent.iterdir())) if source.parent.is_dir() else "none"
        raise LogError(f"no such file or folder: correct the path; beside it there are: {there}: {source}")
    found = next((each for each in FORMATS if each.is_source(source)), None)
    if found is None:
        raise LogError(f"no format that is known, {_advise(source)}; or choose another source: {source}")
    return _require_modules(found)


def _advise(source: Path) -> str:
    """Returns what to do with a source of no known format."""
    inside = sorted(source.iterdir()) if source.is_dir() else []
    if folders := [path.name for path in inside if path.is_dir() and any(each.is_source(path) for each in FORMATS)]:
        return f"but folders in it are: give {nearest('', folders, 4)}"
    endings = [path.suffix.lower() for path in inside or (source,)]
    if advice := next((CONVERT_WITH[ending] for ending in endings if ending in CONVERT_WITH), ""):
        return advice
    there = f"in this folder there are: {nearest('log.csv', (p.name for p in inside))}; " if source.is_dir() else ""
    return f"{there}give one of {', '.join(each.title for each in FORMATS)}"


def choose_format(name: str, *, to_write: bool = False) -> Format:
    """Returns the format of a name such as `mcap`; raises InputError where there is none, or it is only read."""
    possible = {each.name: each for each in FORMATS if each.write or not to_write}
    if name not in possible:
        raise InputError(f"no format {name!r} to {'write' if to_write else 'read'}; choose from: {', '.join(possible)}")
    return _require_modules(possible[name])


def read_source(source: Path, options: ReadOptions | None = None) -> Iterator[Recording | Skipped]:
    """Yields the recordings of a file or folder, and what could not be read of it."""
    return find_format(source).read(source, options or ReadOptions())


def list_names(formats: Sequence[Format] | None = None) -> tuple[str, ...]:
    """Returns the names of formats that can be written."""
    return tuple(each.name for each in (FORMATS if formats is None else formats) if each.write)


def _require_modules(found: Format) -> Format:
    if missing := [name for name in found.modules if importlib.util.find_spec(name) is None]:
        raise InputError(f"a {found.title} needs {missing[0]}: install it with {_EXTRA}")
    return found
