"""What is known before a motion is recorded: the project, its logs and its last fit, where there are any."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import mujoco
import numpy as np

from gapless.core.errors import InputError
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Start
from gapless.core.results import IdentifyResult
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.data.catalogue import Catalogue
from gapless.data.splits import require_untested
from gapless.data.stored_results import artefact_ids, newest_result, result_path
from gapless.fit.data import read_project_data
from gapless.fit.solution import AT_BOUND
from gapless.project.load import load_project
from gapless.project.log.read import log_paths
from gapless.project.records import Project
from gapless.signals.track import Track
from gapless.sim.auto import parameter_space, parameters_of
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject
from gapless.sim.measurements import StateReader
from gapless.sim.ranges import read_result
from gapless.sim.simulation import Simulation
from gapless.sim.targets import driven_joint, is_position_servo, resolve

ASSUMED_SHARE = 0.5  # of the way from zero to the upper bound, in units of the solver: some 9 % of the upper bound
DEFAULT_NOISE = {"rad": 1e-3, "m": 5e-4, "rad/s": 2e-2, "m/s": 1e-2, "N·m": 0.02, "N": 0.1}  # where nothing states it


@dataclass(frozen=True)
class PriorKnowledge:
    """A project, with what its logs and its last fit say, where there are any."""

    project: Project  # the project
    catalogue: Catalogue  # its catalogue
    blueprint: CompiledProject  # its compiled model
    tracks: tuple[Track, ...]  # its logs at the control rate; may be empty
    ids: tuple[str, ...]  # ids of the logs and of the fit
    fitted: Mapping[str, float]  # target -> value of the fit; empty without one
    identified: frozenset[str]  # targets that the fit identified
    wanted: tuple[str, ...]  # targets that are to be identified

    def space(self, tracks: Sequence[Track]) -> ParameterSpace:
        """Returns what `identify` would fit to some episodes: what it always fits, what the fit has, the wanted."""
        always = always_fitted(self.blueprint, tracks)
        known = {p.target for p in always.parameters}
        more = [target for target in dict.fromkeys((*self.fitted, *self.wanted)) if target not in known]
        return ParameterSpace((*always.parameters, *parameters_of(self.blueprint, tracks, more)))

    def fitted_row(self, space: ParameterSpace) -> Array:
        """Returns the values of the fit, else those of the model, within bounds."""
        values = np.array([self.fitted.get(p.target, p.nominal) for p in space.parameters])
        return np.clip(values, space.low, space.high)

    def row(self, space: ParameterSpace) -> Array:
        """Returns the values assumed: those of the fit, else those of the model, within bounds.

        What the model has none of, and no fit has found, gets `ASSUMED_SHARE`: a friction of zero shows nothing,
        not even how well it could be identified.
        """
        scaling = Scaling.of(space)
        unit = np.clip(scaling.unit(self.fitted_row(space)), 0.0, 1.0)
        absent = (space.low == 0.0) & (unit < AT_BOUND) & ~np.isin(space.targets, list(self.identified))
        return scaling.values(np.where(absent, ASSUMED_SHARE, unit))

    @cached_property
    def rest(self) -> tuple[Array, Array]:
        """Readings (num_measurements,) and commands (num_commands,) at rest, in model units.

        Readings are those at the start of the first log; without logs, those of the model's first keyframe, or else
        of the model as written. Commands hold the robot there: servos are sent what the log or the keyframe has, or
        their position; others the force that gravity asks for.
        """
        model, actuators = self.blueprint.model, list(self.blueprint.actuator_ids)
        world = Simulation(self.blueprint, 1, EMPTY_SPACE, 1)
        if self.tracks:
            readings = self.tracks[0].smooth[0].copy()
        elif model.nkey:
            world.batch.reset(keyframe=0)
            readings = self.blueprint.reader.read(world.batch)[0].copy()
        else:
            readings = world.reset(Start({}, np.zeros((1, 0))), np.random.default_rng(0))[0]
        if model.nkey and not self.tracks:
            return readings, model.key_ctrl[0, actuators].copy()
        holding = _holding_commands(model, self.positions(readings[None])[0])[actuators]
        servo = np.array([is_position_servo(model, a) for a in actuators])
        sent = self.tracks[0].commands[0] if self.tracks else holding
        return readings, np.where(servo, sent, holding)

    def positions(self, readings: Array) -> Array:
        """Returns the positions that belong to readings (num_worlds, num_measurements), (num_worlds, nq)."""
        reader = StateReader.of(self.project, self.blueprint.model)
        return reader.state(readings, np.zeros_like(readings))[0]

    def noise(self) -> Array:
        """Returns the standard deviation of each column's readings: as stated, as in the logs, or by default."""
        seen = np.sqrt(np.mean([track.noise**2 for track in self.tracks], axis=0)) if self.tracks else None
        found = [
            item.noise if item.noise else DEFAULT_NOISE.get(item.unit, 1e-3) if seen is None else seen[k]
            for k, item in enumerate(self.project.measurements)
        ]
        return np.array(found, dtype=np.float64)


