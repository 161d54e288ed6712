"""Is the truth found, do intervals hold it, and is it said what cannot be told? On twins, whose truth is known.

Twins 20 to 29 are for the table; those from 100 on are for tuning.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import ours
import twin_logs
from cases import Say
from sets import data_folder
from tables import Bar, Table, number

from gapless.core.results import FittedParameter

WRONG = 0.2  # an error that makes a value useless
RIGHT = 0.05  # an error that makes it good
MOVED = 0.2  # how far a true value lies from the model's, at least, for a good fit of it to mean anything
FAR = 2.0  # half widths of an interval: beyond, the truth is not just one of the 5 % that it may miss


@dataclass(frozen=True)
class Judged:
    """One fitted parameter beside its truth."""

    found: FittedParameter
    truth: float

    @property
    def sized(self) -> bool:
        """Whether it has a size that errors can be relative to: not 0, and of one sign."""
        return self.truth != 0 and self.found.prior_low >= 0

    @property
    def scale(self) -> float:
        """What errors are relative to: the truth, or half its range where that may be 0 or of either sign."""
        return abs(self.truth) if self.sized else (self.found.prior_high - self.found.prior_low) / 2

    @property
    def error(self) -> float:
        """Relative error of the fitted value [1]."""
        return abs(self.found.value - self.truth) / self.scale

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth; an interval that ends at a bound holds that bound."""
        hair = 1e-9 * (self.found.prior_high - self.found.prior_low)
        return self.found.low - hair <= self.truth <= self.found.high + hair

    @property
    def far_off(self) -> bool:
        """Whether the truth is useless and beyond an interval of twice the width: it should not have been said."""
        below, above = self.found.value - self.found.low, self.found.high - self.found.value
        low, high = self.found.value - FAR * below, self.found.value + FAR * above
        return self.error > WRONG and not low <= self.truth <= high

    @property
    def seems_known(self) -> bool:
        """Whether it was called undetermined, yet is right, and not just because the model was right before."""
        moved = abs(self.truth - self.found.nominal) / self.scale > MOVED
        return not self.found.identifiable and self.error < RIGHT and moved


def judge(parameters: Sequence[FittedParameter], truth: Mapping[str, float]) -> list[Judged]:
    """Returns each parameter beside its truth; what the twin does not change is as the model has it."""
    return [Judged(p, truth.get(p.target, p.nominal)) for p in parameters]


@dataclass(frozen=True)
class Outcome:
    """What one twin showed."""

    judged: list[Judged]
    modest: int
    """Called undetermined although determined: right, and right again on four times the logs."""
    missed: int
    """Parameters in which the twin differs from the model that were not fitted."""
    verdict: str
    cpu_seconds: float


def run(family: str, seed: int) -> Outcome:
    """Fits one twin; and once more on four times the logs if something may have been called unknown needlessly."""
    with tempfile.TemporaryDirectory() as folder:
        twins = twin_logs.make(family, seed, Path(folder))
        fit = ours.fit(twins.place)
    judged = judge(fit.result.parameters, twins.truth)
    doubtful = {one.found.target for one in judged if one.seems_known}
    if doubtful:
        with tempfile.TemporaryDirectory() as folder:
            more = ours.fit(twin_logs.make(family, seed, Path(folder), amount=4).place)
        again = judge(more.result.parameters, twins.truth)
        doubtful &= {one.found.target for one in again if one.error < RIGHT}
    missed = set(twins.truth) - {one.found.target for one in judged}
    return Outcome(judged, len(doubtful), len(missed), fit.result.verdict, fit.cpu_seconds)


@dataclass(frozen=True)
class Summary:
    """All twins of a family together; shares are None where there is nothing to share."""

    num_twins: int
    said: int
    total: int
    sized_error: float | None
    other_error: float | None
    coverage: float | None
    wrong: float | None
    far_off: float | None
    modest: float | None
    missed: float
    cpu_seconds: float


def summarise(outcomes: Sequence[Outcome]) -> Summary:
    """Returns medians, coverage and error rates of some twins."""
    every = [one for outcome in outcomes for one in outcome.judged]
    said = [one for one in every if one.found.identifiable]
    return Summary(
        len(outcomes),
        len(said),
        len(every),
        _median([one.error for one in said if one.sized]),
        _median([one.error for one in said if not one.sized]),
        _share([one.covered for one in said]),
        _share([one.error > WRONG for one in said]),
        _share([one.far_off for one in said]),
        sum(o.modest for o in outcomes) / (len(every) - len(said)) if len(every) > len(said) else None,
        float(np.mean([o.missed for o in outcomes])),
        float(np.mean([o.cpu_seconds for o in outcomes])),
    )


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def _share(flags: Sequence[bool]) -> float | None:
    return float(np.mean(flags)) if flags else None


def bars(family: str, found: Summary) -> list[Bar]:
    """Returns what a family has to reach."""
    return [
        Bar(f"{family}: median relative error", found.sized_error, 0.05),
        Bar(f"{family}: coverage of 95 % intervals", found.coverage, 0.93, at_most=False),
        Bar(f"{family}: called determined but far off", found.far_off, 0.0),
    ]


def tables(seeds: Sequence[int], say: Say, families: Sequence[str] = twin_logs.FAMILIES) -> Iterator[Table]:
    """Yields the table of all families."""
    rows, reached = [], []
    for family in families:
        if family.startswith("so101") and not (data_folder() / "so101").is_dir():
            say(f"{family}: left out, its model is not here")
            continue
        outcomes = []
        for seed in seeds:
            outcomes.append(run(family, seed))
            one = summarise(outcomes[-1:])
            say(f"{family} {seed}: {outcomes[-1].verdict}, error {number(one.sized_error)}, {one.cpu_seconds:.0f} s")
        found = summarise(outcomes)
        rows.append(_row(family, found))
        reached += bars(family, found)
    yield Table(f"Twins {', '.join(map(str, seeds))}: is the truth found?", HEADER, rows, reached, NOTES)


HEADER = (
    "family",
    "twins",
    "determined",
    "median error",
    "zero or signed",
    "coverage",
    "> 20 % off",
    "far off",
    "needless doubt",
    "not fitted",
    "CPU s",
)
NOTES = (
    "determined: parameters called identifiable, of all that were fitted; errors and coverage are theirs.",
    "median error: of those with a size, relative to the truth; zero or signed: of biases, tilts and true zeros,"
    " relative to half their range.",
    "far off: called determined, more than 20 % off, and outside an interval of twice the width.",
    "needless doubt: of those called undetermined, the share that was right within 5 % although the model was more than"
    " 20 % off, and right again on four times the logs.",
    "not fitted: parameters in which a twin differs from the model and which the fit does not have, per twin.",
    "exact: nothing lacks in the model but a finer time step; bundled: with effects that it lacks.",
)


def _row(family: str, found: Summary) -> list[str]:
    middle = (found.sized_error, found.other_error, found.coverage, found.wrong, found.far_off, found.modest)
    shares = [number(value, ".3f") for value in middle]
    return [
        family,
        str(found.num_twins),
        f"{found.said} of {found.total}",
        *shares,
        number(found.missed),
        number(found.cpu_seconds),
    ]
