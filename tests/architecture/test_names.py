import ast
from collections.abc import Iterator

from architecture.tree import PACKAGE, named, parsed, source_files

VAGUE = {"utils", "util", "common", "helpers", "helper", "misc"}

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
