"""Mistakes of the mapping: claims that explain much where the data as mapped explain little."""

from collections.abc import Sequence, Set

import numpy as np

from gapless.check.claims import Claim, claims_about, clock_claims, shift_commands
from gapless.check.doubts import Doubts
from gapless.check.findings import Mistake
from gapless.check.following import find_following, find_increments, followed, unfollowed
from gapless.check.rates import contradictions
from gapless.check.refine import refined
from gapless.check.skill import Skill, lively, measure_skill
from gapless.core.signal import Array, Indices
from gapless.fit.prediction.predict import Predictor
from gapless.fit.prediction.windows import Windows, cut_windows
from gapless.project.records import Project
from gapless.signals.track import Track
from gapless.sim.blueprint import CompiledProject
from gapless.sim.targets import driven_joint
from gapless.sim.targets.path import split_target

WINDOW_S = 0.3
MIN_STEPS = 8  # of a window
EXPLAINED = 0.5  # a column whose share of unexplained motion is below has no mistake
DECISIVE = 0.5  # a claim must bring the error to this share of what it was, or below
HELPFUL = 0.8  # or, with the columns that it is about at this share or below, the error of all columns together
HARMLESS = 1.25  # and may make the other columns no worse than by this factor
CONSISTENT = 0.8  # and must help in this share of the windows in which it makes a difference
TELLING = 0.1  # a window in which it makes this share of the largest difference counts
FEWEST = 5  # windows that must speak
AS_GOOD = 2.0  # claims that do this much worse than the best are named too
MOST_MISTAKES = 4
MOST_BRIEF_WINDOWS = 12
MOST_WINDOWS = 24
FINALISTS = 3  # claims that are tried in earnest
PROMISING = 0.9  # what a claim must bring the error to in a brief trial, to be tried in earnest
NO_HELP = 0.8  # commands that do not bring the error below this share of what drives that are off leave explain nothing


def find_mistakes(blueprint: CompiledProject, tracks: Sequence[Track], doubts: Doubts) -> tuple[Mistake, ...]:
    """Returns the mistakes in the mapping of a project's columns that its logs show, the plainest first.

    What can be seen without a model comes first; what it settles is not tried again. Then claims are tried one after
    the other: with the first one granted, is there another? Data that are as mapped cost one batched call.
    """
    following = find_following(blueprint, tracks)
    increments = find_increments(blueprint, following, tracks)
    if increments:
        return tuple(increments)  # with these for targets nothing else can be judged
    found = contradictions(blueprint.project, tracks) + unfollowed(blueprint, following)
    if found:
        return tuple(found)
    settled = followed(following) | _own_columns(blueprint)
    court = _Court(blueprint, tracks, doubts, settled, bool(following.pairs))
    granted: list[Claim] = []
    while len(court.windows) and len(granted) < MOST_MISTAKES:
        plainest = court.plainest(granted)
        if plainest is None:
            break
        granted.append(plainest[0])
        found.append(plainest[1])
    return tuple(found)


def _own_columns(blueprint: CompiledProject) -> Set[int]:
    """Returns the columns of joints of which each run has its own values: no value that all share suits them."""
    project, model = blueprint.project, blueprint.model
    listed = () if project.parameters == "auto" else project.parameters
    own = [split_target(entry.target) for entry in listed if entry.per == "episode"]
    joints = {part.name for part in own if part.kind == "joint"}
    actuators = [part.name for part in own if part.kind == "actuator" and part.name != "*"]
    driven = [driven_joint(model, model.actuator(name).id) for name in actuators]
    joints |= {model.joint(joint).name for joint in driven if joint is not None}
    return {k for k, item in enumerate(project.measurements) if item.element == "joint" and item.name in joints}


