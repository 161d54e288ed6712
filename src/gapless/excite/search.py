"""The search for a motion: random ones first, then children of the best."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Progress
from gapless.core.scaling import Scaling
from gapless.core.signal import Array, Flags
from gapless.excite.information import expected_information, identification_cost
from gapless.excite.knowledge import PriorKnowledge
from gapless.excite.limits import MotionLimit
from gapless.excite.motion import (
    CommandLimits,
    Motions,
    SimulatedMotions,
    draw_motions,
    record_motion,
    sample_commands,
    scale_down,
    simulate_motions,
    vary_motions,
)
from gapless.excite.workspace import SEARCH_FRAMES, Workspace
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import DRIVEN_S as WINDOW_S
from gapless.fit.prediction.windows import Windows, cut_windows


@dataclass(frozen=True)
class ExciteConfig:
    """How a motion is searched for."""

    budget: float = 5e6  # physics steps times degrees of freedom: some 15 s of one processor
    min_motions: int = 24  # motions whose information is computed, at least
    max_motions: int = 160  # the same, at most
    num_elite: int = 6  # best motions that are kept from generation to generation
    num_generations: int = 6  # generations after the first, random one
    windows_per_look: int = 6  # windows of a motion that are looked at; the best are looked at again, at other windows
    draws_per_motion: int = 2  # motions simulated for each one that is looked at: some break a limit
    num_corrections: int = 2  # times that motions which break a limit are scaled down
    min_factor: float = 0.5  # smallest factor of one such step [1]
    num_verified: int = 3  # best motions that are tried on robots that differ from the model
    num_verifications: int = 8  # times that such a motion is scaled down where one of these robots would break a limit
    num_robots: int = 8  # robots that it is tried on, the one as assumed included
    robot_sd: float = 0.03  # by how much of its range each parameter of them differs, one standard deviation [1]


@dataclass(frozen=True)
class Candidate:
    """A motion and what is known of it."""

    motion: Motions  # the motion, alone
    windows: Windows  # all windows of its recording, in random order
    information: Array  # (num_parameters, num_parameters) of the windows looked at, the first `num_seen`
    num_seen: int = 0  # how many those are

    @property
    def whole_information(self) -> Array:
        """The information of all its windows, from those looked at."""
        return self.information * len(self.windows) / max(1, self.num_seen)


@dataclass
class Search:
    """Looks for a motion that identifies the wanted parameters."""

    known: PriorKnowledge  # the project, its logs and its last fit
    space: ParameterSpace  # all parameters that would be fitted
    command_limits: CommandLimits  # what the commands may do
    limits: tuple[MotionLimit, ...]  # what a motion must keep
    workspace: Workspace  # what it must not touch
    duration_s: float  # its length [s]
    noise: Array  # (num_measurements,) standard deviation of the readings
    min_sigma: Array  # (num_measurements,) least error of predictions
    config: ExciteConfig  # how to search
    rng: np.random.Generator  # source of the motions
    num_tried: int = 0  # motions that were simulated so far
    information: list[Array] = field(default_factory=list[Array])  # of each motion that was looked at so far

    @cached_property
    def row(self) -> Array:
        """The values assumed, (num_parameters,)."""
        return self.known.row(self.space)

    @cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.known.blueprint, self.space)

    @property
    def mean_information(self) -> Array:
        """Mean over all motions that were looked at, (num_parameters, num_parameters)."""
        size = len(self.space)
        return np.mean(self.information, axis=0) if self.information else np.zeros((size, size))

    def run(self, progress: Progress | None = None) -> SimulatedMotions | None:
        """Returns the runs of the best motion that robots keep the limits with, see `_find_safe`; None without one.

        Random motions first; then, generation by generation, children of the best. Each is simulated whole; of those
        that keep the limits, the information of a few windows is computed, and that of others for the best.
        """
        num_rounds = self.config.num_generations + 1
        slots = -(-self._count_motions() // num_rounds)
        report = progress or (lambda label, share: None)
        elite: list[Candidate] = []
        for generation in range(num_rounds):
            report("looking for a motion", generation / num_rounds)
            new = self._try_motions(elite, slots)
            again = [self._look_at_windows(candidate) for candidate in elite]
            elite = sorted([*again, *new], key=self._cost)[: self.config.num_elite]
        report("looking for a motion", 1.0)
        return self._find_safe(elite)

    def is_allowed(self, run: SimulatedMotions, max_frames: int | None = None) -> Flags:
        """Tells which motions keep all limits and touch nothing in so many frames (None: all), (num_motions,)."""
        good = np.asarray(np.isfinite(run.measured).all(axis=(1, 2)))
        for limit in self.limits:
            good = good & limit.is_kept(run)
        for k in np.flatnonzero(good):
            good[k] = self.workspace.find_fault(run.qpos[k], max_frames) is None
        return good

    def play_rest(self) -> SimulatedMotions:
        """Returns how robots that differ a little move when the command stays at rest."""
        rows, readings = self._draw_robots()
        rest = self.command_limits.rest
        still = np.broadcast_to(rest, (len(rows), round(self.duration_s * self.known.project.rate_hz), len(rest)))
        return simulate_motions(self.known, self.space, still, rows, readings)

    def explain_failure(self) -> str:
        """Returns why no motion keeps the limits: what the robot breaks when its command stays at rest, if anything."""
        run = self.play_rest()
        broken = [limit.name for limit in self.limits if not limit.is_kept(run).all()]
        fault = next((text for qpos in run.qpos if (text := self.workspace.find_fault(qpos))), None)
        if broken or fault:
            return f"left alone, it does not stay within limits: {fault or ', '.join(broken)}"
        return "no motion tried keeps the limits: allow more with --max-speed, --max-effort or --lowest"

    def _count_motions(self) -> int:
        """Returns for how many motions the budget lets the search compute information."""
        config, blueprint = self.config, self.known.blueprint
        steps_per_s = self.known.project.rate_hz * blueprint.num_substeps
        whole = config.draws_per_motion * (1 + config.num_corrections) * self.duration_s * steps_per_s
        rows = 1 + 2 * len(self.space) + 4 * len(self.noise)
        windows = 1.5 * config.windows_per_look * rows * WINDOW_S * steps_per_s
        affordable = config.budget / (blueprint.model.nv * (whole + windows))
        return int(np.clip(affordable, config.min_motions, config.max_motions))

    def _cost(self, candidate: Candidate) -> float:
        wanted = [self.space.index(target) for target in self.known.wanted]
        return identification_cost(candidate.whole_information, wanted)

    def _play(
        self, motions: Motions, rows: Array, readings: Array | None = None, max_frames: int | None = None
    ) -> tuple[SimulatedMotions, Flags]:
        """Returns how motions go in simulation, and which of them are allowed."""
        commands = sample_commands(motions, self.command_limits, self.duration_s, self.known.project.rate_hz)
        run = simulate_motions(self.known, self.space, commands, rows, readings)
        return run, self.is_allowed(run, max_frames)

    def _try_motions(self, elite: list[Candidate], slots: int) -> list[Candidate]:
        """Returns at most `slots` new motions that keep the limits, each looked at once."""
        config, project = self.config, self.known.project
        count, timing = config.draws_per_motion * slots, (self.duration_s, project.rate_hz)
        if elite:
            motions = vary_motions(np.concatenate([one.motion for one in elite]), count, *timing, self.rng)
        else:
            motions = draw_motions(self.command_limits, count, *timing, self.rng)
        run, allowed = self._play(motions, self.row, max_frames=SEARCH_FRAMES)
        for _ in range(config.num_corrections):
            if allowed.all():
                break
            motions = scale_down(motions, self._find_factors(run, allowed))
            run, allowed = self._play(motions, self.row, max_frames=SEARCH_FRAMES)
        self.num_tried += count
        good = np.flatnonzero(allowed)
        spread = np.std(run.qvel[good], axis=1)  # of speeds, each against its largest: those that move most come first
        movement = np.mean(spread / np.maximum(spread.max(axis=0, initial=1e-12), 1e-12), axis=1)
        order = good if elite else good[np.argsort(-movement)]
        found: list[Candidate] = []
        for k in order[:slots]:
            track = record_motion(project, run, int(k), self.noise, self.rng)
            windows = cut_windows(project, [track], WINDOW_S)
            windows = windows.pick(self.rng.permutation(len(windows)))
            nothing = np.zeros((len(self.space), len(self.space)))
            found.append(self._look_at_windows(Candidate(motions[[k]], windows, nothing)))
        self.information += [candidate.whole_information for candidate in found]
        return found

    def _find_factors(self, run: SimulatedMotions, allowed: Flags) -> Array:
        """Returns factors that should let motions keep their limits, (num_motions, num_commands)."""
        smallest = self.config.min_factor
        factor = np.ones((len(allowed), len(self.command_limits.rest)))
        for limit in self.limits:
            share, own = limit.allowed_share(run), factor[:, limit.command]
            factor[:, limit.command] = np.where(share < 1, np.minimum(own, np.maximum(0.9 * share, smallest)), own)
        touching = ~allowed & (factor == 1).all(axis=1)
        factor[touching] = smallest  # whichever command it is
        return factor

    def _look_at_windows(self, candidate: Candidate) -> Candidate:
        """Returns a motion with the information of a few more of its windows."""
        begin = candidate.num_seen
        some = np.arange(begin, min(begin + self.config.windows_per_look, len(candidate.windows)))
        if not len(some):
            return candidate
        more = expected_information(self._predictor, candidate.windows.pick(some), self.row, self.min_sigma)
        return replace(candidate, information=candidate.information + more, num_seen=begin + len(some))

    def _find_safe(self, candidates: list[Candidate]) -> SimulatedMotions | None:
        """Returns the runs of the best motion that also keeps the limits on robots that differ a little.

        The first run is that of the robot as assumed. Commands that would make one break a limit are scaled down.
        """
        rows, readings = self._draw_robots()
        for candidate in candidates[: self.config.num_verified]:
            motion = candidate.motion
            for number in range(self.config.num_verifications):
                run, allowed = self._play(np.repeat(motion, len(rows), axis=0), rows, readings)
                if allowed.all():
                    return run
                motion = scale_down(motion, self._find_factors(run, allowed).min(axis=0) ** (1 + number / 2))
        return None

    def _draw_robots(self) -> tuple[Array, Array]:
        """Returns rows and starting readings of robots that differ a little from what is assumed, the first not at all.

        Every parameter is off by `robot_sd`, one standard deviation, and every reading at the start by its noise.
        """
        rng, scaling, count = np.random.default_rng(0), Scaling.of(self.space), self.config.num_robots
        unit = np.clip(scaling.unit(self.row), 0.0, 1.0)
        moved = np.clip(unit + self.config.robot_sd * rng.standard_normal((count, len(unit))), 0.0, 1.0)
        errors = self.noise * rng.standard_normal((count, len(self.noise)))
        moved[0], errors[0] = unit, 0.0
        return scaling.values(moved), self.known.rest[0] + errors
