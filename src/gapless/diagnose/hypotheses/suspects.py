"""What may be wrong in a model, and how far such values typically are off on real robots."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import mujoco
import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.data import ProjectData
from gapless.sim.auto import moving_joints, parameters_of
from gapless.sim.efforts import peak_efforts
from gapless.sim.measured_states import find_near_pairs
from gapless.sim.targets import driven_joint, is_object, is_position_servo
from gapless.sim.targets.path import split_target

TOUCHING_M = 0.005  # what is nearer than this in a measured state touches
LEFT_OUT = ("/creep", "/lag", "/length")  # each is another name for what stands in the list already


@dataclass(frozen=True)
class Severity:
    """How far a kind of value is off where it is wrong.

    Attributes:
        by: `factor` (low and high are natural logarithms), `amount` (in its unit), or `range` (share of its range).
        low: What is hardly worth a word.
        high: What is seldom exceeded.
    """

    by: Literal["factor", "amount", "range"]
    low: float
    high: float


SEVERITIES = {
    "gain": Severity("factor", 0.15, 0.9),
    "kp": Severity("factor", 0.15, 0.9),
    "kd": Severity("factor", 0.3, 1.5),
    "motorconst": Severity("factor", 0.15, 0.9),
    "resistance": Severity("factor", 0.15, 0.9),
    "damping": Severity("range", 0.1, 0.7),
    "frictionloss": Severity("range", 0.1, 0.7),
    "armature": Severity("range", 0.1, 0.7),
    "backlash": Severity("range", 0.15, 0.8),
    "delay": Severity("amount", 0.008, 0.07),
    "scale": Severity("factor", 0.03, 0.2),
    "mass": Severity("factor", 0.2, 0.9),
    "inertia": Severity("factor", 0.2, 0.9),
    "friction": Severity("factor", 0.2, 1.1),
    "stiffness": Severity("factor", 0.5, 2.5),
    "tilt/x": Severity("amount", 0.02, 0.12),
    "tilt/y": Severity("amount", 0.02, 0.12),
    "load": Severity("range", 0.08, 0.45),
    "payload": Severity("range", 0.05, 0.6),
}
BIASES = {"rad": Severity("amount", 0.015, 0.12), "m": Severity("amount", 0.004, 0.035)}
OTHER = Severity("range", 0.15, 0.5)
HUMAN = Severity("range", 0.08, 0.4)  # people differ by more than machines do
LIMIT = Severity("amount", 0.1, 0.6)  # of the peak effort in the logs, cut off
CUTS = (0.1, 0.25, 0.45)
FAR_ABOVE = 3.0  # times the peak effort: a limit there never acts


def field_of(target: str) -> str:
    """Returns what a target sets, without where: `com/x` of `body/box/com/x`."""
    return split_target(target).field


def suspects(evidence: ProjectData, peaks: Mapping[str, float]) -> ParameterSpace:
    """Returns the parameters that a diagnosis considers: the owner's list, or more than `identify` would fit at once.

    A diagnosis asks which few of them matter, so it can afford to ask about all.

    Args:
        evidence: The logs.
        peaks: Actuator -> its peak effort in them.
    """
    project, model = evidence.project, evidence.blueprint.model
    if project.parameters != "auto":
        return evidence.space
    paths = list(evidence.whole.targets)
    for item in project.commands:
        actuator = model.actuator(item.actuator)
        servo = is_position_servo(model, actuator.id)
        paths += [f"actuator/{actuator.name}/{field}" for field in (("kp", "kd") if servo else ("gain",))]
        paths.append(f"actuator/{actuator.name}/limit")
        joint = driven_joint(model, actuator.id)
        if joint is not None:
            paths += [f"joint/{model.joint(joint).name}/{field}" for field in ("load", "backlash", "armature")]
    for joint in moving_joints(project, model):
        paths += [f"joint/{joint}/damping", f"joint/{joint}/frictionloss"]
    paths += ["actuator/*/delay"] if project.commands else []
    paths.append("measurement/*/delay")
    paths += [f"measurement/{item.column}/scale" for item in project.measurements if item.quantity == "position"]
    paths += _bodies(model) + _surfaces(evidence)
    wanted = [path for path in dict.fromkeys(paths) if not _is_left_out(path)]
    return ParameterSpace(tuple(_near(p, peaks) for path in wanted for p in _parameter(evidence, path)))


def _near(parameter: Parameter, peaks: Mapping[str, float]) -> Parameter:
    """Returns a limit with bounds about the peak effort in the logs; one far above it acts like none."""
    peak = peaks.get(split_target(parameter.target).name, 0.0)
    if field_of(parameter.target) != "limit" or peak <= 0.0:
        return parameter
    most = min(parameter.nominal, FAR_ABOVE * peak)
    return replace(parameter, nominal=most, low=min(0.2 * peak, 0.5 * most), high=most)


def _is_left_out(path: str) -> bool:
    spring = path.startswith("joint/") and path.endswith("/stiffness")
    return spring or path.endswith(LEFT_OUT) or field_of(path).startswith("spread/")


def _bodies(model: mujoco.MjModel) -> list[str]:
    named = [k for k in range(1, model.nbody) if model.body(k).name and model.body_mass[k] > 0]
    paths = [f"body/{model.body(k).name}/mass" for k in named]
    return paths + [f"body/{model.body(k).name}/com/{axis}" for k in named if is_object(model, k) for axis in "xy"]


def _surfaces(evidence: ProjectData) -> list[str]:
    """Returns friction of every moving geom that touches something in the logs, and the stiffness that all share."""
    names = sorted(touching_geoms(evidence))
    return [f"geom/{name}/friction" for name in names] + (["geom/*/stiffness"] if names else [])


def touching_geoms(evidence: ProjectData) -> set[str]:
    """Returns the names of the geoms of moving bodies that touch something in measured states."""
    model = evidence.blueprint.model
    pairs = find_near_pairs(evidence.blueprint, evidence.tracks, TOUCHING_M)
    found = {int(geom) for some in pairs for geom in some.ravel()}
    return {model.geom(g).name for g in found if model.geom(g).name and model.geom_bodyid[g] != 0}


def _parameter(evidence: ProjectData, path: str) -> tuple[Parameter, ...]:
    """Returns the parameter of a path; nothing where this model has no such thing."""
    try:
        return parameters_of(evidence.blueprint, evidence.tracks, [path])
    except InputError:
        return ()


class Severities:
    """How far the parameters of a space are off, in the unit steps of the solver."""

    def __init__(self, space: ParameterSpace, peaks: Mapping[str, float]) -> None:
        """Takes actuator -> its peak effort in the logs: a limit shows only where it is below it."""
        self.space = space
        self.peaks = peaks
        self.scaling = Scaling.of(space)
        self.nominal = self.scaling.unit(space.nominal)

    @classmethod
    def of(cls, evidence: ProjectData) -> "Severities":
        """Returns how far all that is suspected in some logs may be off; it poses the model in some hundred states."""
        peaks = peak_efforts(evidence.blueprint, evidence.tracks)
        return cls(suspects(evidence, peaks), peaks)

    @cached_property
    def typical(self) -> Array:
        """The middle of each severity, (num_parameters,) in unit steps."""
        middle = np.array([[self._moved(k, size, sign) for sign in (1, -1)] for k, size in enumerate(self._middles())])
        steps = self._units(middle) - self.nominal[:, None]
        return np.maximum(np.abs(steps).max(axis=1), 0.01)

    @cached_property
    def side(self) -> Array:
        """1 or -1: the side to which each parameter can move further, (num_parameters,)."""
        bites = [field_of(target) == "limit" for target in self.space.targets]
        return np.where(bites, -1.0, np.where(self.nominal < 0.5, 1.0, -1.0))

    def saturated(self) -> list[Array]:
        """Returns rows in which one actuator is limited below its peak effort: a limit far above it has no slope."""
        rows: list[Array] = []
        for k, target in enumerate(self.space.targets):
            for size in CUTS if field_of(target) == "limit" else ():
                rows.append(self.space.nominal.copy())
                rows[-1][k] = self._moved(k, size, 1.0)
        return rows

    def draw(self, dimension: Dimension, rng: np.random.Generator) -> Array:
        """Draws a whole row in which one dimension is wrong: one kind of value or two, at one place or at all."""
        row = self.space.nominal.copy()
        mine = [k for k, p in enumerate(self.space.parameters) if p.dimension == dimension]
        kinds = sorted({field_of(self.space.targets[k]) for k in mine})
        for _ in range(1 if rng.random() < 0.7 else 2):
            kind = kinds[rng.integers(len(kinds))]
            there = [k for k in mine if field_of(self.space.targets[k]) == kind]
            places = list(dict.fromkeys(self.space.targets[k] for k in there))
            chosen = places if rng.random() < 0.35 else [places[rng.integers(len(places))]]
            sign, share = float(rng.choice([-1, 1])), rng.uniform()
            for k in (k for k in there if self.space.targets[k] in chosen):
                severity = self._severity(k)
                if self.space.parameters[k].run is not None:
                    sign, share = float(rng.choice([-1, 1])), rng.uniform()
                size = severity.low + share * (severity.high - severity.low)
                row[k] = self._moved(k, size * rng.uniform(0.7, 1.3), sign)
        return row

    def _severity(self, k: int) -> Severity:
        parameter = self.space.parameters[k]
        field = field_of(parameter.target)
        if parameter.dimension == "human":
            return HUMAN
        if field == "bias":
            return BIASES.get(parameter.unit, OTHER)
        return LIMIT if field == "limit" else SEVERITIES.get(field, OTHER)

    def _middles(self) -> list[float]:
        found = [self._severity(k) for k in range(len(self.space))]
        return [(one.low + one.high) / 2 for one in found]

    def _moved(self, k: int, size: float, sign: float) -> float:
        """Returns the value of a parameter that is off by some size: to the other side where this one has no room."""
        parameter, severity = self.space.parameters[k], self._severity(k)
        if field_of(parameter.target) == "limit":
            name = split_target(parameter.target).name
            peak = max(self.peaks.values(), default=1.0) if name == "*" else self.peaks.get(name, parameter.nominal)
            return float(np.clip((1.0 - size) * peak, parameter.low, parameter.high))
        tries = [self._value(k, severity, size, side) for side in (sign, -sign)]
        inside = [value for value in tries if parameter.low <= value <= parameter.high]
        return inside[0] if inside else float(np.clip(tries[0], parameter.low, parameter.high))

    def _value(self, k: int, severity: Severity, size: float, sign: float) -> float:
        nominal = self.space.parameters[k].nominal
        if severity.by == "factor":
            return nominal * float(np.exp(sign * size))
        if severity.by == "amount":
            return nominal + sign * size
        unit = self.nominal.copy()
        unit[k] += sign * size
        if not 0.0 <= unit[k] <= 1.0:
            return float("nan")
        return float(self.scaling.values(unit)[k])

    def _units(self, values: Array) -> Array:
        """Returns (num_parameters, n) values of each parameter in unit steps."""
        return np.stack([self.scaling.unit(column) for column in values.T], axis=1)
