"""Event configurations of Isaac Lab and mjlab, read as training ranges.

Python is read from its syntax and never run; YAML and JSON are those that a run wrote.
"""

import ast
import json
import math
import operator
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import yaml

from gapless.core.distribution import Correlation, Range
from gapless.core.errors import InputError
from gapless.project.records import Project
from gapless.randomize.event_terms import isaaclab, mjlab
from gapless.randomize.event_terms.terms import EventTerm, SceneEntity, SourceText, TermReader, make_entity, make_term

SUFFIXES = (".py", ".yaml", ".yml", ".json")
TERM_CLASSES = ("EventTerm", "EventTermCfg", "RandTerm", "RandomizationTermCfg")
STATE_FUNCTIONS = ("reset_", "push_", "apply_")  # how functions begin that set the state
EVENT_KEYS = (("events",), ("env", "events"), ("task", "env", "events"), ("env_cfg", "events"), ("randomization",))
_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


class EventRanges(NamedTuple):
    """Ranges of an event configuration."""

    ranges: tuple[Range, ...]  # one per parameter of the project's model
    correlations: tuple[Correlation, ...]  # always empty: event terms draw on their own
    notes: tuple[str, ...]  # what could not be read, or not as it is there: a line each


def read_event_ranges(path: str | Path, project: Project, model: mujoco.MjModel) -> EventRanges:
    """Returns the ranges that an event configuration states for a project's model.

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
    except UnicodeDecodeError:
        raise InputError(f"this is no text: name a file of event terms: {place}") from None
    except (SyntaxError, ValueError, yaml.YAMLError) as error:
        kind, reason = {".py": "Python", ".json": "JSON"}.get(suffix, "YAML"), " ".join(str(error).split())[:120]
        raise InputError(f"this is no {kind} ({reason}): correct it, or save it again: {place}") from None
    if terms is None:
        raise InputError(f"this holds no mapping of event terms: name a dump that has `events`: {place}")
    if not terms:
        raise InputError(f"no event terms in it; they look like `push = EventTerm(func=..., mode=...)`: {place}")
    reader, functions = TermReader(project, model, place.name, notes=notes), isaaclab.READERS | mjlab.READERS
    for term in terms:
        if term.func in functions:
            try:
                functions[term.func](reader, term)
            except InputError as error:
                reader.note(term, f"left out: {error}")
        elif term.func.startswith(STATE_FUNCTIONS):
            reader.note(term, "left out: it sets the state or pushes; no parameter of the model")
        else:
            reader.note(term, "left out: no parameter here is like it")
    return EventRanges(tuple(reader.ranges.values()), (), tuple(reader.notes))


def _read_terms(text: str, suffix: str) -> tuple[list[EventTerm] | None, list[str]]:
    """Returns the terms of a file's text, in order, None where it holds no mapping; and what was not read."""
    if suffix == ".py":
        reader = _PythonReader()
        reader.visit(ast.parse(text))
        return list(reader.terms.values()), reader.notes
    found = json.loads(text) if suffix == ".json" else yaml.load(text, _PlainLoader)
    if not isinstance(found, Mapping):
        return None, []
    terms: list[EventTerm] = []
    for name, arguments in _find_events(found).items():
        if isinstance(arguments, Mapping) and "func" in arguments:
            terms.append(make_term(str(name), arguments))
            for key, value in terms[-1].params.items():
                if isinstance(value, Mapping) and (key == "asset_cfg" or "body_names" in value):
                    terms[-1].params[key] = make_entity(value)
    return terms, []


class _PlainLoader(yaml.SafeLoader):
    """Reads Python's tags as the plain values that they hold; nothing is made or run."""


