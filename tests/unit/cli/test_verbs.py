import inspect
import re

import pytest
import typer

from gapless import verbs
from gapless.cli import commands
from gapless.cli.commands import app
from gapless.cli.main import run
from gapless.learn.train import TrainConfig

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_every_verb_is_a_command_and_every_command_a_verb() -> None:
    assert sorted(verbs.__all__) == COMMANDS


@pytest.mark.parametrize("name", verbs.__all__)
def test_every_verb_can_be_called(name: str) -> None:
    assert callable(getattr(verbs, name))
    assert getattr(verbs, name).__doc__


def test_an_unknown_verb_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no verb 'measur'; there are: measure"):
        verbs.measur  # noqa: B018


def test_train_takes_as_many_steps_as_its_function() -> None:
    # The command states the number of its own, so that `--help` does not load torch.
    assert inspect.signature(commands.train).parameters["steps"].default == TrainConfig().num_steps


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    text = capsys.readouterr().out
    command = typer.main.get_command(app).commands[name]  # type: ignore[attr-defined]
    for parameter in command.params:
        shown = parameter.opts[0] if parameter.opts[0].startswith("--") else parameter.metavar.strip("[]")
        assert shown in text
        assert parameter.help, f"{name}: {parameter.name} has no help"
    first = text.split("\n\n")[1]
    assert len(first.strip()) > 20  # a sentence that says what it does
    assert "Usage: gapless " + name in text


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    assert "gapless demo" in capsys.readouterr().out
    assert run(["--help"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in COMMANDS)
    assert run(["--version"]) == 0
    assert re.fullmatch(r"gapless \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_dir_lists_what_people_call_and_nothing_else() -> None:
    public = {name for name in dir(verbs) if not name.startswith("_")}
    extra = {"audit", "export_ranges", "identify_sensor", "noise", "search_ranges"}
    extra |= {"copy_example", "example_names", "EXAMPLES"}
    assert public == set(verbs.__all__) | extra
    assert all(hasattr(verbs, name) for name in public)
