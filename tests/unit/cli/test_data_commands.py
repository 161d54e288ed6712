"""`label`, `split` and `consent` as a user has them."""

import json
from pathlib import Path

import pytest

from gapless.cli.main import run
from gapless.core.results import ConsentResult, LabelResult, SplitResult, from_json
from gapless.verbs import copy_example


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(copy_example("balance", tmp_path / "balance"))


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(arguments) == 0
    return capsys.readouterr().out


def test_people_label_and_see_how_far_they_agree(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    label = ["label", folder, "--by"]
    text = said(
        [*label, "ana", "motion[01]", "--failed-in", "swing", "--condition", "light = dim", "--tag", "x"], capsys
    )
    assert text == "2 episodes, by ana: failure, in swing, light=dim, x\n"
    said([*label, "bo", "motion0", "motion1", "motion2", "--outcome", "success"], capsys)
    text = said(["label", folder, "--agreement", "--json", "-"], capsys)
    result = from_json(json.loads(text))
    assert isinstance(result, LabelResult)
    assert len(result.agreements[0].disagreements) == 2
    assert "motion0" in said(["label", folder, "--agreement"], capsys)


def test_a_split_is_frozen_and_listed(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(["split", folder, "final", "--where", "name < 'motion2'", "--json", "-"], capsys)
    result = from_json(json.loads(text))
    assert isinstance(result, SplitResult)
    assert (result.splits[0].purpose, result.splits[0].num_episodes) == ("test", 2)
    assert "final" in said(["split", folder], capsys)


def test_consent_is_given_and_withdrawn(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    said(["consent", folder, "motion2", "--person", "P07", "--scope", "research", "--until", "2999-01-01"], capsys)
    assert "valid" in said(["consent", folder], capsys)
    result = from_json(json.loads(said(["consent", folder, "--withdraw", "--person", "P07", "--json", "-"], capsys)))
    assert isinstance(result, ConsentResult)
    assert len(result.hidden) == 1
    assert "motion2" not in said(["query", folder, "SELECT name FROM episodes"], capsys)
    assert "deleted from the disk: 1 episode" in said(["consent", folder, "--compact"], capsys)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["label", "DIR", "motion0", "--by", "a", "--condition", "dim"], "write KEY=VALUE"),
        (["label", "DIR", "motion0", "--by", "a", "--condition", "a=b", "--condition", "a=c"], "given twice"),
        (["label", "DIR", "motion0", "--tag", "x"], "Name the person with --by"),
        (["label", "DIR", "--agreement", "--by", "a"], "leave out by"),
        (["label", "DIR", "motion77", "--by", "a", "--tag", "x"], "no episode 'motion77'"),
        (["split", "DIR", "final", "--purpose", "exam"], "--purpose"),
        (["split", "DIR", "final", "--where", "DROP TABLE episodes"], "cannot answer the condition"),
        (["consent", "DIR", "--withdraw", "--person", "P1"], "run `gapless import`"),
        (["consent", "DIR", "motion0", "--person", "P1"], "Name the scope"),
    ],
)
def test_bad_input_is_one_line(
    folder: str, arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([folder if word == "DIR" else word for word in arguments]) == 2
    error = capsys.readouterr().err
    assert text in error
    assert error.count("\n") == 1
