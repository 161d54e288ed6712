"""One short text for all files that a project's results depend on: equal texts, equal projects."""

import ast
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from gapless.project.model import find_model_files
from gapless.project.records import Project
from gapless.project.yaml_file import FILE_NAME


def fingerprint(project: Project) -> str:
    """Returns 16 hex digits over `gapless.yaml`, all files that the model reads, and the owner's code.

    The owner's code is what `task` and `reality` name, with the modules of its folder that it imports, directly or
    indirectly. Not covered: logs, as their episodes have ids, and data files that the owner's code opens by itself.
    """
    named = (project.task, project.reality)
    task, reality = ([project.directory / code.rpartition(":")[0]] if code else [] for code in named)
    first = [project.directory / FILE_NAME, project.model_path, *task]
    others = {os.path.relpath(path, project.model_path.parent): path for path in find_model_files(project.model_path)}
    for code in (*task, *reality):
        others |= {os.path.relpath(path, code.parent): path for path in find_local_modules(code)}
    done = {path.resolve() for path in first}
    digest = hashlib.sha256()
    for path in first:  # these alone give the fingerprint of gapless 0.1.0, so that its results are found again
        digest.update((path.read_bytes() if path.is_file() else b"") + b"\0")
    for name, path in sorted(others.items()):
        if path.resolve() not in done:
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def fingerprint_model(project: Project) -> str:
    """Returns 16 hex digits over what predictions depend on: all files of the model, rate, mapping and parameters."""
    folder = project.model_path.parent
    written = (project.rate_hz, project.commands, project.measurements, project.parameters)
    digest = hashlib.sha256(repr(written).encode())
    for path in sorted({project.model_path, *find_model_files(project.model_path)}):
        digest.update(os.path.relpath(path, folder).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def find_local_modules(path: Path) -> set[Path]:
    """Returns a Python file and all files of its folder that it imports, directly or indirectly; nothing is run."""
    found: set[Path] = set()
    left = [path]
    while left:
        if (file := left.pop()).is_file() and file not in found:
            found.add(file)
            left += _imported_files(file, path.parent)
    return found


def _imported_files(path: Path, root: Path) -> Iterator[Path]:
    """Yields where the modules that a file imports would lie, in `root` or, for relative imports, beside the file."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # loading the code says what is wrong
        return
    for node in ast.walk(tree):
        folder, names = root, list[str]()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            folder = path.parents[node.level - 1] if node.level else root
            names = [f"{node.module}.{alias.name}" if node.module else alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
            names = [item.value for item in node.args[:1] if isinstance(item, ast.Constant)]
        for name in names:
            place = folder
            for part in str(name).split("."):
                place = place / part
                yield from (place.with_name(f"{part}.py"), place / "__init__.py")
