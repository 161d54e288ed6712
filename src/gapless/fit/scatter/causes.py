"""Causes that act by chance: they show in how logs scatter, not in where they go.

Readings that are rounded, or held where a new one was lost, show in the logs as recorded. Random pushes and commands
that come late by chance show in what predictions leave. Each counts as a cause where what it does to the readings is
well above their stated noise: an encoder whose steps are the noise that the project states is no gap.
"""

from collections.abc import Sequence, Set
from dataclasses import replace

import numpy as np

from gapless.core.interval import Interval, wilson
from gapless.core.results import ScatterCause
from gapless.core.signal import Array, Flags
from gapless.fit.data import ProjectData
from gapless.fit.problem import FitProblem
from gapless.fit.remainder.gather import Remainder, gather_remainder
from gapless.fit.remainder.judge import Judge
from gapless.fit.scatter.estimate import ScatterEstimate
from gapless.fit.scatter.random_forces import PUSH_S, RandomForce, weigh_random_forces
from gapless.fit.summary import describe_parameter
from gapless.project.log.read import log_paths, read_log
from gapless.signals.smoother import find_quantum, smooth
from gapless.sim.auto import parameters_of
from gapless.sim.targets.drive import driven_joint

LIKELY = 0.5  # probability from which a cause is reported by `identify`, too
MIN_STEP_TO_NOISE = 2.0  # rounding error over stated noise at which a step is as likely a cause as not
MIN_HELD_SHARE = 0.015  # of the rows: as likely a cause as not
MIN_HELD_TO_NOISE = 1.5  # root mean square error of held readings over that of others: as likely a cause as not
MIN_LEFT_TO_NOISE = 1.2  # errors of some column, in multiples of what noise explains, that pushes or jitter would leave
MIN_MOVED_STEPS = 2.0  # a reading that should have moved by so many steps of its column, and did not, is held
MAX_REGULAR = 0.7  # share of the changes at one interval, above which a column is slower than its log, not lossy
MIN_PUSH_GAIN, MIN_JITTER_GAIN = 1.5, 1.3  # log-likelihood per window above any misfit: as likely as not [nats]
MIN_FREE_WINDOWS = 15  # windows in which nothing touches, for pushes and late commands to be weighed
MAX_HIT = 0.6  # of the windows: what acts in more is no push
MIN_JITTER_INTERVALS = 0.3  # smallest that counts, in control intervals: what any fit leaves looks like a little jitter
MAX_JITTER_S = 0.1  # largest that the layer has: what asks for more is something else
MAX_HIDDEN = 0.05  # probability of pushes on a joint whose readings are spoiled
MIN_SPOILED_GAIN = 4.0  # of pushes where some column is spoiled: its errors show in other joints, too [nats]
# standard errors of the logarithms of a push, whose length is not known, and of jitter: tuning cases of `scatter`
PUSH_SPREAD, JITTER_SPREAD = 0.3, 0.12
JITTER_FACTOR = 0.603  # standard deviation of |n|, n standard normal: sqrt(1 - 2 / pi)


def weigh_scatter(data: ProjectData, problem: FitProblem, row: Array) -> tuple[ScatterCause, ...]:
    """Returns the causes that act by chance, the most probable first; those that are out of the question are left out.

    Args:
        data: The project and its logs.
        problem: Windows and predictor; its free parameters are those that were fitted.
        row: (num_parameters,) the whole row that was fitted.
    """
    recorded, found, doubtful = _read_recorded(data), list[ScatterCause](), set[str]()
    spoiled = problem.windows.noise.copy()
    for column, item in enumerate(data.project.measurements):
        values = [log[:, column] for log in recorded]
        noise = float(problem.windows.noise[column])
        for cause, size in (
            _weigh_quantum(item.column, item.unit, values, item.noise),
            _weigh_dropouts(item.column, values, noise, data.project.rate_hz),
        ):
            if cause.probability > LIKELY:  # what it leaves there is no push
                spoiled[column] = np.hypot(spoiled[column], size)
                doubtful.add(item.name)
            found.append(cause)
    beside = replace(problem, windows=replace(problem.windows, noise=spoiled))
    if len(beside.windows) and beside.columns_to_noise(row).max() > MIN_LEFT_TO_NOISE:
        found += _weigh_forces(gather_remainder(beside, row), problem, doubtful)
    return tuple(sorted(found, key=lambda cause: -cause.probability))


def describe_scatter_causes(data: ProjectData, found: Sequence[ScatterCause]) -> tuple[ScatterEstimate, ...]:
    """Returns the likely ones of some causes that act by chance as parameters of a fit."""
    estimates: list[ScatterEstimate] = []
    for cause in found:
        if cause.probability <= LIKELY:
            continue
        value, low, high = cause.value.value, cause.value.low, cause.value.high
        (parameter,) = parameters_of(data.blueprint, data.tracks, [cause.target])
        parameter = replace(parameter, low=min(parameter.low, low), high=max(parameter.high, high))
        fitted = describe_parameter(parameter, (value, low, high), identifiable=True)
        estimates.append(ScatterEstimate(fitted, explains_logs=True))
    return tuple(estimates)


