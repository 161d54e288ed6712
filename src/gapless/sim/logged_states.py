"""Engine states that logs show: the geoms that are near each other in them, and how hard and fast joints move."""

import copy
from collections.abc import Iterator, Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.measurements import StateReader

NUM_STATES = 300  # of all logs together: about as many, at most twice
MAX_ROWS_OF_EFFORT = 200  # of all logs together: enough for a scale
PEAK_QUANTILE = 0.995


def _sample_states(blueprint: CompiledProject, tracks: Sequence[Track]) -> tuple[Array, Array, Array]:
    """Returns positions, velocities and the commands in force in some rows of the logs that are wholly known."""
    readings, slopes, commands = (
        np.concatenate([getattr(track, name) for track in tracks]) for name in ("smooth", "slope", "commands")
    )
    some = np.flatnonzero(np.isfinite(readings).all(axis=1))
    some = some[:: max(1, len(some) // NUM_STATES)]
    qpos, qvel = StateReader.of(blueprint.project, blueprint.model).state(readings[some], slopes[some])
    return qpos, qvel, commands[some]


def find_near_pairs(blueprint: CompiledProject, tracks: Sequence[Track], near_m: float) -> Iterator[NDArray[np.int32]]:
    """Yields the pairs of geoms that can collide and touch if each grows by `near_m`, (num_pairs, 2), in each state."""
    model = copy.copy(blueprint.model)
    model.geom_margin[:] += near_m
    data = mujoco.MjData(model)
    mujoco.mj_setConst(model, data)  # bounding volumes follow from margins
    for state in _sample_states(blueprint, tracks)[0]:
        data.qpos = state
        mujoco.mj_fwdPosition(model, data)
        yield data.contact.geom.copy()


def peak_efforts(blueprint: CompiledProject, tracks: Sequence[Track]) -> dict[str, float]:
    """Returns actuator -> the force that the model's own would exert at the measured states, nearly at its largest."""
    model, ids = blueprint.model, list(blueprint.actuator_ids)
    data, forces = mujoco.MjData(model), list[Array]()
    for qpos, qvel, command in zip(*_sample_states(blueprint, tracks), strict=True):
        data.qpos, data.qvel, data.ctrl[ids] = qpos, qvel, command
        mujoco.mj_forward(model, data)
        forces.append(np.abs(data.actuator_force[ids]))
    if not forces or not ids:
        return {}
    peaks = np.quantile(np.stack(forces), PEAK_QUANTILE, axis=0)
    return {item.actuator: float(peak) for item, peak in zip(blueprint.project.commands, peaks, strict=True)}


def joint_efforts(project: Project, model: mujoco.MjModel, tracks: Sequence[Track]) -> dict[int, tuple[float, float]]:
    """Returns joint -> effort [N or N·m] and speed [m/s or rad/s] of each measured hinge and slide joint.

    The effort is what moving the joint's inertia takes, or what holding it against gravity and the other joints
    takes, whichever is more, root mean square over the logs: a scale for forces that nothing measures.
    """
    reader = StateReader.of(project, model)
    measured: dict[int, tuple[int, int, str]] = {}
    for column, _, dof, quantity in sorted(reader.joints, key=lambda entry: entry[3], reverse=True):
        measured[int(model.dof_jntid[dof])] = (column, dof, quantity)  # a position, where there is one
    long_tracks = [track for track in tracks if len(track.slope) > 2]
    if not long_tracks or not measured:
        return {}
    every = max(1, sum(len(track.smooth) for track in tracks) // MAX_ROWS_OF_EFFORT)
    value, rate = (np.concatenate([getattr(t, name)[::every] for t in long_tracks]) for name in ("smooth", "slope"))
    change = np.concatenate([np.gradient(t.slope, axis=0)[::every] for t in long_tracks]) * project.rate_hz
    inertia, holding = _joint_forces(model, *reader.state(value, rate))
    efforts: dict[int, tuple[float, float]] = {}
    for joint, (column, dof, quantity) in measured.items():
        speed, acceleration = (rate, change) if quantity == "position" else (value, rate)
        moving = _rms(inertia[:, dof] * acceleration[:, column])
        efforts[joint] = (max(moving, _rms(holding[:, dof])), _rms(speed[:, column]))
    return efforts


def _joint_forces(model: mujoco.MjModel, qpos: Array, qvel: Array) -> tuple[Array, Array]:
    """Returns inertia about each degree of freedom, and the force of gravity and motion on it, per row."""
    data, full = mujoco.MjData(model), np.zeros((model.nv, model.nv))
    inertia, holding = np.zeros((2, len(qpos), model.nv))
    for k in range(len(qpos)):
        data.qpos[:], data.qvel[:] = qpos[k], qvel[k]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_fullM(model, data, full)
        inertia[k], holding[k] = np.diag(full), data.qfrc_bias
    return inertia, holding


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
