"""What every exporter works from: training ranges with what they set, and notes on what a format does not carry.

A note is one line per parameter, on the screen and in the file: `TARGET: left out: WHY` or `TARGET: changed: HOW`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import mujoco

import gapless
from gapless.core.dimensions import Dimension
from gapless.core.distribution import Distribution, Range
from gapless.project.model import load_model
from gapless.sim.blueprint import CompiledProject
from gapless.sim.ranges import distribution_of
from gapless.sim.targets import driven_joint, is_object
from gapless.sim.targets.target import split_target

ROBOT = "robot"
LEFT_OUT = ": left out: "
CORRELATION = "correlation "  # how the name of a correlation begins in a note


class ModelElement(NamedTuple):
    """A joint, body, geom or actuator of a model (`kind`), and the entity of a scene that it belongs to."""

    kind: str
    id: int
    name: str
    owner: str


@dataclass(frozen=True)
class ExportedRange:
    """A range and what it sets."""

    range: Range  # how the parameter varies
    unit: str  # unit of its values
    dimension: Dimension  # the dimension of the gap it belongs to
    nominal: float  # value that leaves the model as it was written
    kind: str  # what it belongs to: `joint`, `actuator`, `body`, `geom`, `site`, `world` or `measurement`
    name: str  # name of that; `*` for one factor on all; empty for the world
    field: str  # last part of the target, such as `damping` or `com/x`

    @property
    def target(self) -> str:
        """The parameter's target."""
        return self.range.target


@dataclass(frozen=True)
class ExportJob:
    """Ranges of a project to write, and where they come from, for the reader."""

    blueprint: CompiledProject
    distribution: Distribution  # the ranges, over the space of their parameters alone
    source: str

    @cached_property
    def entries(self) -> tuple[ExportedRange, ...]:
        """The ranges with what they set."""
        pairs = zip(self.distribution.ranges, self.distribution.space.parameters, strict=True)
        return tuple(ExportedRange(r, p.unit, p.dimension, p.nominal, **vars(split_target(p.target))) for r, p in pairs)

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled model."""
        return self.blueprint.model

    @cached_property
    def model_as_filed(self) -> mujoco.MjModel:
        """The model as its file has it: geoms without a name have none, simple bodies are simple."""
        return load_model(self.blueprint.project.model_path)

    def select(self, kind: str, *fields: str) -> list[ExportedRange]:
        """Returns the ranges of some fields of a kind of element."""
        return [entry for entry in self.entries if entry.kind == kind and entry.field in fields]

    def elements(self, entry: ExportedRange) -> list[ModelElement]:
        """Returns what a range sets: what it names, or all that no range of the same field names."""
        own = {other.name for other in self.select(entry.kind, entry.field)}
        found = list_elements(self.model, entry.kind)
        return [e for e in found if e.name == entry.name or (entry.name == "*" and e.name not in own)]

    def without(self, targets: Collection[str]) -> "ExportJob":
        """Returns the job without some ranges and their correlations."""
        ranges = tuple(item for item in self.distribution.ranges if item.target not in targets)
        pairs = tuple(p for p in self.distribution.correlations if not {p.first, p.second} & set(targets))
        return replace(self, distribution=distribution_of(ranges, pairs, self.blueprint, self.source))


def list_elements(model: mujoco.MjModel, kind: str) -> list[ModelElement]:
    """Returns every element that can have parameters: joints with one axis, bodies with mass, geoms, actuators."""
    single = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    ids = {
        "joint": [j for j in range(model.njnt) if mujoco.mjtJoint(int(model.jnt_type[j])) in single],
        "body": [b for b in range(1, model.nbody) if model.body_mass[b] > 0],
        "geom": range(model.ngeom),
        "actuator": range(model.nu),
    }
    return [get_element(model, kind, number) for number in ids[kind]]


def get_element(model: mujoco.MjModel, kind: str, number: int) -> ModelElement:
    """Returns one element of a model.

    Its owner is an object with a free joint that nothing drives, by its name, or else `robot`.
    """
    bodies = {"joint": model.jnt_bodyid, "geom": model.geom_bodyid, "body": range(model.nbody)}
    root = int(model.body_rootid[bodies[kind][number]]) if kind in bodies else 0
    joints = [driven_joint(model, actuator) for actuator in range(model.nu)]
    driven = {int(model.body_rootid[model.jnt_bodyid[joint]]) for joint in joints if joint is not None}
    is_own = root and is_object(model, root) and root not in driven
    owner = model.body(root).name or "object" if is_own else ROBOT
    return ModelElement(kind, number, getattr(model, kind)(number).name, owner)


def note_left_out(target: str, why: str) -> str:
    """Returns the note on a parameter that a format does not carry."""
    return f"{target}{LEFT_OUT}{why}"


def note_changed(target: str, how: str) -> str:
    """Returns the note on a parameter that a format carries, but not as it is."""
    return f"{target}: changed: {how}"


def order_notes(notes: Sequence[str]) -> tuple[str, ...]:
    """Returns notes in the order in which people need them: ranges left out, ranges changed, correlations."""
    return tuple(sorted(notes, key=lambda note: (note.startswith(CORRELATION), LEFT_OUT not in note)))


def header_comment(job: ExportJob, notes: Sequence[str]) -> str:
    """Returns the head of a Python file: where the ranges come from, and what is not carried."""
    name = job.blueprint.project.name
    lines = [f"# Training ranges of {name}, by gapless {gapless.__version__}.", f"# From: {job.source or 'ranges'}"]
    lines += ["# Not carried, or not as it is:" if notes else "# Everything is carried as it is."]
    return "".join(f"{line}\n" for line in [*lines, *(f"#   {note}" for note in order_notes(notes))])
