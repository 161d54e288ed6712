"""What all results have in common."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class StoredResult:
    """The result of a verb."""

    id: str | None = field(default=None, kw_only=True)  # its id in the catalogue; None where it is not stored there
