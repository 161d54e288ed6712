import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from gapless.core.episode import Episode
from gapless.core.run import Runs
from gapless.core.signal import Array
from gapless.diagnose.counterfactual.compare import (
    RATIO_BOUNDS,
    Counterfactuals,
    bound_ratios,
    compare_failures,
    find_narrowed_ranges,
)
from gapless.diagnose.counterfactual.likelihood import (
    RunFeatures,
    fit_calibration,
    group_runs,
    log_likelihoods,
    log_ratios,
    pool_statistics,
)
from gapless.diagnose.counterfactual.policy_runs import SimulatePolicy
from gapless.diagnose.counterfactual.signature import fit_signature
from unit.diagnose.lift import PLANTED, SPACE, draw, make_simulate, real_runs, row_of


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> SimulatePolicy:
    return make_simulate(tmp_path_factory.mktemp("lift"))


@pytest.fixture(scope="module")
def remembered(simulate: SimulatePolicy) -> SimulatePolicy:
    """The same, but what was run before is not run again."""
    known: dict[tuple[bytes, str, float], Runs] = {}

    def run(rows: Array, rng: np.random.Generator, noise_scale: float = 1.0) -> Runs:
        key = (rows.tobytes(), str(rng.bit_generator.state), noise_scale)
        if key not in known:
            known[key] = simulate(rows, rng, noise_scale)
        return known[key]

    return run


def weigh(simulate: SimulatePolicy, real: tuple[Episode, ...], seed: int) -> Counterfactuals:
    found = compare_failures(
        simulate, real, SPACE.dimensions, draw, np.random.default_rng(seed), space=SPACE, runs_per_dimension=48
    )
    assert found is not None
    return found


def cases() -> list[tuple[str, Mapping[str, float], int]]:
    return [(d, PLANTED[d], seed) for seed in range(7) for d in PLANTED][:20]


def test_the_planted_dimension_comes_first(remembered: SimulatePolicy) -> None:
    right = [
        next(iter(weigh(remembered, real_runs(remembered, values, seed), seed % 3).log_ratios)) == dimension
        for dimension, values, seed in cases()
    ]
    assert len(right) == 20
    assert np.mean(right) >= 0.8


def test_nothing_planted_speaks_for_nothing(remembered: SimulatePolicy) -> None:
    for seed in range(6):
        found = weigh(remembered, real_runs(remembered, {}, seed), seed % 3)
        assert max(found.log_ratios.values()) < 1.0


def test_noise_that_the_project_understates_speaks_for_nothing(simulate: SimulatePolicy) -> None:
    rows = np.tile(SPACE.nominal, (12, 1))
    real = simulate(rows, np.random.default_rng(50), 2.0).episodes
    assert max(weigh(simulate, real, 0).log_ratios.values()) < 1.0


def test_the_same_seed_gives_the_same_answer(simulate: SimulatePolicy) -> None:
    real = real_runs(simulate, PLANTED["actuator"], 1)
    assert weigh(simulate, real, 4) == weigh(simulate, real, 4)


def test_the_answer_reads_as_an_engineer_would_argue(simulate: SimulatePolicy) -> None:
    found = weigh(simulate, real_runs(simulate, PLANTED["latency"], 0), 0)
    assert found.nominal.high < 0.1
    written, first, *others = found.sentences
    said = re.match(r"latency: with actuator/\*/delay (.+) s the simulated robot fails in (\d+) % of runs", first)
    assert said is not None
    ends_s = [float(end) for end in said[1].split(" to ")]
    assert min(ends_s) - 0.02 < 0.07 < max(ends_s) + 0.02
    assert int(said[2]) > 50
    assert "in swing, as the real one does (12 of 12, 11 in swing)" in first
    assert all("unlike the real one" in sentence for sentence in others)
    assert written.endswith("of runs; the real one in 12 of 12, 11 in swing")


def test_too_few_runs_with_an_outcome_say_nothing(simulate: SimulatePolicy) -> None:
    real = real_runs(simulate, PLANTED["latency"], 0, count=6)
    unknown = [*real[:4], *(replace(episode, outcome=None, failed_in=None) for episode in real[4:])]
    rng = np.random.default_rng(0)
    assert compare_failures(simulate, unknown, SPACE.dimensions, draw, rng, space=SPACE) is None


def test_logs_of_another_rate_with_gaps_are_compared_all_the_same(simulate: SimulatePolicy) -> None:
    real = real_runs(simulate, PLANTED["latency"], 0)
    found = weigh(simulate, tuple(slower(episode) for episode in real), 0)
    assert next(iter(found.log_ratios)) == "latency"


def slower(episode: Episode) -> Episode:
    """Returns an episode with a reading missing, and its measurements twice as dense as they were."""
    series = episode.measurements
    times_s = np.linspace(series.times_s[0], series.times_s[-1], 2 * len(series.times_s) - 1)
    values = np.stack([np.interp(times_s, series.times_s, column) for column in series.values.T], axis=1)
    values[5, 0] = np.nan
    return replace(episode, measurements=replace(series, times_s=times_s, values=values))


