"""How hard and how fast the joints of a model move in its logs."""

from collections.abc import Sequence

import mujoco
import numpy as np

from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.measured_states import measured_states
from gapless.sim.restart import StateReader

MOST_ROWS = 200  # of all logs together: enough for a scale


def joint_efforts(project: Project, model: mujoco.MjModel, tracks: Sequence[Track]) -> dict[int, tuple[float, float]]:
    """Returns joint -> effort [N or N·m] and speed [m/s or rad/s] of each measured hinge and slide joint.

    The effort is what moving the joint's inertia takes, or what holding it against gravity and the other joints
    takes, whichever is more, root mean square over the logs: a scale for forces that nothing measures.
    """
    reader = StateReader.of(project, model)
    found = {
        int(model.dof_jntid[dof]): (column, dof) for column, _, dof, quantity in reader.joints if quantity == "position"
    }
    rates = {
        int(model.dof_jntid[dof]): (column, dof) for column, _, dof, quantity in reader.joints if quantity == "velocity"
    }
    if not tracks or not (found or rates):
        return {}
    value, rate, change = _samples(project, tracks)
    inertia, holding = _forces(model, *reader.state(value, rate))
    efforts: dict[int, tuple[float, float]] = {}
    for joint, (column, dof) in {**rates, **found}.items():
        acceleration = change[:, column] if joint in found else rate[:, column]
        speed = rate[:, column] if joint in found else value[:, column]
        moving = _rms(inertia[:, dof] * acceleration)
        efforts[joint] = (max(moving, _rms(holding[:, dof])), _rms(speed))
    return efforts


def peak_efforts(blueprint: CompiledProject, tracks: Sequence[Track]) -> dict[str, float]:
    """Returns actuator -> the force that the model's own would exert at the measured states, nearly at its largest."""
    model, ids = blueprint.model, list(blueprint.actuator_ids)
    data, forces = mujoco.MjData(model), list[Array]()
    for qpos, qvel, command in zip(*measured_states(blueprint, tracks), strict=True):
        data.qpos, data.qvel, data.ctrl[ids] = qpos, qvel, command
        mujoco.mj_forward(model, data)
        forces.append(np.abs(data.actuator_force[ids]))
    if not forces or not ids:
        return {}
    peaks = np.quantile(np.stack(forces), 0.995, axis=0)
    return {item.actuator: float(peak) for item, peak in zip(blueprint.project.commands, peaks, strict=True)}


def _samples(project: Project, tracks: Sequence[Track]) -> tuple[Array, Array, Array]:
    """Returns smoothed readings, their slopes, and the slopes' slopes, at some rows of all logs."""
    every = max(1, sum(len(track.smooth) for track in tracks) // MOST_ROWS)
    parts = [_some_rows(track, every, project.rate_hz) for track in tracks if len(track.slope) > 2]
    if not parts:
        nothing = np.zeros((0, len(project.measurements)))
        return nothing, nothing, nothing
    value, rate, change = (np.concatenate(part) for part in zip(*parts, strict=True))
    return value, rate, change


def _some_rows(track: Track, every: int, rate_hz: float) -> tuple[Array, Array, Array]:
    rows = np.arange(0, len(track.slope), every)
    after, before = np.minimum(rows + 1, len(track.slope) - 1), np.maximum(rows - 1, 0)
    change = (track.slope[after] - track.slope[before]) / (after - before)[:, None] * rate_hz
    return track.smooth[rows], track.slope[rows], change


def _forces(model: mujoco.MjModel, qpos: Array, qvel: Array) -> tuple[Array, Array]:
    """Returns inertia about each degree of freedom, and the force of gravity and motion on it, per row."""
    data, full = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    inertia, holding = np.zeros((len(qpos), model.nv)), np.zeros((len(qpos), model.nv))
    for k in range(len(qpos)):
        data.qpos[:], data.qvel[:] = qpos[k], qvel[k]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_fullM(model, data, full)
        inertia[k], holding[k] = np.diag(full), data.qfrc_bias
    return inertia, holding


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
