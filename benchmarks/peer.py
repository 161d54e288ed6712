"""The peer: `mujoco.sysid`, MuJoCo's own toolbox, driven with care; what each robot needs is in `peer_*.py`.

It needs the extra `peer`. What is done for the toolbox, beyond its defaults, because a careful user would:

- Positions are compared with the simulated *state*, not with its sensors: the sensor values that its roll-outs
  return belong to the beginning of a step but carry the time of its end.
- Commands are given at the simulation's time step, held: its own resampling draws lines between them.
- The command delay is a delay of the predicted signals where motions start at rest (its own way, and cheap); in
  windows it is the actuators' `delay`, interpolated, with histories that hold the commands before the start
  (`create_initial_state` leaves zeros there). A sensor bias also moves the start (`custom_rollout`).
- Residuals are weighted per signal, once; its normalisation divides by the norm of each signal in each sequence,
  so that a joint at rest near zero would swamp the others.
- Positive parameters are fitted as logarithms, with a finite-difference step far above the constraint solver's noise.
- A compiled model is kept per parameter vector: the toolbox compiles each again for every sequence.
"""

import io
import math
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import mujoco
import numpy as np
import score
from mujoco import sysid
from score import Run

FINITE_STEP = 1e-4  # of a logarithm, a bias in its unit, or a delay in units of DELAY_UNIT_S [1]
DELAY_UNIT_S = 0.01
OPTIONS = {"xtol": 1e-4, "mu_min": 1e-2, "mu_factor": 10.0**0.5}
THREADS = os.cpu_count() or 1


@dataclass(frozen=True)
class Fit:
    """What the peer found; `rebuild` makes a model of it."""

    vector: np.ndarray
    """The result, in the toolbox's coordinates."""
    cpu_seconds: float
    """Process time of all threads [s]."""
    parts: dict[str, float]
    """Where it went, by name [s]."""
    iterates: list[tuple[float, np.ndarray]]
    """(CPU seconds since the start, parameter vector): the start, and what every iteration arrived at."""
    values: dict[str, list[float]]
    """Fitted values, in the toolbox's coordinates (logarithms of positive parameters)."""


@dataclass(frozen=True)
class Task:
    """A set-up for the toolbox: model, parameters, sequences and how to weigh them."""

    spec: mujoco.MjSpec
    stock: mujoco.MjSpec
    """The model to write the result into; may carry more (visual geoms) than the one that is fitted."""
    params: sysid.ParameterDict
    pieces: list[Run]
    starts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    """Per piece, as read: positions (joints,), velocities (joints,), commands before the start (rows, actuators)."""
    weights: np.ndarray
    """Per joint of a piece, 1 / expected error; 0 leaves a joint out."""
    late_readings: bool = False
    """Whether the delay shifts predicted signals, the toolbox's way, instead of commands inside the engine."""
    difference: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.subtract
    """Reading minus prediction, (rows, columns); of orientations, another number of columns."""
    finite_step: float = FINITE_STEP
    """Of differences; things that touch need larger ones."""


