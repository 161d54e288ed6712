"""Event configurations of Isaac Lab and mjlab, read as training ranges.

Python is read from its syntax and never run; YAML and JSON are those that a run wrote. Either way a term is a mapping
of its arguments, and the selection of its asset is a mapping in its `params`.
"""

import ast
import copy
import json
import math
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import yaml

from gapless.core.distribution import Range
from gapless.core.errors import InputError
from gapless.project.records import Project
from gapless.randomize.event_terms import isaaclab, mjlab
from gapless.randomize.event_terms.terms import EventTerm, SourceText

SUFFIXES = (".py", ".yaml", ".yml", ".json")
TERM_CLASSES = ("EventTerm", "EventTermCfg", "RandTerm", "RandomizationTermCfg")
STATE_FUNCTIONS = ("reset_", "push_", "apply_")  # how functions begin that set the state
EVENT_KEYS = ("task", "env", "env_cfg", "events", "randomization")  # that lead to the terms, each where it is there
OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
FUNCTIONS = {"tuple": list, "list": list, "radians": math.radians, "deg2rad": math.radians}


def read_event_ranges(
    path: str | Path, project: Project, model: mujoco.MjModel
) -> tuple[tuple[Range, ...], tuple[str, ...]]:
    """Returns the ranges that an event configuration states for a project's model, and a line on what was not read.

    Factors and additions become values by the model's own. InputError where the file is missing, is of another kind
    (`SUFFIXES`), or holds no event terms.
    """
    place = Path(path)
    suffix = place.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"event terms are in {', '.join(SUFFIXES)} files: name one: {place}")
    if not place.is_file():
        raise InputError(f"no such file: name a file of event terms: {place}")
    try:
        terms, notes = _read_terms(place.read_text(encoding="utf-8"), suffix)
    except (SyntaxError, ValueError, yaml.YAMLError) as error:
        kind, reason = {".py": "Python", ".json": "JSON"}.get(suffix, "YAML"), " ".join(str(error).split())[:120]
        raise InputError(f"this is no {kind} ({reason}): correct it, or save it again: {place}") from None
    if not terms:
        raise InputError(f"no event terms in it; they look like `push = EventTerm(func=..., mode=...)`: {place}")
    functions, ranges = isaaclab.READERS | mjlab.READERS, dict[str, Range]()
    for name, arguments in terms.items():
        term = EventTerm(name, arguments, project, model, place.name, ranges, notes)
        if term.func in functions:
            try:
                functions[term.func](term)
            except InputError as error:
                term.note(f"left out: {error}")
        elif term.func.startswith(STATE_FUNCTIONS):
            term.note("left out: it sets the state or pushes; no parameter of the model")
        else:
            term.note("left out: no parameter here is like it")
    return tuple(ranges.values()), tuple(notes)


def _read_terms(text: str, suffix: str) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Returns the terms of a file's text, name -> arguments, in order; and what was not read."""
    if suffix == ".py":
        reader = _PythonReader()
        reader.visit(ast.parse(text))
        return reader.terms, reader.notes
    found = json.loads(text) if suffix == ".json" else yaml.load(text, _PlainLoader)
    events = found if isinstance(found, dict) else {}
    for key in EVENT_KEYS:
        events = events[key] if isinstance(events.get(key), dict) else events
    return {str(name): term for name, term in events.items() if isinstance(term, dict) and "func" in term}, []


class _PlainLoader(yaml.SafeLoader):
    """Reads Python's tags as the plain values that they hold; nothing is made or run."""


def _construct_plain(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode) and suffix.startswith(("tuple", "list")):
        return loader.construct_sequence(node, deep=True)
    return SourceText(suffix)


_PlainLoader.add_multi_constructor("tag:yaml.org,2002:python/", _construct_plain)
_PlainLoader.add_multi_constructor("!", _construct_plain)


