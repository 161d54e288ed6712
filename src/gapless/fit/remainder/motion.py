"""How a robot moved in windows, and what a force on it would have changed in the readings.

The motion is that of the readings, smoothed within each window: the prediction, plus a polynomial through what it
leaves. Forces act over short pieces of a window; to first order what any force f(t) does to the readings is the sum of
what its pieces do, so that one batched call serves every hypothesis about f.
"""

import copy
from dataclasses import dataclass, replace

import mujoco
import numpy as np

from gapless.core.signal import Array, Indices
from gapless.fit.prediction.predict import NEAR_M, Predictor
from gapless.fit.prediction.windows import Windows
from gapless.signals.track import subtract_readings
from gapless.sim.measurements import StateReader
from gapless.sim.simulation import Simulation
from gapless.sim.targets.drive import driven_joint

PIECE_S = 0.02  # how long a force is held at least [s]: reversals and ripples of joints take longer
MAX_PUSHED = 16_000  # predictions with a force, at most: pieces are longer where there would be more
PUSH_SHARE = 0.1  # of a degree of freedom's usual effort: small beside it, large beside what the engine rounds
TERMS_PER_S = 10.0  # of the polynomial through what a prediction leaves, besides the first two


@dataclass(frozen=True)
class Motion:
    """How a robot moved, in pieces of windows.

    Smooth functions of the measured motion would not do as hypotheses: a spring to where the prediction is, which
    position and a fitted stiffness make together, reproduces any error. They are taken of the predicted motion.
    """

    position: Array  # (num_windows, num_pieces, nq) as measured, in the middle of each piece [rad, m]
    velocity: Array  # (num_windows, num_pieces, nv) as measured [rad/s, m/s]
    predicted_position: Array  # likewise, as predicted
    predicted_velocity: Array
    effort: Array  # (num_windows, num_pieces, nv) of drives [N·m, N]: as commanded, or of servos as the motion needs it
    usual: Array  # (nv,) usual effort: of drives, or of gravity and inertia where that is more [N·m, N]
    touching: Array  # (num_windows, num_pieces, nbody) share of the time that a body is within `NEAR_M` of another
    time_s: Array  # (num_windows, num_pieces) since the start of the run [s]
    run: Indices  # (num_windows,) index of the run
    piece_s: float  # length of a piece [s]

    def keep_windows(self, index: Indices) -> "Motion":
        """Returns the motion in some of the windows."""
        names = ("position", "velocity", "predicted_position", "predicted_velocity", "effort", "touching", "time_s")
        return replace(self, **{name: getattr(self, name)[index] for name in (*names, "run")})


def follow_motion(predictor: Predictor, windows: Windows, row: Array, num_pieces: int) -> Motion:
    """Returns how the robot moved in windows, where a row says what its drives exert."""
    blueprint, num_steps = predictor.blueprint, windows.num_steps
    project, model, rate_hz = blueprint.project, blueprint.model, blueprint.project.rate_hz
    world = Simulation(blueprint, len(windows), predictor.space.shared)
    world.set_parameters(predictor.rows_of_windows(windows, row))
    predicted = predictor.predict(windows, row[None])[0]
    pace = np.gradient(predicted, axis=1) * rate_hz
    change, rate = smooth_in_windows(-subtract_readings(project, predicted, windows.measured), rate_hz)
    qpos, qvel = _states(world, predicted + change, pace + rate)
    planned_qpos, planned_qvel = _states(world, predicted, pace)
    efforts = _replay(world, windows, planned_qpos, planned_qvel)
    acceleration = np.gradient(planned_qvel, axis=1) * rate_hz
    needed, touching = _needed_efforts(world.batch.get_model(0), planned_qpos, planned_qvel, acceleration)
    servos = [a for a in range(model.nu) if model.actuator_biasprm[a, 1:].any()]
    held = [int(model.jnt_dofadr[j]) for a in servos if (j := driven_joint(model, a)) is not None]
    efforts[..., held] = needed[..., held]
    to_pieces = _piece_weights(num_steps, num_pieces)
    middle = np.concatenate([to_pieces, np.zeros((num_pieces, 1))], axis=1) / 2
    middle[:, 1:] += to_pieces / 2
    usual = np.sqrt(np.mean(np.maximum(efforts**2, needed**2), axis=(0, 1)))
    begin = windows.first_row[:, None] + (np.arange(num_pieces) + 0.5) * num_steps / num_pieces
    return Motion(
        position=np.einsum("pt,wti->wpi", middle, qpos),
        velocity=np.einsum("pt,wti->wpi", middle, qvel),
        predicted_position=np.einsum("pt,wti->wpi", middle, planned_qpos),
        predicted_velocity=np.einsum("pt,wti->wpi", middle, planned_qvel),
        effort=np.einsum("pt,wti->wpi", middle, efforts),
        usual=np.maximum(usual, 1e-9),
        touching=np.einsum("pt,wti->wpi", middle, touching),
        time_s=begin / rate_hz,
        run=windows.track,
        piece_s=num_steps / num_pieces / rate_hz,
    )


