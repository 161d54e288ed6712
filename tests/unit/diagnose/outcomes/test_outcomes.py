import time
from itertools import cycle

import numpy as np
import pytest

from architecture.tree import ROOT
from gapless.core.dimensions import DIMENSIONS
from gapless.diagnose.outcomes.phases import MAX_PHASE_LOG_ODDS, weigh_phases
from gapless.diagnose.outcomes.records import OutcomeEvidence
from gapless.diagnose.outcomes.vocabulary import (
    CONDITION_WORDS,
    PHASE_WORDS,
    UNKNOWN_CONDITION,
    condition_dimensions,
    phase_dimensions,
)
from gapless.diagnose.outcomes.weigh import weigh_outcomes
from unit.diagnose.outcomes.outcome_runs import LEVELS, factor, moment, run


def weighed(*arguments: object) -> OutcomeEvidence:
    evidence = weigh_outcomes(*arguments)  # type: ignore[arg-type]
    assert evidence is not None
    assert set(evidence.log_odds) == set(DIMENSIONS)
    assert all(np.isfinite(value) for value in evidence.log_odds.values())
    assert all(0.0 <= f.probability <= 1.0 for f in evidence.factors)
    return evidence


def dim_light() -> list:
    """9 of 12 dim runs fail, 2 of 30 bright ones."""
    objects = cycle(["mug", "pan"])
    dim = [run(k < 9, {"light": "dim", "object": next(objects)}) for k in range(12)]
    return dim + [run(k < 2, {"light": "bright", "object": next(objects)}) for k in range(30)]


def test_dim_light_speaks_for_vision() -> None:
    evidence = weighed(dim_light())
    light = evidence.factors[0]
    assert light.name == "light"
    assert light.probability > 0.98
    assert max(evidence.log_odds, key=lambda d: evidence.log_odds[d]) == "visual"
    assert 3.0 < evidence.log_odds["visual"] < np.log(0.5 / 0.01)  # the table: 0.5 if vision takes part, else 0.01
    assert 0.5 < evidence.log_odds["environment"] < evidence.log_odds["visual"]
    assert evidence.log_odds["object"] < 0.0  # well sampled, and no difference
    assert evidence.log_odds["latency"] == 0.0
    assert evidence.sentences[0] == "11 of 42 runs failed: 26 % [15, 41]"
    assert evidence.sentences[1].startswith("9 of 12 runs with light=dim failed, 2 of 30 otherwise: 6")
    assert evidence.sentences[1].endswith("probability that light matters 1.00")
    dim = light.levels[0]
    assert (dim.value, dim.num_runs, dim.num_failures) == ("dim", 12, 9)
    assert dim.failure.low < 0.75 < dim.failure.high


def test_the_same_runs_give_the_same_answer_in_any_order_of_names() -> None:
    assert weigh_outcomes(dim_light()) == weigh_outcomes(dim_light())
    turned = [run(e.outcome == "failure", dict(reversed(e.conditions.items()))) for e in dim_light()]
    one, other = weighed(dim_light()), weighed(turned)
    assert [f.name for f in one.factors] == [f.name for f in other.factors]
    np.testing.assert_allclose(list(one.log_odds.values()), list(other.log_odds.values()), atol=1e-6)


def test_nothing_is_said_to_matter_where_nothing_does() -> None:
    rng = np.random.default_rng(0)
    runs = [run(k % 2 == 0, {name: f"v{rng.integers(n)}" for name, n in LEVELS.items()}) for k in range(60)]
    evidence = weighed(runs)
    assert evidence.sentences[1].startswith("no condition concentrates failures beyond chance (6 conditions looked at)")


def test_factors_that_changed_together_are_named_and_share() -> None:
    dim = [k % 2 == 0 for k in range(40)]
    fails = [d and k % 10 < 8 for k, d in enumerate(dim)]
    runs = [
        run(f, {"light": "dim" if d else "bright"}, moment(k, 16 if d else 9))
        for k, (d, f) in enumerate(zip(dim, fails, strict=True))
    ]
    evidence = weighed(runs)
    light, clock = factor(evidence, "light"), factor(evidence, "time of day")
    assert light.probability == pytest.approx(clock.probability, abs=0.01)
    assert 0.4 < light.probability <= 0.5
    assert light.confounded_with == ("time of day",)
    assert "light and time of day changed together: probability that one of them matters" in evidence.sentences[1]
    assert "record them separately, such as light=dim with time of day=morning" in evidence.suggestions[0]