def _construct_plain(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        held = loader.construct_sequence(node, deep=True)
        return held if suffix.startswith(("tuple", "list")) else SourceText(suffix)
    return loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else SourceText(suffix)


_PlainLoader.add_multi_constructor("tag:yaml.org,2002:python/", _construct_plain)
_PlainLoader.add_multi_constructor("!", _construct_plain)


def _find_events(found: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Returns the mapping of terms: under `events`, also below `env` or `task.env`, or the file itself."""
    for path in EVENT_KEYS:
        inner: Any = found
        for key in path:
            inner = inner.get(key) if isinstance(inner, Mapping) else None
        if isinstance(inner, Mapping):
            return inner
    return found


class _PythonReader(ast.NodeVisitor):
    """Walks a file from top to bottom and keeps constants and terms."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self.terms: dict[str, EventTerm] = {}
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
            self._follow_assignment(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._follow_assignment(node.target, node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "pop":
            is_events = ast.unparse(call.func.value).endswith("events")
            name = self._evaluate(call.args[0]) if call.args and is_events else None
            if isinstance(name, str):
                self._remove_term(name)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        self._keep_terms(node)

    def _follow_assignment(self, target: ast.expr, value: ast.expr) -> None:
        name = target.id if isinstance(target, ast.Name) else self._find_event_name(target)
        if _is_term(value) and name:
            self._keep_term(name, value)
        elif isinstance(value, ast.Dict) and self._keep_terms(value):
            return
        elif isinstance(target, ast.Name):
            self.constants[target.id] = self._evaluate(value)
            self.generic_visit(value)
        elif name and isinstance(value, ast.Constant) and value.value is None:
            self._remove_term(name)
        else:
            self._follow_change(target, value)

    def _remove_term(self, name: str) -> None:
        if self.terms.pop(name, None) is None:
            self.notes.append(f"{name}: taken out here, but it is not in this file")

    def _keep_term(self, name: str, value: ast.expr) -> None:
        assert isinstance(value, ast.Call)
        if name in self.terms:
            self.notes.append(f"{name}: stands in this file twice: the last one is read")
        arguments = {word.arg: self._evaluate(word.value) for word in value.keywords if word.arg}
        func = next((word.value for word in value.keywords if word.arg == "func"), None)
        arguments["func"] = SourceText(ast.unparse(func) if func is not None else "")
        self.terms[name] = make_term(name, arguments)

    def _keep_terms(self, node: ast.Dict) -> bool:
        """Keeps the terms of a dictionary by their keys; returns whether there was one."""
        found = False
        for key, value in zip(node.keys, node.values, strict=True):
            if _is_term(value) and isinstance(key, ast.Constant) and isinstance(key.value, str):
                self._keep_term(key.value, value)
                found = True
            else:
                self.visit(value)
        return found

    def _find_event_name(self, target: ast.expr) -> str | None:
        """Returns NAME of `….events.NAME` or `….events["NAME"]`."""
        if not isinstance(target, (ast.Attribute, ast.Subscript)) or _last_name(target.value) != "events":
            return None
        key = target.attr if isinstance(target, ast.Attribute) else self._evaluate(target.slice)
        return key if isinstance(key, str) else None

    def _follow_change(self, target: ast.expr, value: ast.expr) -> None:
        """Follows a line that changes a term: its params, one of them, or the names of its asset."""
        path: list[str] = []
        node = target
        while self._find_event_name(node) is None:
            if isinstance(node, ast.Attribute):
                path, node = [node.attr, *path], node.value
            elif isinstance(node, ast.Subscript):
                path, node = [str(self._evaluate(node.slice)), *path], node.value
            else:
                return
        name, new = str(self._find_event_name(node)), self._evaluate(value)
        term = self.terms.get(name)
        if term is None:
            self.notes.append(f"{name}: changed here, but it is not in this file: {ast.unparse(target)}")
        elif path == ["params"] and isinstance(new, dict):
            term.params = new
        elif path == ["mode"]:
            term.mode = str(new)
        elif path[0] == "params" and len(path) == 2:
            term.params[path[1]] = new
        else:
            old = term.params.get(path[1]) if path[0] == "params" and len(path) == 3 else None
            if isinstance(old, SceneEntity):
                changed = make_entity({"name": old.name, path[2]: new})
                term.params[path[1]] = SceneEntity(changed.name, {**old.patterns, **changed.patterns})
            elif isinstance(old, dict):
                term.params[path[1]] = old | {path[2]: new}
            else:
                self.notes.append(f"{name}: a change was not followed: {ast.unparse(target)}")

    def _evaluate(self, node: ast.expr) -> Any:
        """Returns the plain value of an expression, or what stands there."""
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
            inner = self._evaluate(node.operand)
            return -inner if isinstance(inner, (int, float)) else SourceText(ast.unparse(node))
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
            return self._evaluate_operation(node)
        return self._evaluate_call(node) if isinstance(node, ast.Call) else SourceText(ast.unparse(node))

    def _evaluate_operation(self, node: ast.BinOp) -> Any:
        first, second = self._evaluate(node.left), self._evaluate(node.right)
        numbers = isinstance(first, (int, float)) and isinstance(second, (int, float))
        lists = isinstance(first, list) and isinstance(second, list) and isinstance(node.op, ast.Add)
        try:
            return _OPERATIONS[type(node.op)](first, second) if numbers or lists else SourceText(ast.unparse(node))
        except (ArithmeticError, ValueError):
            return SourceText(ast.unparse(node))

    def _evaluate_call(self, node: ast.Call) -> Any:
        name = _last_name(node.func)
        words = {word.arg: self._evaluate(word.value) for word in node.keywords if word.arg}
        arguments = [self._evaluate(item) for item in node.args]
        if name == "SceneEntityCfg":
            return make_entity(({"name": arguments[0]} if arguments else {}) | words)
        if name in ("tuple", "list") and len(arguments) == 1 and isinstance(arguments[0], list):
            return arguments[0]
        if name in ("radians", "deg2rad") and len(arguments) == 1 and isinstance(arguments[0], (int, float)):
            return math.radians(arguments[0])
        return SourceText(ast.unparse(node)) if words else SourceText(ast.unparse(node), name, tuple(arguments))


def _is_term(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _last_name(node.func) in TERM_CLASSES


def _last_name(node: ast.expr) -> str:
    return ast.unparse(node).split(".")[-1]
