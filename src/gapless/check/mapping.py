"""Check: is every column mapped as it should be? Evidence without a model first, then tests of hypotheses."""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np

from gapless.check.agreement import find_following_faults, find_increments, find_rate_contradictions, measure_following
from gapless.check.findings import Finding, joint_columns, list_drives
from gapless.check.hypotheses import MappingHypothesis, list_clock_hypotheses, list_column_hypotheses, shift_commands
from gapless.check.skill import ModelTolerance, PredictionSkill, find_moving_windows, measure_skill, search_best_skill
from gapless.core.signal import Array, Flags, Indices
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.project.records import Project
from gapless.signals.track import Track, spread_indices
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets.target import split_target


@dataclass(frozen=True)
class MappingTestConfig:
    """Limits of the tests, set on the bundled examples and on real logs (tests/recovery/test_bad_input.py).

    Errors are shares of that of a straight line (`PredictionSkill`).
    """

    window_s: float = 0.3  # length of the prediction windows [s]
    min_steps: int = 8  # control intervals of a window, at least
    explained_error: float = 0.5  # a column below has no fault
    explained_error_undriven: float = 0.1  # the same for columns that no command drives, where the clock may be wrong
    min_command_effect: float = 0.8  # share of the error with drives off, above which commands explain nothing
    max_ratio: float = 0.5  # the error with a hypothesis over that without, at most, to be believed
    max_own_ratio: float = 0.8  # the same of its own columns, where `max_ratio` holds for all columns together
    max_harm: float = 1.25  # factor by which it may make other columns worse
    min_consistency: float = 0.8  # share of the windows with a clear difference in which it must help
    clear_difference: float = 0.1  # share of the largest difference that is a clear one
    min_windows: int = 5  # windows in which a column must move to be judged, and that must show a clear difference
    similar_factor: float = 2.0  # hypotheses that do up to this much worse than the best are named too
    num_brief_windows: int = 12  # windows of a brief test of all hypotheses
    num_windows: int = 24  # windows of the full test
    num_finalists: int = 3  # hypotheses that get a full test
    promising_ratio: float = 0.9  # the error ratio that a hypothesis must reach in the brief test to get a full one


LIMITS = MappingTestConfig()


def find_mapping_faults(
    blueprint: CompiledProject, tracks: Sequence[Track], tolerance: ModelTolerance
) -> tuple[Finding, ...]:
    """Returns the faults in the mapping of a project's columns that its logs show, the clearest first.

    What can be seen without a model comes first; columns that it shows to be sound are not tested. Then hypotheses are
    tested by predictions, and the best is named: with it corrected, the next shows. Data without a fault cost one
    batched call.
    """
    following = measure_following(blueprint, tracks)
    increments = find_increments(blueprint, following, tracks)
    if increments:
        return tuple(increments)  # with these for targets nothing else can be judged
    found = find_rate_contradictions(blueprint.project, tracks) + find_following_faults(blueprint, following)
    if found:
        return tuple(found)
    sound = following.sound_readings | _per_run_columns(blueprint)
    tester = _HypothesisTester(blueprint, tracks, tolerance, sound, bool(following.pairs))
    decisive = tester.find_decisive() if len(tester.windows) else []
    return (_describe(blueprint.project, decisive),) if decisive else ()


def _per_run_columns(blueprint: CompiledProject) -> Set[int]:
    """Returns the columns of joints with per-run parameters: no value that all runs share suits them."""
    project = blueprint.project
    listed = () if project.parameters == "auto" else project.parameters
    per_run = [split_target(entry.target) for entry in listed if entry.per == "episode"]
    joints = {part.name for part in per_run if part.kind == "joint"}
    actuators = {part.name for part in per_run if part.kind == "actuator"}
    joints |= {d.joint for d in list_drives(blueprint) if project.commands[d.command].actuator in actuators}
    return {column for joint in joints for column in joint_columns(project, joint)}


