"""Event terms in Python files: read from the syntax, never run."""

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from gapless.core.errors import InputError
from gapless.randomize.foreign.term import Asset, Called, Unread, Written, asset_of, written_of

TERMS = ("EventTerm", "EventTermCfg", "RandTerm", "RandomizationTermCfg")
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def terms_of_source(text: str) -> tuple[list[Written], list[str]]:
    """Returns the terms of a Python file, in order, and what was not read.

    Raises:
        InputError: If the text is no Python.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise InputError(f"this is no Python ({error}): correct it") from None
    reader = _Reader()
    reader.visit(tree)
    return list(reader.terms.values()), reader.notes


class _Reader(ast.NodeVisitor):
    """Walks a file from top to bottom and keeps constants and terms."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self.terms: dict[str, Written] = {}
        self.notes: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if node.name.upper().endswith("_PLAY"):
            self.notes.append(f"{node.name}: not read: it is for playing, not for training")
            return
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "play":
            self.notes.append("if play: not read: it is for playing, not for training")
            return
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "pop":
            name = self.value(call.args[0]) if call.args and ast.unparse(call.func.value).endswith("events") else None
            if isinstance(name, str) and self.terms.pop(name, None) is None:
                self.notes.append(f"{name}: taken out here, but it is not in this file")
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        self._dictionary(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.visit(node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        name = target.id if isinstance(target, ast.Name) else self._event_name(target)
        if _is_term(value) and name:
            self._keep(name, value)
        elif isinstance(value, ast.Dict) and self._dictionary(value):
            return
        elif isinstance(target, ast.Name):
            self.constants[target.id] = self.value(value)
            self.generic_visit(value)
        elif name and isinstance(value, ast.Constant) and value.value is None:
            if self.terms.pop(name, None) is None:
                self.notes.append(f"{name}: taken out here, but it is not in this file")
        else:
            self._change(target, value)

    def _keep(self, name: str, value: ast.expr) -> None:
        assert isinstance(value, ast.Call)
        if name in self.terms:
            self.notes.append(f"{name}: stands in this file twice: the last one is read")
        said = {word.arg: self.value(word.value) for word in value.keywords if word.arg}
        func = next((word.value for word in value.keywords if word.arg == "func"), None)
        said["func"] = Unread(ast.unparse(func) if func is not None else "")
        self.terms[name] = written_of(name, said)

    def _dictionary(self, node: ast.Dict) -> bool:
        """Keeps the terms of a dictionary by their keys; returns whether there was one."""
        found = False
        for key, value in zip(node.keys, node.values, strict=True):
            if _is_term(value) and isinstance(key, ast.Constant) and isinstance(key.value, str):
                self._keep(key.value, value)
                found = True
            else:
                self.visit(value)
        return found

    def _event_name(self, target: ast.expr) -> str | None:
        """Returns NAME of `….events.NAME` or `….events["NAME"]`."""
        if isinstance(target, ast.Attribute) and ast.unparse(target.value).split(".")[-1] == "events":
            return target.attr
        if isinstance(target, ast.Subscript) and ast.unparse(target.value).split(".")[-1] == "events":
            key = self.value(target.slice)
            return key if isinstance(key, str) else None
        return None

    def _change(self, target: ast.expr, value: ast.expr) -> None:
        """Follows a line that changes a term: its params, one of them, or the names of its asset."""
        path: list[str] = []
        node = target
        while self._event_name(node) is None:
            if isinstance(node, ast.Attribute):
                path, node = [node.attr, *path], node.value
            elif isinstance(node, ast.Subscript):
                path, node = [str(self.value(node.slice)), *path], node.value
            else:
                return
        name, new = str(self._event_name(node)), self.value(value)
        term = self.terms.get(name)
        if term is None:
            self.notes.append(f"{name}: changed here, but it is not in this file: {ast.unparse(target)}")
        elif path == ["params"] and isinstance(new, dict):
            term.params = new
        elif path == ["mode"]:
            term.mode = str(new)
        elif path[0] == "params" and len(path) == 2:
            term.params[path[1]] = new
        elif path[0] == "params" and len(path) == 3 and isinstance(term.params.get(path[1]), Asset):
            asset = term.params[path[1]]
            changed = asset_of({"name": asset.name, path[2]: new})
            term.params[path[1]] = Asset(changed.name, {**asset.patterns, **changed.patterns})
        elif path[0] == "params" and len(path) == 3 and isinstance(term.params.get(path[1]), dict):
            term.params[path[1]] = term.params[path[1]] | {path[2]: new}
        else:
            self.notes.append(f"{name}: a change was not followed: {ast.unparse(target)}")

    def value(self, node: ast.expr) -> Any:
        """Returns the plain value of an expression, or what stands there."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.Tuple, ast.List)):
            return [self.value(item) for item in node.elts]
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return {self.value(key): self.value(item) for key, item in pairs if key is not None}
        if isinstance(node, ast.Name):
            return self.constants.get(node.id, Unread(node.id))
        if isinstance(node, ast.Attribute) and node.attr in ("pi", "inf") and isinstance(node.value, ast.Name):
            return getattr(math, node.attr)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self.value(node.operand)
            return -inner if isinstance(inner, (int, float)) else Unread(ast.unparse(node))
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            return self._combined(node)
        return self._called(node) if isinstance(node, ast.Call) else Unread(ast.unparse(node))

    def _combined(self, node: ast.BinOp) -> Any:
        first, second = self.value(node.left), self.value(node.right)
        numbers = isinstance(first, (int, float)) and isinstance(second, (int, float))
        lists = isinstance(first, list) and isinstance(second, list) and isinstance(node.op, ast.Add)
        try:
            return _OPERATIONS[type(node.op)](first, second) if numbers or lists else Unread(ast.unparse(node))
        except (ArithmeticError, ValueError):
            return Unread(ast.unparse(node))

    def _called(self, node: ast.Call) -> Any:
        name = ast.unparse(node.func).split(".")[-1]
        words = {word.arg: self.value(word.value) for word in node.keywords if word.arg}
        arguments = [self.value(item) for item in node.args]
        if name == "SceneEntityCfg":
            return asset_of(({"name": arguments[0]} if arguments else {}) | words)
        if name in ("tuple", "list") and len(arguments) == 1 and isinstance(arguments[0], list):
            return arguments[0]
        if name in ("radians", "deg2rad") and len(arguments) == 1 and isinstance(arguments[0], (int, float)):
            return math.radians(arguments[0])
        return Called(name, tuple(arguments), ast.unparse(node)) if not words else Unread(ast.unparse(node))


def _is_term(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in TERMS
