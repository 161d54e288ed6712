"""Reads `gapless.yaml` and remembers the line of each value, so that every error can name one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gapless.core.errors import ProjectError

Place = tuple[str | int, ...]
FILE_NAME = "gapless.yaml"
_MAKE_ONE = "make one with: gapless new MODEL LOG... DIR"
_NULL_OR_MERGE = ("tag:yaml.org,2002:null", "tag:yaml.org,2002:merge")


@dataclass(frozen=True)
class Document:
    """A parsed YAML file."""

    path: Path  # where it was read
    data: dict[str, Any]  # nested dicts and lists; every scalar is text as written, or None
    lines: dict[Place, int]  # path of keys and indices -> line number, counted from 1

    def error(self, where: Sequence[str | int], text: str) -> ProjectError:
        """Returns a one-line error about the value at `where`, with file and line last."""
        place = tuple(where)
        while place and place not in self.lines:
            place = place[:-1]
        line = f", line {self.lines[place]}" if place else ""
        return project_error(text, f"{self.path}{line}")


def project_error(text: str, place: str | Path) -> ProjectError:
    """Returns an error whose message is one line, with the place in brackets at its end."""
    return ProjectError(" ".join(f"{text} ({place})".splitlines()))


class _Loader(yaml.SafeLoader):
    """YAML without guessed types: `on`, `1e-3` and `1` stay text, as the schema knows what each must be."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in _NULL_OR_MERGE]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_document(path: Path) -> Document:
    """Reads a YAML file whose top level is a mapping, without tabs and without keys that stand twice."""
    text = _read_text(path)
    lines: dict[Place, int] = {}
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None:
            _note_lines(node, (), lines, path)
        data = loader.construct_document(node) if node is not None else None
    except (yaml.YAMLError, RecursionError) as error:
        raise _syntax_error(error, text, path) from None
    if not isinstance(data, dict):
        found = "the file is empty" if data is None else "the file is not a mapping"
        raise project_error(f"{found}: begin with 'gapless: 1', then model, rate_hz, measurements", path)
    return Document(path, data, lines)


def _read_text(path: Path) -> str:
    if not path.parent.is_dir():
        raise project_error(f"no such project folder; {_MAKE_ONE}", path.parent)
    if not path.is_file():
        raise project_error(f"no {FILE_NAME} in this folder; {_MAKE_ONE}", path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise project_error(f"not UTF-8 text (byte {error.start}): save it as UTF-8", path) from None
    except OSError as error:
        raise project_error(f"cannot be read ({error.strerror}): check its permissions", path) from None


def _note_lines(node: yaml.Node, place: Place, lines: dict[Place, int], path: Path) -> None:
    """Notes the line of every value, makes keys text and refuses keys that stand twice."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*place, index)] = item.start_mark.line + 1
            _note_lines(item, (*place, index), lines, path)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: dict[str, int] = {}
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise project_error("a key is not plain text: write it in quotes", f"{path}, line {line}")
        if not key.tag.endswith(":merge"):
            if key.value in seen:
                text = f"key {key.value} stands twice, first in line {seen[key.value]}: keep one"
                raise project_error(text, f"{path}, line {line}")
            key.tag = "tag:yaml.org,2002:str"
        lines[(*place, key.value)] = seen[key.value] = line
        _note_lines(value, (*place, key.value), lines, path)


def _syntax_error(error: Exception, text: str, path: Path) -> ProjectError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return project_error(f"not YAML: {' '.join(str(error).split())}; correct it", path)
    place = f"{path}, line {mark.line + 1}"
    row = (text.splitlines()[mark.line : mark.line + 1] or [""])[0]
    problem = getattr(error, "problem", None) or "cannot be read"
    shown = f" near '{row.strip()[:60]}'" if row.strip() else ""
    advice = "check the indentation (by spaces, not tabs), colons and brackets there and just above"
    return project_error(f"not YAML in line {mark.line + 1}{shown}: {problem}; {advice}", place)
