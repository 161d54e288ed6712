"""The one form of what is said about a log that cannot be read."""

from pathlib import Path

from gapless.core.errors import LogError


def log_error(text: str, path: Path) -> LogError:
    """Returns an error whose message is one line, with the path in brackets at its end."""
    return LogError(" ".join(f"{text} ({path})".splitlines()))