def _read_recorded(data: ProjectData) -> list[Array]:
    """Returns the readings of each log as recorded, (num_rows, num_measurements), in model units."""
    paths = {path.stem: path for path in log_paths(data.project)}
    chosen = [paths[episode.name] for episode in data.episodes]
    return [read_log(data.project, path, as_recorded=True).episode.measurements.values for path in chosen]


def _weigh_quantum(column: str, unit: str, values: Sequence[Array], stated: float | None) -> tuple[ScatterCause, float]:
    """Returns the step of a column as a cause, and its rounding error.

    Without a stated noise, the noise of a rounded column is estimated as that of its rounding: no cause.
    """
    step = find_quantum(np.concatenate(values))
    size = step / np.sqrt(12.0)
    ratio = 0.0 if stated is None else size / max(stated, 1e-300)
    probability = _logistic(4.0 * np.log(max(ratio, 1e-3) / MIN_STEP_TO_NOISE))
    value = Interval(step, step * (1 - 1e-6), step * (1 + 1e-6), 0.95, sum(map(len, values)), "common step")
    text = f"{column} moves in steps of {step:.3g} {unit}: rounding of {ratio:.1f} times its stated noise"
    return ScatterCause("sensor", f"measurement/{column}/quantisation/step", value, probability, text), size


def _weigh_dropouts(column: str, values: Sequence[Array], noise: float, rate_hz: float) -> tuple[ScatterCause, float]:
    """Returns how often a column holds a reading where a new one was lost, as a cause, and the error that makes."""
    step = find_quantum(np.concatenate(values))
    held, asked, square = 0, 0, 0.0
    gaps: list[Array] = []
    bends: list[Array] = []
    for series in values:
        known = series[np.isfinite(series)]
        if len(known) < 12:
            continue
        repeats = np.diff(known, prepend=np.nan) == 0
        off, moved = _miss(known, repeats, noise, rate_hz)
        moves = moved > MIN_MOVED_STEPS * step
        asked += int(moves.sum())
        held += int((repeats & moves).sum())
        square += float(np.sum(off[repeats & moves] ** 2))
        gaps.append(np.diff(np.flatnonzero(~repeats)))
        bends.append(_bends(known, ~repeats)[moves])
    between = np.concatenate([*gaps, np.ones(1)])
    usual = np.median(between)
    at_usual: Flags = between == usual
    regular = usual > 1 and float(np.mean(at_usual)) > MAX_REGULAR
    share = wilson(held, max(asked, held, 1))
    size = float(np.sqrt(square / max(held, 1)))
    sure = 4.0 * np.log(max(share.low, 1e-4) / MIN_HELD_SHARE)
    usual_error = max(noise, _root_mean_square(np.concatenate([*bends, np.zeros(1)])))
    sure = min(sure, 4.0 * np.log(max(size / max(usual_error, 1e-300), 1e-3) / MIN_HELD_TO_NOISE))
    probability = 0.02 if regular else _logistic(sure)
    text = f"{column} repeats its last reading in {share.percent()} of the rows in which it moves: off by "
    text += f"{size / max(noise, 1e-300):.1f} times its noise there"
    lost = size * np.sqrt(share.value)
    return ScatterCause("sensor", f"measurement/{column}/occlusion/share", share, probability, text), lost


def _miss(known: Array, repeats: Flags, noise: float, rate_hz: float) -> tuple[Array, Array]:
    """Returns how far each reading is off a smooth curve through those that are no repeats, and how far it moved."""
    rows, fresh = np.arange(len(known)), ~repeats
    curve = smooth(np.interp(rows, rows[fresh], known[fresh]), rate_hz, max(noise, 1e-12))
    return known - curve.value, np.abs(curve.slope) / rate_hz


def _bends(known: Array, fresh: Flags) -> Array:
    """Returns how far each fresh reading is off the line between its neighbours; NaN at others.

    Through an impact the smooth curve is as wrong for fresh readings as for held ones.
    """
    rows, found = np.flatnonzero(fresh), np.full(len(known), np.nan)
    if len(rows) > 2:
        before, here, after = rows[:-2], rows[1:-1], rows[2:]
        share = (here - before) / (after - before)
        found[here] = known[here] - (1.0 - share) * known[before] - share * known[after]
    return found


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.nanmean(values**2)))


