import re
from pathlib import Path

import pytest

from architecture.tree import ROOT
from gapless import verbs
from gapless.cli.main import run


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_example_is_copied_by_a_command(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--copy", "balance", "my-robot"]) == 0
    said = capsys.readouterr().out
    assert "my-robot" in said
    assert "next: gapless check my-robot" in said
    assert (here / "my-robot" / "gapless.yaml").read_bytes() == (verbs.EXAMPLES / "balance/gapless.yaml").read_bytes()
    assert not (here / "my-robot" / ".gapless").exists()  # nothing was run


@pytest.mark.parametrize("words", [["--dir", "there"], []])
def test_the_folder_may_come_as_an_option_or_be_left_out(words: list[str], here: Path) -> None:
    assert run(["demo", "push", "--copy", *words]) == 0
    assert (here / (words[-1] if words else "gapless-demo/push") / "gapless.yaml").is_file()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--copy", "walk", "new"], "no example 'walk'; choose from: balance, handover, push"),
        (["--copy", "balance", "full"], "this folder is not empty: name an empty one: full"),
        (["--copy", "balance", "copy"], "this folder is not empty: name an empty one: copy"),
        (["--copy", "balance", "notes.txt"], "this is a file: name a folder: notes.txt"),
        (["--copy", "balance", "new", "--dir", "other"], "the folder is named twice"),
        (["--copy", "balance", "new", "--json", "-"], "--json does nothing beside --copy: leave it out"),
    ],
)
def test_a_copy_that_cannot_be_made_says_why(
    words: list[str], says: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "full").mkdir()
    (here / "full" / "thesis.tex").write_text("dear diary")
    (here / "notes.txt").write_text("dear diary")
    verbs.copy_example("balance", here / "copy")  # `--copy` never writes into, nor claims to have made, an older copy
    assert run(["demo", *words]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert len(error.splitlines()) == 1
    assert not (here / "new").exists()


def test_no_document_copies_an_example_by_python() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert [page.name for page in pages if re.search(r"python -c .*copy_example", page.read_text())] == []
