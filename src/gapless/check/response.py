"""Stretches in which a joint does not respond to its motor: the drive was off, or the joint was blocked.

In each short window the motion is compared with two predictions, with the commands and without any:
measured - without = response * (with - without). The response is 1 for a perfect model and 0 for a drive that is off.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.check.doubts import Doubts
from gapless.check.findings import Stretch, runs
from gapless.check.skill import CLEAR, line_noise, lively, measure_skill
from gapless.core.signal import Array, Flags, Indices
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint, is_position_servo

WINDOW_S = 0.1
MIN_STEPS = 4
SILENT = 0.2  # a response below this share of the usual one is none
WEAK = 0.5  # a response below this share hardly is one
FEWEST = 3  # windows of a stretch
CHANCE = 0.01  # how many stretches may be expected by chance
RELIABLE = 0.3  # share of the usual response that three of four other windows must reach
NEVER = 0.15  # share of the effect of commands that a joint may move if it answers none
FEW_WINDOWS = 24  # to choose gain, drag and delay by


@dataclass(frozen=True)
class Responses:
    """How one joint responds to its motor, per window.

    Attributes:
        windows: The windows, log by log.
        size: (num_windows,) the response [1]; NaN where the command would not show.
        rest: (num_windows,) distance from the motion without commands, as a share of the effect of commands [1].
        effort: (num_windows,) largest size of the command.
        usual: The response that most windows with clear commands reach [1].
    """

    windows: Windows
    size: Array
    rest: Array
    effort: Array
    usual: float

    def silent(self) -> list[tuple[int, int]]:
        """Returns the runs of windows in which nothing answers, (first window, last window).

        The command must be as large as what moves the joint elsewhere, else it may be friction; the model must be
        good enough for other windows to answer; and so many silent ones in a row must be no chance. A run is extended
        over neighbours that hardly answer.
        """
        answered = self.effort[self.size > WEAK * self.usual]
        enough = float(np.median(answered)) if len(answered) else 0.0
        candidates: list[tuple[Indices, int, int]] = []
        others = np.isfinite(self.size)
        for track in np.unique(self.windows.track):
            places = np.flatnonzero((self.windows.track == track) & np.isfinite(self.size))
            for first, end in runs(self._is_silent(places)):
                run = places[first:end]
                if end - first >= FEWEST and self.effort[run].max() >= enough and not self._is_weak(run):
                    candidates.append((places, first, end))
                    others[places[first:end]] = False
        if not others.any() or np.percentile(self.size[others], 25) < RELIABLE * self.usual:
            return []
        chance = (self._is_silent(np.flatnonzero(others)).sum() + 1) / (others.sum() + 2)
        kept = [one for one in candidates if others.sum() * chance ** (one[2] - one[1]) < CHANCE]
        return list(dict.fromkeys(self._extended(*one) for one in kept))

    @property
    def none(self) -> bool:
        """Tells whether nothing ever answers: in nearly every window the motion is as if nothing were commanded."""
        telling = np.isfinite(self.size)
        return bool(np.mean(self.rest[telling] < NEVER) > 0.9)

    def _is_silent(self, places: Indices) -> Flags:
        """Tells in which windows the motion is as if nothing were commanded."""
        return (np.abs(self.size[places]) < SILENT * self.usual) & (self.rest[places] < WEAK * self.usual)

    def _is_weak(self, run: Indices) -> bool:
        """Tells whether a run answers after all, little but always alike: an inertia that is wrong, not a drive off."""
        mean, error = float(np.mean(self.size[run])), float(np.std(self.size[run])) / np.sqrt(len(run))
        return abs(mean) > min(0.5 * SILENT * self.usual, max(4 * error, 0.1 * SILENT * self.usual))

    def _extended(self, places: Indices, first: int, end: int) -> tuple[int, int]:
        weak = runs(self.size[places] < WEAK * self.usual)
        begin, stop = next((a, b) for a, b in weak if a <= first < b)
        return int(places[begin]), int(places[max(stop, end) - 1])


def unresponsive(blueprint: CompiledProject, tracks: Sequence[Track], doubts: Doubts) -> list[Stretch]:
    """Returns the stretches in which joints do not respond to the commands of motors; servos are not judged here."""
    project, model, found = blueprint.project, blueprint.model, list[Stretch]()
    predictor = Predictor(blueprint, doubts.space)
    for command, actuator in enumerate(blueprint.actuator_ids):
        joint = driven_joint(model, actuator)
        constant = all(np.ptp(track.commands[:, command]) == 0 for track in tracks)
        if joint is None or constant or is_position_servo(model, actuator):
            continue
        for column, item in enumerate(project.measurements):
            if (item.element, item.quantity, item.name) == ("joint", "position", model.joint(joint).name):
                responses = find_responses(predictor, doubts, tracks, command, column)
                if responses is not None:
                    found += _stretches(responses, item.column, project.commands[command].column)
    return found


def find_responses(
    predictor: Predictor, doubts: Doubts, tracks: Sequence[Track], command: int, column: int
) -> Responses | None:
    """Returns how a measured joint responds to a motor; None where commands do not show in its readings."""
    project = predictor.blueprint.project
    windows = cut_windows(project, tracks, max(WINDOW_S, MIN_STEPS / project.rate_hz), from_first_row=True)
    some = lively(project, cut_windows(project, tracks, max(3 * WINDOW_S, 2 * MIN_STEPS / project.rate_hz)), [column])
    if not len(windows) or not len(some):
        return None
    rows = doubts.grid()[:-1]
    few = some.pick(np.unique(np.linspace(0, len(some) - 1, FEW_WINDOWS).astype(np.intp)))
    row = rows[measure_skill(predictor, rows, [few])[0].best_row[column]][None]
    off = _without(windows, command)
    driven = predictor.predict(windows, row)[0, :, 1:, column]
    free = predictor.predict(off, row)[0, :, 1:, column]
    known = np.isfinite(windows.measured[:, 1:, column])
    effect = np.where(known, driven - free, 0.0)
    answer = np.where(known, windows.measured[:, 1:, column] - free, 0.0)
    power = np.sum(effect**2, axis=1)
    clear = power > known.sum(axis=1) * (CLEAR * line_noise(project, windows)[column]) ** 2
    size = np.where(clear & (power > 0), np.sum(answer * effect, axis=1) / np.where(power > 0, power, 1.0), np.nan)
    if clear.sum() < FEWEST:
        return None
    rest = np.sqrt(np.sum(answer**2, axis=1) / np.where(power > 0, power, 1.0))
    effort = np.abs(windows.commands[:, :, command]).max(axis=1)
    return Responses(windows, size, rest, effort, float(np.nanpercentile(size, 75)))


def _without(windows: Windows, command: int) -> Windows:
    commands, history = windows.commands.copy(), windows.history.copy()
    commands[..., command], history[..., command] = 0.0, 0.0
    return replace(windows, commands=commands, history=history)


def _stretches(responses: Responses, reading: str, command: str) -> list[Stretch]:
    """Returns the stretches of silent windows; windows in which a command would not show neither make nor break one."""
    windows = responses.windows
    text = f"{reading} does not respond to {command}: was the drive off, or the joint blocked?"
    found = responses.silent()
    if responses.none:
        tracks = [np.flatnonzero(windows.track == track) for track in np.unique(windows.track)]
        found = [(int(places[0]), int(places[-1])) for places in tracks]
    rows = [(windows.first_row[first], windows.first_row[last] + windows.num_steps) for first, last in found]
    return [
        Stretch(int(windows.track[first]), int(begin), int(end), reading, text)
        for (first, _), (begin, end) in zip(found, rows, strict=True)
    ]
