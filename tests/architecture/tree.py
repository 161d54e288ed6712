"""What the architecture tests look at: the repository, its source files, its rooms."""

import ast
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "gapless"
EXAMPLES = PACKAGE / "examples"

# What a walk skips where git cannot say what is tracked, besides folders that begin with a dot.
_UNTRACKED = {"__pycache__", "dist", "build", "demo", "site"}


def source_files(*, examples: bool = True) -> list[Path]:
    """Returns every Python file of the package, with or without the bundled examples."""
    found = sorted(PACKAGE.rglob("*.py"))
    return [path for path in found if examples or EXAMPLES not in path.parents]


def rooms() -> list[Path]:
    """Returns the folders directly inside the package that hold code, without the examples."""
    folders = (path for path in PACKAGE.iterdir() if path.is_dir() and path != EXAMPLES)
    return sorted(path for path in folders if any(path.rglob("*.py")))


@cache
def parsed(path: Path) -> ast.Module:
    """Returns the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def named(path: Path) -> str:
    """Returns a path as it is written in messages, relative to the repository."""
    return path.relative_to(ROOT).as_posix()


def tracked_files() -> list[Path]:
    """Returns the files that belong to the repository: what git lists, or, without git, a walk."""
    listed = _git_files()
    if listed is not None:
        return listed
    found: list[Path] = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if _is_ours(name)]
        found.extend(Path(folder) / name for name in files)
    return sorted(found)


def _is_ours(folder: str) -> bool:
    hidden = folder.startswith(".") and folder != ".ci"
    return not hidden and folder not in _UNTRACKED and not folder.endswith(".egg-info")


def _git_files() -> list[Path] | None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return None
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(command, capture_output=True, check=False)
    if answer.returncode != 0:
        return None
    names = [name for name in answer.stdout.decode().split("\0") if name]
    return sorted(path for path in (ROOT / name for name in names) if path.is_file())