class _Court:
    """Tries claims on windows of some tracks."""

    def __init__(
        self,
        blueprint: CompiledProject,
        tracks: Sequence[Track],
        doubts: Doubts,
        settled: Set[int],
        clocks_settled: bool,
    ) -> None:
        """Takes columns that are known to be right, and whether the clocks are, too."""
        self.blueprint, self.tracks, self.doubts = blueprint, tracks, doubts
        self.settled, self.clocks_settled = list(settled), clocks_settled
        self.predictor = Predictor(blueprint, self.doubts.space)
        self.rows, self.few_rows = self.doubts.grid(), self.doubts.grid(delays_s=(0.0, 0.06))
        self.window_s = max(WINDOW_S, MIN_STEPS / blueprint.project.rate_hz)
        every = self._cut(0)
        self.windows = lively(blueprint.project, every, [k for k in range(every.measured.shape[2]) if k not in settled])
        self._places = np.isin(_keys(every), _keys(self.windows))

    def plainest(self, mended: Sequence[Claim]) -> tuple[Claim, Mistake] | None:
        """Returns the claim that explains most, after some others were granted; None where none is decisive."""
        before = self._skill([mended], self.rows)[0]
        claims = [claim for claim in self._possible(before) if not _undoes(claim, mended)]
        promising = self._promising(mended, claims, _heard(before, claims, MOST_BRIEF_WINDOWS))
        if not promising:
            return None
        some = _heard(before, promising, MOST_WINDOWS)
        before = self._refined(mended, some)
        stands = [(claim, self._refined([*mended, claim], some)) for claim in promising]
        decisive = [(claim, after) for claim, after in stands if _decisive(before, after, claim)]
        return _best(self.blueprint.project, before, decisive) if decisive else None

    def _promising(self, mended: Sequence[Claim], claims: Sequence[Claim], some: Indices) -> list[Claim]:
        """Returns the few claims that do best in a brief trial, if they help at all."""
        if not claims:
            return []
        briefly = self._skill([mended, *([*mended, claim] for claim in claims)], self.few_rows, some)
        before, brief = briefly[0], briefly[1:]
        scores = [_overall(before, skill, claim) for skill, claim in zip(brief, claims, strict=True)]
        order = np.argsort(scores)[:FINALISTS]
        return [claims[k] for k in order if _ratio(before, brief[k], claims[k]) < PROMISING]

    def _possible(self, before: Skill) -> list[Claim]:
        """Returns the claims that are worth trying, for what the data as they are leave unexplained."""
        heard = before.counts >= FEWEST
        off = before.shares[-1]
        bad = heard & (before.best > EXPLAINED)
        clocks = clock_claims(self.blueprint)
        for claim in clocks[:1]:
            driven = np.isin(np.arange(len(heard)), list(claim.about))
            bad |= heard & driven & (before.best > NO_HELP * off)  # commands explain nothing
            bad |= heard & ~driven & (before.best > 0.1)
        bad[self.settled] = False
        suspects = [int(k) for k in np.flatnonzero(bad)]
        found = claims_about(self.blueprint, suspects, {int(k) for k in np.flatnonzero(~heard)}) if suspects else []
        return found + self._clocks(before, clocks, bool(suspects))

    def _clocks(self, before: Skill, clocks: list[Claim], suspected: bool) -> list[Claim]:
        """Returns claims about clocks; that readings lead only where no delay at all suits the driven columns best."""
        if self.clocks_settled:
            return []
        driven = [k for claim in clocks[:1] for k in claim.about if before.counts[k] >= FEWEST]
        prompt = driven and np.mean(self.doubts.delays_s(self.rows[before.best_row[driven]]) == 0) >= 0.5
        return [claim for claim in clocks if (claim.later_rows < 0 and prompt) or (claim.later_rows > 0 and suspected)]

    def _refined(self, claims: Sequence[Claim], some: Indices) -> Skill:
        windows = self._version(claims).pick(some)
        known = measure_skill(self.predictor, self.rows, [windows])[0]
        return refined(self.predictor, self.doubts, windows, (self.rows, known))[1]

    def _skill(self, versions: Sequence[Sequence[Claim]], rows: Array, some: Indices | None = None) -> list[Skill]:
        windows = [self._version(claims) for claims in versions]
        return measure_skill(self.predictor, rows, windows if some is None else [each.pick(some) for each in windows])

    def _version(self, claims: Sequence[Claim]) -> Windows:
        later = sum(claim.later_rows for claim in claims)
        windows = self._cut(later).pick(self._places) if later else self.windows
        for claim in claims:
            windows = claim.apply(self.blueprint.project, windows)
        return windows

    def _cut(self, later_rows: int) -> Windows:
        tracks = shift_commands(self.tracks, later_rows) if later_rows else self.tracks
        return cut_windows(self.blueprint.project, tracks, self.window_s)


