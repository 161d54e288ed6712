"""Motions played in simulation, many at once, as if they were being recorded."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.episode import Episode
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array, TimeSeries
from gapless.excite.knowledge import PriorKnowledge
from gapless.excite.motion import CommandLimits, draw_motions, rest_duration_s, sample_commands
from gapless.signals.track import Track, make_track
from gapless.sim.blueprint import EMPTY_SPACE
from gapless.sim.simulation import Simulation

NUM_RANDOM_MOTIONS = 6  # that stand in for logs where there are none


@dataclass(frozen=True)
class SimulatedMotions:
    """Motions as they went in simulation; axis 0 is num_motions, axis 1 num_steps."""

    commands: Array  # (..., num_commands) in model units
    measured: Array  # (..., num_measurements) readings without noise, in model units
    qpos: Array  # (..., nq) positions
    qvel: Array  # (..., nv) velocities
    force: Array  # (..., nu) forces of the actuators
    settled: int = 0  # first step that counts: before it, while the command rests, the model finds its own equilibrium

    def pick(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> "SimulatedMotions":
        """Returns some of the motions."""
        names = ("commands", "measured", "qpos", "qvel", "force")
        return replace(self, **{name: getattr(self, name)[index] for name in names})


class MotionSimulator:
    """Plays motions from the same start under rows of parameters. Keeps its worlds between calls."""

    def __init__(self, known: PriorKnowledge, space: ParameterSpace) -> None:
        """Prepares worlds of a project with the parameters of a space."""
        self._known = known
        self._space = space
        self._readings, self._command = known.rest()
        self._worlds: dict[int, Simulation] = {}

    def play(self, commands: Array, rows: Array, readings: Array | None = None) -> SimulatedMotions:
        """Plays motions.

        Args:
            commands: (num_motions, num_steps, num_commands) in model units.
            rows: (num_motions, num_parameters) or (num_parameters,) for all.
            readings: (num_motions, num_measurements) where each begins; None for rest.
        """
        count, num_steps, num_commands = commands.shape
        if count not in self._worlds:
            self._worlds[count] = Simulation(self._known.blueprint, count, self._space)
        world = self._worlds[count]
        world.set_parameters(np.broadcast_to(rows, (count, len(self._space))))
        begin = np.tile(self._readings, (count, 1)) if readings is None else readings
        qpos = self._known.positions((begin - world.fields.bias) / world.fields.scale)
        history = np.broadcast_to(self._command, (count, 1, num_commands))
        fields = [world.batch.bind(name) for name in ("qpos", "qvel", "actuator_force")]
        shown = world.restart(qpos, np.zeros((count, world.blueprint.model.nv)), history)
        measured = np.empty((count, num_steps, shown.shape[1]))
        parts = [np.empty((count, num_steps, field.shape[1])) for field in fields]
        applied = np.empty(commands.shape)
        for k in range(num_steps):
            measured[:, k] = shown
            for part, field in zip(parts, fields, strict=True):
                part[:, k] = field
            step = world.step(commands[:, k])
            shown, applied[:, k] = step.measured, step.applied_command
        settled = round(rest_duration_s(num_steps / world.rate_hz) * world.rate_hz)
        return SimulatedMotions(applied, measured, *parts, settled=settled)

    def record(self, run: SimulatedMotions, motion: int, noise: Array, rng: np.random.Generator) -> Track:
        """Returns one motion as `identify` would read its log, with (num_measurements,) noise on the readings."""
        project = self._known.project
        times_s = np.arange(run.commands.shape[1]) / project.rate_hz
        seen = run.measured[motion] + noise * rng.standard_normal(run.measured[motion].shape)
        sent = TimeSeries(times_s, run.commands[motion], project.command_names, project.command_units)
        shown = TimeSeries(times_s, seen, project.measurement_names, project.measurement_units)
        return make_track(project, Episode("excite", "sim", sent, shown))


def record_random_motions(known: PriorKnowledge, limits: CommandLimits, duration_s: float) -> tuple[Track, ...]:
    """Returns random motions of the model as written, as if recorded: how hard and how fast its joints move at all."""
    rng, rate_hz = np.random.default_rng(0), known.project.rate_hz
    motions = draw_motions(limits, NUM_RANDOM_MOTIONS, duration_s, rate_hz, rng)
    simulator = MotionSimulator(known, EMPTY_SPACE)
    run = simulator.play(sample_commands(motions, limits, duration_s, rate_hz), np.zeros(0))
    finite = np.flatnonzero(np.isfinite(run.measured).all(axis=(1, 2)))
    return tuple(simulator.record(run, int(k), known.noise(), rng) for k in finite)
