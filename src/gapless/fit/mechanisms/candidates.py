"""Parameters that may cause a gap, and how far such values typically are off on real robots."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import mujoco
import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.errors import InputError
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array, Flags
from gapless.fit.data import ProjectData
from gapless.sim.auto import find_damping_servos, moving_joints, parameters_of
from gapless.sim.logged_states import find_near_pairs, peak_efforts
from gapless.sim.targets import driven_joint, is_object, is_position_servo
from gapless.sim.targets.joint_and_body import find_tip
from gapless.sim.targets.target import split_target

TURNED = ("qw", "qx", "qy", "qz", "yaw")  # quantities that no zero or scale suits
SCALED = ("position", "velocity", "effort", "force", "value", *"xyz")  # quantities whose scale may be wrong
TOUCHING_M = 0.005  # geoms that are nearer than this in a measured state touch


@dataclass(frozen=True)
class ErrorSize:
    """How far a kind of value is off where it is wrong. All sizes below are judgement, not measurement."""

    # `factor` (low and high are natural logarithms), `amount` (in its unit), or `range` (share of its range)
    by: Literal["factor", "amount", "range"]
    low: float  # an error that hardly matters
    high: float  # an error that is seldom exceeded


ERROR_SIZES = {
    **dict.fromkeys(("gain", "kp", "motorconst", "resistance"), ErrorSize("factor", 0.15, 0.9)),
    "kd": ErrorSize("factor", 0.3, 1.5),
    **dict.fromkeys(("damping", "frictionloss", "armature"), ErrorSize("range", 0.1, 0.7)),
    "backlash": ErrorSize("range", 0.15, 0.8),
    "delay": ErrorSize("amount", 0.008, 0.07),
    "scale": ErrorSize("factor", 0.03, 0.2),
    **dict.fromkeys(("mass", "inertia"), ErrorSize("factor", 0.2, 0.9)),
    "friction": ErrorSize("factor", 0.2, 1.1),
    "stiffness": ErrorSize("factor", 0.5, 2.5),
    **dict.fromkeys(("tilt/x", "tilt/y"), ErrorSize("amount", 0.01, 0.06)),  # a level is at hand more often than a zero
    "load": ErrorSize("range", 0.08, 0.45),
    **dict.fromkeys(("payload", "tip_payload"), ErrorSize("range", 0.05, 0.6)),
    "limit": ErrorSize("amount", 0.1, 0.6),  # share of the peak effort in the logs that is cut off
}
BIAS_SIZES = {"rad": ErrorSize("amount", 0.015, 0.12), "m": ErrorSize("amount", 0.004, 0.035)}
OTHER_SIZE = ErrorSize("range", 0.15, 0.5)
RESISTANCES = ("damping", "frictionloss", "armature")  # known by their factor where the model has some
RESISTANCE_SIZE = ErrorSize("factor", 0.5, 1.8)
HUMAN_SIZE = ErrorSize("range", 0.08, 0.4)  # people differ by more than machines do


def field_of(target: str) -> str:
    """Returns what a target sets, without where: `com/x` of `body/box/com/x`."""
    return split_target(target).field


def list_candidates(data: ProjectData, peaks: Mapping[str, float]) -> ParameterSpace:
    """Returns the parameters that a diagnosis considers: the owner's list, or more than `identify` fits at once."""
    project, model = data.project, data.blueprint.model
    if project.parameters != "auto":
        return data.space
    paths = list(data.whole.targets)
    for item in project.commands:
        actuator = model.actuator(item.actuator)
        fields = ("kp", "kd", "limit") if is_position_servo(model, actuator.id) else ("gain", "limit")
        paths += [f"actuator/{actuator.name}/{field}" for field in fields]
        joint = driven_joint(model, actuator.id)
        if joint is not None:
            paths += [f"joint/{model.joint(joint).name}/{field}" for field in ("load", "backlash", "armature")]
    damped = find_damping_servos(project, model)
    for joint in moving_joints(project, model):
        paths += [f"joint/{joint}/frictionloss", *([] if joint in damped else [f"joint/{joint}/damping"])]
    paths += ["actuator/*/delay"] if project.commands else []  # logs cannot tell late readings from that
    paths += _reading_paths(data) + _body_paths(model) + _contact_paths(data)
    found: list[Parameter] = []
    for path in (path for path in dict.fromkeys(paths) if not field_of(path).startswith("spread/")):
        with suppress(InputError):  # this model has no such thing
            found += [_bound_limit(p, peaks) for p in parameters_of(data.blueprint, data.tracks, [path])]
    return ParameterSpace(tuple(found))


