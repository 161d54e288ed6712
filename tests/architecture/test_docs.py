import importlib
import importlib.util
import re
import sys
from pathlib import Path

import pytest

from architecture.tree import ROOT, named

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`([^`\n]+)`")
COMMAND = re.compile(r"^\s*(?:\$ )?(?:\.venv/bin/)?gapless ([a-z][a-z-]*)", flags=re.MULTILINE)


def documents() -> list[Path]:
    """Returns the documents that people read, in the root and in docs."""
    return sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))


def anchors(document: Path) -> set[str]:
    """Returns the names of a document's headings as links spell them."""
    prose = FENCE.sub("", document.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ +(.+?) *#*$", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_broken(document: Path, link: str) -> bool:
    target, _, anchor = link.partition("#")
    path = (document.parent / target).resolve() if target else document
    if not path.exists() or ROOT not in path.parents:
        return True
    return bool(anchor) and path.suffix == ".md" and anchor not in anchors(path)


def commands_named() -> dict[str, str]:
    """Returns verb -> the first document that names it in code, as in `gapless measure DIR`."""
    found: dict[str, str] = {}
    for document in documents():
        text = document.read_text(encoding="utf-8")
        code = FENCE.findall(text) + INLINE_CODE.findall(FENCE.sub("", text))
        for verb in (verb for piece in code for verb in COMMAND.findall(piece)):
            found.setdefault(verb, named(document))
    return found


def command_line_is_there() -> bool:
    return importlib.util.find_spec("gapless.cli") is not None and (
        importlib.util.find_spec("gapless.cli.main") is not None
    )


def status_of(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    """Returns the exit status of the command line with these arguments."""
    monkeypatch.setattr(sys, "argv", ["gapless", *arguments])
    try:
        answer = importlib.import_module("gapless.cli.main").main()
    except SystemExit as leave:
        answer = leave.code
    return answer if isinstance(answer, int) else int(answer is not None)


needs_command_line = pytest.mark.skipif(
    not command_line_is_there(), reason="gapless.cli.main does not exist yet: no verbs to compare with"
)


def test_relative_links_lead_somewhere() -> None:
    broken = [
        f"{named(document)}: {link}"
        for document in documents()
        for link in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8")))
        if not re.match(r"[a-z]+:", link) and is_broken(document, link)
    ]
    assert broken == []


@needs_command_line
@pytest.mark.parametrize("verb", sorted(commands_named()))
def test_every_command_in_the_documents_exists(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert status_of([verb, "--help"], monkeypatch) == 0, f"{commands_named()[verb]} names `gapless {verb}`"


@needs_command_line
def test_a_command_that_does_not_exist_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert status_of(["no-such-verb", "--help"], monkeypatch) != 0
