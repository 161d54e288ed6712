"""Which dimension, wrong in simulation, makes the simulated robot fail as the real one does."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from gapless.core.dimensions import Dimension
from gapless.core.episode import Episode
from gapless.core.interval import Interval, wilson
from gapless.core.parameters import ParameterSpace
from gapless.core.protocols import Progress
from gapless.core.run import Runs
from gapless.core.signal import Array
from gapless.diagnose.counterfactual.likelihood import (
    RunFeatures,
    calibrate_likelihoods,
    group_runs,
    log_likelihoods,
    log_ratios,
    pool_statistics,
)
from gapless.diagnose.counterfactual.policy_runs import SimulatePolicy
from gapless.diagnose.counterfactual.signature import MakeSignatures, fit_signature

DrawRows = Callable[[Dimension, np.random.Generator, int], Array]
MIN_REAL_RUNS = 5
PER_SEVERITY = 4  # runs
NOISE_SCALE = 1.5  # readings may be noisier than the project states by this factor, at one standard deviation [1]
RATIO_BOUNDS = (-3.0, 6.0)  # of the evidence for a dimension [nats]
MIN_EVIDENCE = 1.0  # nats from which runs are called like or unlike the real ones
MAX_NAMED = 2  # parameters of a dimension
MIN_NARROWED = 0.3  # a parameter is named if reality leaves its variance smaller by this share [1]
SIMULATING = "simulating the policy's failures"


@dataclass(frozen=True)
class Counterfactual:
    """What one dimension that is wrong in simulation did, beside what the real robot did."""

    dimension: Dimension
    # log p(real runs | this dimension wrong) - log p(real runs | nothing wrong) [nat], within `RATIO_BOUNDS`: see
    # `bound_ratios`
    log_ratio: float
    phases: Mapping[str, float]  # phase -> share of simulated failures, at the severities most like reality
    ranges: Mapping[str, tuple[float, float]]  # target -> (low, high) of these severities, for what they narrow most
    sentence: str  # the same in words


@dataclass(frozen=True)
class Counterfactuals:
    """What each dimension does to a policy in simulation."""

    nominal: Interval  # share of simulated runs that fail in the model as written
    dimensions: tuple[Counterfactual, ...]  # one entry per dimension, the most like reality first
    sentences: tuple[str, ...]  # what a person can check

    @property
    def log_ratios(self) -> dict[Dimension, float]:
        """Dimension -> log likelihood ratio against nothing wrong [nat]."""
        return {one.dimension: one.log_ratio for one in self.dimensions}


def compare_failures(
    simulate: SimulatePolicy,
    real: Sequence[Episode],
    dimensions: Sequence[Dimension],
    draw: DrawRows,
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

    `real` are runs of that policy; those without an outcome are left out. `draw` draws (count, num_parameters) rows of
    the space in which only one dimension is wrong, at plausible severities.
    """
    judged = [episode for episode in real if episode.outcome is not None]
    if len(judged) < MIN_REAL_RUNS:
        return None
    num_severities = max(2, runs_per_dimension // PER_SEVERITY)
    seed = int(rng.integers(2**32))
    rows = [draw(dimension, rng, num_severities) for dimension in dimensions]
    report = progress or (lambda label, done: None)

    def run(rows: Array, num_done: int, noise_scale: float = 1.0) -> Runs:
        report(SIMULATING, num_done / (len(dimensions) + 2))
        return simulate(np.repeat(rows, PER_SEVERITY, axis=0), np.random.default_rng(seed), noise_scale=noise_scale)

    written = np.tile(space.nominal, (num_severities, 1))
    plain = run(written, 0)
    simulated = [plain.episodes, run(written, 1, NOISE_SCALE).episodes]
    simulated += [run(some, k + 2).episodes for k, some in enumerate(rows)]
    report(SIMULATING, 1.0)

    signature = fit_signature(plain.episodes, plain.success)
    phases = sorted({phase for some in (judged, *simulated) for episode in some if (phase := _failed_in(episode))})
    features = [_find_features(some, num_severities, phases, signature) for some in simulated]
    nominal, noisier, runs = features[0], features[1], features[2:]
    nuisance = (noisier.signatures - nominal.signatures).mean(axis=(0, 1))
    together = _find_features(plain.episodes, 1, phases, signature)
    hypotheses = [group_runs(together, together), *(group_runs(own, nominal) for own in runs)]
    shared = pool_statistics(hypotheses, nuisance)
    temper, offsets = calibrate_likelihoods(nominal, runs, hypotheses, shared)
    observed = _find_features(judged, 1, phases, signature)
    logs = log_likelihoods(observed, hypotheses, shared)
    raw = temper * log_ratios(logs) + offsets
    ratios = bound_ratios(raw)
    found: list[Counterfactual] = []
    for k in np.argsort(-raw, kind="stable"):
        share = softmax(logs[1 + k])  # of each severity: how much it is like reality
        lost, ranges = share @ runs[k].outcomes.mean(axis=1), find_narrowed_ranges(rows[k], share, space)
        found.append(_describe_dimension(dimensions[k], float(ratios[k]), lost, ranges, observed, phases, space))
    fails = wilson(int(nominal.outcomes[..., 0].sum()), nominal.outcomes[..., 0].size)
    first = f"as modelled, the simulated robot fails in {fails.percent()} of runs"
    first += f"; the real one in {_count_failures(observed, phases)}"
    return Counterfactuals(fails, tuple(found), (first, *(one.sentence for one in found)))


def bound_ratios(log_ratios: Array) -> Array:
    """Returns log ratios that lie in `RATIO_BOUNDS`.

    A few runs that all fail can exclude "nothing wrong" by any number of nats, and with every dimension at the upper
    bound it would be lost which one they speak for. So all are lowered until the largest is in bounds: odds between
    dimensions are kept, odds against "nothing wrong" are capped. Then the lower bound holds for each.
    """
    above = max(0.0, float(log_ratios.max(initial=-np.inf)) - RATIO_BOUNDS[1])
    return np.clip(log_ratios - above, *RATIO_BOUNDS)


def _failed_in(episode: Episode) -> str:
    """Returns the phase in which a run failed; empty where it did not fail or nobody said."""
    return (episode.failed_in or "") if episode.outcome == "failure" else ""


def _find_features(
    episodes: Sequence[Episode], num_severities: int, phases: Sequence[str], signature: MakeSignatures
) -> RunFeatures:
    outcomes = [
        [episode.outcome == "failure", *(_failed_in(episode) == phase for phase in phases)] for episode in episodes
    ]
    parts = np.array(outcomes, dtype=np.float64), signature(episodes)
    return RunFeatures(*(values.reshape(num_severities, -1, values.shape[1]) for values in parts))


def _describe_dimension(
    dimension: Dimension,
    log_ratio: float,
    lost: Array,
    ranges: Mapping[str, tuple[float, float]],
    real: RunFeatures,
    phases: Sequence[str],
    space: ParameterSpace,
) -> Counterfactual:
    """Returns the entry of one dimension; `lost` are the shares of its runs that failed, and in each phase."""
    rate = float(lost[0])
    shares = {name: float(share) / rate for name, share in zip(phases, lost[1:], strict=True) if share > 0}
    values = " and ".join(_range_text(target, *ends, space) for target, ends in ranges.items())
    fails = "never fails" if rate < 0.005 else f"fails in {100 * rate:.0f} % of runs"
    if shares and rate >= 0.005:
        worst = max(shares, key=lambda name: shares[name])
        fails += f", {100 * shares[worst]:.0f} % of them in {worst}"
    counted = _count_failures(real, phases)
    if log_ratio > MIN_EVIDENCE:
        rate_differs = abs(rate - real.outcomes[..., 0].mean()) > 0.25
        beside = f"{'and moves ' if rate_differs else ''}as the real one does ({counted})"
    elif log_ratio < -MIN_EVIDENCE:
        beside = f"unlike the real one ({counted})"
    else:
        beside = f"the real one in {counted}"
    start = f"with {values}" if values else "at plausible severities"
    sentence = f"{dimension}: {start} the simulated robot {fails}, {beside}"
    return Counterfactual(dimension, log_ratio, shares, ranges, sentence)


def find_narrowed_ranges(rows: Array, share: Array, space: ParameterSpace) -> dict[str, tuple[float, float]]:
    """Returns target -> (low, high) that hold 80 % of the weight, for the parameters that reality narrows most.

    A dimension's only parameter is always among them; of several, those whose range leaves out the model's value. The
    weights `share` of the (num_severities, num_parameters) rows sum to 1.
    """
    variance = rows.var(axis=0)
    left = share @ (rows - share @ rows) ** 2
    used = np.flatnonzero(variance > 1e-24)
    narrowed = 1 - left[used] / variance[used]
    order = [int(used[k]) for k in np.argsort(-narrowed, kind="stable") if narrowed[k] > MIN_NARROWED or len(used) == 1]
    found = {
        k: np.quantile(rows[:, k], [0.1, 0.9 - 1e-9], weights=share, method="inverted_cdf").tolist() for k in order
    }
    wrong = [k for k, (low, high) in found.items() if len(used) == 1 or not low <= space.nominal[k] <= high]
    return {space.targets[k]: tuple(found[k]) for k in wrong[:MAX_NAMED]}


def _range_text(target: str, low: float, high: float, space: ParameterSpace) -> str:
    unit = space.parameters[space.index(target)].unit
    low_text, high_text = f"{low:.3g}", f"{high:.3g}"
    between = low_text if low_text == high_text else f"{low_text} to {high_text}"
    return f"{target} {between}" + ("" if unit == "1" else f" {unit}")


def _count_failures(real: RunFeatures, phases: Sequence[str]) -> str:
    lost, *lost_in = real.outcomes[0].sum(axis=0).astype(int)
    worst = f", {max(lost_in)} in {phases[int(np.argmax(lost_in))]}" if any(lost_in) else ""
    return f"{lost} of {real.outcomes.shape[1]}{worst}"