def _bound_limit(parameter: Parameter, peaks: Mapping[str, float]) -> Parameter:
    """Returns an actuator's limit with bounds that reach below the peak effort in the logs; others as they are.

    The model's own limit stays the nominal value, though these logs never reach it: with other gains they may.
    """
    peak = peaks.get(split_target(parameter.target).name, 0.0)
    if field_of(parameter.target) != "limit" or peak <= 0.0:
        return parameter
    return replace(parameter, low=min(0.2 * peak, 0.5 * parameter.nominal), high=parameter.nominal)


def _reading_paths(data: ProjectData) -> list[str]:
    """Returns zeros and scales of readings; zeros of joints only where something refers to them, as `auto` says."""
    turned = [item for item in data.project.measurements if item.quantity in TURNED]
    others = [item for item in data.project.measurements if item not in turned]
    zeros = [item.column for item in others if (item.element, item.quantity) != ("joint", "position")]
    scaled = [item.column for item in others if item.quantity in SCALED]
    return [f"measurement/{column}/bias" for column in zeros] + [f"measurement/{column}/scale" for column in scaled]


def _body_paths(model: mujoco.MjModel) -> list[str]:
    named = [k for k in range(1, model.nbody) if model.body(k).name and model.body_mass[k] > 0 and model.body_weldid[k]]
    paths = [f"body/{model.body(k).name}/mass" for k in named]
    carriers = [k for k in named if not is_object(model, k) and k not in model.body_parentid]  # what hangs at an end
    paths += [f"body/{model.body(k).name}/tip_payload" for k in carriers if find_tip(model, k) is not None]
    return paths + [f"body/{model.body(k).name}/com/{axis}" for k in named if is_object(model, k) for axis in "xy"]


def _contact_paths(data: ProjectData) -> list[str]:
    """Returns friction of every moving geom that touches something in the logs, and the stiffness that all share."""
    model = data.blueprint.model
    touching = {int(g) for pair in find_near_pairs(data.blueprint, data.tracks, TOUCHING_M) for g in pair.ravel()}
    names = sorted({model.geom(g).name for g in touching if model.geom(g).name and model.geom_bodyid[g] != 0})
    return [f"geom/{name}/friction" for name in names] + (["geom/*/stiffness"] if names else [])


