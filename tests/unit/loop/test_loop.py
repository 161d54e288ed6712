import json
from dataclasses import replace
from pathlib import Path

import pytest

from gapless.core.errors import InputError
from gapless.core.results import (
    Cause,
    CheckResult,
    DiagnoseResult,
    LoopResult,
    Note,
    Probability,
    from_json,
    to_json,
)
from gapless.data.catalogue import Catalogue
from gapless.loop.verb import LoopConfig, loop
from gapless.verbs import copy_example
from unit.learn.balance import SMALL

TINY = LoopConfig(target=1.0, real_episodes=8, num_trials=6, first=SMALL, last=SMALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = copy_example("balance", tmp_path_factory.mktemp("balance"))
    few = "parameters: [{target: actuator/motor/gain}, {target: actuator/*/delay}, {target: joint/cart/damping}]"
    text = (place / "gapless.yaml").read_text().replace("parameters: auto", few)
    (place / "gapless.yaml").write_text(text)
    return place


@pytest.fixture(scope="module")
def result(folder: Path) -> LoopResult:
    return loop(folder, config=TINY)


def test_the_result_survives_json(result: LoopResult) -> None:
    text = json.dumps(to_json(result))
    again = from_json(json.loads(text))
    assert isinstance(again, LoopResult)
    assert json.dumps(to_json(again)) == text


def test_real_episodes_are_counted_and_their_logs_written(folder: Path, result: LoopResult) -> None:
    # six logs came with the example, so two were recorded
    assert result.real_episodes == 8
    logs = sorted(path.name for path in (folder / "logs").glob("*.csv"))
    assert logs == ["loop1-000.csv", "loop1-001.csv", *(f"motion{k}.csv" for k in range(6))]
    about = json.loads((folder / "logs" / "loop1-000.json").read_text())
    assert about["source"] == "twin"
    assert about["outcome"] in ("success", "failure")


def test_ranges_are_of_the_causes_and_the_rest_is_fixed(result: LoopResult) -> None:
    assert result.decision is not None
    assert result.identify is not None
    assert result.randomize is not None
    assert result.decision.action == "train"
    dimension = {p.target: p.dimension for p in result.identify.parameters}
    for item in result.randomize.ranges:
        assert (item.kind == "fixed") == (dimension[item.target] not in result.decision.dimensions)


def test_what_it_says_hangs_together(result: LoopResult) -> None:
    assert result.identify is not None
    assert result.last is not None
    assert result.measure is not None
    assert result.measure_fitted is not None
    assert result.rounds == 1
    assert result.reached == (result.after.value >= result.target)
    assert {result.simulation.n, result.before.n, result.after.n} == {6}
    assert result.first is not None
    assert result.first.policy_id in result.last.inputs
    assert result.identify.verdict in ("good", "poor")
    assert len(result.inputs) == result.real_episodes
    assert result.measure_fitted.columns["cart"].rmse < result.measure.columns["cart"].rmse  # type: ignore[operator]


def test_trials_that_score_are_no_logs(folder: Path, result: LoopResult) -> None:
    # 6 before and 6 after in the twin, 6 in simulation, 8 logs
    rows = Catalogue.open(folder).episodes()
    assert sum(row.source == "sim" for row in rows) == 6
    assert sum(row.source == "twin" for row in rows) == 12 + 8


def test_a_second_run_takes_trainings_from_the_catalogue(folder: Path, result: LoopResult) -> None:
    before = len(Catalogue.open(folder).artefacts("train"))
    again = loop(folder, config=TINY)
    assert len(Catalogue.open(folder).artefacts("train")) == before
    assert again.real_episodes == 8
    assert (again.before, again.after) == (result.before, result.after)
    assert again.last == result.last


@pytest.mark.parametrize("key", ["task", "reality"])
def test_a_project_without_task_or_reality_is_told_so(key: str, tmp_path: Path) -> None:
    place = copy_example("balance", tmp_path / "balance")
    lines = (place / "gapless.yaml").read_text().splitlines(keepends=True)
    (place / "gapless.yaml").write_text("".join(line for line in lines if not line.startswith(key)))
    with pytest.raises(InputError, match=f"a loop needs a {key}: add"):
        loop(place, config=TINY)


@pytest.fixture
def trained(folder: Path, result: LoopResult, tmp_path: Path) -> tuple[Path, str]:
    """Returns a copy of the example, and a policy for it."""
    assert result.last is not None
    place = copy_example("balance", tmp_path / "balance")
    return place, result.last.policy


def forbid(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("this must not be run")

    for name in names:
        monkeypatch.setattr(f"gapless.loop.verb.{name}", refuse)


def test_it_ends_where_the_first_policy_meets_the_target(
    trained: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, "measure", "diagnose", "identify", "train", "write_log")
    place, policy = trained
    found = loop(place, config=replace(TINY, target=0.0), policy=policy)
    assert found.decision is not None
    assert found.decision.action == "done"
    assert found.reached
    assert (found.rounds, found.real_episodes, found.after) == (0, 0, found.before)
    assert from_json(json.loads(json.dumps(to_json(found)))) == found


@pytest.mark.parametrize(
    ("probabilities", "said"),
    [((0.0, 0.9), "the gap is unmodelled"), ((0.9, 0.0), "no gap between model and logs is found")],
)
def test_it_stops_before_the_fit_where_training_closes_nothing(
    trained: tuple[Path, str], probabilities: tuple[float, float], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, "identify", "train")
    no_gap, unmodelled = map(Probability, probabilities)
    diagnosis = DiagnoseResult((), (Cause("actuator", 0.2, 0.0, 0.0, 1.0),), no_gap, unmodelled, (), (), (), 0)
    monkeypatch.setattr("gapless.loop.verb.diagnose", lambda *_, **__: diagnosis)
    place, policy = trained
    found = loop(place, config=replace(TINY, target=1.1), policy=policy)
    assert found.decision is not None
    assert found.decision.action == "stop"
    assert said in found.decision.reason
    assert not found.reached
    assert found.diagnose == diagnosis
    assert found.identify is found.randomize is found.last is None


def test_it_stops_before_the_diagnosis_where_the_data_has_mistakes(
    trained: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid(monkeypatch, "diagnose", "identify", "train")
    place, policy = trained
    noted = CheckResult((), False, (Note("fault", "pole", "it is turned"), Note("warning", "cart", "noisy")), {})
    monkeypatch.setattr("gapless.loop.verb.check", lambda *_, **__: noted)
    found = loop(place, config=replace(TINY, target=1.1), policy=policy)
    assert found.decision is not None
    assert found.decision.action == "stop"
    assert "mistakes, and no fit of such data can be trusted: pole: it is turned." in found.decision.reason
    assert found.diagnose is None