def test_progress_reaches_its_end(simulate: SimulatePolicy) -> None:
    told: list[float] = []
    compare_failures(
        simulate,
        real_runs(simulate, {}, 0),
        ("latency",),
        draw,
        np.random.default_rng(0),
        space=SPACE,
        runs_per_dimension=16,
        progress=lambda what, share: told.append(share),
    )
    assert told == sorted(told)
    assert told[0] == 0.0
    assert told[-1] == 1.0


def test_the_same_seed_gives_worlds_the_same_starts(simulate: SimulatePolicy) -> None:
    rows = np.stack([row_of({}), row_of(PLANTED["latency"])])
    one, other = (simulate(row, np.random.default_rng(3)).episodes for row in (rows, rows[::-1]))
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a.measurements.values[0], b.measurements.values[0])


def test_moderation_keeps_odds_between_dimensions() -> None:
    # The largest, 40, comes down to 6 and takes 38 down to 4; 10 would be -24 and is held at -3.
    assert bound_ratios(np.array([38.0, 40.0, 10.0])) == pytest.approx([4.0, 6.0, -3.0])
    assert bound_ratios(np.array([-10.0, 2.0])) == pytest.approx([RATIO_BOUNDS[0], 2.0])


def counted(num_failed: list[int], num_runs: int, signatures: np.ndarray) -> RunFeatures:
    """Returns runs of as many severities as counts of failures, all in one phase, with one feature that is given."""
    failed = np.array([np.arange(num_runs) < count for count in num_failed], dtype=float)
    return RunFeatures(np.stack([failed, failed], axis=2), np.tile(signatures, (len(num_failed), 1))[..., None])


def test_failure_counts_have_their_closed_form() -> None:
    # Signatures alike; one phase. Jeffreys' prior: with 0 of 4 simulated failures and 1 of 1 real ones,
    # p = 0.5 / 5 = 0.1; with 4 of 4, p = 4.5 / 5 = 0.9.
    both = counted([0, 4], 4, np.random.default_rng(0).standard_normal(4))
    groups = [group_runs(both, both)]
    real = counted([2], 2, np.array([-0.1, 0.1]))
    logs = log_likelihoods(real, groups, pool_statistics(groups, np.zeros(1)))[0]
    # Two of two: 0.1 * 1.5/6 = 0.025 and 0.9 * 5.5/6 = 0.825.
    assert logs[1] - logs[0] == pytest.approx(np.log(0.825 / 0.025), rel=1e-3)


def test_the_mean_of_likelihoods_is_not_that_of_their_logarithms() -> None:
    assert log_ratios([np.zeros(3), np.log([0.2, 0.4])]) == pytest.approx([np.log(0.3)])


def test_nominal_signatures_are_about_zero_with_spread_one(simulate: SimulatePolicy) -> None:
    runs = simulate(np.tile(SPACE.nominal, (64, 1)), np.random.default_rng(0))
    looks = fit_signature(runs.episodes, runs.success)(runs.episodes)
    assert np.abs(looks.mean(axis=0)).max() < 0.2
    assert looks.std(axis=0).max() < 1.2
    assert np.isfinite(looks).all()


def test_what_reality_narrows_is_named() -> None:
    rows = np.tile(SPACE.nominal, (4, 1))
    rows[:, 1], rows[:, 2] = [0.5, 0.6, 1.4, 1.5], [0.0, 0.3, 0.0, 0.3]
    assert find_narrowed_ranges(rows, np.array([0.5, 0.5, 0.0, 0.0]), SPACE) == {"actuator/motor/gain": (0.5, 0.6)}


def test_log_ratios_that_say_too_much_are_tempered() -> None:
    # Cases whose true log odds are r, told as 4 r: the temper that makes them honest is 1/4, and no offset is needed.
    rng = np.random.default_rng(0)
    honest = rng.normal(0.0, 2.0, 4000)
    truth = (rng.random(4000) < 1 / (1 + np.exp(-honest))).astype(np.intp)
    temper, offsets = fit_calibration(4 * honest[:, None], truth)
    assert temper == pytest.approx(0.25, abs=0.02)
    assert offsets == pytest.approx([0.0], abs=0.1)


def test_what_stays_as_modelled_is_not_named() -> None:
    rows = np.tile(SPACE.nominal, (4, 1))
    rows[:, 1], rows[:, 2] = [0.9, 1.1, 1.4, 1.5], [0.2, 0.2, 0.0, 0.0]
    found = find_narrowed_ranges(rows, np.array([0.5, 0.5, 0.0, 0.0]), SPACE)
    assert found == {"joint/hinge/frictionloss": (0.2, 0.2)}
