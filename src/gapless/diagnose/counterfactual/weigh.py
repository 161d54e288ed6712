"""Which dimension, switched on in simulation, makes the simulated robot fail as the real one does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.episode import Episode
from gapless.core.interval import Interval, wilson
from gapless.core.parameters import ParameterSpace
from gapless.core.run import Runs
from gapless.core.signal import Array
from gapless.diagnose.counterfactual.calibrate import calibrate
from gapless.diagnose.counterfactual.likelihood import Observed, common_of, group, log_likelihoods, log_mean
from gapless.diagnose.counterfactual.sentences import dimension_sentence, nominal_sentence, ranges_of
from gapless.diagnose.counterfactual.signature import Standard
from gapless.diagnose.counterfactual.simulate import Simulate

Draw = Callable[[Dimension, np.random.Generator, int], Array]
Progress = Callable[[str, float], None]
MIN_REAL_RUNS = 5
PER_SEVERITY = 4
NOISE_SCALE = 1.5  # readings may be noisier than the project states by this factor, at one standard deviation [1]
CLIP = (-3.0, 6.0)  # nats that this evidence may speak against and for a dimension


@dataclass(frozen=True)
class Counterfactual:
    """What switching one dimension on in simulation did, beside what the real robot did.

    Attributes:
        dimension: Which.
        log_ratio: log p(real runs | this dimension wrong) - log p(real runs | nothing wrong) [nat], moderated: see
            `moderated`.
        fails: Share of simulated runs that fail, at the severities most like reality.
        phases: Phase -> share of those failures.
        ranges: Target -> (low, high) of the severities most like reality, for what moved most.
        sentence: The same in words.
    """

    dimension: Dimension
    log_ratio: float
    fails: Interval
    phases: Mapping[str, float]
    ranges: Mapping[str, tuple[float, float]]
    sentence: str


@dataclass(frozen=True)
class Counterfactuals:
    """What each dimension does to a policy in simulation, most like reality first.

    Attributes:
        real: Share of real runs that failed.
        nominal: Share of simulated runs that fail in the model as written.
        dimensions: One entry per dimension, the largest log ratio first.
        temper: By how much likelihoods were raised to speak as surely as simulated cases allow [1].
        sentences: What a person can check.
    """

    real: Interval
    nominal: Interval
    dimensions: tuple[Counterfactual, ...]
    temper: float
    sentences: tuple[str, ...]

    @property
    def log_ratios(self) -> dict[Dimension, float]:
        """Dimension -> log likelihood ratio against nothing wrong [nat]."""
        return {one.dimension: one.log_ratio for one in self.dimensions}


def weigh_counterfactuals(
    simulate: Simulate,
    real: Sequence[Episode],
    dimensions: Sequence[Dimension],
    draw: Draw,
    rng: np.random.Generator,
    *,
    space: ParameterSpace,
    runs_per_dimension: int = 96,
    progress: Progress | None = None,
) -> Counterfactuals | None:
    """Returns how likely real runs of a policy are with each dimension wrong, or None with too few real runs.

    Every dimension is run at `runs_per_dimension / PER_SEVERITY` severities. All hypotheses see the same starts
    and noise. That stated noise may be wrong is allowed for: what noisier readings do to the policy speaks for no
    dimension. Cost: `runs_per_dimension` runs for each dimension, and twice more for the model as written.

    Args:
        simulate: Runs the policy once per row; see `policy_simulator`.
        real: Runs of that policy; those without an outcome are left out.
        dimensions: What to switch on.
        draw: Draws rows, (count, num_parameters), in which only this dimension is wrong, at plausible severities.
        rng: Source of severities, starts and noise.
        space: What the rows hold.
        runs_per_dimension: Simulated runs of each dimension.
        progress: Called with what is being done and how far it is, in [0, 1].
    """
    judged = [episode for episode in real if episode.outcome is not None]
    if len(judged) < MIN_REAL_RUNS:
        return None
    num_severities = max(2, runs_per_dimension // PER_SEVERITY)
    seed = int(rng.integers(2**32))
    severities: dict[Dimension, Array] = {dimension: draw(dimension, rng, num_severities) for dimension in dimensions}
    tell = progress or _silent

    def run(rows: Array, num_done: int, noise_scale: float = 1.0) -> Runs:
        tell("counterfactual", num_done / (len(dimensions) + 2))
        return simulate(np.repeat(rows, PER_SEVERITY, axis=0), np.random.default_rng(seed), noise_scale=noise_scale)

    written = np.tile(space.nominal, (num_severities, 1))
    plain = run(written, 0)
    standard = Standard.of(plain.episodes, plain.success)
    nominal = _observed(plain.episodes, standard)
    noisier = _observed(run(written, 1, NOISE_SCALE).episodes, standard)
    seen = [_observed(run(rows, k + 2).episodes, standard) for k, rows in enumerate(severities.values())]
    tell("counterfactual", 1.0)
    nuisance = noisier.signatures.mean(axis=0) - nominal.signatures.mean(axis=0)
    return _compare(_observed(judged, standard), nominal, nuisance, severities, seen, space)


def _compare(
    real: Observed,
    nominal: Observed,
    nuisance: Array,
    severities: Mapping[Dimension, Array],
    seen: Sequence[Observed],
    space: ParameterSpace,
) -> Counterfactuals:
    rows = list(severities.values())
    groups = [group(nominal, nominal, space.nominal[None], len(nominal.failed))]
    groups += [group(runs, nominal, row, PER_SEVERITY) for row, runs in zip(rows, seen, strict=True)]
    common = common_of(groups, nuisance)
    calibration = calibrate(nominal, seen, rows, groups, common, PER_SEVERITY)
    logs = log_likelihoods(real, groups, common)
    raw = calibration.apply(np.array([log_mean(log) for log in logs[1:]]) - log_mean(logs[0]))
    ratios = moderated(raw)
    entries = zip(severities.items(), seen, logs[1:], ratios, strict=True)
    unsorted = [_counterfactual(*item, runs, log, float(ratio), real, space) for item, runs, log, ratio in entries]
    found = [unsorted[k] for k in np.argsort(-raw, kind="stable")]
    fails = [wilson(int(runs.failed.sum()), len(runs.failed)) for runs in (real, nominal)]
    first = nominal_sentence(fails[1], real)
    sentences = (first, *(one.sentence for one in found))
    return Counterfactuals(fails[0], fails[1], tuple(found), calibration.temper, sentences)


def moderated(log_ratios: Array) -> Array:
    """Returns log ratios that lie in `CLIP`.

    A few runs that all fail can rule out "nothing wrong" by any number of nats, and with every dimension at the
    upper bound it would be lost which one they speak for. So all are lowered until the largest is in bounds: odds
    between dimensions are kept, odds against "nothing wrong" are capped. Then the lower bound holds for each.
    """
    above = max(0.0, float(log_ratios.max(initial=-np.inf)) - CLIP[1])
    return np.clip(log_ratios - above, *CLIP)


def _counterfactual(
    dimension: Dimension,
    rows: Array,
    runs: Observed,
    likelihood: Array,
    log_ratio: float,
    real: Observed,
    space: ParameterSpace,
) -> Counterfactual:
    """Returns the entry of one dimension, told at the severities that are most like reality."""
    share = np.exp(likelihood - np.logaddexp.reduce(likelihood))
    each = np.repeat(share, PER_SEVERITY) / PER_SEVERITY  # weight of each run
    num_runs = max(1, round(1.0 / float((each**2).sum())))  # as many equally weighted runs would say as much
    rate = float(each @ runs.failed)
    fails = wilson(min(num_runs, round(rate * num_runs)), num_runs)
    names = sorted({name for name in runs.phases if name})
    phases = {name: float(each @ np.array([phase == name for phase in runs.phases])) / rate for name in names if rate}
    ranges = ranges_of(rows, share, space)
    sentence = dimension_sentence(dimension, log_ratio, rate, phases, ranges, real, space)
    return Counterfactual(dimension, log_ratio, fails, phases, ranges, sentence)


def _observed(episodes: Sequence[Episode], standard: Standard) -> Observed:
    failed = np.array([episode.outcome == "failure" for episode in episodes])
    phases = tuple((episode.failed_in or "") if episode.outcome == "failure" else "" for episode in episodes)
    return Observed(failed, phases, standard.signatures(episodes))


def _silent(what: str, share: float) -> None:
    del what, share
