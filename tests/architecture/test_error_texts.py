"""Every error text tells the reader what to do."""

import re

from architecture.error_texts import UNKNOWN, find_error_texts

# Imperatives; a text without one tells what is wrong and leaves the reader alone with it.
ACTIONS = re.compile(
    r"\b(add|ask|begin|check|choose|convert|correct|delete|drop|free|give|install|keep|leave|list|look|make|map|move|name|"
    r"raise|record|rename|run|save|see|set|shorten|sort|split|start|train|use|widen|write)\b",
    re.IGNORECASE,
)


def test_every_error_text_names_what_to_do() -> None:
    found = find_error_texts()
    assert len(found) > 200  # the search itself works
    known = [
        error for error in found if error.text.replace(UNKNOWN, "").strip(" :;,()") not in ("", "line", "parameter")
    ]
    silent = [f"{error.place}: {error.text}" for error in known if not ACTIONS.search(error.text)]
    assert silent == []
