"""Labels: history is kept, the newest counts, and the agreement of two people has an honest interval."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from catalogue_writer import make_episode, make_provenance

from gapless.core.errors import InputError
from gapless.core.results import from_json, to_json
from gapless.data.catalogue import Catalogue
from gapless.data.labels import estimate_kappa, label, measure_agreement


@pytest.fixture
def folder(tmp_path: Path, catalogue: Catalogue) -> Path:
    episodes = [make_episode(k, name=f"reach_{k}", outcome=None, conditions={"object": "mug"}) for k in range(4)]
    catalogue.add_episodes([(episode, make_provenance()) for episode in episodes])
    return tmp_path


def rows(folder: Path, sql: str) -> list[tuple]:
    return [tuple(row.values()) for row in Catalogue.open(folder).query(sql).to_pylist()]


def test_the_newest_outcome_shows_and_all_that_was_said_is_kept(folder: Path) -> None:
    label(folder, ["reach_0", "reach_1"], by="ana", outcome="success")
    label(folder, ["reach_*"], by="bo", failed_in="lift", reason="it slipped")
    label(folder, ["reach_1"], by="ana", outcome="success")
    shown = rows(folder, "SELECT name, outcome, failed_in, reason, labelled_by FROM episodes ORDER BY name")
    assert shown[0] == ("reach_0", "failure", "lift", "it slipped", "bo")
    assert shown[1] == ("reach_1", "success", None, None, "ana")
    history = "SELECT said_by, labels.outcome FROM labels JOIN episodes ON id = episode WHERE name = 'reach_1'"
    assert rows(folder, f"{history} ORDER BY said_at") == [("ana", "success"), ("bo", "failure"), ("ana", "success")]
    recorded = Catalogue.open(folder).select("SELECT DISTINCT outcome FROM recorded_episodes")
    assert recorded == [{"outcome": None}]  # what was recorded is as it was


def test_conditions_join_key_by_key_and_tags_are_the_newest_of_each_person(folder: Path) -> None:
    label(folder, ["reach_0"], by="ana", conditions={"light": "dim", "floor": "wet"}, tags=["a", "b"])
    label(folder, ["reach_0"], by="bo", conditions={"light": "bright"}, tags=["c"])
    label(folder, ["reach_0"], by="ana", tags=["d"])
    ((conditions, tags, outcome),) = rows(
        folder, "SELECT conditions, tags, outcome FROM episodes WHERE name = 'reach_0'"
    )
    assert json.loads(conditions) == {"object": "mug", "light": "bright", "floor": "wet"}
    assert tags == ["c", "d"]
    assert outcome is None


def test_episodes_are_named_by_id_and_its_beginning_and_sql(folder: Path) -> None:
    ids = [row.id for row in Catalogue.open(folder).episodes()]
    assert label(folder, [ids[0], ids[0][:6]], by="ana", tags=["x"]).inputs == (ids[0],)
    assert label(folder, where="name IN ('reach_1', 'reach_2')", by="ana", tags=["x"]).inputs == tuple(ids[1:3])


@pytest.mark.parametrize(
    ("names", "options", "text"),
    [
        (["reach_9"], {"tags": ["x"]}, "no episode 'reach_9'; choose from: reach_"),
        ([], {"tags": ["x"]}, "which episodes"),
        (["reach_0"], {"tags": ["x"], "where": "true"}, "not both"),
        ([], {"tags": ["x"], "where": "id IN (SELECT id FROM Recorded_Episodes)"}, "is disabled"),
        ([], {"tags": ["x"], "where": "colour = 1"}, "cannot answer the condition 'colour = 1'"),
        ([], {"tags": ["x"], "where": "true); DELETE FROM episodes; --"}, "cannot answer the condition"),
        (["reach_0"], {}, "says nothing"),
        (["reach_0"], {"outcome": "great"}, "use one of success, failure"),
        (["reach_0"], {"outcome": "success", "failed_in": "lift"}, "leave --failed-in out"),
        (["reach_0"], {"reason": "slipped"}, "Give --outcome"),
        (["reach_0"], {"tags": [" "]}, "empty"),
        (["reach_0"], {"tags": ["x"], "by": " "}, "Name the person"),
    ],
)
def test_what_cannot_be_said_is_refused(folder: Path, names: list[str], options: dict, text: str) -> None:
    with pytest.raises(InputError) as error:
        label(folder, names, **{"by": "ana", **options})
    assert text in str(error.value)
    assert not Catalogue.open(folder).events.files()


WRITER = """
import sys
from gapless.data.labels import label
for k in range(4):
    label(sys.argv[1], ["reach_*"], by=sys.argv[2], outcome="success", reason=str(k))