class Clock:
    """CPU time of parts of a run, of all threads [s]."""

    def __init__(self) -> None:
        self.parts: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Adds what happens inside to a part."""
        began = time.process_time()
        yield
        self.parts[name] = self.parts.get(name, 0.0) + time.process_time() - began


def positive(name: str, start: float, low: float, high: float, setter: Callable) -> sysid.Parameter:
    """Returns a positive parameter, fitted as its logarithm; the setter gets a spec and the value."""
    return sysid.Parameter(
        name,
        math.log(start),
        math.log(low),
        math.log(high),
        modifier=lambda spec, parameter: setter(spec, math.exp(parameter.value[0])),
    )


def delay_parameter(spec: mujoco.MjSpec, start_s: float, high_s: float) -> sysid.Parameter:
    """Returns a command delay that all actuators share, and gives them the history that it needs.

    The engine reads before it writes, so one time step is the least delay that it can express; less means none.
    """
    step_s = spec.option.timestep
    for actuator in spec.actuators:
        actuator.nsample, actuator.interp, actuator.delay = math.ceil(high_s / step_s) + 1, 1, start_s  # 1: linear
    low, start, high = (value / DELAY_UNIT_S for value in (step_s, start_s, high_s))
    return sysid.Parameter("delay", start, low, high, modifier=_set_delay)


def _set_delay(spec: mujoco.MjSpec, parameter: sysid.Parameter) -> None:
    """Writes a delay to every actuator that has a history."""
    for actuator in spec.actuators:
        if actuator.nsample:
            delay_s = DELAY_UNIT_S * parameter.value[0]
            actuator.delay = max(delay_s, spec.option.timestep) if delay_s > 0.5 * spec.option.timestep else 0.0


def set_joint(joint: str, field: str, spec: mujoco.MjSpec, value: float) -> None:
    """Writes a damping, friction loss or armature; damping is a polynomial, of which the linear term is set."""
    current = getattr(spec.joint(joint), field)
    setattr(spec.joint(joint), field, [value, 0.0, 0.0] if np.ndim(current) else value)


def bias_parameter(joint: str, high: float) -> sysid.Parameter:
    """Returns a bias of readings, added to predictions and taken from starts; it does not touch the spec."""
    return sysid.Parameter(f"bias {joint}", 0.0, -high, high)


def _biases(params: sysid.ParameterDict, joints: Sequence[str]) -> np.ndarray:
    """Returns the biases that a parameter set holds, in the order of the joints, 0 where there is none."""
    return np.array([params[f"bias {j}"].value[0] if f"bias {j}" in params else 0.0 for j in joints])


def _initial_state(model: mujoco.MjModel, run: Run, start: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    """Returns the full physics state of a start, delay histories filled with the commands before it."""
    data, state = mujoco.MjData(model), np.empty(mujoco.mj_stateSize(model, score.FULL))
    past = np.repeat(start[2], round(1.0 / (run.rate_hz * model.opt.timestep)), axis=0)
    for name, column in zip(run.actuators, past.T, strict=True):
        actuator = model.actuator(name).id
        num_samples = model.actuator_history[actuator, 0]
        if num_samples:
            column = np.concatenate([np.full(max(num_samples - len(column), 0), column[0]), column])
            mujoco.mj_initCtrlHistory(model, data, actuator, None, column[-num_samples:])
    mujoco.mj_getState(model, data, state, score.FULL)
    q, v = score.state_columns(model, run.joints)
    state[q], state[v] = start[:2]
    return state


def _sequences(task: Task) -> sysid.ModelSequences:
    """Returns the pieces as the toolbox wants them, commands held at the simulation's time step."""
    for joint in task.pieces[0].joints:
        _add_sensors(task.spec, joint)
    model = task.spec.compile()
    steps = round(1.0 / (task.pieces[0].rate_hz * model.opt.timestep))
    controls, sensors, states = [], [], []
    for run, start in zip(task.pieces, task.starts, strict=True):
        held = np.repeat(run.commands[:-1], steps, axis=0)
        held = np.concatenate([held, run.commands[-1:]])  # the toolbox drops the last control
        order = [model.actuator(name).id for name in run.actuators]
        control = np.zeros((len(held), model.nu))
        control[:, order] = held
        controls.append(sysid.TimeSeries(model.opt.timestep * np.arange(len(held)), control))
        sensors.append(sysid.TimeSeries(np.arange(len(run.readings)) / run.rate_hz, run.readings))
        states.append(_initial_state(model, run, start))
    return sysid.ModelSequences("robot", task.spec, [run.name for run in task.pieces], states, controls, sensors)


def _add_sensors(spec: mujoco.MjSpec, joint: str) -> None:
    """Adds a sensor of a joint's position, or of the pose of the body of a free joint: the toolbox asks for names."""
    kind, of = mujoco.mjtSensor, mujoco.mjtObj
    if spec.joint(joint).type == mujoco.mjtJoint.mjJNT_FREE:
        body = spec.joint(joint).parent.name
        for sensor in (kind.mjSENS_FRAMEPOS, kind.mjSENS_FRAMEQUAT):
            spec.add_sensor(name=f"{joint}_{sensor.name}", type=sensor, objname=body, objtype=of.mjOBJ_XBODY)
    else:
        spec.add_sensor(name=f"{joint}_pos", type=kind.mjSENS_JOINTPOS, objname=joint, objtype=of.mjOBJ_JOINT)


def _cached_models(size: int, clock: Clock) -> Callable[[sysid.ParameterDict, mujoco.MjSpec], mujoco.MjModel]:
    """Returns a builder that compiles a parameter vector once, not once for every sequence."""
    known: OrderedDict[bytes, mujoco.MjModel] = OrderedDict()

    def build(params: sysid.ParameterDict, spec: mujoco.MjSpec) -> mujoco.MjModel:
        """Returns the compiled model of a parameter vector."""
        key = params.as_vector().tobytes()
        if key not in known:
            with clock.part("compiling models"):
                known[key] = sysid.apply_param_modifiers(params, spec)
            while len(known) > size:
                known.popitem(last=False)
        return known[key]

    return build


