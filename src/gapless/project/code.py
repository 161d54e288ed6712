"""Loading the owner's Python code: the task, and what stands for reality."""

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from gapless.core.errors import ProjectError, nearest
from gapless.core.protocols import Task, World
from gapless.project.records import Project
from gapless.project.yaml_file import FILE_NAME, project_error


def load_task(project: Project) -> Task:
    """Imports the owner's task and makes one, without arguments."""
    path, name = _find_code(project, "task", project.task)
    return cast(Task, _make_owned(path, name, {}, Task))


def load_reality(project: Project, seed: int, num_worlds: int) -> World:
    """Imports what stands for reality and makes it; `seed` and `num_worlds` are passed on if it has such arguments."""
    path, name = _find_code(project, "reality", project.reality)
    return cast(World, _make_owned(path, name, {"seed": seed, "num_worlds": num_worlds}, World))


def _make_owned(path: Path, name: str, offered: dict[str, int], protocol: type) -> object:
    """Calls the owner's class or function with those of the offered arguments that it has, and checks what it made."""
    with _importable(path.parent):
        make = _load_callable(path, name)
        arguments = offered
        try:
            signature = inspect.signature(make)
            takes_any = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in signature.parameters.values())
            arguments = {key: value for key, value in offered.items() if takes_any or key in signature.parameters}
            signature.bind(**arguments)
        except (TypeError, ValueError) as error:
            given = " and ".join(arguments) or "no arguments"
            refused = f"{name} cannot be called with {given}: {error}"
            raise project_error(f"{refused}; give its other arguments default values", path) from None
        try:
            made = make(**arguments)
        except (Exception, SystemExit) as error:
            raise _code_error(f"calling {name}", error, path) from error
    methods = [key for key, value in vars(protocol).items() if callable(value) and not key.startswith("_")]
    missing = [key for key in protocol.__annotations__ if not hasattr(made, key)]
    missing += [f"{key}()" for key in methods if not callable(getattr(made, key, None))]
    if missing:
        kind = protocol.__name__
        lacking = f"{name} made a {type(made).__name__} without {', '.join(missing)}, which every {kind} has"
        raise project_error(f"{lacking}; see gapless.core.protocols.{kind}", path)
    return made


def _find_code(project: Project, key: str, value: str | None) -> tuple[Path, str]:
    yaml_path = project.directory / FILE_NAME
    if value is None:
        example = {"task": "task.py:Push", "reality": "twin.py:make"}[key]
        raise project_error(f"the project names no {key}: write {key}: {example}", yaml_path)
    file, _, name = value.rpartition(":")
    path = project.directory / file
    if not path.is_file():
        available = nearest(path.name, (p.name for p in path.parent.glob("*.py")))
        raise project_error(f"{key}: {value}: no file {file}; choose from: {available}", yaml_path)
    return path, name


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Lets the owner's files import each other, and forgets them afterwards.

    Two projects may both have a `twin.py`; so modules found in this folder leave `sys.modules` again.
    """
    entry, wrote_bytecode, before = str(folder.resolve()), sys.dont_write_bytecode, set(sys.modules)
    sys.path.insert(0, entry)
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = wrote_bytecode
        sys.path.remove(entry)
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(entry) and not name.startswith("gapless_owner_"):
                del sys.modules[name]


def _load_callable(path: Path, name: str) -> Callable[..., object]:
    module_name = f"gapless_owner_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path.resolve())
    if spec is None or spec.loader is None:
        raise project_error("not a Python file: name one that ends in .py", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(module_name, None)
        raise _code_error("importing it", error, path) from error
    found = getattr(module, name, None)
    if callable(found):
        return cast(Callable[..., object], found)
    public = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
    kind = "is not a class or function" if found is not None else "does not exist"
    raise project_error(f"{path.name}:{name} {kind}; choose from: {nearest(name, public)}", path)


def _code_error(doing: str, error: BaseException, path: Path) -> ProjectError:
    """Says in one line where in the owner's folder an exception came from."""
    place = f"{path}:1"
    folder = str(path.parent.resolve())
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(folder):
            place = f"{frame.filename}:{frame.lineno}"
    if isinstance(error, SyntaxError) and error.filename:
        place, message = f"{error.filename}:{error.lineno}", error.msg
    else:
        message = " ".join(str(error).split())
    more = "..." if len(message) > 300 else ""
    text = f"{path.name}: {doing} raised {type(error).__name__}: {message[:300]}{more}"
    return project_error(f"{text}; correct this code", place)
