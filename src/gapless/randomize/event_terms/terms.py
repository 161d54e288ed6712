"""What an event term says, whatever file it is in, and the ranges of a model that it means."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import mujoco

from gapless.core.distribution import Level, Part, Range
from gapless.core.errors import InputError
from gapless.core.target_path import smallest_value
from gapless.project.records import Project
from gapless.randomize.export.job import list_elements
from gapless.sim.targets import resolve

MAX_STDS = 4.0  # at which a normal distribution without ends is cut
MIN_MASS_KG = 1e-6  # of a normal distribution without ends: a body without mass does not move
MAX_STEP_INTERVALS = 1.5  # a term that is called at least this often, in control steps, is drawn per step
Operation = Literal["abs", "scale", "add"]


@dataclass(frozen=True)
class SourceText:
    """Something in a configuration that is no plain value, as it stands there."""

    text: str
    call: str = ""  # of a call: the last part of the function's name
    arguments: tuple[Any, ...] = ()  # of a call

    def __repr__(self) -> str:
        """Returns what stands there, for messages."""
        return self.text


@dataclass(frozen=True)
class TermDraw:
    """What a term draws."""

    ends: tuple[float, float]  # two numbers: ends of a range, or mean and standard deviation of `gaussian`
    operation: Operation = "abs"  # `abs` sets them, `scale` multiplies the model's value, `add` adds to it
    distribution: Any = "uniform"  # its name, or a call that makes one


@dataclass(frozen=True)
class EventTerm:
    """An event term as it stands in a file, what it is read for, and what was read of all terms so far.

    Methods that read a param raise InputError where it cannot be read.
    """

    name: str
    arguments: Mapping[str, Any]  # of its configuration: `func`, `mode`, `params`, ...
    project: Project
    model: mujoco.MjModel  # the project's, compiled
    source: str  # name of the file, for the reader
    ranges: dict[str, Range]  # target -> its range, of all terms
    notes: list[str]  # what could not be read, or not as it is there: a line each, of all terms

    def note(self, text: str) -> None:
        """Adds a note on this term."""
        self.notes.append(f"{self.name} ({self.func}): {text}")

    @property
    def func(self) -> str:
        """The last part of the function's name."""
        func = str(self.arguments.get("func"))
        printed = re.match(r"<(?:function|class) '?([\w.]+)", func)  # as Python prints it
        return (printed[1] if printed else func.replace(":", ".")).split(".")[-1]

    @property
    def params(self) -> dict[str, Any]:
        """The arguments of the function."""
        params = self.arguments.get("params")
        return params if isinstance(params, dict) else {}

    @property
    def distribution(self) -> Any:
        """The name of its distribution, or the call that makes it."""
        return short_name(self.params.get("distribution", "uniform"))

    def read_operation(self, default: str) -> Operation:
        """Returns its operation."""
        name = short_name(self.params.get("operation", default))
        if name not in ("abs", "scale", "add"):
            raise InputError(f"no operation {name!r}; write abs, scale or add")
        return name

    def read_draw(self, key: str, operation: str) -> TermDraw | None:
        """Returns what it draws for one of its params; None where it leaves that alone."""
        ends = read_pair(self.params.get(key), key)
        return None if ends is None else TermDraw(ends, self.read_operation(operation), self.distribution)

    def read_level(self, step_s: float) -> tuple[Level, str | None]:
        """Returns how often it draws, and a note where there is no such level; `step_s` is a control step."""
        mode, interval_s = self.arguments.get("mode"), self.arguments.get("interval_range_s")
        if mode in ("startup", "prestartup", "usd"):
            return "robot", None
        longest_s = interval_s[1] if isinstance(interval_s, (list, tuple)) and len(interval_s) == 2 else math.inf
        if mode == "step" or (mode == "interval" and longest_s <= MAX_STEP_INTERVALS * step_s):
            return "step", None
        if mode == "interval":
            return "episode", "drawn anew every so often there, per episode here"
        return "episode", None if mode == "reset" else f"mode {mode!r} is read as per episode"

    def select(self, kind: str) -> tuple[str, ...]:
        """Returns the names of the elements that it is about, in the model's order.

        All of the entity where it names none of this kind. An object with a free joint that nothing drives is an
        entity of its own, everything else is `robot`. An entity of another name is looked for in the whole model, if
        it gives some names and not just all.
        """
        entity = self.params.get("asset_cfg", {})
        if not isinstance(entity, dict):
            raise InputError(f"asset_cfg was not read: {entity}: write SceneEntityCfg(...)")
        patterns, owner = entity.get(f"{kind}_names"), entity.get("name", "robot")
        patterns = [patterns] if isinstance(patterns, str) else patterns
        if patterns is not None and not (isinstance(patterns, list) and all(isinstance(p, str) for p in patterns)):
            raise InputError(f"its names were not read: {patterns}: write them as text")
        owners = {element.owner for element in list_elements(self.model, "body") if element.name}
        elements = [element for element in list_elements(self.model, kind) if element.name]
        names = [e.name for e in elements if e.owner == owner or owner not in owners]
        is_all = patterns is None or any(all(_matches(p, name) for name in names) for p in patterns)
        if owner not in owners and is_all:
            raise InputError(f"the model has no {owner!r}; choose from: {', '.join(sorted(owners))}")
        for pattern in patterns or ():
            if not any(_matches(pattern, name) for name in names):
                self.note(f"no {kind} is called {pattern!r}")
        return tuple(name for name in names if patterns is None or any(_matches(p, name) for p in patterns))

    def add(self, path: str, draw: TermDraw | None, factor: float = 1.0) -> None:
        """Keeps the range of one parameter; `factor` is the target's unit per unit of the term. None adds nothing."""
        if draw is None:
            return
        per, text = self.read_level(1 / self.project.rate_hz)
        try:
            nominal, reason = resolve(path, self.project, self.model).nominal, f"{self.name} of {self.source}"
            made = make_range(path, nominal, draw, factor, per, reason)
        except InputError as error:
            self.note(f"left out: {error}")
            return
        if text:
            self.note(f"{path}: {text}")
        if path in self.ranges:
            self.note(f"{path} has a range already: this one counts")
        self.ranges[path] = made

    def add_mass(self, body: str, draw: TermDraw | None, with_inertia: bool) -> None:
        """Keeps the range of a mass: a payload where something is added and the inertia stays as it is."""
        is_payload = not with_inertia and draw is not None and draw.operation == "add"
        if not with_inertia and not is_payload:
            self.note(f"body/{body}/mass: its inertia stays as it is there; here it goes along")
        self.add(f"body/{body}/{'payload' if is_payload else 'mass'}", draw)


