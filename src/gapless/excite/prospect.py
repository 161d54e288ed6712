"""What is known before anything is recorded: the project, its logs and its last fit, where there are any."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from gapless.data.stored_results import RESULT, artefact_ids, newest_result
from gapless.fit.data import read_project_data
from gapless.fit.solution import AT_BOUND
from gapless.project.load import load_project
from gapless.project.log.columns import SUFFIXES
from gapless.project.records import Project
from gapless.signals.track import Track
from gapless.sim.auto import parameter_space, parameters_of
from gapless.sim.blueprint import EMPTY_SPACE, CompiledProject, compile_project
from gapless.sim.measurements import StateReader
from gapless.sim.ranges import read_result
from gapless.sim.simulation import Simulation
from gapless.sim.targets import driven_joint, is_position_servo, resolve

A_LITTLE = 0.5  # of the way from nothing to the most considered, in the units of the solver: some 9 % of the most
USUAL_NOISE = {"rad": 1e-3, "m": 5e-4, "rad/s": 2e-2, "m/s": 1e-2, "N·m": 0.02, "N": 0.1}  # where nobody said


@dataclass(frozen=True)
class Prospect:
    """A project, with what its logs and its last fit say, where there are any.

    Attributes:
        project: The project.
        catalogue: Its catalogue.
        blueprint: Its compiled model.
        tracks: Its logs at the control rate; may be empty.
        ids: Ids of the logs and of the fit.
        fitted: Target -> value of the fit; empty without one.
        told: Targets that the fit determined.
        wanted: Targets that are to be told.
    """

    project: Project
    catalogue: Catalogue
    blueprint: CompiledProject
    tracks: tuple[Track, ...]
    ids: tuple[str, ...]
    fitted: Mapping[str, float]
    told: frozenset[str]
    wanted: tuple[str, ...]

    def space(self, tracks: Sequence[Track]) -> ParameterSpace:
        """Returns what `identify` would fit to some episodes: what it always fits, what the fit has, the wanted."""
        always = always_fitted(self.blueprint, tracks)
        known = {p.target for p in always.parameters}
        more = [target for target in dict.fromkeys((*self.fitted, *self.wanted)) if target not in known]
        return ParameterSpace((*always.parameters, *parameters_of(self.blueprint, tracks, more)))

    def row(self, space: ParameterSpace) -> Array:
        """Returns the values believed: those of the fit, else those of the model, within bounds.

        What the model has none of, and no fit has found, gets `A_LITTLE`: a friction that is not there shows nothing,
        not even how well it could be told.
        """
        values = [self.fitted.get(p.target, p.nominal) for p in space.parameters]
        scaling = Scaling.of(space)
        unit = np.clip(scaling.unit(np.array(values)), 0.0, 1.0)
        none = (space.low == 0.0) & (unit < AT_BOUND) & ~np.isin(space.targets, list(self.told))
        return scaling.values(np.where(none, A_LITTLE, unit))

    def rest(self) -> tuple[Array, Array]:
        """Returns readings (num_measurements,) and commands (num_commands,) at rest, in model units.

        Readings are those at the start of the first log; without logs, those of the model's first keyframe, or else
        of the model as written. Commands hold the robot there: servos are sent what the log or the keyframe has, or
        where they are; others the force that gravity asks for.
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
        qpos = self.states(readings[None])[0]
        if model.nkey and not self.tracks:
            return readings, model.key_ctrl[0, actuators].copy()
        holding = _holding(model, qpos)[actuators]
        servo = np.array([is_position_servo(model, a) for a in actuators])
        sent = self.tracks[0].commands[0] if self.tracks else holding
        return readings, np.where(servo, sent, holding)

    def states(self, readings: Array) -> Array:
        """Returns the positions that belong to readings (num_worlds, num_measurements), (num_worlds, nq)."""
        reader = StateReader.of(self.project, self.blueprint.model)
        return reader.state(readings, np.zeros_like(readings))[0]

    def noise(self) -> Array:
        """Returns the standard deviation of each column's readings: as stated, as in the logs, or as usual."""
        seen = np.sqrt(np.mean([track.noise**2 for track in self.tracks], axis=0)) if self.tracks else None
        found = [
            item.noise if item.noise else USUAL_NOISE.get(item.unit, 1e-3) if seen is None else seen[k]
            for k, item in enumerate(self.project.measurements)
        ]
        return np.array(found, dtype=np.float64)


def look_ahead(directory: str | Path, fit: str | Path | None, wanted: Sequence[str]) -> Prospect:
    """Reads a project, its logs and its newest fit, where there are any.

    Args:
        directory: The project folder.
        fit: JSON that `identify` wrote; None for the newest in the catalogue, if any.
        wanted: Targets that are to be told; none for what the fit could not tell, or else what is always fitted.

    Raises:
        InputError: If something that is there cannot be used, or nothing can be commanded or told.
    """
    project = load_project(directory)
    if not project.commands:
        raise InputError(f"this project commands nothing, so no motion can be chosen: map commands: {directory}")
    if not project.measurements:
        raise InputError(f"this project measures nothing, so no motion tells anything: map measurements: {directory}")
    tracks, ids, catalogue, blueprint = _read(project)
    path = Path(fit) if fit is not None else _newest_fit(catalogue)
    entries = () if path is None else read_result(path, IdentifyResult).parameters
    for target in (*wanted, *(entry.target for entry in entries)):
        resolve(target, project, blueprint.model)
    fitted = {entry.target: entry.value for entry in entries}
    told = frozenset(entry.target for entry in entries if entry.identifiable)
    chosen = tuple(dict.fromkeys(wanted)) or tuple(e.target for e in entries if not e.identifiable)
    chosen = chosen or tuple(fitted) or always_fitted(blueprint, tracks).targets
    if not chosen:
        raise InputError(f"no parameter to tell: list some under `parameters` in gapless.yaml: {directory}")
    return Prospect(project, catalogue, blueprint, tracks, (*ids, *artefact_ids(path)), fitted, told, chosen)


def always_fitted(blueprint: CompiledProject, tracks: Sequence[Track]) -> ParameterSpace:
    """Returns what `identify` fits in any case: the owner's list, or `auto` without what it only tries."""
    space = parameter_space(blueprint, tracks)
    if blueprint.project.parameters != "auto":
        return space
    return ParameterSpace(tuple(p for p in space.parameters if p.dimension != "environment"))


def _read(project: Project) -> tuple[tuple[Track, ...], tuple[str, ...], Catalogue, CompiledProject]:
    folder = project.logs_path
    if folder.is_dir() and any(path.suffix.lower() in SUFFIXES for path in folder.iterdir()):
        evidence = read_project_data(project.directory)
        return evidence.tracks, evidence.ids, evidence.catalogue, evidence.blueprint
    return (), (), Catalogue.open(project.directory), compile_project(project)


def _newest_fit(catalogue: Catalogue) -> Path | None:
    identity = newest_result(catalogue, "identify")
    return None if identity is None else catalogue.artefact_path(identity, RESULT)


def _holding(model: mujoco.MjModel, qpos: Array) -> Array:
    """Returns the commands that hold a pose, (nu,): where servos are, or the force against gravity and springs."""
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
