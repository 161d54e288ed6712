"""The search for a motion: random ones first, then children of the best."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gapless.core.parameters import ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.excite.information import Judge, cost, expected_covariance
from gapless.excite.limits import Limit
from gapless.excite.motion import Channels, Motions, commands, draw, joined, vary
from gapless.excite.prospect import Prospect
from gapless.excite.rehearsal import Rehearsal, Run
from gapless.excite.workspace import SOME_FRAMES, Workspace
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.fit.solve import Progress

BUDGET = 5e6  # physics steps times degrees of freedom: some 15 s of one processor
FEWEST, MOST = 24, 160  # motions that are measured
NUM_ELITE = 6
NUM_GENERATIONS = 6
FEW_WINDOWS = 6  # of each motion, per look at it; the best are looked at again, at other windows
PER_SLOT = 2  # motions simulated for each one that is measured: some break a limit
NUM_MENDS = 2  # times that motions which break a limit are made calmer
CALMEST = 0.5  # at once
NUM_SAFE = 3  # of the best motions are tried on robots that differ
NUM_CALMER = 8  # times that a motion is made calmer where a robot that differs would break a limit
NUM_DOUBTS = 8  # robots that differ from the model
DOUBT = 0.03  # by so much of each parameter's range, one standard deviation


@dataclass(frozen=True)
class Candidate:
    """A motion and what is known of it.

    Attributes:
        motion: The motion, alone.
        windows: All windows of its recording, in random order.
        information: (num_parameters, num_parameters) of the windows looked at, the first `num_seen`.
        num_seen: How many those are.
    """

    motion: Motions
    windows: Windows
    information: Array
    num_seen: int = 0

    @property
    def whole_information(self) -> Array:
        """The information of all its windows, from those looked at."""
        return self.information * len(self.windows) / max(1, self.num_seen)

    def cost(self, wanted: Sequence[int]) -> float:
        """Returns how badly it tells some parameters; see `information.cost`."""
        return cost(expected_covariance(self.whole_information, len(self.windows)), wanted)


@dataclass(frozen=True)
class Setting:
    """All that a search needs.

    Attributes:
        prospect: What is known.
        space: All parameters that would be fitted.
        channels: What the commands may do.
        limits: What a motion must keep.
        workspace: What it must not touch.
        duration_s: Its length [s].
        window_s: Length of the prediction windows [s].
        noise: (num_measurements,) standard deviation of the readings.
        sigma: (num_measurements,) least error of predictions.
    """

    prospect: Prospect
    space: ParameterSpace
    channels: Channels
    limits: tuple[Limit, ...]
    workspace: Workspace
    duration_s: float
    window_s: float
    noise: Array
    sigma: Array

    @property
    def row(self) -> Array:
        """The values believed, (num_parameters,)."""
        return self.prospect.row(self.space)

    def commands(self, motions: Motions) -> Array:
        """Returns the commands of motions, (num_motions, num_steps, num_commands)."""
        return commands(motions, self.channels, self.duration_s, self.prospect.project.rate_hz)

    def kept(self, run: Run, most_frames: int | None = None) -> NDArray[np.bool_]:
        """Tells which motions keep all limits and touch nothing in so many frames (None: all), (num_motions,)."""
        good = np.isfinite(run.measured).all(axis=(1, 2))
        for limit in self.limits:
            good &= limit.kept(run)
        for k in np.flatnonzero(good):
            good[k] = self.workspace.fault(run.qpos[k], most_frames) is None
        return good


@dataclass(frozen=True)
class Found:
    """The outcome of a search.

    Attributes:
        best: The best motions, the best first; empty if none keeps the limits.
        pooled: (num_parameters, num_parameters) mean information of all motions measured.
        num_tried: How many were simulated.
    """

    best: tuple[Candidate, ...]
    pooled: Array
    num_tried: int


class Search:
    """Looks for a motion that tells the wanted parameters."""

    def __init__(self, setting: Setting, rng: np.random.Generator) -> None:
        """Prepares a search."""
        self.setting = setting
        self._rng = rng
        self._rehearsal = Rehearsal(setting.prospect, setting.space)
        self._judge = Judge(Predictor(setting.prospect.blueprint, setting.space), setting.row, setting.sigma)
        self._wanted = [setting.space.index(target) for target in setting.prospect.wanted]
        self._num_tried = 0
        self._measured: list[Array] = []

    def run(self, progress: Progress | None = None) -> Found:
        """Returns the best motions found.

        Random motions first; then, generation by generation, children of the best. Each is simulated whole; those
        that keep the limits are measured on a few of their windows, and the best again on others.
        """
        slots = -(-num_measured(self.setting) // (NUM_GENERATIONS + 1))
        elite: list[Candidate] = []
        for generation in range(NUM_GENERATIONS + 1):
            if progress is not None:
                progress("looking for a motion", generation / (NUM_GENERATIONS + 1))
            fresh = self._fresh(elite, slots)
            again = [self._look(candidate) for candidate in elite]
            elite = sorted([*again, *fresh], key=lambda c: c.cost(self._wanted))[:NUM_ELITE]
        if progress is not None:
            progress("looking for a motion", 1.0)
        size = len(self.setting.space)
        pooled = np.mean(self._measured, axis=0) if self._measured else np.zeros((size, size))
        return Found(tuple(elite), pooled, self._num_tried)

    def _fresh(self, elite: list[Candidate], slots: int) -> list[Candidate]:
        """Returns new motions that keep the limits, measured; at most `slots`."""
        setting, count = self.setting, PER_SLOT * slots
        rate_hz = setting.prospect.project.rate_hz
        if elite:
            parents = elite[0].motion
            for one in elite[1:]:
                parents = joined(parents, one.motion)
            motions = vary(parents, count, setting.duration_s, rate_hz, self._rng)
        else:
            motions = draw(setting.channels, count, setting.duration_s, rate_hz, self._rng)
        run = self._rehearsal.play(setting.commands(motions), setting.row)
        kept = setting.kept(run, SOME_FRAMES)
        for _ in range(NUM_MENDS):
            if kept.all():
                break
            motions = motions.calmed(self._calm(run, kept))
            run = self._rehearsal.play(setting.commands(motions), setting.row)
            kept = setting.kept(run, SOME_FRAMES)
        self._num_tried += count
        good = np.flatnonzero(kept)
        order = good if elite else good[np.argsort(-_restless(run.pick(good)))]
        found = [self._look(self._candidate(motions, run, int(k))) for k in order[:slots]]
        self._measured += [candidate.whole_information for candidate in found]
        return found

    def _calm(self, run: Run, kept: NDArray[np.bool_]) -> Array:
        """Returns factors that should let motions keep their limits, (num_motions, num_commands)."""
        factor = np.ones((len(kept), len(self.setting.channels.rest)))
        for limit in self.setting.limits:
            room = limit.room(run)
            own = factor[:, limit.column]
            factor[:, limit.column] = np.where(room < 1, np.minimum(own, np.maximum(0.9 * room, CALMEST)), own)
        stuck = ~kept & (factor == 1).all(axis=1)
        factor[stuck] = CALMEST  # something is touched: whichever command it is
        return factor

    def _candidate(self, motions: Motions, run: Run, index: int) -> Candidate:
        """Returns one of the motions that were played, as recorded, not looked at yet."""
        setting, size = self.setting, len(self.setting.space)
        track = self._rehearsal.record(run, index, setting.noise, self._rng)
        windows = cut_windows(setting.prospect.project, [track], setting.window_s)
        windows = windows.pick(self._rng.permutation(len(windows)))
        return Candidate(motions.pick(np.array([index])), windows, np.zeros((size, size)))

    def _look(self, candidate: Candidate) -> Candidate:
        """Returns a motion with the information of a few more of its windows."""
        begin = candidate.num_seen
        some = np.arange(begin, min(begin + FEW_WINDOWS, len(candidate.windows)))
        if not len(some):
            return candidate
        more = self._judge.solution(candidate.windows.pick(some)).information
        return replace(candidate, information=candidate.information + more, num_seen=begin + len(some))

    def safe(self, candidates: tuple[Candidate, ...]) -> Run | None:
        """Returns the runs of the best motion that also keeps the limits on robots that differ a little.

        The first run is that of the robot as believed. Commands that would make one break a limit are made calmer.
        """
        setting = self.setting
        rows, readings = doubts(setting)
        for candidate in candidates[:NUM_SAFE]:
            motion = candidate.motion
            for number in range(NUM_CALMER):
                sent = np.repeat(setting.commands(motion), len(rows), axis=0)
                run = self._rehearsal.play(sent, rows, readings)
                kept = setting.kept(run)
                if kept.all():
                    return run
                motion = motion.calmed(self._calm(run, kept).min(axis=0) ** (1 + number / 2))
        return None

    def why_not(self) -> str:
        """Returns what stands in the way where no motion keeps the limits: what it breaks when left alone, if any."""
        setting = self.setting
        run = left_alone(setting)
        broken = [limit.name for limit in setting.limits if not limit.kept(run).all()]
        fault = next((text for qpos in run.qpos if (text := setting.workspace.fault(qpos))), None)
        if broken or fault:
            return f"left alone, it does not stay within limits: {fault or ', '.join(broken)}"
        return "no motion tried keeps the limits: allow more with --max-speed, --max-effort or --lowest"


def doubts(setting: Setting) -> tuple[Array, Array]:
    """Returns rows and starting readings of robots that differ a little from what is believed, the first not at all.

    Every parameter is off by `DOUBT`, one standard deviation, and every reading at the start by its noise.
    """
    rng, scaling = np.random.default_rng(0), Scaling.of(setting.space)
    unit = np.clip(scaling.unit(setting.row), 0.0, 1.0)
    moved = np.clip(unit + DOUBT * rng.standard_normal((NUM_DOUBTS, len(unit))), 0.0, 1.0)
    errors = setting.noise * rng.standard_normal((NUM_DOUBTS, len(setting.noise)))
    moved[0], errors[0] = unit, 0.0
    return scaling.values(moved), setting.prospect.rest()[0] + errors


def left_alone(setting: Setting) -> Run:
    """Returns how robots that differ a little move when the command stays at rest."""
    rows, readings = doubts(setting)
    num_steps = round(setting.duration_s * setting.prospect.project.rate_hz)
    still = np.broadcast_to(setting.channels.rest, (len(rows), num_steps, len(setting.channels.rest)))
    return Rehearsal(setting.prospect, setting.space).play(still, rows, readings)


def num_measured(setting: Setting) -> int:
    """Returns how many motions the budget lets us measure."""
    blueprint, space = setting.prospect.blueprint, setting.space
    rate_hz = setting.prospect.project.rate_hz
    whole = PER_SLOT * (1 + NUM_MENDS) * setting.duration_s * rate_hz * blueprint.num_substeps
    rows = 1 + 2 * len(space) + 4 * len(setting.noise)
    windows = 1.5 * FEW_WINDOWS * rows * setting.window_s * rate_hz * blueprint.num_substeps
    return int(np.clip(BUDGET / (blueprint.model.nv * (whole + windows)), FEWEST, MOST))


def _restless(run: Run) -> Array:
    """Returns how much moves in each motion, (num_motions,): the spread of speeds, each against its largest."""
    spread = np.std(run.qvel, axis=1)
    return np.mean(spread / np.maximum(spread.max(axis=0, initial=1e-12), 1e-12), axis=1)
