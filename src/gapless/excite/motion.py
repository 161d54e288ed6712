"""Motions: finite Fourier series that begin and end at rest, within limits; and how they go in simulation."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gapless.core.episode import Episode
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array, TimeSeries
from gapless.excite.knowledge import PriorKnowledge
from gapless.project.records import Project
from gapless.signals.track import Track, make_track
from gapless.sim.blueprint import EMPTY_SPACE
from gapless.sim.simulation import Simulation

NUM_SINES = 4  # per command
MIN_FREQUENCY_HZ, MAX_FREQUENCY_HZ = 0.1, 4.0
MIN_SAMPLES_PER_PERIOD = 10  # a sine needs at least as many control intervals
REST_S = 0.3  # held still before and after: what a delay still holds must be known
RAMP_S = 1.0  # growing from rest, and going back to it
NUM_RANDOM_MOTIONS = 6  # that stand in for logs where there are none


@dataclass(frozen=True)
class CommandLimits:
    """What each command may do, in model units; all (num_commands,)."""

    rest: Array  # command at rest
    low: Array  # smallest command, at most `rest`
    high: Array  # largest command, at least `rest`
    max_rate: Array  # how fast it may change [unit/s]; infinite where that does not matter
    is_position: NDArray[np.bool_]  # whether it commands a position, so that the middle of its motion is free to choose


# The numbers that describe motions: an array (num_motions, num_commands) of these.
MOTION = np.dtype(
    [
        ("frequency_hz", float, NUM_SINES),  # multiples of 1 / duration [Hz]
        ("weight", float, NUM_SINES),  # share of each sine [1]
        ("phase", float, NUM_SINES),  # [rad]
        ("size", float),  # amplitude as a share of half the command's span, in [0, 1]
        ("middle", float),  # about what it swings, in [0, 1] of the room for it
        ("scale", float),  # factor on the whole deviation from rest, in [0, 1]
    ]
)
Motions = NDArray[np.void]


def draw_motions(
    limits: CommandLimits, count: int, duration_s: float, rate_hz: float, rng: np.random.Generator
) -> Motions:
    """Draws motions of all sizes and speeds, each command with frequencies of its own."""
    drawn = np.zeros((count, len(limits.rest)), MOTION)
    shape, of_sines = drawn.shape, drawn["phase"].shape
    drawn["size"] = np.exp(rng.uniform(np.log(0.03), 0.0, (count, 1))) * rng.uniform(0.5, 1.0, shape)
    middle = np.where(limits.is_position, rng.uniform(0.0, 1.0, shape), rng.normal(0.5, 0.1, shape))
    drawn["middle"] = np.clip(middle, 0.0, 1.0)
    drawn["frequency_hz"] = _draw_frequencies(rng, of_sines, duration_s, rate_hz)
    drawn["weight"] = rng.uniform(0.2, 1.0, of_sines)
    drawn["phase"] = rng.uniform(0, 2 * np.pi, of_sines)
    drawn["scale"] = 1.0
    return drawn


def vary_motions(parents: Motions, count: int, duration_s: float, rate_hz: float, rng: np.random.Generator) -> Motions:
    """Returns children: each a parent with some commands taken from another, and all numbers moved a little."""
    child, father = (parents[rng.integers(len(parents), size=count)] for _ in range(2))
    shape, of_sines = child.shape, child["phase"].shape
    crossed = rng.uniform(size=shape) < 0.2
    child[crossed] = father[crossed]
    step = np.exp(rng.normal(-1.5, 1.0, (count, 1)))  # some children stay near, some go far
    redrawn = rng.uniform(size=of_sines) < 0.15
    drawn = _draw_frequencies(rng, of_sines, duration_s, rate_hz)
    child["frequency_hz"] = np.where(redrawn, drawn, child["frequency_hz"])
    child["weight"] = np.clip(child["weight"] + step[..., None] * rng.normal(0, 0.5, of_sines), 0.0, 1.5)
    child["phase"] += step[..., None] * rng.normal(0, 1.5, of_sines)
    child["size"] = np.clip(child["size"] * np.exp(step * rng.normal(0, 0.6, shape)), 0.0, 1.0)
    child["middle"] = np.clip(child["middle"] + step * rng.normal(0, 0.3, shape), 0.0, 1.0)
    child["scale"] = np.clip(child["scale"] * np.exp(0.2 * rng.standard_normal(shape)), 0.0, 1.0)
    return child


def scale_down(motions: Motions, factor: Array) -> Motions:
    """Returns motions with deviations from rest times factors, (num_motions, num_commands) or alike."""
    scaled = motions.copy()
    scaled["scale"] *= factor
    return scaled


def _draw_frequencies(rng: np.random.Generator, shape: tuple[int, ...], duration_s: float, rate_hz: float) -> Array:
    """Draws multiples of 1 / duration, evenly in their logarithm [Hz]."""
    highest = min(MAX_FREQUENCY_HZ, rate_hz / MIN_SAMPLES_PER_PERIOD)
    lowest = min(max(MIN_FREQUENCY_HZ, 1.0 / duration_s), highest)
    drawn = np.exp(rng.uniform(np.log(lowest), np.log(highest), shape))
    return np.maximum(1.0, np.round(drawn * duration_s)) / duration_s


def sample_commands(motions: Motions, limits: CommandLimits, duration_s: float, rate_hz: float) -> Array:
    """Returns the commands, (num_motions, num_steps, num_commands), in model units.

    u(t) = rest + g(t) (middle - rest + amplitude * w(t)), where w is the sum of sines scaled to at most 1, and g
    rises smoothly from 0 to 1 and falls again. So every u(t) lies between `low` and `high`; where it changes faster
    than `max_rate`, the whole deviation from rest is scaled down, and `scale` scales it down further.
    """
    times_s = np.arange(round(duration_s * rate_hz)) / rate_hz
    angle = 2 * np.pi * motions["frequency_hz"][:, None] * times_s[None, :, None, None] + motions["phase"][:, None]
    wave = np.sum(motions["weight"][:, None] * np.sin(angle), axis=-1)
    wave /= np.maximum(np.max(np.abs(wave), axis=1, keepdims=True), 1e-9)
    half = (limits.high - limits.low) / 2
    amplitude = motions["size"] * half
    anywhere = limits.low + amplitude + motions["middle"] * 2 * (half - amplitude)
    near_rest = limits.rest + (2 * motions["middle"] - 1) * amplitude
    inside = np.clip(near_rest, limits.low + amplitude, limits.high - amplitude)
    middle = np.where(limits.is_position, anywhere, inside)
    swing = (middle - limits.rest)[:, None] + amplitude[:, None] * wave
    ramp_s = min(RAMP_S, duration_s / 5)  # half a cosine from rest to motion, and back
    to_end_s = np.minimum(times_s, times_s[-1] - times_s) - rest_duration_s(duration_s)
    envelope = 0.5 - 0.5 * np.cos(np.pi * np.clip(to_end_s / ramp_s, 0.0, 1.0))
    deviation = envelope[:, None] * swing
    fastest = np.max(np.abs(np.diff(deviation, axis=1)), axis=1, initial=0.0) * rate_hz
    slower = np.minimum(1.0, limits.max_rate / np.maximum(fastest, 1e-12))
    return limits.rest + (slower * motions["scale"])[:, None] * deviation


def rest_duration_s(duration_s: float) -> float:
    """Returns how long a motion rests at each end [s]."""
    return min(REST_S, duration_s / 10)


@dataclass(frozen=True)
class SimulatedMotions:
    """Motions as they went in simulation; axis 0 is num_motions, axis 1 num_steps."""

    commands: Array  # (..., num_commands) in model units
    measured: Array  # (..., num_measurements) readings without noise, in model units
    qpos: Array  # (..., nq) positions
    qvel: Array  # (..., nv) velocities
    force: Array  # (..., nu) forces of the actuators
    settled: int = 0  # first step that counts: before it, while the command rests, the model finds its own equilibrium


def simulate_motions(
    known: PriorKnowledge, space: ParameterSpace, commands: Array, rows: Array, readings: Array | None = None
) -> SimulatedMotions:
    """Returns how motions of commands in model units, (num_motions, num_steps, num_commands), go in simulation.

    `rows` are (num_motions, num_parameters) of the space, or (num_parameters,) for all; `readings`, (num_motions,
    num_measurements), are where each begins, None for rest.
    """
    count, num_steps, num_commands = commands.shape
    world = Simulation(known.blueprint, count, space)
    world.set_parameters(np.broadcast_to(rows, (count, len(space))))
    resting, command = known.rest
    begin = np.tile(resting, (count, 1)) if readings is None else readings
    qpos = known.positions((begin - world.fields.bias) / world.fields.scale)
    history = np.broadcast_to(command, (count, 1, num_commands))
    fields = [world.batch.bind(name) for name in ("qpos", "qvel", "actuator_force")]
    shown = world.restart(qpos, np.zeros((count, world.blueprint.model.nv)), history)
    measured, applied = np.empty((count, num_steps, shown.shape[1])), np.empty(commands.shape)
    parts = [np.empty((count, num_steps, field.shape[1])) for field in fields]
    for k in range(num_steps):
        measured[:, k] = shown
        for part, field in zip(parts, fields, strict=True):
            part[:, k] = field
        step = world.step(commands[:, k])
        shown, applied[:, k] = step.measured, step.applied_command
    settled = round(rest_duration_s(num_steps / world.rate_hz) * world.rate_hz)
    return SimulatedMotions(applied, measured, *parts, settled=settled)


def record_motion(
    project: Project, run: SimulatedMotions, motion: int, noise: Array, rng: np.random.Generator
) -> Track:
    """Returns one motion as `identify` would read its log, with (num_measurements,) noise on the readings."""
    times_s = np.arange(run.commands.shape[1]) / project.rate_hz
    seen = run.measured[motion] + noise * rng.standard_normal(run.measured[motion].shape)
    sent = TimeSeries(times_s, run.commands[motion], project.command_names, project.command_units)
    shown = TimeSeries(times_s, seen, project.measurement_names, project.measurement_units)
    return make_track(project, Episode("excite", "sim", sent, shown))


def record_random_motions(known: PriorKnowledge, limits: CommandLimits, duration_s: float) -> tuple[Track, ...]:
    """Returns random motions of the model as written, as if recorded: how hard and how fast its joints move at all."""
    rng, rate_hz = np.random.default_rng(0), known.project.rate_hz
    motions = draw_motions(limits, NUM_RANDOM_MOTIONS, duration_s, rate_hz, rng)
    run = simulate_motions(known, EMPTY_SPACE, sample_commands(motions, limits, duration_s, rate_hz), np.zeros(0))
    finite = np.flatnonzero(np.isfinite(run.measured).all(axis=(1, 2)))
    return tuple(record_motion(known.project, run, int(k), known.noise(), rng) for k in finite)
