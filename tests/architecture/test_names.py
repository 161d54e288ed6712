import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from architecture.tree import PACKAGE, named, parsed, source_files

VAGUE = {"utils", "util", "common", "helpers", "helper", "misc"}

# A function is a verb with its object. These are participles and adverbs: what came out, not what is done.
PARTICIPLES = """
    apart again aside begun bent beside between beyond chosen cut done drawn found given heard held kept known left made
    meant near once said seen sent shown spread taken together told within written
"""
VERBS_IN_ED = {"embed", "feed", "need", "seed", "speed", "proceed", "exceed"}


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public_definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Yields public classes and functions, and the public methods of public classes."""
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield f"{prefix}{node.name}", node
            if isinstance(node, ast.ClassDef):
                yield from public_definitions(node.body, f"{prefix}{node.name}.")


def is_repetition(node: Definition) -> bool:
    """Tells whether a definition repeats one that has its docstring elsewhere."""
    names = {ast.unparse(decorator).split(".")[-1] for decorator in node.decorator_list}
    return bool(names & {"overload", "override", "setter"})


def test_everything_public_has_a_docstring() -> None:
    bare: list[str] = []
    for path in source_files(examples=False):
        tree = parsed(path)
        bare += [] if ast.get_docstring(tree) else [f"{named(path)}: the module itself"]
        bare += [
            f"{named(path)}:{node.lineno} {name}"
            for name, node in public_definitions(tree.body)
            if not ast.get_docstring(node) and not is_repetition(node)
        ]
    assert bare == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    folders = {folder for path in source_files() for folder in path.relative_to(PACKAGE).parents}
    vague = [named(path) for path in source_files() if path.stem.strip("_") in VAGUE]
    vague += [str(folder) for folder in folders if folder.name.strip("_") in VAGUE]
    assert vague == []


def functions_and_methods(path: Path) -> Iterator[tuple[ast.FunctionDef, bool]]:
    """Yields every function of a file, and whether it is a method."""
    tree = parsed(path)
    methods = {id(node) for kind in ast.walk(tree) if isinstance(kind, ast.ClassDef) for node in kind.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node, id(node) in methods


def is_participle(node: ast.FunctionDef, is_method: bool) -> bool:
    """Returns whether a function is named by a bare participle or adverb.

    Properties may be, and methods in -ed that return a changed copy, as in `series.shifted(0.1)`.
    """
    name = node.name.strip("_")
    decorators = {ast.unparse(decorator).split(".")[-1] for decorator in node.decorator_list}
    past = re.fullmatch(r"[a-z]+ed", name) is not None and name not in VERBS_IN_ED
    public_method = is_method and not node.name.startswith("_")
    return (name in PARTICIPLES.split() or (past and not public_method)) and not decorators & {
        "property",
        "cached_property",
    }


def test_functions_are_verbs_not_participles() -> None:
    offenders = [
        f"{named(path)}:{node.lineno} {node.name}"
        for path in source_files(examples=False)
        for node, is_method in functions_and_methods(path)
        if is_participle(node, is_method)
    ]
    assert offenders == [], "\n".join(offenders)


def test_one_name_is_one_class() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in source_files(examples=False):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name.strip("_")].append(f"{named(path)}:{node.lineno}")
    offenders = {name: where for name, where in places.items() if len(where) > 1}
    assert offenders == {}, "\n".join(f"{name}: {', '.join(where)}" for name, where in offenders.items())
