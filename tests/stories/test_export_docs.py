"""The page on exporting ranges: its code runs, its tables are whole."""

import re
from pathlib import Path

import pytest

from gapless import verbs
from gapless.randomize.export.formats import FORMATS
from stories.test_docs_code import DOCS, run_python, section

PAGE = "how-to/export-ranges.md"


def test_the_code_of_the_page_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    verbs.copy_example("push", tmp_path / "my-robot")
    text = re.findall(r"```text\n(.*?)```", section("how-to/randomize.md", "## Ranges as text"), flags=re.DOTALL)[0]
    (tmp_path / "ranges.txt").write_text(text)
    page = (DOCS / PAGE).read_text(encoding="utf-8")
    back = page[page.index("## Back in") : page.index("## What was checked")]
    (tmp_path / "page.md").write_text(back)
    monkeypatch.setattr("stories.test_docs_code.DOCS", tmp_path)
    run_python("page.md")
    shown = re.findall(r"```text\n(.*?)```", back, flags=re.DOTALL)[0]
    printed = capsys.readouterr().out
    assert printed.startswith(shown)
    assert "actuator/*/delay: left out: mjlab has no term for a delay" in printed
    assert (tmp_path / "mjlab_events.py").exists()


def test_the_table_has_every_format() -> None:
    table = section(PAGE, "## What each format carries")
    rows = re.findall(r"^\| (`[^|]*`) \|", table, flags=re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row) if name in FORMATS]
    assert set(named) == set(FORMATS)