def _weigh_forces(remainder: Remainder, problem: FitProblem, doubtful: Set[str]) -> list[ScatterCause]:
    """Returns pushes on joints and late commands as causes, from what predictions leave.

    Joints whose readings are spoiled, `doubtful`, show no pushes. Windows in contact say nothing: there a small error
    grows by chance. Where nearly all are, nothing is weighed.
    """
    free = np.flatnonzero(~remainder.motion.touching.any(axis=(1, 2)))
    if len(free) < MIN_FREE_WINDOWS:
        return []
    left = Judge(remainder).left[free]
    remainder = remainder.keep_windows(free)
    slopes = _drive_slopes(remainder, problem)
    forces = weigh_random_forces(remainder, left, slopes)
    count = len(left)
    misfit = max(force.gain for force in forces if force.kind == "misfit")
    pushes = next((force for force in forces if force.kind == "pushes"), None)
    jitter = next((force for force in forces if force.kind == "jitter"), None)
    found: list[ScatterCause] = []
    if pushes is not None:
        rivals = max(misfit, jitter.gain if jitter else -np.inf)
        least = MIN_SPOILED_GAIN if doubtful else MIN_PUSH_GAIN
        cause = _describe_pushes(pushes, (pushes.gain - rivals) / count, least, remainder)
        hidden = pushes.place is not None and pushes.place.name in doubtful
        found.append(replace(cause, probability=min(cause.probability, MAX_HIDDEN)) if hidden else cause)
    if jitter is not None:
        rivals = max(misfit, pushes.gain if pushes else -np.inf)
        found.append(_describe_jitter(jitter, (jitter.gain - rivals) / count, remainder, problem))
    return found


def _describe_pushes(force: RandomForce, gain: float, least: float, remainder: Remainder) -> ScatterCause:
    name, window_s = force.place.name if force.place else "", np.ptp(remainder.motion.time_s[0])
    size = force.size * float(np.sqrt(1.0 + window_s / PUSH_S))  # a push that hits a window fills this part of it
    value = _widen(size, PUSH_SPREAD, force.hit * len(remainder.windows))
    probability = _logistic(2.0 * (gain - least)) if force.hit <= MAX_HIT else 0.02
    text = f"joint {name}: random pushes of {size:.3g} in {100 * force.hit:.0f} % of the windows explain what "
    text += f"predictions leave better than anything that goes with the motion ({gain:+.1f} nats per window)"
    return ScatterCause("environment", f"joint/{name}/pushes/strength", value, probability, text)


def _widen(value: float, spread: float, count: float) -> Interval:
    """Returns a size with the interval of a standard deviation of `count` draws, and of its logarithm's `spread`."""
    half = 1.96 * float(np.hypot(1.0 / np.sqrt(2.0 * max(1.0, count)), spread))
    return Interval(value, value * np.exp(-half), value * np.exp(half), 0.95, round(count), "likelihood")


def _describe_jitter(force: RandomForce, gain: float, remainder: Remainder, problem: FitProblem) -> ScatterCause:
    rate_hz = problem.predictor.blueprint.project.rate_hz
    rows = remainder.motion.piece_s * rate_hz
    size_s = force.size * np.sqrt(rows) / JITTER_FACTOR  # a piece has the mean delay of its rows
    value = _widen(size_s, JITTER_SPREAD, len(remainder.windows))
    text = f"commands that come late by chance, by {1000 * size_s:.0f} ms, explain what predictions leave: it grows "
    text += f"with the slope of the command ({gain:+.1f} nats per window)"
    is_possible = size_s * rate_hz >= MIN_JITTER_INTERVALS and size_s <= MAX_JITTER_S
    probability = _logistic(2.0 * (gain - MIN_JITTER_GAIN)) if is_possible else 0.02
    return ScatterCause("latency", "actuator/*/jitter/jitter_s", value, probability, text)


def _drive_slopes(remainder: Remainder, problem: FitProblem) -> Array:
    """Returns how fast what commands ask of drives changes, (num_windows, num_pieces, nv) [N·m/s, N/s]."""
    blueprint, windows = problem.predictor.blueprint, remainder.windows
    model, num_pieces = blueprint.model, remainder.motion.time_s.shape[1]
    sent = np.concatenate([windows.history[:, -1:], windows.commands], axis=1)
    rates = np.diff(sent, axis=1) * blueprint.project.rate_hz
    piece = np.arange(windows.num_steps) * num_pieces // windows.num_steps
    counts: Array = np.maximum(1.0, np.bincount(piece, minlength=num_pieces))
    inside = np.eye(num_pieces)[:, piece] / counts[:, None]
    found = np.zeros((len(windows), num_pieces, model.nv))
    for column, actuator in enumerate(blueprint.actuator_ids):
        joint = driven_joint(model, actuator)
        if joint is not None:
            gain = float(model.actuator_gainprm[actuator, 0] * model.actuator_gear[actuator, 0])
            found[..., int(model.jnt_dofadr[joint])] += gain * np.einsum("pt,wt->wp", inside, rates[..., column])
    return found


def _logistic(value: float) -> float:
    return float(np.clip(1.0 / (1.0 + np.exp(-np.clip(value, -30, 30))), 0.01, 0.99))