def _states(world: Simulation, value: Array, slope: Array) -> tuple[Array, Array]:
    """Returns engine states of readings and their slopes, (num_windows, num_steps + 1, nq) and (..., nv)."""
    fields, states = world.fields, StateReader.of(world.blueprint.project, world.blueprint.model)
    bias, scale, late_s = fields.bias[:, None], fields.scale[:, None], fields.reading_delay_s[:, None]
    true = ((value + slope * late_s - bias) / scale, slope / scale)
    found = states.state(*(array.reshape(-1, array.shape[2]) for array in true))
    return found[0].reshape(*value.shape[:2], -1), found[1].reshape(*value.shape[:2], -1)


def smooth_in_windows(left: Array, rate_hz: float) -> tuple[Array, Array]:
    """Returns polynomials through (num_windows, num_rows, num_measurements) values, and their slopes [unit/s].

    A column of a window with too few known values has 0 of both.
    """
    num_rows = left.shape[1]
    degree = min(1 + round(TERMS_PER_S * (num_rows - 1) / rate_hz), (num_rows - 1) // 3)
    times = np.linspace(-1.0, 1.0, num_rows)
    basis = np.polynomial.chebyshev.chebvander(times, degree)
    slopes = np.stack([np.polynomial.chebyshev.chebval(times, c) for c in _derivatives(degree)], axis=1)
    known = np.isfinite(left)
    weight = known.astype(float)
    gram = np.einsum("wtm,ti,tj->wmij", weight, basis, basis) + 1e-9 * np.eye(degree + 1)
    right = np.einsum("wtm,ti->wmi", np.where(known, left, 0.0), basis)
    enough = known.sum(axis=1) > 2 * (degree + 1)
    solved: Array = np.asarray(np.linalg.solve(gram, right[..., None]), dtype=np.float64)
    found = np.where(enough[..., None], solved[..., 0], 0.0)
    per_s = 2.0 * rate_hz / max(1, num_rows - 1)
    return np.einsum("ti,wmi->wtm", basis, found), np.einsum("ti,wmi->wtm", slopes * per_s, found)


def _derivatives(degree: int) -> list[Array]:
    """Returns the coefficients of each Chebyshev polynomial's derivative."""
    return [np.polynomial.chebyshev.chebder(np.eye(degree + 1)[k]) for k in range(degree + 1)]


def _needed_efforts(model: mujoco.MjModel, qpos: Array, qvel: Array, acceleration: Array) -> tuple[Array, Array]:
    """Returns the forces that a motion without contact needs, (num_windows, num_steps + 1, nv).

    And which bodies touch others, or nearly so, (num_windows, num_steps + 1, nbody): between rows they may bounce.

    A servo's own effort would not do as the load: it answers to whatever force the model lacks.
    """
    model = copy.copy(model)
    model.geom_margin[:] += NEAR_M
    data, needed = mujoco.MjData(model), np.zeros(qvel.shape)
    mujoco.mj_setConst(model, data)  # bounding volumes follow from margins
    touching = np.zeros((*qvel.shape[:2], model.nbody))
    for place in np.ndindex(qvel.shape[:2]):
        data.qpos, data.qvel, data.qacc = qpos[place], qvel[place], acceleration[place]
        mujoco.mj_fwdPosition(model, data)
        mujoco.mj_fwdVelocity(model, data)
        mujoco.mj_rne(model, data, 1, needed[place])
        needed[place] -= data.qfrc_passive
        if data.ncon:
            touching[place][_touching_bodies(model, data.contact.geom)] = 1.0
    return needed + model.dof_armature * acceleration + model.dof_frictionloss * np.sign(qvel), touching


def _replay(world: Simulation, windows: Windows, qpos: Array, qvel: Array) -> Array:
    """Returns what drives exert in predicted states, (num_windows, num_steps + 1, nv)."""
    batch, model = world.batch, world.blueprint.model
    names = ("qpos", "qvel", "ctrl", *(("act",) if model.na else ()))
    world.restart(qpos[:, 0], qvel[:, 0], windows.history)
    efforts = np.zeros(qvel.shape)
    for k in range(qpos.shape[1]):
        kept = {name: batch.bind(name).copy() for name in names}
        batch.bind("qpos")[:], batch.bind("qvel")[:] = qpos[:, k], qvel[:, k]
        batch.forward(stage=mujoco.mjtStage.mjSTAGE_ACC.value)
        efforts[:, k] = batch.bind("qfrc_actuator")
        for name, values in kept.items():
            batch.bind(name)[:] = values
        if k < windows.num_steps:
            world.step(windows.commands[:, k])
    return efforts


def _touching_bodies(model: mujoco.MjModel, pairs: Array) -> list[int]:
    """Returns bodies in contact with a body of another tree; of a free object, with something other than its floor."""
    found: set[int] = set()
    for one, other in model.geom_bodyid[pairs]:
        fixed = model.body_weldid[one] == 0 or model.body_weldid[other] == 0
        free = any(model.body_dofnum[model.body_rootid[b]] == 6 for b in (one, other) if model.body_weldid[b])
        found |= set() if fixed and free else {int(one), int(other)}
    return sorted(found)


def _piece_weights(num_steps: int, num_pieces: int) -> Array:
    """Returns by which each interval counts in the mean of each piece, (num_pieces, num_steps)."""
    piece = np.arange(num_steps) * num_pieces // num_steps
    inside = (piece == np.arange(num_pieces)[:, None]).astype(float)
    return inside / inside.sum(axis=1, keepdims=True)


def count_pieces(windows: Windows, rate_hz: float, num_dofs: int) -> int:
    """Returns into how many pieces windows are cut."""
    wanted = round(windows.num_steps / rate_hz / PIECE_S)
    affordable = MAX_PUSHED // max(1, len(windows) * num_dofs)
    return max(1, min(wanted, affordable, windows.num_steps))


def force_responses(predictor: Predictor, windows: Windows, row: Array, motion: Motion, dofs: list[int]) -> Array:
    """Returns what a force of 1 N·m or N on a degree of freedom in one piece of a window does to its readings.

    (num_dofs, num_windows, num_pieces, num_steps, num_measurements); by differences to one side.
    """
    num_windows, num_steps = len(windows), windows.num_steps
    num_pieces, nv = motion.position.shape[1], predictor.blueprint.model.nv
    piece = np.arange(num_steps) * num_pieces // num_steps
    calm = predictor.predict(windows, row[None])[0]
    responses = np.empty((len(dofs), num_windows, num_pieces, num_steps, windows.measured.shape[2]))
    which, pushed_piece = (one.ravel() for one in np.indices((num_windows, num_pieces)))
    for number, dof in enumerate(dofs):
        size = PUSH_SHARE * motion.usual[dof]
        forces = np.zeros((len(which), num_steps, nv))
        forces[:, :, dof] = size * (pushed_piece[:, None] == piece)
        pushed = predictor.predict_pushed(windows, row, which, forces)
        change = subtract_readings(predictor.blueprint.project, pushed, calm[which])[:, 1:]
        responses[number] = change.reshape(num_windows, num_pieces, num_steps, -1) / size
    return responses
