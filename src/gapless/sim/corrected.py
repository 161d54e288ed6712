"""Writes a fitted row into a model of its own: gains, friction, masses and delays inside it."""

from pathlib import Path

import mujoco
import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.project.model import relocate_files
from gapless.sim.blueprint import CompiledProject, editable_spec
from gapless.sim.realism.signal_path import engine_time_constant
from gapless.sim.simulation import Simulation

MAX_FINER = 0.5  # share of the model's time step, below which the project's is finer for more than to fit the rate


def corrected_xml(blueprint: CompiledProject, space: ParameterSpace, row: Array, folder: Path) -> str:
    """Returns the MJCF of the model with a row of parameters in it.

    Biases, scales and delays of measurements, zero offsets of encoders and backlash are not part of a model: they stay
    in the JSON of the fit; what servos do because of shifted zeros, and offsets of commands, are. A servo with a speed
    limit is a DC motor, which has no room for either, nor for a lag: that becomes a delay of the same length. The time
    step is that of the model, or that of the project where it is far finer. Meshes are found from `folder`, where the
    file will be.
    """
    world = Simulation(blueprint, 1, space)
    world.set_parameters(row[None])
    model = world.batch.get_model(0)
    source = blueprint.project.model_path.resolve()
    spec = editable_spec(blueprint.project)
    original = spec.compile()
    is_finer = blueprint.model.opt.timestep < MAX_FINER * original.opt.timestep
    model.opt.timestep = blueprint.model.opt.timestep if is_finer else original.opt.timestep
    spec.copy_back(model)
    _copy_flags(spec, model, original)
    fields = world.fields
    paths = zip(spec.actuators, fields.target_offset[0], fields.delay_s[0], fields.lag_s[0], strict=True)
    for actuator, offset, delay_s, lag_s in paths:
        if offset and actuator.gaintype != mujoco.mjtGain.mjGAIN_DCMOTOR:  # that has no place for it
            if actuator.biastype == mujoco.mjtBias.mjBIAS_NONE:
                actuator.biastype, actuator.biasprm = mujoco.mjtBias.mjBIAS_AFFINE, np.zeros(len(actuator.biasprm))
            actuator.biasprm[0] += actuator.gainprm[0] * float(offset)  # what a shifted command would exert
        if lag_s > 0 and actuator.gaintype == mujoco.mjtGain.mjGAIN_DCMOTOR:
            delay_s += lag_s
        elif lag_s > 0:
            time_constant_s = engine_time_constant(lag_s, blueprint.model.opt.timestep)
            actuator.dyntype, actuator.actearly = mujoco.mjtDyn.mjDYN_FILTEREXACT, True  # the end of a step counts
            actuator.dynprm = [time_constant_s] + [0.0] * (len(actuator.dynprm) - 1)
        if delay_s >= 0.5 * original.opt.timestep:
            actuator.delay = float(delay_s)
            shortest_s = min(original.opt.timestep, blueprint.model.opt.timestep) / 2  # room for finer steps
            actuator.nsample = int(np.ceil(delay_s / shortest_s)) + 1
            actuator.interp = 1  # linear: continuous in the delay, as in the fit
    return relocate_files(spec.to_xml(), source.parent, folder.resolve())


def _copy_flags(spec: mujoco.MjSpec, model: mujoco.MjModel, original: mujoco.MjModel) -> None:
    """Copies the whole numbers that parameters set, which `copy_back` leaves alone."""
    for geom in spec.geoms:
        if model.geom_priority[geom.id] != original.geom_priority[geom.id]:
            geom.priority = int(model.geom_priority[geom.id])
            geom.condim = int(model.geom_condim[geom.id])
    for actuator in spec.actuators:
        if model.actuator_forcelimited[actuator.id] != original.actuator_forcelimited[actuator.id]:
            actuator.forcelimited = int(model.actuator_forcelimited[actuator.id])
        if model.actuator_gaintype[actuator.id] != original.actuator_gaintype[actuator.id]:  # made a DC motor
            actuator.gaintype = mujoco.mjtGain.mjGAIN_DCMOTOR
            actuator.biastype = mujoco.mjtBias.mjBIAS_DCMOTOR
            actuator.dyntype, actuator.actearly = mujoco.mjtDyn.mjDYN_DCMOTOR, True
