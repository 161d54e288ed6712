"""The benchmark of diagnosis scores what it says: on answers whose scores are known."""

import math
from dataclasses import replace
from pathlib import Path
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
    mechanisms: dict[str, list[dict[str, Any]]] | None = None,
    **more: Any,
) -> Any:
    causes: list[dict[str, Any]] = [
        {"dimension": name, "probability": p, "share": 0.0, "low": 0.0, "high": 1.0} for name, p in claims.items()
    ]
    for cause in causes if mechanisms is not None else ():
        cause["mechanisms"] = mechanisms.get(cause["dimension"], [])
    result = {"causes": causes, "no_gap": {"probability": no_gap}, "unmodelled": {"probability": unmodelled}}
    case = part("gap_cases").Case(robot, kind, frozenset(truth), "+".join(truth), 0, "test")
    return part("gap_scores").Answer(case, result, seconds, first, **more)


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


def test_seconds_have_a_median_and_a_slow_end() -> None:
    found = part("gap_scores").score([answer("null", (), {}, seconds=s) for s in (1.0, 2.0, 3.0, 4.0, 5.0)])
    assert found.median_s.value == 3.0
    assert found.slow_s.value == pytest.approx(4.8)  # 0.95 * 4 = 3.8: between 4 and 5


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
    before = answer("pair", ("actuator", "sensor"), {"actuator": 0.75}, no_gap=0.25, seconds=2.5)
    before = replace(before, cpu_s=3.5, places={"joint/elbow/damping": 1.2, "joint/yaw/backlash": None})
    before = replace(before, contradictions=["one"])
    assert benchmark.from_line(benchmark.as_line(before)) == before


def test_a_stopped_run_goes_on_where_its_file_ends(tmp_path: Path) -> None:
    benchmark = part("diagnose")
    chosen = benchmark.chosen_cases("test", ["single", "null", "planted"], ["arm"], ["qube", "cube"], 4)
    turns = [case.kind if case.kind != "planted" else case.robot for case in chosen]
    assert turns[:2] == ["single", "null"]
    assert set(turns[2:4]) <= {"qube", "cube"}
    raw = tmp_path / "raw.jsonl"
    raw.write_text(benchmark.as_line(replace(answer("null", (), {}), case=chosen[1])) + "\n")
    assert [a.case for a in benchmark.read_answers(raw, chosen)] == [chosen[1]]
    assert benchmark.read_answers(raw, chosen[:1]) == []
    assert benchmark.read_answers(tmp_path / "none.jsonl", chosen) == []


def test_many_counts_each_dimension_and_whole_sets() -> None:
    three = ("actuator", "latency", "sensor")
    found = part("gap_scores").score(
        [
            answer("many", three, {"actuator": 0.9, "latency": 0.8, "sensor": 0.7, "object": 0.2}),  # exact
            answer("many", three, {"actuator": 0.9, "latency": 0.8, "sensor": 0.4, "object": 0.9}),  # 2 of 3, 1 false
        ]
    )
    assert found.many_recall.value == pytest.approx(5 / 6)
    assert found.many_precision.value == pytest.approx(5 / 6)
    assert found.many_exact.value == pytest.approx(1 / 2)
    # |claims - true| by bin: 0.9 to 1: 2.7 - 2; 0.8: 1.6 - 2; 0.7: 0.7 - 1; 0.4: 0.4 - 1; 0.2: 0.2. Over 8 claims.
    assert found.many_calibration_error.value == pytest.approx((0.7 + 0.4 + 0.3 + 0.6 + 0.2) / 8)
    assert found.calibration_error.n == 0  # that one stays what it was: single, pair and null


def test_the_cause_of_a_far_model_has_no_rivals_in_what_is_far() -> None:
    found = part("gap_scores").score(
        [
            answer("far", ("latency",), {"actuator": 0.99, "object": 0.99, "latency": 0.8, "sensor": 0.1}),  # right
            answer("far", ("latency",), {"latency": 0.99, "actuator": 0.9}),  # right, and first of all
            answer("far", ("latency",), {"actuator": 0.99, "sensor": 0.9, "latency": 0.8}),  # sensor comes before
            answer("far", ("latency",), {"actuator": 0.99, "latency": 0.4}),  # not likely
        ]
    )
    assert found.far_first.value == pytest.approx(2 / 4)
    assert found.far_strict.value == pytest.approx(1 / 4)


def test_foreign_and_scatter_are_judged_like_single_causes() -> None:
    found = part("gap_scores").score(
        [
            answer("foreign", ("object",), {"object": 0.9}),
            answer("foreign", ("object",), {"object": 0.8}, unmodelled=0.9),
            answer("scatter", ("sensor",), {"sensor": 0.9}),
        ]
    )
    assert found.foreign_top_1.value == pytest.approx(1 / 2)
    assert found.scatter_top_1.value == 1.0
    assert found.top_1.n == 0


def mechanism(target: str, low: float, high: float, probability: float = 0.9) -> dict[str, Any]:
    return {"target": target, "value": (low + high) / 2, "low": low, "high": high, "probability": probability}


