"""Which earlier fit of the same robot a new one is compared with, and what changed beyond what intervals allow.

The limits of a difference of two independent estimates follow from the limits of each (MOVER: Zou and Donner, 2008);
those of a ratio are those of a difference of logarithms. Only intervals are needed, so that a fit can be compared with
any earlier one of which the JSON is left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from gapless.core.episode import Episode
from gapless.core.errors import InputError
from gapless.core.interval import normal_quantile
from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import Drift, FittedParameter, IdentifyResult, Since
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import load_stored_result
from gapless.fit.data import ProjectData
from gapless.fit.per_run import summarize_runs
from gapless.fit.problem import FitProblem
from gapless.fit.solve import solve_least_squares
from gapless.fit.summary import describe_parameters
from gapless.project.fingerprint import fingerprint
from gapless.sim.ranges import read_result

EarlierFit = tuple[str, IdentifyResult]  # id in the catalogue, or path; and the fit
LEVEL = 0.95  # at which the intervals of all compared parameters hold together


def recorded_span(episodes: Iterable[Episode]) -> tuple[str | None, str | None]:
    """Returns when the first and the last of some episodes were recorded; None unless all of them say."""
    stamps = [episode.recorded_at for episode in episodes]
    known = sorted((stamp for stamp in stamps if stamp is not None), key=_parse_time)
    return (known[0], known[-1]) if known and len(known) == len(stamps) else (None, None)


def find_earlier_fit(data: ProjectData, since: str | Path | None, window_s: float) -> EarlierFit | None:
    """Returns the fit to compare with: the one whose JSON is `since`, or else the earliest that fits the project now.

    Without a name it must be in the catalogue, made with the same project files and windows, and all its logs must
    have been recorded before all of these. The earliest, because wear adds up.

    Raises:
        InputError: If the fit that is named cannot be compared with.
    """
    if since is not None:
        return str(since), _read_named_fit(data, Path(since))
    begin, _ = recorded_span(data.episodes)
    if begin is None:
        return None
    wanted = {"project": fingerprint(data.project), "window_s": window_s}
    found: list[tuple[datetime, EarlierFit]] = []
    for row in data.catalogue.artefacts("identify"):
        same = all(row.provenance.config.get(key) == value for key, value in wanted.items())
        if not same or set(row.provenance.parents) & set(data.ids):
            continue
        result = load_stored_fit(data.catalogue, row.id)
        end = result.recorded_to if result and result.verdict != "refused" else None
        if result and end is not None and _parse_time(end) < _parse_time(begin):
            found.append((_parse_time(end), (row.id, result)))
    # Of several fits to the same logs the last one made counts: the catalogue lists it last.
    return min(reversed(found), key=lambda item: item[0], default=(None, None))[1]


def _read_named_fit(data: ProjectData, path: Path) -> IdentifyResult:
    try:
        result = read_result(path, IdentifyResult)
    except InputError as error:
        raise InputError(f"--since: this fit cannot be read, name another: {error}") from None
    if result.verdict == "refused":
        raise InputError(f"--since: that fit was refused ({'; '.join(result.reasons)}): name one that was not: {path}")
    shared = set(result.inputs) & set(data.ids)
    if shared:
        names = [e.name for e, identity in zip(data.episodes, data.ids, strict=True) if identity in shared]
        text = f"{len(shared)} logs are in both fits ({', '.join(names[:4])})"
        raise InputError(f"--since: {text}: choose others with --logs PATTERN: {path}")
    return result


def load_stored_fit(catalogue: Catalogue, identity: str) -> IdentifyResult | None:
    """Returns a stored fit; None where its file was deleted or damaged, which must not stop a new fit."""
    try:
        result = load_stored_result(catalogue, identity)
    except (InputError, OSError, ValueError, TypeError):
        return None
    return result if isinstance(result, IdentifyResult) else None


def _parse_time(stamp: str) -> datetime:
    """Returns a time stamp that can be compared: without a zone it counts as UTC."""
    moment = datetime.fromisoformat(stamp)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def compare_with_earlier(
    earlier: EarlierFit | None, parameters: tuple[FittedParameter, ...], train: FitProblem, row: Array
) -> tuple[Since | None, tuple[Drift, ...]]:
    """Returns which parameters were compared with an earlier fit, and those that drifted.

    Where the fits have different terms, these logs are fitted again with those of the earlier one: a term more or
    less moves the others. `parameters` and `row` are the solution of the problem `train`.
    """
    if earlier is None:
        return None, ()
    name, old = earlier
    space, known = train.predictor.space, {p.target for p in old.parameters}
    runs = {p.run for p in train.space.parameters} | {None}
    free = tuple(k for k, p in enumerate(space.parameters) if p.target in known and p.run in runs)
    refitted = bool(free) and free != train.free
    if refitted:
        again = replace(train, free=free)
        found = summarize_runs(again, solve_least_squares(again.weighted_at(row), row))
        parameters = describe_parameters(found.space, found.solution)
    pairs = find_comparable(old.parameters, parameters)
    since = Since(name, old.recorded_to, tuple(new.target for _, new in pairs), LEVEL, refitted)
    return since, find_drifts(pairs, old.recorded_to)


def find_comparable(
    before: Sequence[FittedParameter], after: Sequence[FittedParameter]
) -> list[tuple[FittedParameter, FittedParameter]]:
    """Returns the pairs that can be compared: determined in both fits, at a bound in neither.

    Factors of the model's own values can be compared only if those values are the same.
    """
    known = {p.target: p for p in before}
    pairs = [(known[p.target], p) for p in after if p.target in known]
    return [
        (old, new)
        for old, new in pairs
        if all(p.identifiable and not p.at_bound for p in (old, new))
        and old.unit == new.unit
        and (old.unit != "1" or np.isclose(old.nominal, new.nominal))
    ]


def find_drifts(
    pairs: Sequence[tuple[FittedParameter, FittedParameter]], since: str | None = None, level: float = LEVEL
) -> tuple[Drift, ...]:
    """Returns the parameters whose change has an interval without 0, in the order of the pairs.

    Changes are relative where neither value can be negative and the earlier one surely is not 0.
    Each interval is made at 1 - (1 - level) / num_pairs, so that all of them hold together at the level (Bonferroni),
    and with them those that are picked out because they exclude 0. `since` is when the last log of the earlier fit was
    recorded.
    """
    each = 1.0 - (1.0 - level) / max(1, len(pairs))
    found: list[Drift] = []
    for old, new in pairs:
        before, after = limits_at_level(old, each), limits_at_level(new, each)
        relative = min(old.prior_low, new.prior_low) >= 0.0 and before[1] > 0.0 and after[0] > 0.0
        if relative:
            with np.errstate(divide="ignore"):  # a lower limit of 0 is minus infinity
                before, after = np.log(before), np.log(after)
        change, low, high = subtract_limits(after, before).tolist()
        if low <= 0.0 <= high:
            continue
        if relative:
            change, low, high = np.expm1([change, low, high]).tolist()
        found.append(Drift(old.target, old.unit, old.value, new.value, change, low, high, level, relative, since))
    return tuple(found)


def limits_at_level(parameter: FittedParameter, level: float) -> Array:
    """Returns a parameter's value, low and high, (3,), at another level than that of its record.

    Its error is taken to be normal in the solver's coordinate, as it was when the record was made. A limit that was
    cut at a bound says less than the other one, which is then used for both.
    """
    p = parameter
    scaling = Scaling.of(
        ParameterSpace((Parameter(p.target, p.dimension, p.unit, p.nominal, p.prior_low, p.prior_high),))
    )
    value, low, high = scaling.unit(np.array([[p.value], [p.low], [p.high]])).ravel()
    wider = normal_quantile((1 + level) / 2) / normal_quantile((1 + p.level) / 2)
    half = wider * max(high - value, value - low)
    ends = scaling.values(np.clip(np.array([[value - half], [value + half]]), 0.0, 1.0))
    return np.array([p.value, *ends.ravel()])


def subtract_limits(first: Array, second: Array) -> Array:
    """Returns value, low and high of first - second, each given by the same three.

    With (a, l, u) and (b, m, v): a - b, a - b - sqrt((a - l)^2 + (v - b)^2), a - b + sqrt((u - a)^2 + (b - m)^2).
    """
    (a, a_low, a_high), (b, b_low, b_high) = first, second
    return a - b + np.array([0.0, -np.hypot(a - a_low, b_high - b), np.hypot(a_high - a, b - b_low)])
