"""From episodes to the factors of a regression: conditions, the time of day, a trend over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np

from gapless.core.episode import Episode
from gapless.core.signal import Array, Flags, Indices
from gapless.diagnose.outcomes.vocabulary import TIME_OF_DAY, TREND, is_time_of_day, normalize_name

MAX_NUMBERS = 5  # numeric conditions with more distinct values than this are cut into thirds
MIN_TREND_DAYS = 1.0 / 24  # below this span of recording [d] no trend is looked for
HOURS = ((5, "night"), (11, "morning"), (14, "noon"), (18, "afternoon"), (22, "evening"), (24, "night"))
TREND_SD = np.sqrt(0.5)  # a trend of this standard deviation has the prior of a two-level factor of equal halves
THIRDS = ("first third", "middle third", "last third")


@dataclass(frozen=True)
class FactorColumn:
    """One factor as the regression sees it."""

    name: str  # the factor's name
    values: tuple[str, ...]  # its levels, for people
    level: Indices  # (num_runs,) index of the level, -1 where unknown
    # (num_runs, num_effects) [1], indicators of the levels or one trend, each with mean 0 over the runs that have a
    # value and 0 where unknown: a factor separates its values, not the runs that name it from others
    basis: Array
    ordered: bool = False  # whether neighbouring values are alike: numbers, times

    @property
    def known(self) -> Flags:
        """(num_runs,) whether the run has a value."""
        return self.level >= 0


@dataclass(frozen=True)
class RunFactors:
    """Outcomes and factors of all runs."""

    failed: Flags  # (num_runs,)
    columns: tuple[FactorColumn, ...]  # factors with at least two values
    constant: tuple[str, ...]  # conditions with the same value in every run that names them, as `name=value`
    unique: tuple[str, ...]  # conditions that differ in every run, by name: no model can separate them from chance


def find_factors(episodes: Sequence[Episode]) -> RunFactors:
    """Returns the factors of runs with known outcomes."""
    failed = np.array([episode.outcome == "failure" for episode in episodes])
    stated = [
        {normalize_name(name): text for name, value in e.conditions.items() if (text := _normalize_value(value))}
        for e in episodes
    ]
    names = list(dict.fromkeys(name for conditions in stated for name in conditions))
    columns, constant, unique = list[FactorColumn](), list[str](), list[str]()
    for name in names:
        values = [conditions.get(name) for conditions in stated]
        known = [value for value in values if value is not None]
        if len(set(known)) < 2:
            constant.append(f"{name}={known[0]}")
        elif (column := _make_numeric_column(name, values)) is not None:
            columns.append(column)
        elif len(set(known)) == len(known):
            unique.append(name)
        else:
            columns.append(_make_column(name, values, tuple(dict.fromkeys(known))))
    times = [_parse_time(episode.recorded_at) for episode in episodes]
    if not any(is_time_of_day(name) for name in names):
        columns += _make_time_of_day(episodes, times)
    columns += _make_trend(times)
    return RunFactors(failed, tuple(columns), tuple(constant), tuple(unique))


def _normalize_value(value: object) -> str:
    """Returns a condition's value as it is compared; empty where nothing is said."""
    return "" if value is None else str(value).strip().lower()


def _make_column(
    name: str, values: Sequence[str | None], order: tuple[str, ...], ordered: bool = False
) -> FactorColumn:
    level = np.array([-1 if value is None else order.index(value) for value in values], dtype=np.intp)
    known = (level >= 0)[:, None]
    indicators = (level[:, None] == np.arange(len(order))).astype(float)
    basis = np.where(known, indicators - indicators.sum(axis=0) / known.sum(), 0.0)
    return FactorColumn(name, order, level, basis, ordered)


def _make_numeric_column(name: str, values: Sequence[str | None]) -> FactorColumn | None:
    """Returns a numeric condition with many values cut into thirds; None if it is not such a condition."""
    try:
        numbers = np.array([np.nan if value is None else float(value) for value in values])
    except ValueError:
        return None
    known = np.isfinite(numbers)
    if len(np.unique(numbers[known])) <= MAX_NUMBERS:
        return None
    edges = np.unique(np.quantile(numbers[known], [1 / 3, 2 / 3], method="lower"))
    ranges = [f"up to {edges[0]:.3g}", *(f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges))]
    ranges.append(f"above {edges[-1]:.3g}")
    bins = np.searchsorted(edges, numbers, side="left")
    texts = [ranges[k] if ok else None for k, ok in zip(bins, known, strict=True)]
    return _make_column(name, texts, tuple(text for text in ranges if text in texts), ordered=True)


def _parse_time(text: str | None) -> datetime | None:
    """Returns an ISO 8601 time as written; None where unknown or unreadable."""
    try:
        return None if text is None else datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def _make_time_of_day(episodes: Sequence[Episode], times: Sequence[datetime | None]) -> list[FactorColumn]:
    """Returns the time of day by the clock of the place, as the log has it; dates without a time have none."""
    parts: list[str | None] = []
    for episode, time in zip(episodes, times, strict=True):
        has_clock = time is not None and ":" in (episode.recorded_at or "")
        parts.append(next(part for until, part in HOURS if time.hour < until) if time and has_clock else None)
    order = tuple(part for part in dict.fromkeys(part for _, part in HOURS) if part in parts)
    return [_make_column(TIME_OF_DAY, parts, order, ordered=True)] if len(order) > 1 else []


def _make_trend(times: Sequence[datetime | None]) -> list[FactorColumn]:
    """Returns a straight line over the time of recording; times without a zone count as UTC."""
    start = datetime(2000, 1, 1, tzinfo=UTC)
    stamps = [None if t is None else (t if t.tzinfo else t.replace(tzinfo=UTC)) - start for t in times]
    days = np.array([np.nan if stamp is None else stamp / timedelta(days=1) for stamp in stamps])
    known = np.isfinite(days)
    span = float(np.ptp(days[known])) if known.sum() >= 3 else 0.0
    if span < MIN_TREND_DAYS:
        return []
    unit = "weeks" if span >= 14 else "days" if span >= 2 else "hours"
    line = np.where(known, days - days[known].mean(), 0.0)
    line *= TREND_SD / line[known].std()
    cuts = days[known].min() + span * np.array([1 / 3, 2 / 3])
    third = np.where(known, np.searchsorted(cuts, np.where(known, days, cuts[0])), -1)
    present = [k for k in range(3) if np.any(third == k)]
    level = np.array([present.index(k) if k >= 0 else -1 for k in third], dtype=np.intp)
    return [FactorColumn(f"{TREND} {unit}", tuple(THIRDS[k] for k in present), level, line[:, None])]