@pytest.mark.parametrize(
    ("named", "place", "value"),
    [
        ([mechanism("joint/elbow/damping", 1.0, 1.4)], True, True),
        ([mechanism("actuator/elbow/kd", 2.6, 3.0)], True, True),  # the same, said of the servo
        ([mechanism("joint/elbow/damping", 1.3, 1.4)], True, False),  # the interval misses
        ([mechanism("joint/elbow/frictionloss", 0.0, 9.0)], True, False),  # the joint, but not what is wrong there
        ([mechanism("joint/yaw/damping", 1.0, 1.4)], False, False),
        ([mechanism("joint/yaw/damping", 1, 2, 0.9), mechanism("joint/elbow/damping", 1, 2, 0.3)], False, False),
        ([], False, False),
    ],
)
def test_a_mechanism_is_right_by_place_and_value(named: list[dict[str, Any]], place: bool, value: bool) -> None:
    true = {"joint/elbow/damping": 1.2, "actuator/elbow/kd": 2.8}
    said = answer("single", ("actuator",), {"actuator": 0.9}, mechanisms={"actuator": named}, places=true)
    found = part("gap_scores").score([said, answer("single", ("numerics",), {"numerics": 0.9})])
    assert (found.place.value, found.mechanism.value) == (float(place), float(value))
    assert found.place.n == 1  # a time step has no place


def test_mechanisms_may_be_missing_and_an_actuator_is_where_its_joint_is() -> None:
    true = {"joint/tip_x/frictionloss": 1.2}
    without = answer("single", ("actuator",), {"actuator": 0.9}, robot="pusher", places=true)
    assert part("gap_scores").score([without]).place.value == 0.0
    assert part("gap_mechanisms").place_of("actuator/servo_x/limit", "pusher") == "joint/tip_x"
    assert part("gap_mechanisms").place_of("world/tilt/x", "pusher") == "world"


def test_a_form_without_a_true_value_asks_for_its_place_only() -> None:
    named = {"actuator": [mechanism("joint/yaw/backlash", 0.01, 0.02)]}
    said = answer("single", ("actuator",), {"actuator": 0.9}, mechanisms=named, places={"joint/yaw/backlash": None})
    assert part("gap_scores").score([said]).mechanism.value == 1.0


def fitted(target: str, dimension: str, low: float, high: float, *, identifiable: bool = True) -> dict[str, Any]:
    value = {"target": target, "dimension": dimension, "nominal": 1.0, "low": low, "high": high}
    return {**value, "value": (low + high) / 2, "identifiable": identifiable}


def test_verbs_contradict_each_other_either_way_round() -> None:
    found = part("gap_mechanisms").find_contradictions
    said = answer("single", ("contact",), {"contact": 0.01, "object": 0.9, "numerics": 0.9, "sensor": 0.5}).result
    slides, heavy = fitted("geom/box/friction", "contact", 0.4, 0.6), fitted("body/box/mass", "object", 1.5, 1.7)
    assert found(said, {"verdict": "good", "parameters": [heavy]}) == []  # no parameter says what the time step is
    assert len(found(said, {"verdict": "good", "parameters": [heavy, slides]})) == 1
    assert len(found(said, {"verdict": "good", "parameters": [slides]})) == 2  # and nothing of the object moved
    unsure = fitted("geom/box/friction", "contact", 0.4, 0.6, identifiable=False)
    assert found(said, {"verdict": "good", "parameters": [heavy, unsure]}) == []
    near = fitted("geom/box/friction", "contact", 0.4, 1.0)
    assert found(said, {"verdict": "good", "parameters": [heavy, near]}) == []
    assert found(said, {"verdict": "refused", "parameters": []}) == []
    assert part("gap_mechanisms").count_contradicted([None, [], ["a", "b"]]) == (1, 2)


def test_planted_is_counted_by_machine_and_nulls_by_what_is_above_a_half() -> None:
    answers = [
        answer("planted", ("actuator",), {"actuator": 0.6, "sensor": 0.2}, unmodelled=0.99, robot="qube"),
        answer("planted", ("actuator", "sensor"), {"actuator": 0.9, "object": 0.8, "sensor": 0.7}, robot="qube"),
        answer("planted", (), {"object": 0.5}, unmodelled=0.99, robot="cube"),
        answer("planted", (), {"object": 0.6}, no_gap=0.9, robot="cube"),
    ]
    table = part("gap_tables").planted_table("planted", answers)
    rows = {row[0]: row for row in table.rows}
    assert rows["qube"][1] == "50.0 %"
    assert rows["qube"][4] == "100.0 %"  # three of three above 0.5
    assert rows["cube"][5] == rows["all"][5] == "1 of 2"
    assert {bar.text: bar.met for bar in table.bars}["planted first, qube"] is False


def test_processor_time_stands_beside_wall_time() -> None:
    times = [answer("null", (), {}, seconds=1.0, cpu_s=s) for s in (2.0, 4.0, 9.0)]
    found = part("gap_scores").score([*times, answer("null", (), {})])
    assert found.median_cpu_s.value == 4.0
