"""Which dimension, wrong in simulation, makes the simulated robot fail as the real one does."""

from collections.abc import Callable, Sequence
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
MIN_NAMED_RATE = 0.005  # share of runs that fail, below which none is said to
MIN_NARROWED = 0.3  # a parameter is named if reality leaves its variance smaller by this share [1]
SIMULATING = "simulating the policy's failures"


@dataclass(frozen=True)
class Counterfactuals:
    """What each dimension that is wrong in simulation does to a policy, beside what the real robot did."""

    nominal: Interval  # share of simulated runs that fail in the model as written
    # dimension -> log p(real runs | it is wrong) - log p(real runs | nothing is wrong) [nat], the most like reality
    # first, within `RATIO_BOUNDS`: see `bound_ratios`
    log_ratios: dict[Dimension, float]
    sentences: tuple[str, ...]  # what a person can check: the model as written, then each dimension


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
        return simulate(np.repeat(rows, PER_SEVERITY, axis=0), np.random.default_rng(seed), noise_scale)

    written = np.tile(space.nominal, (num_severities, 1))
    plain = run(written, 0)
    simulated = [plain.episodes, run(written, 1, NOISE_SCALE).episodes]
    simulated += [run(some, k + 2).episodes for k, some in enumerate(rows)]
    report(SIMULATING, 1.0)

    signature = fit_signature(plain.episodes, plain.success)
    phases = sorted({phase for some in (judged, *simulated) for episode in some if (phase := _failed_in(episode))})
    nominal, noisier, *runs = (_find_features(some, num_severities, phases, signature) for some in simulated)
    together, observed = (_find_features(some, 1, phases, signature) for some in (plain.episodes, judged))
    hypotheses = [group_runs(together, together), *(group_runs(own, nominal) for own in runs)]
    shared = pool_statistics(hypotheses, nuisance=(noisier.signatures - nominal.signatures).mean(axis=(0, 1)))
    temper, offsets = calibrate_likelihoods(nominal, runs, hypotheses, shared)
    logs = log_likelihoods(observed, hypotheses, shared)
    raw = temper * log_ratios(logs) + offsets
    order, ratios = np.argsort(-raw, kind="stable"), bound_ratios(raw)
    fails = wilson(int(nominal.outcomes[..., 0].sum()), nominal.outcomes[..., 0].size)
    counted = _count_failures(observed, phases)
    sentences = [f"as modelled, the simulated robot fails in {fails.percent()} of runs; the real one in {counted}"]
    for k in order:
        share = softmax(logs[1 + k])  # of each severity: how much it is like reality
        rate, *rate_in = share @ runs[k].outcomes.mean(axis=1)
        fails_in = _describe_failures(rate, rate_in, phases)
        ranges = find_narrowed_ranges(rows[k], share, space)
        values = " and ".join(_range_text(target, *ends, space) for target, ends in ranges.items())
        start = f"with {values}" if values else "at plausible severities"
        beside = _compare_rates(float(ratios[k]), rate, observed.outcomes[..., 0].mean(), counted)
        sentences.append(f"{dimensions[k]}: {start} the simulated robot {fails_in}, {beside}")
    return Counterfactuals(fails, {dimensions[k]: float(ratios[k]) for k in order}, tuple(sentences))


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


def _describe_failures(rate: float, rate_in: Sequence[float], phases: Sequence[str]) -> str:
    """Returns how often simulated runs fail, and where most: `rate_in` are the shares of runs that fail per phase."""
    if rate < MIN_NAMED_RATE:
        return "never fails"
    worst = max(rate_in, default=0.0)
    where = f", {100 * worst / rate:.0f} % of them in {phases[rate_in.index(worst)]}" if worst > 0 else ""
    return f"fails in {100 * rate:.0f} % of runs{where}"


def _compare_rates(log_ratio: float, rate: float, real_rate: float, counted: str) -> str:
    """Returns whether simulated runs are like the real ones."""
    if log_ratio > MIN_EVIDENCE:
        return f"{'and moves ' if abs(rate - real_rate) > 0.25 else ''}as the real one does ({counted})"
    return f"unlike the real one ({counted})" if log_ratio < -MIN_EVIDENCE else f"the real one in {counted}"


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
