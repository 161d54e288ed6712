"""The benchmark of diagnosis scores what it says: on answers whose scores are known."""

import math
from typing import Any

import numpy as np
import pytest

from unit.benchmarks.parts import part


def answer(
    kind: str,
    truth: tuple[str, ...],
    claims: dict[str, float],
    *,
    no_gap: float = 0.0,
    unmodelled: float = 0.0,
    seconds: float = 1.0,
    first: bool = False,
    robot: str = "arm",
) -> Any:
    causes = [
        {"dimension": name, "probability": p, "share": 0.0, "low": 0.0, "high": 1.0} for name, p in claims.items()
    ]
    result = {"causes": causes, "no_gap": {"probability": no_gap}, "unmodelled": {"probability": unmodelled}}
    case = part("gap_cases").Case(robot, kind, frozenset(truth), "+".join(truth), 0, "test")
    return part("gap_scores").Answer(case, result, seconds, first)


def test_top_1_counts_no_gap_and_unmodelled_as_rivals() -> None:
    found = part("gap_scores").score(
        [
            answer("single", ("actuator",), {"actuator": 0.9, "sensor": 0.2}, no_gap=0.1, unmodelled=0.1),
            answer("single", ("actuator",), {"actuator": 0.6, "sensor": 0.2}, unmodelled=0.7),
            answer("single", ("actuator",), {"actuator": 0.6, "sensor": 0.2}, no_gap=0.7),
            answer("single", ("actuator",), {"sensor": 0.8, "actuator": 0.6}),
            answer("single", ("actuator",), {"sensor": 0.8, "object": 0.7, "actuator": 0.6}),
        ]
    )
    assert found.top_1.value == pytest.approx(1 / 5)
    assert found.top_1_of_causes.value == pytest.approx(3 / 5)
    assert found.top_2.value == pytest.approx(4 / 5)
    assert found.recall.value == pytest.approx(5 / 5)
    # Wilson, 1 of 5: centre (0.2 + 3.8415/10) / (1 + 3.8415/5) = 0.3304, half 0.2939
    assert (found.top_1.low, found.top_1.high) == pytest.approx((0.0362, 0.6245), abs=2e-4)


def test_causes_are_ranked_by_probability_whatever_their_order() -> None:
    jumbled = answer("single", ("actuator",), {"sensor": 0.1, "actuator": 0.9})
    assert list(jumbled.causes) == ["actuator", "sensor"]
    assert jumbled.verdict == "actuator"


def test_who_does_not_decide_is_not_right() -> None:
    undecided = answer("single", ("actuator",), {"actuator": 0.5, "sensor": 0.5}, no_gap=0.5, unmodelled=0.5)
    assert part("gap_scores").score([undecided]).top_1.value == 0.0


def test_an_exact_pair_is_likely_and_nothing_else_is_more_so() -> None:
    pair = ("actuator", "latency")
    found = part("gap_scores").score(
        [
            answer("pair", pair, {"actuator": 0.9, "latency": 0.6, "sensor": 0.55}),  # exact
            answer("pair", pair, {"actuator": 0.9, "latency": 0.4, "sensor": 0.3}),  # both found, one unlikely
            answer("pair", pair, {"actuator": 0.9, "sensor": 0.8, "latency": 0.7}),  # another is ahead
            answer("pair", pair, {"actuator": 0.9, "sensor": 0.8}),  # one was not even considered
        ]
    )
    assert found.both.value == pytest.approx(2 / 4)
    assert found.exact_pair.value == pytest.approx(1 / 4)
    assert found.recall.value == pytest.approx(6 / 8)
    assert found.recall.n == 8


def test_a_false_alarm_is_a_null_that_is_called_a_gap() -> None:
    nulls = [answer("null", (), {"actuator": 0.3}, no_gap=p) for p in (0.9, 0.51, 0.5, 0.49)]
    found = part("gap_scores").score([*nulls, answer("single", ("actuator",), {"actuator": 0.9})])
    assert found.false_alarm.value == pytest.approx(1 / 4)
    assert found.false_alarm.n == 4


def test_auroc_counts_pairs_in_order_and_ties_half() -> None:
    # Unmodelled 0.9, 0.4 against 0.1, 0.4, 0.5: above 3 + 1, equal 1, of 6 -> 4.5 / 6. Nulls do not count.
    answers = [answer("unmodelled", (), {}, unmodelled=p) for p in (0.9, 0.4)]
    answers += [answer("single", ("actuator",), {"actuator": 0.9}, unmodelled=p) for p in (0.1, 0.4)]
    answers += [answer("pair", ("actuator", "sensor"), {}, unmodelled=0.5), answer("null", (), {}, unmodelled=0.99)]
    found = part("gap_scores").score(answers)
    assert found.auroc.value == pytest.approx(4.5 / 6)
    assert found.auroc.n == 5
    assert found.auroc.low < found.auroc.value < found.auroc.high
    assert found.unmodelled_named.value == pytest.approx(1 / 2)