class _PythonReader(ast.NodeVisitor):
    """Walks a file from top to bottom and keeps constants and terms."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self.terms: dict[str, dict[str, Any]] = {}  # name -> arguments of the term
        self.notes: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_unless(node.name.upper().endswith("_PLAY"), node.name, node)

    def visit_If(self, node: ast.If) -> None:
        self._visit_unless(isinstance(node.test, ast.Name) and node.test.id == "play", "if play", node)

    def _visit_unless(self, is_for_playing: bool, name: str, node: ast.AST) -> None:
        if is_for_playing:
            self.notes.append(f"{name}: not read: it is for playing, not for training")
        else:
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assign(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, node.value)

    def visit_Call(self, node: ast.Call) -> None:
        """Follows `….events.pop(NAME)`."""
        if node.args and self._find_path(node.func) == ["pop"]:
            self._change([self._evaluate(node.args[0])], ast.Constant(None))
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        """Keeps the terms of a dictionary by their keys."""
        for key, value in zip(node.keys, node.values, strict=True):
            if _is_term(value) and isinstance(key, ast.Constant):
                self._change([str(key.value)], value)
            else:
                self.visit(value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        path = self._find_path(target)
        if isinstance(target, ast.Name) and _is_term(value):
            path = [target.id]
        elif isinstance(target, ast.Name):
            self.constants[target.id] = self._evaluate(value)
        if path:
            self._change(path, value)
        else:
            self.visit(value)

    def _find_path(self, node: ast.expr) -> list[Any]:
        """Returns NAME and what follows it in `….events.NAME` or `….events["NAME"]`; empty where nothing does."""
        path: list[Any] = []
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            path.insert(0, node.attr if isinstance(node, ast.Attribute) else self._evaluate(node.slice))
            if _last_name(node.value) == "events":
                return path if isinstance(path[0], str) else []
            node = node.value
        return []

    def _change(self, path: list[Any], value: ast.expr) -> None:
        """Adds a term, takes it out where the value is None, or changes what a longer path names in it."""
        name, *inner = path
        new = copy.deepcopy(self._evaluate(value))
        if not inner and _is_term(value):
            if name in self.terms:
                self.notes.append(f"{name}: stands in this file twice: the last one is read")
            self.terms[name] = new
        elif name not in self.terms:
            done = "taken out" if new is None else "changed"
            self.notes.append(f"{name}: {done} here, but it is not in this file")
        elif not inner and new is None:
            del self.terms[name]
        else:
            place: Any = self.terms[name]
            for key in inner[:-1]:
                place = place.get(key) if isinstance(place, dict) else None
            if inner and isinstance(place, dict):
                place[inner[-1]] = new
            else:
                self.notes.append(f"{name}: a change was not followed: {'.'.join(map(str, path))}")

    def _evaluate(self, node: ast.expr) -> Any:
        """Returns the plain value of an expression, or what stands there."""
        try:
            return self._compute(node)
        except (ArithmeticError, TypeError, ValueError):
            return SourceText(ast.unparse(node))

    def _compute(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.Tuple, ast.List)):
            return [self._evaluate(item) for item in node.elts]
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return {self._evaluate(key): self._evaluate(item) for key, item in pairs if key is not None}
        if isinstance(node, ast.Name):
            return self.constants.get(node.id, SourceText(node.id))
        if isinstance(node, ast.Attribute) and node.attr in ("pi", "inf") and isinstance(node.value, ast.Name):
            return getattr(math, node.attr)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._evaluate(node.operand)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            return OPERATIONS[type(node.op)](self._evaluate(node.left), self._evaluate(node.right))
        return self._compute_call(node) if isinstance(node, ast.Call) else SourceText(ast.unparse(node))

    def _compute_call(self, node: ast.Call) -> Any:
        name = _last_name(node.func)
        words = {word.arg: self._evaluate(word.value) for word in node.keywords if word.arg}
        arguments = [self._evaluate(item) for item in node.args]
        if name in TERM_CLASSES:
            return words
        if name == "SceneEntityCfg":
            return {"name": arguments[0]} | words if arguments else words
        if name in FUNCTIONS:
            return FUNCTIONS[name](*arguments)
        return SourceText(ast.unparse(node)) if words else SourceText(ast.unparse(node), name, tuple(arguments))


def _is_term(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) in TERM_CLASSES


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).split(".")[-1]