@dataclass(frozen=True)
class CandidateParameters:
    """The parameters that may cause a gap, with how far each may be off."""

    space: ParameterSpace  # the parameters
    peaks: Mapping[str, float]  # actuator -> its peak effort in the logs: a limit acts only where it is below that

    @classmethod
    def from_logs(cls, data: ProjectData) -> "CandidateParameters":
        """Returns the candidates of some logs; it sets the model to some hundred measured states."""
        peaks = peak_efforts(data.blueprint, data.tracks)
        return cls(list_candidates(data, peaks), peaks)

    def for_runs(self, num_runs: int) -> "CandidateParameters":
        """Returns the candidates with one column per run of each per-run parameter."""
        return replace(self, space=self.space.for_runs(range(num_runs)))

    @cached_property
    def scaling(self) -> Scaling:
        """Maps values to [0, 1] and back."""
        return Scaling.of(self.space)

    @cached_property
    def nominal(self) -> Array:
        """The model as written, (num_parameters,) in [0, 1]."""
        return self.scaling.unit(self.space.nominal)

    @cached_property
    def sizes(self) -> tuple[ErrorSize, ...]:
        """How far each parameter may be off."""
        return tuple(_error_size(parameter) for parameter in self.space.parameters)

    @cached_property
    def typical(self) -> Array:
        """How far each parameter is typically off, (num_parameters,) as a distance in [0, 1]."""
        values = [
            [self._wrong_value(k, (size.low + size.high) / 2, sign) for k, size in enumerate(self.sizes)]
            for sign in (1, -1)
        ]
        steps = self.scaling.unit(np.array(values).reshape(2, -1)) - self.nominal
        return np.maximum(np.abs(steps).max(axis=0), 0.01)

    @cached_property
    def is_limit(self) -> Flags:
        """Which parameters are limits: those have no slope where they are as written, (num_parameters,)."""
        return np.array([field_of(target) == "limit" for target in self.space.targets], dtype=np.bool_)

    @cached_property
    def side(self) -> Array:
        """1 or -1: the side to which each parameter can move further, (num_parameters,)."""
        return np.where(self.is_limit | (self.nominal >= 0.5), -1.0, 1.0)

    def draw(self, dimension: Dimension, rng: np.random.Generator) -> Array:
        """Draws a whole row in which one dimension is wrong: one kind of value or two, at one place or at all."""
        row, targets = self.space.nominal.copy(), self.space.targets
        mine = [k for k, p in enumerate(self.space.parameters) if p.dimension == dimension]
        kinds = sorted({field_of(targets[k]) for k in mine})
        for _ in range(1 if rng.random() < 0.7 else 2):
            kind = kinds[rng.integers(len(kinds))]
            there = [k for k in mine if field_of(targets[k]) == kind]
            places = list(dict.fromkeys(targets[k] for k in there))
            chosen = places if rng.random() < 0.35 else [places[rng.integers(len(places))]]
            sign, share = float(rng.choice([-1, 1])), rng.uniform()
            for k in (k for k in there if targets[k] in chosen):
                if self.space.parameters[k].run is not None:
                    sign, share = float(rng.choice([-1, 1])), rng.uniform()
                size = self.sizes[k].low + share * (self.sizes[k].high - self.sizes[k].low)
                row[k] = self._wrong_value(k, size * rng.uniform(0.7, 1.3), sign)
        return row

    def _wrong_value(self, k: int, size: float, sign: float) -> float:
        """Returns a parameter's value with an error of some size: to the other side where this one has no room."""
        parameter = self.space.parameters[k]
        if self.is_limit[k]:
            name = split_target(parameter.target).name
            peak = max(self.peaks.values(), default=1.0) if name == "*" else self.peaks.get(name, parameter.nominal)
            return float(np.clip((1.0 - size) * peak, parameter.low, parameter.high))
        values = [self._shift_value(k, size * side) for side in (sign, -sign)]
        inside = [value for value in values if parameter.low <= value <= parameter.high]
        return inside[0] if inside else float(np.clip(values[0], parameter.low, parameter.high))

    def _shift_value(self, k: int, shift: float) -> float:
        nominal = self.space.parameters[k].nominal
        if self.sizes[k].by == "factor":
            return nominal * float(np.exp(shift))
        if self.sizes[k].by == "amount":
            return nominal + shift
        unit = self.nominal.copy()
        unit[k] += shift
        return float(self.scaling.values(unit)[k]) if 0.0 <= unit[k] <= 1.0 else float(np.copysign(np.inf, shift))


def _error_size(parameter: Parameter) -> ErrorSize:
    field = field_of(parameter.target)
    if parameter.dimension == "human":
        return HUMAN_SIZE
    if field in RESISTANCES and parameter.nominal > 0.0:
        return RESISTANCE_SIZE
    if field == "bias":
        return BIAS_SIZES.get(parameter.unit, OTHER_SIZE)
    return ERROR_SIZES.get(field, OTHER_SIZE)
