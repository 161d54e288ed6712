"""Cases with outcomes alone, and with a policy, are what they say they are, and their tables count right."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gapless.diagnose.outcomes.vocabulary import condition_dimensions
from gapless.project.load import load_project
from gapless.project.log.read import read_unlogged
from unit.benchmarks.parts import part
from unit.benchmarks.test_gap_scores import answer


def first(name: str, detail: str, robot: str = "") -> Any:
    return next(c for c in part(name).cases("tuning") if c.detail == detail and c.robot.startswith(robot))


@pytest.mark.parametrize("name", ["gap_outcomes", "gap_policies"])
def test_tuning_and_test_share_no_seed(name: str) -> None:
    tuning, test = (part(name).cases(split) for split in ("tuning", "test"))
    assert len(test) == 2 * len(tuning)
    assert len({case.seed for case in (*tuning, *test)}) == len(tuning) + len(test)
    each = part(name).PER_CAUSE * (3 if name == "gap_outcomes" else 1)  # for each number of runs
    assert set(Counter(case.detail for case in test if case.causes).values()) == {each}


def test_conditions_speak_for_what_is_planted() -> None:
    outcomes = part("gap_outcomes")
    for words in outcomes.WORDS.values():
        for name, word in words.items():
            speaks, known = condition_dimensions(word)
            assert known
            assert max(speaks, key=lambda d: speaks[d]) == outcomes.CAUSES[name]


def test_exposed_runs_fail_more_and_mostly_where_the_cause_bites() -> None:
    outcomes = part("gap_outcomes")
    hits, runs, bites = np.zeros(2), np.zeros(2), Counter[str]()
    for case in outcomes.cases("tuning"):
        if case.detail == "human/person":
            campaign, told = outcomes.draw(case)
            exposed = campaign.exposure("person").astype(int)
            np.add.at(hits, exposed, told.failed)
            np.add.at(runs, exposed, 1)
            bites.update(outcomes.PHASES[int(k)] for k in told.phase[exposed == 1] if k >= 0)
    assert 0.1 < hits[0] / runs[0] < 0.25
    assert 0.5 < hits[1] / runs[1] < 0.8
    assert bites.most_common(1)[0][0] == "handover"


def test_chances_have_their_closed_form() -> None:
    # Base 0.2, raised 0.6, equal shares: unexposed 0.04 in each phase. Exposed 0.4 more, of which 0.7 in the approach
    # and 0.3 spread: 0.04 + 0.4 * (0.7 + 0.06) = 0.344 there, 0.04 + 0.4 * 0.06 = 0.064 elsewhere; 0.6 in all.
    outcomes = part("gap_outcomes")
    campaign, _ = outcomes.draw(first("gap_outcomes", "visual/light"))
    even = outcomes.replace(campaign, base=0.2, raised=0.6, shares=np.full(5, 0.2))
    chances, exposed = even.chances("light"), even.exposure("light") == 1
    assert chances[~exposed] == pytest.approx(np.full((int((~exposed).sum()), 5), 0.04))
    assert chances[exposed][0] == pytest.approx([0.344, 0.064, 0.064, 0.064, 0.064])


def test_the_oracle_is_right_where_it_is_easy() -> None:
    outcomes = part("gap_outcomes")
    many = [c for c in outcomes.cases("tuning") if c.robot == "120 runs"]
    right = [outcomes.oracle(c) == next(iter(c.causes), "no gap") for c in many[::5]]
    assert np.mean(right) > 0.85


def test_a_case_is_a_project_of_runs_without_logs(tmp_path: Path) -> None:
    outcomes = part("gap_outcomes")
    case = first("gap_outcomes", "environment/site", "40")
    one, other = (outcomes.write(case, tmp_path / name) for name in ("one", "other"))
    runs = read_unlogged(load_project(one))
    assert [run.episode.outcome for run in runs] == [note["outcome"] for note in outcomes.notes(case)]
    assert len(runs) == 40
    assert [path.read_bytes() for path in sorted((one / "logs").iterdir())] == [
        path.read_bytes() for path in sorted((other / "logs").iterdir())
    ]
    assert json.loads((tmp_path / "one.truth.json").read_text())["causes"] == ["environment"]


def test_the_policy_succeeds_in_the_model_as_written_and_fails_where_planted() -> None:
    policies = part("gap_policies")
    for detail in ("nothing", "visual/light", "latency/delay"):
        runs, _, exposed = policies.draw(first("gap_policies", detail))
        failed = np.array([not run.success for run in runs])
        if detail == "nothing":
            assert not failed.any()
        elif detail == "visual/light":
            assert failed[exposed].mean() > 0.5
            assert not failed[~exposed].any()
        else:
            assert failed.mean() > 0.5


def test_tables_count_by_source() -> None:
    tables = part("gap_outcome_tables").tables(
        [
            answer("single", ("visual",), {"visual": 0.7, "human": 0.1}, no_gap=0.2, robot="40 runs"),
            answer("single", ("human",), {"visual": 0.3, "human": 0.1}, no_gap=0.6, robot="40 runs"),
            answer("null", (), {"visual": 0.3}, no_gap=0.6, robot="40 runs"),
            answer("null", (), {"visual": 0.7}, no_gap=0.2, robot="40 runs"),
        ],
        "test",
    )
    rows = {row[0]: row[1:] for row in tables[0].rows}
    assert rows["planted: most probable of all is the cause (top-1)"][::2] == ["50.0 %", "2"]
    assert rows["null: false alarms (no gap below 0.5)"][::2] == ["50.0 %", "2"]
    assert {row[0]: row[1] for row in tables[1].rows} == {"visual": "100.0 %", "human": "0.0 %"}
    confusion = tables[-1]
    assert confusion.header == ("", "visual", "human", "no gap")
    assert {row[0]: row[1:] for row in confusion.rows} == {
        "visual": ["1", ".", "."],
        "human": [".", ".", "1"],
        "no gap": ["1", ".", "1"],
    }
