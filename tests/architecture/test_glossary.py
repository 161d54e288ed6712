"""One word per thing: what the glossary of docs/architecture.md rejects is not used in src."""

import re
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from architecture.tree import ROOT, named, source_files
from gapless.core import results

GLOSSARY = ROOT / "docs" / "architecture.md"


def read_rejected_words(document: str) -> dict[str, str]:
    """Returns rejected word -> the word to use, of the table in the section `## Glossary` (word | means | not)."""
    _, _, section = document.partition("\n## Glossary\n")
    rejected: dict[str, str] = {}
    for line in re.split(r"\n## ", section)[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] != "word" and set(cells[2]) - set(":- "):
            word = cells[0].replace("*", "").replace("`", "")
            rejected |= {one.strip(" *`\"'"): word for one in cells[2].split(",") if one.strip()}
    return rejected


@cache
def contract() -> re.Pattern[str]:
    """Returns a pattern of what JSON fixes, whatever we call it today: names of fields, and their literal values."""
    names: set[str] = set()
    literals: set[str] = set()
    for record in vars(results).values():
        if isinstance(record, type) and is_dataclass(record):
            names |= {item.name for item in fields(record)}
            for hint in get_type_hints(record).values():
                literals |= {text for text in find_literals(hint) if " " in text}
    field = "|".join(sorted(names))
    quoted = "|".join(re.escape(text) for text in sorted(literals))
    return re.compile(rf"\.(?:{field})\b|\b(?:{field})(?=[:=])|\"(?:{field})\"|[\"`](?:{quoted})[\"`]")


def find_literals(hint: Any) -> set[str]:
    """Returns the texts that a type allows."""
    if get_origin(hint) is Literal:
        return {text for text in get_args(hint) if isinstance(text, str)}
    return set().union(*(find_literals(inner) for inner in get_args(hint)))


def split_words(line: str) -> str:
    """Returns a line with names taken apart: `_can_be_told` and `CanBeTold` become `can be told`."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", contract().sub(" ", line))
    return re.sub(r"[\s_]+", " ", apart).lower()


def find_rejected_words(text: str, rejected: dict[str, str]) -> list[tuple[int, str]]:
    """Returns line number and rejected word of every use."""
    patterns = {word: re.compile(rf"\b{re.escape(word.lower())}\b") for word in rejected}
    lines = enumerate(map(split_words, text.splitlines()), start=1)
    return [(number, word) for number, line in lines for word, pattern in patterns.items() if pattern.search(line)]


def uses_in(path: Path, rejected: dict[str, str]) -> list[str]:
    found = find_rejected_words(path.read_text(encoding="utf-8"), rejected)
    return [f"{named(path)}:{number} {word!r}: write {rejected[word]!r}" for number, word in found]


def test_no_rejected_word_is_used() -> None:
    rejected = read_rejected_words(GLOSSARY.read_text(encoding="utf-8"))
    assert len(rejected) > 5  # the table was found
    offenders = [use for path in source_files(examples=False) for use in uses_in(path, rejected)]
    assert offenders == [], "\n".join(offenders)


TABLE = """
# A
## Glossary
| word | means | not |
|---|---|---|
| identifiable | the logs determine it | can be told, `teller` |
| window | a stretch of a log | |
## Next
| a | b | c |
"""


def test_the_table_is_read() -> None:
    assert read_rejected_words(TABLE) == {"can be told": "identifiable", "teller": "identifiable"}


@pytest.mark.parametrize(
    "line", ["def _can_be_told(x):", "class CanBeTold:", '"""What can be told."""', 'f"{name} can be told"']
)
def test_uses_are_found(line: str) -> None:
    assert find_rejected_words(line, {"can be told": "identifiable"}) == [(1, "can be told")]


@pytest.mark.parametrize(
    "line", ["the teller's", 'Outlook = Literal["can be told"]', "p.told", "told: bool", "told=True"]
)
def test_what_json_fixes_is_let_pass(line: str) -> None:
    assert find_rejected_words(line, {"can be told": "identifiable", "told": "identified"}) == []
