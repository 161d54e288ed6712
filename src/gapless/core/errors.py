"""The errors that gapless raises on purpose, all children of one root."""

import difflib
from collections.abc import Iterable


class GaplessError(Exception):
    """Root of every error that gapless raises on purpose."""


class InputError(GaplessError):
    """What the user gave cannot be used; the message says what to write instead (exit status 2)."""


class ProjectError(InputError):
    """`gapless.yaml`, or a file that it names, is wrong."""


class LogError(InputError):
    """A log cannot be read as an episode."""


class MissingColumnError(LogError):
    """A log has not all columns that the project maps."""


class CatalogueError(InputError):
    """The project's catalogue cannot be read or written."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during work of which something is kept; the message says what, and what the same command does then."""


class ResultWarning(UserWarning):
    """Something that users must know of a result beside it; the command line shows it in one line."""


class NotKeptWarning(ResultWarning):
    """There is a result, but it could not be entered in the catalogue."""


def nearest(asked: str, available: Iterable[str], limit: int = 8) -> str:
    """Returns the available names as one readable list, those most like `asked` first."""
    names = sorted(set(available))
    if not names:
        return "(none exist)"
    likeness = {name: difflib.SequenceMatcher(None, asked.lower(), name.lower()).ratio() for name in names}
    names.sort(key=lambda name: -likeness[name])
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more
