"""Training ranges together with what they set: what every exporter works from."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import mujoco
import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.distribution import Correlation, Distribution, Range
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.project.model import load_model
from gapless.project.records import Project
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint, is_object, is_position_servo, resolve
from gapless.sim.targets.path import split_target

__all__ = ["Entry", "Job", "driven_joint", "is_position_servo", "job_of", "nominal_of", "owner_of"]

ROBOT = "robot"


@dataclass(frozen=True)
class Entry:
    """A range and what it sets.

    Attributes:
        range: How the parameter varies.
        unit: Unit of its values.
        dimension: The dimension of the gap it belongs to.
        nominal: Value that leaves the model as it was written.
        kind: What it belongs to: `joint`, `actuator`, `body`, `geom`, `site`, `world` or `measurement`.
        name: Name of that; `*` for one factor on all; empty for the world.
        field: Last part of the target, such as `damping` or `com/x`.
    """

    range: Range
    unit: str
    dimension: Dimension
    nominal: float
    kind: str
    name: str
    field: str

    @property
    def target(self) -> str:
        """The parameter's target."""
        return self.range.target


@dataclass(frozen=True)
class Job:
    """What is to be written out.

    Attributes:
        blueprint: The compiled project.
        entries: The ranges, in order.
        correlations: Which of them go together.
        source: Where the ranges come from, for the reader.
    """

    blueprint: CompiledProject
    entries: tuple[Entry, ...]
    correlations: tuple[Correlation, ...]
    source: str

    @property
    def model(self) -> mujoco.MjModel:
        """The compiled model."""
        return self.blueprint.model

    @cached_property
    def as_filed(self) -> mujoco.MjModel:
        """The model as its file has it: geoms without a name have none, simple bodies are simple."""
        return load_model(self.blueprint.project.model_path)

    def of(self, kind: str, *fields: str) -> list[Entry]:
        """Returns the ranges of some fields of a kind of element."""
        return [entry for entry in self.entries if entry.kind == kind and entry.field in fields]

    def covers(self, entry: Entry, name: str) -> bool:
        """Tells whether a range sets an element: it names it, or is for all and no range of its own names it."""
        own = {other.name for other in self.of(entry.kind, entry.field)}
        return name == entry.name or (entry.name == "*" and name not in own)

    def without(self, targets: Collection[str]) -> "Job":
        """Returns the job without some ranges and their correlations."""
        entries = tuple(entry for entry in self.entries if entry.target not in targets)
        pairs = tuple(p for p in self.correlations if p.first not in targets and p.second not in targets)
        return replace(self, entries=entries, correlations=pairs)

    @property
    def distribution(self) -> Distribution:
        """The ranges over the space of their parameters, whose bounds hold them and the nominal values."""
        found: list[Parameter] = []
        for entry in self.entries:
            low, high = min(entry.range.low, entry.nominal), max(entry.range.high, entry.nominal)
            room = 1e-6 + 1e-6 * abs(high)
            found.append(Parameter(entry.target, entry.dimension, entry.unit, entry.nominal, low - room, high + room))
        return Distribution(ParameterSpace(tuple(found)), tuple(e.range for e in self.entries), self.correlations)


def job_of(
    blueprint: CompiledProject, ranges: tuple[Range, ...], correlations: tuple[Correlation, ...], source: str
) -> Job:
    """Returns ranges with what they set in a project.

    Raises:
        InputError: If a range names nothing in this model, or holds a number that is not finite.
    """
    entries: list[Entry] = []
    for item in ranges:
        target = resolve(item.target, blueprint.project, blueprint.model)
        if not np.isfinite([item.low, item.high, item.mean, item.std]).all():
            raise InputError(f"{item.target}: a range holds a number that is not finite: correct it")
        parts = split_target(target.path)
        entries.append(Entry(item, target.unit, target.dimension, target.nominal, parts.kind, parts.name, parts.field))
    return Job(blueprint, tuple(entries), correlations, source)


def owner_of(model: mujoco.MjModel, body: int) -> str:
    """Returns what a body belongs to: a thing of its own, carried by a free joint and not driven, or `robot`."""
    root = int(model.body_rootid[body])
    joints = [driven_joint(model, actuator) for actuator in range(model.nu)]
    driven = {int(model.body_rootid[model.jnt_bodyid[joint]]) for joint in joints if joint is not None}
    own = root and is_object(model, root) and root not in driven
    return model.body(root).name or "object" if own else ROBOT


def nominal_of(path: str, project: Project, model: mujoco.MjModel) -> float:
    """Returns the value of a target in the model as written.

    Raises:
        InputError: If the path names nothing.
    """
    return resolve(path, project, model).nominal