def _best(project: Project, before: Skill, decisive: Sequence[tuple[Claim, Skill]]) -> tuple[Claim, Mistake]:
    """Returns the claim that leaves least unexplained, and what to say about it and those that do about as well."""
    scored = sorted(((_overall(before, skill, claim), claim, skill) for claim, skill in decisive), key=lambda s: s[0])
    least, claim, skill = scored[0]
    others = [other for score, other, _ in scored[1:] if score < least + np.log(AS_GOOD) and not other.later_rows]
    share, count = _improvement(before, skill, claim)[0], _speaking(before, claim)
    doubt = "".join(f"; it may also be that {other.text} ({other.remedy})" for other in others)
    why = f"the error of {count} prediction windows is then {share:.2f} of what it is, whatever gain, drag and delay"
    columns = dict.fromkeys(name for one in (claim, *others) for name in one.columns(project))
    return claim, Mistake(tuple(columns), f"it looks as if {claim.text}: {claim.remedy}; {why}{doubt}")


def _heard(before: Skill, claims: Sequence[Claim], most: int) -> Indices:
    """Returns at most some windows that say something about the columns that claims are about, spread evenly."""
    columns = sorted({column for claim in claims for column in claim.about})
    places = np.flatnonzero(np.isfinite(before.line[:, columns]).any(axis=1))
    return places[np.unique(np.linspace(0, max(len(places) - 1, 0), most).astype(np.intp))] if len(places) else places


def _keys(windows: Windows) -> Indices:
    return windows.track * 10**9 + windows.first_row


def _undoes(claim: Claim, mended: Sequence[Claim]) -> bool:
    """Tells whether a claim is about what was mended already."""
    mine = {("m", c[0]) for c in claim.measurements} | {("c", c[0]) for c in claim.commands}
    theirs = {("m", c[0]) for m in mended for c in m.measurements} | {("c", c[0]) for m in mended for c in m.commands}
    return bool(mine & theirs) or (claim.later_rows != 0 and any(m.later_rows for m in mended))


def _judged(before: Skill, claim: Claim) -> list[int]:
    return [k for k in sorted(claim.about) if before.counts[k] >= 2]


def _ratio(before: Skill, after: Skill, claim: Claim) -> float:
    """Returns the error with a claim as a share of that without: geometric mean over the columns it is about."""
    columns = _judged(before, claim)
    if not columns or not np.isfinite(after.best[columns]).any():
        return float("inf")
    return float(np.exp(np.nanmean(np.log(after.best[columns]) - np.log(before.best[columns]))))


def _overall(before: Skill, after: Skill, claim: Claim) -> float:
    """Returns the mean logarithm of the errors over all columns that speak; the claim itself must be heard."""
    if not np.isfinite(_ratio(before, after, claim)):
        return float("inf")
    return float(np.nanmean(np.log(after.best)))


def _speaking(before: Skill, claim: Claim) -> int:
    return int(np.isfinite(before.line[:, sorted(claim.about)]).any(axis=1).sum())


def _improvement(before: Skill, after: Skill, claim: Claim) -> tuple[float, list[int]]:
    """Returns the error with a claim as a share of that without, and the columns that this is about.

    These are the claim's own; or all of them, where its own say too little: joints act on each other, so one that is
    read wrongly starts every window in a wrong state, which may show more in the others than in itself.
    """
    columns = _judged(before, claim)
    own = _ratio(before, after, claim)
    heard = [int(k) for k in np.flatnonzero((before.counts >= FEWEST) & (after.counts >= FEWEST))]
    if own <= DECISIVE or not own <= HELPFUL or not heard:
        return own, columns
    whole = float(np.exp(np.mean(np.log(after.best[heard]) - np.log(before.best[heard]))))
    return (whole, heard) if whole < own else (own, columns)


def _decisive(before: Skill, after: Skill, claim: Claim) -> bool:
    """Tells whether a claim explains far more, in all, and in nearly every window in which it makes a difference."""
    others = (before.counts >= FEWEST) & (after.counts >= FEWEST)
    others[sorted(claim.about)] = False
    worse = float(np.mean(np.log(after.best[others]) - np.log(before.best[others]))) if others.any() else 0.0
    share, columns = _improvement(before, after, claim)
    if share > DECISIVE or worse > np.log(HARMLESS):
        return False
    amplitude = [np.sqrt(np.nansum(skill.best_parts[:, columns], axis=1)) for skill in (before, after)]
    gain = amplitude[0] - amplitude[1]
    telling = gain[np.abs(gain) > TELLING * np.abs(gain).max()]
    return bool(len(telling) >= FEWEST and np.mean(telling > 0) >= CONSISTENT)
