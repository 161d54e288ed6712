"""Every error text of the package, as far as it stands in the code: `python -m architecture.error_texts` lists them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from architecture.tree import named, parsed, source_files

ERRORS = {"GaplessError", "InputError", "ProjectError", "LogError", "CatalogueError", "ValueError"}
MAKERS = {"project_error", "log_error", "error"}  # functions that return an error with a place
UNKNOWN = "…"  # stands for what only a run can tell


@dataclass(frozen=True)
class ErrorText:
    """The text of one error.

    Attributes:
        place: File and line.
        text: The text, with an ellipsis for what only a run can tell.
    """

    place: str
    text: str


def find_error_texts() -> list[ErrorText]:
    """Returns the text of every error that users may see; examples and re-raised ones left out."""
    return [found for path in source_files(examples=False) for found in _texts_of(path)]


def _texts_of(path: Path) -> Iterator[ErrorText]:
    tree = parsed(path)
    constants = _constants() | _assigned(tree.body)
    for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
        known = constants | _assigned(ast.walk(function))
        for node in _own_nodes(function):
            if isinstance(node, ast.Call) and (index := _text_argument(node)) is not None:
                for text in _readings(node.args[index], known):
                    yield ErrorText(f"{named(path)}:{node.lineno}", " ".join(text.split()))


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yields the nodes of a function without those of functions inside it."""
    waiting: list[ast.AST] = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if not isinstance(node, ast.FunctionDef):
            yield node
            waiting += ast.iter_child_nodes(node)


def _text_argument(call: ast.Call) -> int | None:
    """Returns which argument of a call is an error's text; None if the call makes no error that users see."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in ERRORS | MAKERS or not call.args:
        return None
    if name == "error":  # Document.error(where, text), Target.error(text)
        return len(call.args) - 1 if len(call.args) in (1, 2) else None
    return 0


def _assigned(nodes: Iterator[ast.AST] | list[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Returns what names are set to, in any branch."""
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Tuple)
            and isinstance(node.value, ast.Tuple)
        ):
            for name, value in zip(node.targets[0].elts, node.value.elts, strict=False):
                found.setdefault(getattr(name, "id", ""), []).append(value)
    return found


@cache
def _constants() -> dict[str, list[ast.expr]]:
    """Returns the constants of all modules, which others import."""
    found: dict[str, list[ast.expr]] = {}
    for path in source_files(examples=False):
        for name, values in _assigned(parsed(path).body).items():
            found.setdefault(name, []).extend(values if name.isupper() else [])
    return found


def _looked_up(node: ast.expr) -> ast.Name | None:
    """Returns the mapping that an expression looks into: `M[key]`, `M.get(key, ...)`."""
    inner = node.value if isinstance(node, ast.Subscript) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        inner = node.func.value
    return inner if isinstance(inner, ast.Name) else None


def _values(node: ast.expr, known: dict[str, list[ast.expr]], depth: int) -> list[str]:
    """Returns the texts that a mapping may hold."""
    if isinstance(node, ast.Dict):
        return [text for value in node.values for text in _values(value, known, depth)]
    if isinstance(node, ast.Call) and node.args:  # dict.fromkeys(keys, value)
        return _readings(node.args[-1], known, depth)
    return _readings(node, known, depth)


def _readings(node: ast.expr, known: dict[str, list[ast.expr]], depth: int = 0) -> list[str]:
    """Returns what an expression may read as, (few) texts."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.JoinedStr):
        texts = [""]
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            texts = [text + more for text in texts for more in _readings(inner, known, depth + 1)][:16]
        return texts
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        first, second = (_readings(side, known, depth + 1) for side in (node.left, node.right))
        return [a + b for a in first for b in second][:16]
    if isinstance(node, ast.IfExp):
        return _readings(node.body, known, depth + 1) + _readings(node.orelse, known, depth + 1)
    if isinstance(node, ast.BoolOp):
        texts = [text for value in node.values for text in _readings(value, known, depth + 1)]
        return [text for text in texts if text] or [""]
    if (looked := _looked_up(node)) is not None and looked.id in known and depth < 6:
        return [text for value in known[looked.id] for text in _values(value, known, depth + 1)]
    if isinstance(node, ast.Name) and node.id in known and depth < 6:
        others = known | {node.id: []}
        return [text for value in known[node.id] for text in _readings(value, others, depth + 1)]
    return [UNKNOWN]


if __name__ == "__main__":
    for found in find_error_texts():
        print(f"{found.place}: {found.text}")
