"""Which files the logs given to `new` are: files, folders of them, data sets; and what each will be called."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gapless.core.errors import nearest
from gapless.project.log.columns import CONVERT_WITH, SUFFIXES
from gapless.project.log.errors import log_error

_INFO = Path("meta") / "info.json"  # of a LeRobot data set
_MAX_LEVELS_ABOVE = 4  # from data/chunk-000/FILE up to the data set's folder, and one to spare


def find_logs(given: Sequence[Path]) -> list[Path]:
    """Returns the files that are meant, in the order given; those of a folder are sorted by name.

    Raises:
        LogError: If a file is missing or given twice, or a folder has no logs.
    """
    for path in given:
        if not path.exists():
            there = nearest(path.name, (p.name for p in path.parent.iterdir())) if path.parent.is_dir() else "none"
            raise log_error(f"no such log or folder of logs; correct the path; beside it there are: {there}", path)
    found = [path for each in given for path in (_folder_logs(each) if each.is_dir() else [each])]
    seen: set[Path] = set()
    for path in found:
        if path.resolve() in seen:
            raise log_error("this log is given twice: name it once", path)
        seen.add(path.resolve())
    return found


def _folder_logs(folder: Path) -> list[Path]:
    is_lerobot = (folder / _INFO).is_file()
    files = sorted(folder.glob("data/**/*.parquet") if is_lerobot else folder.iterdir())
    visible = [path for path in files if path.is_file() and not path.name.startswith(".")]
    if found := [path for path in visible if path.suffix.lower() in SUFFIXES]:
        return found
    if is_lerobot:
        raise log_error("a LeRobot data set without data/chunk-*/*.parquet: download its data files", folder)
    if (folder / "metadata.yaml").is_file():
        raise log_error(f"a folder of ROS 2, not a log; {CONVERT_WITH['.mcap']}", folder)
    advice = next((f", or {CONVERT_WITH[p.suffix.lower()]}" for p in visible if p.suffix.lower() in CONVERT_WITH), "")
    there = nearest("log.csv", (path.name for path in folder.iterdir()))
    text = f"no logs ({', '.join(SUFFIXES)}) in this folder; there are: {there}"
    raise log_error(f"{text}; name the folder that holds the logs{advice}", folder)


def name_logs(paths: Sequence[Path]) -> dict[Path, str]:
    """Returns a name for each log in the project: its own, or with its folder's in front where two are alike.

    Raises:
        LogError: If two still are alike.
    """
    stems = [path.stem for path in paths]
    names = {
        path: path.name if stems.count(path.stem) == 1 else f"{path.resolve().parent.name}_{path.name}"
        for path in paths
    }
    taken: dict[str, Path] = {}
    for path, name in names.items():
        if (other := taken.setdefault(Path(name).stem, path)) != path:
            raise log_error(f"this log and {other} have one name: rename one, or leave it out", path)
    return names


def element_names(path: Path) -> dict[str, str]:
    """Returns better names of list elements where a LeRobot data set gives some: `action_0` -> `action.elbow.pos`."""
    for folder in path.resolve().parents[:_MAX_LEVELS_ABOVE]:
        if (folder / _INFO).is_file():
            break
    else:
        return {}
    try:
        features = json.loads((folder / _INFO).read_text(encoding="utf-8"))["features"]
        said = {str(key): _flatten(about.get("names")) for key, about in features.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {f"{key}_{k}": f"{key}.{name}" for key, names in said.items() for k, name in enumerate(names)}


def _flatten(names: Any) -> list[str]:
    """Returns the texts of nested lists and mappings, in order."""
    if isinstance(names, str):
        return [names]
    inner = names.values() if isinstance(names, dict) else names if isinstance(names, list) else ()
    return [text for each in inner for text in _flatten(each)]