def test_calibration_error_by_hand() -> None:
    # Bin 0.9 to 1: claims 0.95, 0.95, true 1 of 2: |1.9 - 1|. Bin 0.2 to 0.3: one claim of 0.25, false: 0.25.
    # Bin 1.0 belongs to the last: claim 1.0, true, so the last bin is |2.9 - 2|. Together (0.9 + 0.25) / 4.
    error = part("gap_scores").calibration_error(np.array([0.95, 0.95, 0.25, 1.0]), np.array([1.0, 0.0, 0.0, 1.0]))
    assert error == pytest.approx((0.9 + 0.25) / 4)


def test_calibration_is_over_single_pair_and_null_and_all_that_was_considered() -> None:
    answers = [
        answer("single", ("actuator",), {"actuator": 0.8, "sensor": 0.2}, no_gap=0.05),
        answer("null", (), {"actuator": 0.1}, no_gap=0.6),
        answer("unmodelled", (), {"actuator": 1.0}, no_gap=1.0),  # would cost much, and must not
    ]
    found = part("gap_scores").score(answers)
    assert found.calibration_error.value == pytest.approx((0.2 + 0.2 + 0.1) / 3)
    assert found.calibration_error_no_gap.value == pytest.approx((0.05 + 0.4) / 2)


def test_probabilities_that_come_true_as_often_as_they_say_have_little_error() -> None:
    rng = np.random.default_rng(0)
    claims = rng.uniform(size=20_000)
    honest = part("gap_scores").calibration_error(claims, (rng.uniform(size=20_000) < claims).astype(float))
    # Boastful: true half as often as claimed, so |p - p / 2| averages 1/4.
    boastful = part("gap_scores").calibration_error(claims, (rng.uniform(size=20_000) < claims / 2).astype(float))
    assert honest < 0.02
    assert boastful == pytest.approx(0.25, abs=0.02)


def test_seconds_leave_first_diagnoses_apart() -> None:
    times = [answer("null", (), {}, seconds=s) for s in (1.0, 2.0, 3.0, 4.0, 5.0)]
    found = part("gap_scores").score([*times, answer("null", (), {}, seconds=100.0, first=True)])
    assert found.median_s.value == 3.0
    assert found.slow_s.value == pytest.approx(4.8)  # 0.95 * 4 = 3.8: between 4 and 5
    assert found.first_s.value == 100.0


def test_without_cases_nothing_is_claimed() -> None:
    found = part("gap_scores").score([answer("null", (), {}, no_gap=1.0)])
    assert math.isnan(found.auroc.value)
    assert found.top_1.n == found.auroc.n == found.both.n == 0
    unmet = [bar.text for bar in part("gap_tables").bars(found) if not bar.met]
    assert "top-1 on single causes" in unmet


def test_confusion_has_truth_in_rows_and_verdict_in_columns() -> None:
    answers = [
        answer("single", ("contact",), {"object": 0.9, "contact": 0.3}),
        answer("single", ("contact",), {"contact": 0.9}),
        answer("null", (), {"sensor": 0.4}, no_gap=0.3),
        answer("unmodelled", (), {"sensor": 0.4}, unmodelled=0.9),
        answer("pair", ("contact", "object"), {"contact": 0.9}),
    ]
    counts = part("gap_scores").confusion(answers)
    assert counts == {
        "contact": {"object": 1, "contact": 1},
        "no gap": {"sensor": 1},
        "unmodelled": {"unmodelled": 1},
    }
    header = part("gap_tables").confusion_table(answers).header
    row = next(row for row in part("gap_tables").confusion_table(answers).rows if row[0] == "contact")
    assert row[header.index("object")] == "1"


def test_shuffled_truths_bring_a_perfect_diagnosis_to_chance() -> None:
    names = ("actuator", "latency", "sensor", "object")
    answers = [answer("single", (names[k % 4],), {names[k % 4]: 0.9}) for k in range(400)]
    dealt = part("gap_scores").shuffled_truths(answers, np.random.default_rng(0))
    assert part("gap_scores").score(answers).top_1.value == 1.0
    assert part("gap_scores").score(dealt).top_1.value == pytest.approx(0.25, abs=0.07)
    assert sorted(a.truth for a in dealt) == sorted(a.truth for a in answers)


def test_answers_survive_the_file_they_are_kept_in() -> None:
    benchmark = part("diagnose")
    before = answer("pair", ("actuator", "sensor"), {"actuator": 0.75}, no_gap=0.25, seconds=2.5, first=True)
    assert benchmark.from_line(benchmark.as_line(before)) == before
