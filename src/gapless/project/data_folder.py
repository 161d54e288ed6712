"""Projects seen as data: with a model or without one, and the column names that `import` gives."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.project.schema import read_data_keys
from gapless.project.yaml_file import FILE_NAME, project_error, read_document

_HEADER = "columns:                  # recorded column -> column of this project, at import; empty: left out"


@dataclass(frozen=True)
class DataFolder:
    """A project folder as `import` and `export` see it."""

    directory: Path
    columns: Mapping[str, str | None]  # recorded column -> column of this project; None where it is left out
    project: Project | None  # None where there is no model: the folder holds data only


def open_data_folder(directory: str | Path) -> DataFolder:
    """Returns a project folder, with a model or without one; a folder without `gapless.yaml` has no columns yet."""
    folder = Path(directory).expanduser()
    if folder.is_file():
        raise project_error("this is a file: name the project folder", folder)
    if not (folder / FILE_NAME).exists():
        return DataFolder(folder, {}, None)
    document = read_document(folder / FILE_NAME)
    if "model" in document.data or "measurements" in document.data:
        project = load_project(folder)
        return DataFolder(folder, project.columns, project)
    return DataFolder(folder, read_data_keys(document).columns, None)


def write_columns(folder: DataFolder, columns: Mapping[str, str | None]) -> None:
    """Writes names of columns to `gapless.yaml`, made where there is none; all else stays as it is."""
    path = folder.directory / FILE_NAME
    text = path.read_text(encoding="utf-8") if path.exists() else _begin_file(folder)
    new = {column: name for column, name in columns.items() if folder.columns.get(column, ...) != name}
    if not new and path.exists():
        return
    lines = [f"  {_quote(column)}: {'' if name is None else _quote(name)}".rstrip() for column, name in new.items()]
    found = re.search(r"^columns:[ \t]*(#.*)?$", text, flags=re.MULTILINE)
    if found:
        below = _remove_lines(text[found.end() :], [column for column in new if column in folder.columns], path)
        text = "\n".join([text[: found.end()], *lines]) + below
    elif re.search(r"^columns:", text, flags=re.MULTILINE):
        raise project_error("write columns with one entry per line, so that import can add to it", path)
    elif lines:
        text = "\n".join([text.rstrip("\n"), _HEADER, *lines, ""])
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)


def _remove_lines(below: str, columns: list[str], path: Path) -> str:
    """Returns what stands below `columns:` without the lines of some columns, which get another name."""
    for column in columns:
        below, count = re.subn(rf"\n[ \t]+{re.escape(_quote(column))}[ \t]*:[^\n]*", "", below, count=1)
        if not count:
            raise project_error(f"write {column} in columns in a line of its own, so that import can correct it", path)
    return below


def _begin_file(folder: DataFolder) -> str:
    folder.directory.mkdir(parents=True, exist_ok=True)
    about = "# Data only. With a model: add model, rate_hz, commands and measurements."
    name = _quote(folder.directory.resolve().name)
    return f"gapless: 1                # version of this format\nname: {name}\n{about}\n"


def _quote(text: str) -> str:
    """Returns a text as one YAML scalar, in quotes only where needed."""
    dumped: str = yaml.safe_dump([text], default_flow_style=True, width=10**6, allow_unicode=True)
    return dumped.strip()[1:-1]