def test_confounded_causes_of_two_dimensions_both_stay_open() -> None:
    runs = [run(k % 2 == 0 and k < 32, {"object": "ab"[k % 2], "operator": "xy"[k % 2]}) for k in range(40)]
    evidence = weighed(runs)
    alone = weighed([run(e.outcome == "failure", {"object": e.conditions["object"]}) for e in runs])
    assert evidence.log_odds["object"] == pytest.approx(evidence.log_odds["human"], abs=0.01)
    assert 0.5 < evidence.log_odds["object"] < alone.log_odds["object"]


def test_a_rise_over_weeks_is_found() -> None:
    rng = np.random.default_rng(1)
    days = np.linspace(0, 60, 50)
    failed = rng.random(50) < 1 / (1 + np.exp((35 - days) / 8))
    runs = [run(f, {"object": "ab"[k % 2]}, moment(d)[:10]) for k, (d, f) in enumerate(zip(days, failed, strict=True))]
    evidence = weighed(runs)
    assert factor(evidence, "trend over weeks").probability > 0.95
    assert evidence.sentences[1].startswith("failures rise over the weeks: ")
    assert evidence.log_odds["actuator"] > 0.8
    assert evidence.log_odds["sensor"] > 0.8
    assert all(f.name != "time of day" for f in evidence.factors)  # dates without a clock have none


def test_eight_runs_decide_nothing() -> None:
    failed = [True, True, True, False, True, False, False, False]
    evidence = weighed([run(f, {"light": "dim" if k < 4 else "bright"}) for k, f in enumerate(failed)])
    assert 0.05 < evidence.factors[0].probability < 0.5
    assert abs(evidence.log_odds["visual"]) < 0.5
    assert "light: dim (4), bright (4) have fewer than 5 runs: record 5 of each" in evidence.suggestions


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [run(True)],
        [run(True), run(True), run(False)],
        [run(False, {"light": "dim"})] * 20,
        [run(None)] * 20,
        [run(True, source="sim")] * 20,
    ],
)
def test_too_little_says_nothing(runs: list) -> None:
    assert weigh_outcomes(runs) is None


def test_where_all_failed_only_phases_speak() -> None:
    evidence = weighed([run(True, {"light": "ab"[k % 2]}, None, "grasp") for k in range(12)])
    assert evidence.factors == ()
    assert evidence.sentences[1] == "no run succeeded: conditions say nothing"
    assert evidence.log_odds["contact"] > 1.0
    assert evidence.log_odds["visual"] == 0.0


def test_conditions_that_never_or_always_change_are_left_out() -> None:
    runs = [run(k % 3 == 0, {"site": "lab", "object": f"part {k:02d}", "policy": "a"}) for k in range(12)]
    evidence = weighed(runs)
    assert evidence.factors == ()
    assert "site=lab in every run: record another, or it cannot be judged" in evidence.suggestions
    assert "object differs in every run: repeat some of its values" in evidence.suggestions
    assert not any("policy" in text for text in evidence.suggestions)


def test_not_naming_a_condition_is_no_effect_of_it() -> None:
    silent = [run(k < 2) for k in range(20)]
    naming = [run(k < 16, {"light": "dim" if k % 2 else "bright"}) for k in range(20)]
    assert weighed(silent + naming).factors[0].probability < 0.25


def test_numbers_are_cut_into_thirds_and_spelling_does_not_matter() -> None:
    runs = [run(k >= 20, {"Payload_kg" if k % 2 else "payload kg": f"{0.1 * k:.1f}"}) for k in range(30)]
    payload = factor(weighed(runs), "payload kg")
    assert [level.value for level in payload.levels] == ["up to 0.9", "0.9 to 1.9", "above 1.9"]
    assert [level.num_failures for level in payload.levels] == [0, 0, 10]
    assert payload.probability > 0.95
    assert weighed(runs).log_odds["object"] > 1.5


def test_times_of_any_kind_are_read() -> None:
    stamps = ["2026-03-02T09:00:00Z", "2026-03-03T16:00:00+09:00", "2026-03-04 20:00", "2026-03-05", "soon", None]
    evidence = weighed([run(k % 2 == 0, {}, stamp) for k, stamp in enumerate(stamps * 4)])
    clock = factor(evidence, "time of day")
    assert [(level.value, level.num_runs) for level in clock.levels] == [
        ("morning", 4),
        ("afternoon", 4),
        ("evening", 4),
    ]
    assert sum(level.num_runs for level in factor(evidence, "trend over days").levels) == 16