def read_knowledge(directory: str | Path, fit: str | Path | None, wanted: Sequence[str]) -> PriorKnowledge:
    """Reads a project, its logs and a fit (None: the newest), where there are any.

    `wanted` are targets to identify; none for what the fit did not identify, or else what is always fitted.
    """
    project = load_project(directory)
    if not project.commands:
        raise InputError(f"this project commands nothing, so no motion can be chosen: map commands: {directory}")
    has_logs = project.logs_path.is_dir() and log_paths(project, may_be_none=True)
    data = read_project_data(project, logs=None if has_logs else ())
    newest = newest_result(data.catalogue, "identify")
    path = Path(fit) if fit is not None else result_path(data.catalogue, newest) if newest else None
    require_untested(data.catalogue, artefact_ids(path), "this fit")
    entries = () if path is None else read_result(path, IdentifyResult).parameters
    fitted = {entry.target: entry.value for entry in entries}
    identified = frozenset(entry.target for entry in entries if entry.identifiable)
    for target in (*wanted, *fitted):
        resolve(target, project, data.blueprint.model)
    chosen = tuple(dict.fromkeys(wanted)) or tuple(target for target in fitted if target not in identified)
    chosen = chosen or tuple(fitted) or always_fitted(data.blueprint, data.tracks).targets
    if not chosen:
        raise InputError(f"no parameter to identify: list some under `parameters` in gapless.yaml: {directory}")
    data.warn_left_out()
    ids = (*data.ids, *artefact_ids(path))
    return PriorKnowledge(project, data.catalogue, data.blueprint, data.tracks, ids, fitted, identified, chosen)


def always_fitted(blueprint: CompiledProject, tracks: Sequence[Track]) -> ParameterSpace:
    """Returns what `identify` fits in any case: the owner's list, or `auto` without what it only tries."""
    space = parameter_space(blueprint, tracks)
    if blueprint.project.parameters != "auto":
        return space
    return ParameterSpace(tuple(p for p in space.parameters if p.dimension != "environment"))


def _holding_commands(model: mujoco.MjModel, qpos: Array) -> Array:
    """Returns the commands that hold a pose, (nu,): positions of servos, or the force against gravity and springs."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_forward(model, data)
    commands = np.zeros(model.nu)
    for actuator in range(model.nu):
        joint = driven_joint(model, actuator)
        if joint is None:
            continue
        gear, gain = float(model.actuator_gear[actuator, 0]), float(model.actuator_gainprm[actuator, 0])
        dof = model.jnt_dofadr[joint]
        if is_position_servo(model, actuator):
            commands[actuator] = gear * qpos[model.jnt_qposadr[joint]]
        elif gear * gain and not np.any(model.actuator_biasprm[actuator]):
            commands[actuator] = (data.qfrc_bias[dof] - data.qfrc_passive[dof]) / (gear * gain)
    return commands
