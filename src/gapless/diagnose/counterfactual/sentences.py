"""Counterfactuals in words that a person can check."""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.interval import Interval
from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.diagnose.counterfactual.likelihood import Observed

SPEAKS = 1.0  # nats from which the evidence is called for or against
NUM_NAMED = 2  # parameters named at most
NARROWED = 0.3  # a parameter is named if reality leaves its variance smaller by this share [1]


def nominal_sentence(fails: Interval, real: Observed) -> str:
    """Returns what the model as written does, beside reality."""
    return f"as modelled, the simulated robot fails in {fails.percent()} of runs; the real one in {_real_text(real)}"


def dimension_sentence(
    dimension: Dimension,
    log_ratio: float,
    rate: float,
    phases: Mapping[str, float],
    ranges: Mapping[str, tuple[float, float]],
    real: Observed,
    space: ParameterSpace,
) -> str:
    """Returns what a dimension does in simulation, and whether that is like reality.

    Args:
        dimension: Which.
        log_ratio: Against nothing wrong [nat].
        rate: Share of simulated runs that fail [1].
        phases: Phase -> share of those failures [1].
        ranges: Target -> (low, high) that these runs had.
        real: The real runs.
        space: What units the targets have.
    """
    values = " and ".join(_range_text(target, low, high, space) for target, (low, high) in ranges.items())
    fails = "never fails" if rate < 0.005 else f"fails in {100 * rate:.0f} % of runs"
    if phases and rate >= 0.005:
        worst = max(phases, key=lambda name: phases[name])
        fails += f", {100 * phases[worst]:.0f} % of them in {worst}"
    like = "and moves as the real one does" if abs(rate - real.failed.mean()) > 0.25 else "as the real one does"
    alike = like if log_ratio > SPEAKS else "unlike the real one" if log_ratio < -SPEAKS else "the real one"
    beside = f"{alike} ({_real_text(real)})" if alike != "the real one" else f"the real one in {_real_text(real)}"
    start = f"with {values}" if values else "at plausible severities"
    return f"{dimension}: {start} the simulated robot {fails}, {beside}"


def ranges_of(rows: Array, share: Array, space: ParameterSpace) -> dict[str, tuple[float, float]]:
    """Returns target -> (low, high) that hold 80 % of the weight, for the parameters that reality narrows most.

    A dimension's only parameter is always among them; of several, those whose range leaves out the model's value.

    Args:
        rows: (num_severities, num_parameters).
        share: (num_severities,) weights that sum to 1.
        space: What the rows hold.
    """
    variance = rows.var(axis=0)
    left = share @ (rows - share @ rows) ** 2
    used = np.flatnonzero(variance > 1e-24)
    narrowed = 1 - left[used] / variance[used]
    order = [int(used[k]) for k in np.argsort(-narrowed, kind="stable") if narrowed[k] > NARROWED or len(used) == 1]
    found = {k: _weighted_range(rows[:, k], share) for k in order}
    wrong = [k for k, (low, high) in found.items() if len(used) == 1 or not low <= space.nominal[k] <= high]
    return {space.targets[k]: found[k] for k in wrong[:NUM_NAMED]}


def _weighted_range(values: Array, share: Array) -> tuple[float, float]:
    order = np.argsort(values)
    reached = np.cumsum(share[order])
    low, high = np.searchsorted(reached, [0.1, 0.9 - 1e-9])
    return float(values[order[low]]), float(values[order[min(high, len(values) - 1)]])


def _range_text(target: str, low: float, high: float, space: ParameterSpace) -> str:
    unit = space.parameters[space.index(target)].unit
    factor, unit = (1000.0, "ms") if target.endswith("/delay") and unit == "s" else (1.0, unit)
    low_text, high_text = f"{factor * low:.3g}", f"{factor * high:.3g}"
    between = low_text if low_text == high_text else f"{low_text} to {high_text}"
    return f"{target} {between}" + ("" if unit == "1" else f" {unit}")


def _real_text(real: Observed) -> str:
    lost = int(real.failed.sum())
    known = Counter(name for name in real.phases if name).most_common(1)
    return f"{lost} of {len(real.failed)}" + "".join(f", {count} in {name}" for name, count in known)