@dataclass(frozen=True)
class _Comparison:
    """The skill of predictions of the data as mapped, and with a hypothesis applied."""

    hypothesis: MappingHypothesis
    before: PredictionSkill
    after: PredictionSkill

    @property
    def own_columns(self) -> list[int]:
        """The columns that the hypothesis is tested on, where they move."""
        return [k for k in sorted(self.hypothesis.tested_columns) if self.before.counts[k] >= 2]

    @property
    def own_ratio(self) -> float:
        """Error with the hypothesis over that without: geometric mean over its own columns; inf if they do not move."""
        columns = self.own_columns
        if not columns or not np.isfinite(self.after.best_shares[columns]).any():
            return float("inf")
        return float(np.exp(np.nanmean(self._log_ratio[columns])))

    @property
    def score(self) -> float:
        """Mean logarithm of the errors with the hypothesis over all columns: less is better."""
        return float(np.nanmean(np.log(self.after.best_shares))) if np.isfinite(self.own_ratio) else float("inf")

    def ratio_and_columns(self) -> tuple[float, list[int]]:
        """Returns the error with the hypothesis over that without, and the columns that this is about.

        These are its own; or all of them, where its own say too little: joints act on each other, so one that is
        read wrongly starts every window in a wrong state, which may show more in the others than in itself.
        """
        own, moving = self.own_ratio, [int(k) for k in np.flatnonzero(self._has_enough_windows)]
        if own <= LIMITS.max_ratio or not own <= LIMITS.max_own_ratio or not moving:
            return own, self.own_columns
        whole = float(np.exp(np.mean(self._log_ratio[moving])))
        return (whole, moving) if whole < own else (own, self.own_columns)

    def is_decisive(self) -> bool:
        """Tells whether it explains far more, in all, and in nearly every window in which it makes a difference."""
        others = self._has_enough_windows
        others[sorted(self.hypothesis.tested_columns)] = False
        harm = float(np.mean(self._log_ratio[others])) if others.any() else 0.0
        ratio, columns = self.ratio_and_columns()
        if ratio > LIMITS.max_ratio or harm > np.log(LIMITS.max_harm):
            return False
        before, after = (
            np.sqrt(np.nansum(skill.best_window_shares[:, columns], axis=1)) for skill in (self.before, self.after)
        )
        gain = before - after
        clear = gain[np.abs(gain) > LIMITS.clear_difference * np.abs(gain).max()]
        return bool(len(clear) >= LIMITS.min_windows and np.mean(clear > 0) >= LIMITS.min_consistency)

    @property
    def _log_ratio(self) -> Array:
        return np.log(self.after.best_shares) - np.log(self.before.best_shares)

    @property
    def _has_enough_windows(self) -> Flags:
        return (self.before.counts >= LIMITS.min_windows) & (self.after.counts >= LIMITS.min_windows)