def read_pair(value: Any, name: str) -> tuple[float, float] | None:
    """Returns two numbers, or None for None; InputError for anything else."""
    if value is None:
        return None
    numbers = [x for x in value if isinstance(x, (int, float))] if isinstance(value, (list, tuple)) else []
    if len(numbers) != 2 or len(value) != 2 or not all(map(math.isfinite, numbers)):
        raise InputError(f"{name} is no pair of numbers but {value}: write (low, high)")
    return float(numbers[0]), float(numbers[1])


def short_name(value: Any) -> Any:
    """Returns the last part of a dotted name in the source; other values as they are."""
    return value.text.split(".")[-1] if isinstance(value, SourceText) and not value.call else value


def make_range(path: str, nominal: float, draw: TermDraw, factor: float, per: Level, reason: str) -> Range:
    """Returns the range of a parameter that a term draws; InputError says why there is none.

    `nominal` is the model's value in the target's unit, `factor` that unit per unit of the term.
    """
    slope = nominal if draw.operation == "scale" else factor
    shift = nominal if draw.operation == "add" else 0.0
    if draw.operation == "scale" and nominal == 0:
        raise InputError(f"{path}: scales what the model does not have: give the model a value")
    given = draw.distribution if isinstance(draw.distribution, SourceText) else SourceText(str(draw.distribution))
    name, arguments = given.call or given.text, given.arguments
    first, second = draw.ends
    if name == "gaussian":  # is cut far out, and where the parameter has no meaning
        mean, std = slope * first + shift, abs(slope) * second
        smallest = MIN_MASS_KG if path.endswith("/mass") else smallest_value(path)
        low, high = max(mean - MAX_STDS * std, smallest), mean + MAX_STDS * std
        if not low <= mean <= high:
            raise InputError(f"{path}: its centre {mean:g} is outside what it can be: correct it")
        return Range(path, "normal", low, high, mean, std, reason, per)
    if first > second:
        raise InputError(f"{path}: {first:g} .. {second:g} goes backwards: write the smaller number first")
    low, high = sorted((slope * first + shift, slope * second + shift))
    kind, mean, std, parts = None, (low + high) / 2, 0.0, ()
    if name == "uniform":
        kind = "fixed" if low == high else "uniform"
    elif name == "log_uniform" and not shift:
        kind = "log-uniform"
    elif name == "normal" and len(arguments) == 2:
        kind, mean, std = "normal", slope * arguments[0] + shift, abs(slope) * arguments[1]
    elif name == "log_normal" and len(arguments) == 2 and not shift:
        kind, mean, std = "log-normal", slope * arguments[0], arguments[1]
    elif name == "beta" and len(arguments) == 2:
        a, b = arguments
        kind, mean = "beta", low + (high - low) * a / (a + b)
        std = (high - low) * math.sqrt(a * b / (a + b + 1)) / (a + b)
    elif name == "mixture" and arguments:
        kind = "mixture"
        parts = tuple(Part(weight, slope * mean + shift, abs(slope) * std) for weight, mean, std in arguments)
    if kind is None:
        raise InputError(f"{path}: a {name} that is {draw.operation} is not known here: write the range by hand")
    return Range(path, kind, low, high, mean, std, reason, per, parts)


def _matches(pattern: str, name: str) -> bool:
    try:
        return any(re.fullmatch(pattern, part) for part in (name, name.split("/")[-1]))
    except re.error:
        return pattern == name
