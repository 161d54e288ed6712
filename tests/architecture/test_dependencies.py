import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions

import pytest

from architecture.tree import PACKAGE, ROOT, named, parsed, source_files

DOCUMENT = ROOT / "docs" / "dependencies.md"
CONSTRAINTS = ROOT / "constraints.txt"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_name(requirement: str) -> str:
    return canonical(re.split(r"[^\w.-]", requirement, maxsplit=1)[0])


@cache
def declared() -> dict[str, set[str]]:
    """Returns group (`core` or the name of an extra) -> canonical names of what it installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"core": project["dependencies"], **project["optional-dependencies"]}
    return {group: {requirement_name(text) for text in texts} for group, texts in groups.items()}


def documented() -> set[str]:
    rows = re.findall(r"^\| `([^`]+)` \|", DOCUMENT.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {canonical(row) for row in rows}


@cache
def own_modules() -> set[str]:
    """Returns what may be imported without installing it: Python's own, ours, and the files of examples."""
    examples = {path.stem for path in (PACKAGE / "examples").rglob("*.py")}
    return set(sys.stdlib_module_names) | {"gapless"} | examples


def third_party_imports() -> dict[str, str]:
    """Returns imported name -> the first place that imports it."""
    found: dict[str, str] = {}
    for path in source_files():
        for node in ast.walk(parsed(path)):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                names = [node.module]
            for name in {name.split(".")[0] for name in names} - own_modules():
                found.setdefault(name, f"{named(path)}:{getattr(node, 'lineno', 0)}")
    return found


def test_every_import_is_declared() -> None:
    distributions = packages_distributions()
    runtime = set().union(*(names for group, names in declared().items() if group != "dev"))
    undeclared = {
        name: place
        for name, place in third_party_imports().items()
        if not {canonical(d) for d in distributions.get(name, [name])} & runtime
    }
    assert undeclared == {}


def test_every_dependency_has_a_row_and_every_row_a_dependency() -> None:
    assert documented() == set().union(*declared().values())


def test_constraints_are_exact_pins_and_nothing_else() -> None:
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    odd = [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][0-9A-Za-z.]*", line)]
    assert odd == []
    assert len({canonical(line.split("==")[0]) for line in lines}) == len(lines)


@pytest.mark.parametrize("group", sorted(declared()))
def test_constraints_pin_every_declared_dependency(group: str) -> None:
    pinned = {canonical(line.split("==")[0]) for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines()}
    assert declared()[group] - pinned == set()
