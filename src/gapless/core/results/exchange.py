"""Results of the verbs that move data in and out: `import` and `export`."""

from dataclasses import dataclass
from typing import ClassVar

from gapless.core.recording import Skipped
from gapless.core.results.gap import Note, Result


@dataclass(frozen=True)
class ColumnMapping:
    """What became of a recorded column."""

    column: str  # its name in the source
    becomes: str | None  # its name in the project; None where it was left out
    what: str | None  # what that maps in the model, such as `joint elbow position`; None where nothing
    reason: str  # why


@dataclass(frozen=True)
class ImportResult(Result):
    """What `import` brought in; `inputs` are the ids of the episodes."""

    verb: ClassVar[str] = "import"
    project: str  # its folder
    episodes: int  # of these sources that are in the catalogue now
    samples: int  # rows of these episodes, of all columns
    known: int  # how many of the episodes were there before
    skipped: tuple[Skipped, ...]  # what did not come in, and why
    mapping: tuple[ColumnMapping, ...]
    flagged: int  # episodes in whose signals something is wrong; column `quality` of the view `episodes`
    notes: tuple[Note, ...]  # what to know: transport latency, signals that are stuck, clocks that are guessed
    dry_run: bool = False  # nothing was written


@dataclass(frozen=True)
class ExportResult(Result):
    """What `export` wrote; `inputs` are the ids of the episodes."""

    verb: ClassVar[str] = "export"
    path: str  # the file or folder
    file_format: str  # such as `lerobot-v3.0`
    episodes: int
    samples: int  # rows
    skipped: tuple[Skipped, ...]  # what the format cannot hold, or may not leave
