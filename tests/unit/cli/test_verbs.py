import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from gapless import verbs
from gapless.cli import commands
from gapless.cli.commands import app
from gapless.cli.main import run
from gapless.core.errors import InputError
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
    extra = {
        "export_ranges",
        "identify_sensor",
        "search_ranges",
        "measure_agreement",
        "copy_example",
        "example_names",
        "EXAMPLES",
    }
    assert public == set(verbs.__all__) | extra
    assert all(hasattr(verbs, name) for name in public)


HEAVY = ("numpy", "scipy", "mujoco", "pyarrow", "duckdb", "deltalake", "jinja2", "rich", "torch")


@pytest.mark.parametrize("words", [["--help"], ["identify", "--help"], ["--version"]])
def test_help_is_quick_because_it_loads_nothing_heavy(words: list[str]) -> None:
    code = (
        "import resource, sys; from gapless.cli.main import run; run(sys.argv[1:]); "
        f"heavy = [name for name in {HEAVY} if name in sys.modules]; assert not heavy, heavy; "
        "used = resource.getrusage(resource.RUSAGE_SELF); print('cpu_s', used.ru_utime + used.ru_stime)"
    )
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    cpu_s = float(done.stdout.rpartition("cpu_s ")[2])
    assert cpu_s < 0.4  # 0.1 s where this was written


def test_options_of_bayrn_are_refused_beside_an_audit(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["randomize", ".", "--audit", "ranges.txt", "--tries", "3"]) == 2
    assert "--tries does nothing beside --audit" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["audit", "robot", "ranges.txt"], ["randomize", "robot", "--audit", "ranges.txt"]])
def test_ranges_are_audited_by_a_verb_and_by_the_flag_that_was_before(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise InputError(f"{arguments} {options['seed']}")

    monkeypatch.setitem(verbs.__dict__, "audit", refuse)
    assert run([*words, "--seed", "7"]) == 2
    assert f"{(Path('robot'), Path('ranges.txt'))} 7" in capsys.readouterr().err