"""


def test_two_processes_that_label_at_once_lose_nothing(folder: Path) -> None:
    people = ("ana", "bo")
    running = [subprocess.Popen([sys.executable, "-c", WRITER, str(folder), who]) for who in people]
    assert [process.wait(120) for process in running] == [0, 0]
    found = rows(folder, "SELECT said_by, reason, count(*) FROM labels GROUP BY ALL ORDER BY ALL")
    assert found == [(who, str(k), 4) for who in people for k in range(4)]


def test_agreement_lists_what_people_say_differently(folder: Path) -> None:
    label(folder, ["reach_*"], by="ana", outcome="success")
    label(folder, ["reach_0", "reach_1"], by="bo", outcome="success")
    label(folder, ["reach_0"], by="bo", outcome="failure")
    label(folder, ["reach_2"], by="cy", tags=["no-outcome"])
    result = measure_agreement(folder)
    (one,) = result.agreements
    assert (one.first, one.second, one.num_common) == ("ana", "bo", 2)
    assert [(d.episode, d.first_said, d.second_said) for d in one.disagreements] == [("reach_0", "success", "failure")]
    assert to_json(from_json(to_json(result))) == to_json(result)


def test_kappa_is_that_of_the_textbook() -> None:
    # 20 both success, 15 both failure, 5 and 10 apart, of 50: p = 0.7, c = 0.5*0.6 + 0.5*0.4 = 0.5, kappa = 0.4.
    pairs = [("success", "success")] * 20 + [("success", "failure")] * 5
    pairs += [("failure", "success")] * 10 + [("failure", "failure")] * 15
    kappa = estimate_kappa(pairs)
    assert kappa.value == pytest.approx(0.4)
    assert kappa.low < 0.4 < kappa.high
    assert (kappa.n, kappa.level) == (50, 0.95)


def test_kappa_is_unknown_where_both_only_say_one_word() -> None:
    kappa = estimate_kappa([("success", "success")] * 30)
    assert np.isnan(kappa.value)
    assert kappa.low < 0.1
    assert kappa.high > 0.8  # nothing is known of it


@pytest.mark.parametrize(("first", "second", "kappa"), [(0.5, 0.5, 0.4), (0.7, 0.65, 0.7), (0.85, 0.85, 0.0)])
def test_the_interval_covers_as_often_as_it_says(first: float, second: float, kappa: float) -> None:
    """Two people say success with these probabilities; 60 episodes, 1,000 draws."""
    chance = first * second + (1 - first) * (1 - second)
    both = (kappa * (1 - chance) + chance - 1 + first + second) / 2
    cells = [both, first - both, second - both, 1 - first - second + both]
    words = [("success", "success"), ("success", "failure"), ("failure", "success"), ("failure", "failure")]
    rng, covered = np.random.default_rng(3), 0
    tables, times = np.unique(rng.multinomial(60, cells, size=1000), axis=0, return_counts=True)
    for counts, many in zip(tables, times, strict=True):
        found = estimate_kappa([pair for pair, count in zip(words, counts, strict=True) for _ in range(count)])
        covered += many * (found.low <= kappa <= found.high)
    assert 930 <= covered <= 970