def _shifted(states: np.ndarray, steps: int, late: float) -> np.ndarray:
    """Returns positions at the rows, `late` time steps earlier, by linear interpolation; the first is held before."""
    at = np.maximum(np.arange(steps - 1, len(states), steps) - late, 0.0)
    below = np.minimum(at.astype(int), len(states) - 2)
    part = (at - below)[:, None]
    return (1.0 - part) * states[below] + part * states[below + 1]


def _residual(task: Task, clock: Clock) -> Callable:
    """Returns the toolbox's residual: weighted positions at the rows of the log, biases in readings and starts."""
    joints, rate_hz = task.pieces[0].joints, task.pieces[0].rate_hz
    scored = np.flatnonzero(task.weights)

    def roll_out(*, models: list, param_dicts: list, initial_states: list, **rest: object) -> Sequence:
        """Rolls out from starts that each column's biases have moved."""
        q, _ = score.state_columns(models[0], joints)
        moved = []
        for state, params in zip(initial_states, param_dicts, strict=True):
            state = state.copy()
            state[q] -= _biases(params, joints)
            moved.append(state)
        with clock.part("simulating"):
            return sysid.sysid_rollout(models=models, initial_states=moved, **rest)

    def compare(
        params: sysid.ParameterDict,
        predicted: sysid.TimeSeries,
        measured: sysid.TimeSeries,
        model: mujoco.MjModel,
        return_all: bool,
        state: np.ndarray,
        sensor_weights: object = None,
    ) -> tuple[np.ndarray, sysid.TimeSeries, sysid.TimeSeries]:
        """Returns weighted readings minus predictions at the rows after the first, and both signals."""
        q, _ = score.state_columns(model, joints)
        steps = round(1.0 / (rate_hz * model.opt.timestep))
        if task.late_readings:  # the same from rest, and much cheaper than histories in the state
            at_rows = _shifted(state[:, q], steps, DELAY_UNIT_S * params["delay"].value[0] / model.opt.timestep)
        else:
            at_rows = state[steps - 1 :: steps, q]
        at_rows = at_rows + _biases(params, joints)
        difference = task.difference(measured.data[1:], at_rows) * task.weights
        difference = np.nan_to_num(difference, nan=1e3, posinf=1e3, neginf=-1e3)
        times = measured.times[1:]
        return (
            np.clip(difference[:, scored], -1e3, 1e3),
            sysid.TimeSeries(times, at_rows),
            sysid.TimeSeries(times, measured.data[1:]),
        )

    return sysid.build_residual_fn(
        models_sequences=[_sequences(task)],
        build_model=_cached_models(task.params.size + 3, clock),
        custom_rollout=roll_out,
        modify_residual=compare,
        resample_true=False,
        n_threads=THREADS,
    )


def run_toolbox(task: Task, max_iters: int, say: Callable[[str], None] = lambda text: None) -> Fit:
    """Fits a set-up with the toolbox's recommended optimiser and returns the best that it found."""
    began, clock = time.process_time(), Clock()
    iterates = [(0.0, task.params.as_vector())]
    residual = _residual(task, clock)

    def note(trace: list) -> None:
        """Keeps what an iteration arrived at, and the CPU time so far."""
        step = trace[-1].step
        if step is not None:  # the last entry is only a summary
            iterates.append((time.process_time() - began, (trace[-1].candidate + step).ravel()))
            say(f"peer: iteration {len(iterates) - 1}, {iterates[-1][0]:.0f} s, cost {trace[-1].objective:.5g}")

    found, _ = sysid.optimize(
        initial_params=task.params,
        residual_fn=residual,
        optimizer="mujoco",
        verbose=False,
        max_iters=max_iters,
        eps=task.finite_step,
        **OPTIONS,
        iter_callback=note,
        output=io.StringIO(),
    )
    spent = time.process_time() - began
    values = {name: parameter.value.tolist() for name, parameter in found.items()}
    parts = clock.parts | {"the toolbox itself": spent - sum(clock.parts.values())}
    return Fit(found.as_vector(), spent, parts, iterates, values)


def rebuild(task: Task, vector: np.ndarray) -> tuple[mujoco.MjModel, dict[str, float]]:
    """Returns the stock model with a parameter vector in it, and the bias of each measured joint."""
    params = task.params.copy()
    params.update_from_vector(np.asarray(vector).ravel())
    model = sysid.apply_param_modifiers(params, task.stock.copy())
    joints = task.pieces[0].joints
    return model, dict(zip(joints, _biases(params, joints).tolist(), strict=True))