class _HypothesisTester:
    """Tests hypotheses on prediction windows of some tracks."""

    def __init__(
        self,
        blueprint: CompiledProject,
        tracks: Sequence[Track],
        tolerance: ModelTolerance,
        sound: Set[int],
        clock_is_sound: bool,
    ) -> None:
        """Takes columns that are known to be right, and whether the clocks are, too."""
        self._blueprint, self._tracks, self._tolerance = blueprint, tracks, tolerance
        self._sound, self._clock_is_sound = list(sound), clock_is_sound
        self._predictor = Predictor(blueprint, tolerance.space)
        self._rows, self._few_rows = tolerance.grid(), tolerance.grid(delays_s=(0.0, 0.06))
        every = self._cut_shifted(0)
        unsure = [k for k in range(every.measured.shape[2]) if k not in sound]
        self._picked = find_moving_windows(blueprint.project, every, unsure)
        self.windows = every.pick(self._picked)

    def find_decisive(self) -> list[_Comparison]:
        """Returns the hypotheses that explain far more, the best first."""
        before = measure_skill(self._predictor, self._rows, [self.windows])[0]
        possible = self._list_possible(before)
        finalists = self._test_briefly(possible, _pick_windows(before, possible, LIMITS.num_brief_windows))
        if not finalists:
            return []
        some = _pick_windows(before, finalists, LIMITS.num_windows)
        before, *after = (
            search_best_skill(self._predictor, self._tolerance, windows.pick(some), self._rows)
            for windows in (self.windows, *map(self._change, finalists))
        )
        tested = [_Comparison(one, before, skill) for one, skill in zip(finalists, after, strict=True)]
        return sorted((one for one in tested if one.is_decisive()), key=lambda one: one.score)

    def _test_briefly(self, possible: Sequence[MappingHypothesis], some: Indices) -> list[MappingHypothesis]:
        """Returns the few hypotheses that do best under few rows of parameters, if they help at all."""
        if not possible:
            return []
        versions = [windows.pick(some) for windows in (self.windows, *map(self._change, possible))]
        before, *after = measure_skill(self._predictor, self._few_rows, versions)
        tested = [_Comparison(one, before, skill) for one, skill in zip(possible, after, strict=True)]
        order = np.argsort([one.score for one in tested])[: LIMITS.num_finalists]
        return [possible[k] for k in order if tested[k].own_ratio < LIMITS.promising_ratio]

    def _list_possible(self, before: PredictionSkill) -> list[MappingHypothesis]:
        """Returns the hypotheses that are worth testing, for what the data as they are leave unexplained."""
        moves, best = before.counts >= LIMITS.min_windows, before.best_shares
        bad = moves & (best > LIMITS.explained_error)
        clocks = list_clock_hypotheses(self._blueprint)
        driven = np.isin(np.arange(len(moves)), list(clocks[0].tested_columns) if clocks else [])
        if clocks:
            off = before.shares[-1]  # the last row has the drives off
            bad |= moves & driven & (best > LIMITS.min_command_effect * off)
            bad |= moves & ~driven & (best > LIMITS.explained_error_undriven)
        bad[self._sound] = False
        suspects, silent = [int(k) for k in np.flatnonzero(bad)], {int(k) for k in np.flatnonzero(~moves)}
        found = list_column_hypotheses(self._blueprint, suspects, silent) if suspects else []
        if self._clock_is_sound:
            return found
        # Readings may lead their commands only where no delay at all suits the driven columns best.
        delays_s = self._tolerance.delays_s(self._rows[before.best_row[moves & driven]])
        undelayed = len(delays_s) > 0 and np.mean(delays_s == 0) >= 0.5
        return found + [one for one in clocks if (undelayed if one.shift_rows < 0 else suspects)]

    def _change(self, hypothesis: MappingHypothesis) -> Windows:
        """Returns the windows with a hypothesis applied."""
        shift_rows = hypothesis.shift_rows
        windows = self._cut_shifted(shift_rows).pick(self._picked) if shift_rows else self.windows
        return hypothesis.apply(self._blueprint.project, windows)

    def _cut_shifted(self, shift_rows: int) -> Windows:
        project = self._blueprint.project
        tracks = shift_commands(self._tracks, shift_rows) if shift_rows else self._tracks
        return cut_windows(project, tracks, max(LIMITS.window_s, LIMITS.min_steps / project.rate_hz))


def _pick_windows(before: PredictionSkill, hypotheses: Sequence[MappingHypothesis], most: int) -> Indices:
    """Returns at most some windows in which the columns that hypotheses are tested on move, spread evenly."""
    columns = sorted({column for one in hypotheses for column in one.tested_columns})
    places = np.flatnonzero(np.isfinite(before.line_error[:, columns]).any(axis=1))
    return places[spread_indices(len(places), most)]


def _describe(project: Project, decisive: Sequence[_Comparison]) -> Finding:
    """Returns the best hypothesis as a finding, with those that do about as well."""
    best = decisive[0]
    limit = best.score + np.log(LIMITS.similar_factor)
    others = [one.hypothesis for one in decisive[1:] if one.score < limit and not one.hypothesis.shift_rows]
    alternatives = "".join(f"; it may also be that {other.text} ({other.remedy})" for other in others)
    share = f"{best.ratio_and_columns()[0]:.2f} of what it is, whatever gain, drag and delay"
    columns = dict.fromkeys(name for one in (best.hypothesis, *others) for name in one.column_names(project))
    text = f"it looks as if {best.hypothesis.text}: {best.hypothesis.remedy}; "
    moving = np.isfinite(best.before.line_error[:, sorted(best.hypothesis.tested_columns)]).any(axis=1)
    text += f"the error of {int(moving.sum())} prediction windows is then {share}"
    return Finding(tuple(columns), text + alternatives)