def test_a_stated_time_of_day_replaces_the_clock() -> None:
    runs = [run(k % 3 == 0, {"time_of_day": "ab"[k % 2]}, moment(k, 9 + k % 9)) for k in range(20)]
    assert [f.name for f in weighed(runs).factors].count("time of day") == 1


def test_an_unknown_word_counts_weakly_and_is_said() -> None:
    evidence = weighed([run(k % 2 == 0, {"gizmo": "ab"[k % 2]}) for k in range(40)])
    assert 0.3 < evidence.log_odds["environment"] < 0.7
    assert any("what gizmo stands for is not known" in text for text in evidence.sentences)


def test_what_was_run_speaks_for_no_dimension() -> None:
    evidence = weighed([run(k % 2 == 0, {"policy": "ab"[k % 2]}) for k in range(40)])
    assert evidence.factors[0].probability > 0.9
    assert not any(evidence.log_odds.values())


def test_failures_at_contact_speak_for_contact() -> None:
    phases = ["grasp"] * 9 + ["approach", "carry"]
    found, odds = weigh_phases([run(True, failed_in=phase) for phase in phases])
    assert found[0].name == "grasp"
    assert found[0].probability > 0.5
    assert found[0].share.low < 9 / 11 < found[0].share.high
    assert found[0].expected == pytest.approx(1 / 3)
    assert max(odds, key=lambda d: odds[d]) == "contact"
    assert odds["visual"] < 0.0
    assert odds["human"] == 0.0


def test_phases_alone_never_decide() -> None:
    _, odds = weigh_phases([run(True, failed_in="insert")] * 500 + [run(True, failed_in="approach")])
    assert 1.5 < odds["contact"] <= MAX_PHASE_LOG_ODDS


def test_words_of_either_table() -> None:
    assert "visual" in condition_dimensions("LampPosition")[0]
    assert "human" in condition_dimensions("operators")[0]
    assert set(condition_dimensions("surface")[0]) == {"contact", "environment"}
    assert condition_dimensions("alarm") == (UNKNOWN_CONDITION, False)  # neither arm nor lamp
    assert "visual" in phase_dimensions("approach to grasp")
    assert "contact" in phase_dimensions("peg_insertion") or "contact" in phase_dimensions("inserting")
    assert phase_dimensions("thinking") == {}


def test_the_document_has_the_table_of_words() -> None:
    text = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")
    for words, speaks_for in (*CONDITION_WORDS, *PHASE_WORDS):
        said = ", ".join(f"{dimension} {weight:g}" for dimension, weight in speaks_for.items()) or "nothing"
        row = next(line for line in text.splitlines() if line.startswith(f"| {words[0]}"))
        assert all(word in row for word in words)
        assert f"| {said}" in row


def test_two_hundred_runs_take_no_time() -> None:
    rng = np.random.default_rng(2)
    runs = [
        run(rng.random() < 0.3, {name: f"v{rng.integers(n)}" for name, n in LEVELS.items()}, moment(k / 4, k % 10 + 8))
        for k in range(200)
    ]
    start = time.process_time()
    weighed(runs)
    assert time.process_time() - start < 2.0


def test_phases_of_exposed_runs_tell_a_cause_from_chance() -> None:
    def judge(phase: str) -> OutcomeEvidence:
        dim = [run(k < 6, {"light": "dim"}, None, phase) for k in range(12)]
        return weighed(dim + [run(k < 5, {"light": "bright"}, None, ["lift", "return"][k % 2]) for k in range(28)])

    seen, elsewhere = judge("approach"), judge("handover")  # six dim runs of twelve fail, five bright ones of 28
    assert seen.probabilities["visual"] > 0.5 > elsewhere.probabilities["visual"]
    assert seen.probabilities["visual"] > 2 * seen.no_gap


def test_explanations_exclude_each_other() -> None:
    evidence = weighed(dim_light())
    total = sum(evidence.probabilities.values()) + evidence.no_gap
    assert evidence.probabilities["visual"] > evidence.probabilities["environment"] > 0.1  # 0.5 and 0.2 of the table
    assert total == pytest.approx(1.0, abs=0.1)  # above 1 only where several conditions matter
    assert evidence.no_gap < 0.15


def test_what_was_run_is_no_gap() -> None:
    evidence = weighed([run(k % 2 == 0, {"policy": "ab"[k % 2]}) for k in range(40)])
    assert evidence.no_gap > 0.9
