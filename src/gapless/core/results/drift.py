"""What changed between two fits of one robot."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Drift:
    """A parameter that changed by more than its two intervals allow.

    Attributes:
        target: Which parameter.
        unit: Unit of `before` and `after`.
        before: Value in the earlier fit.
        after: Value in this fit.
        change: How much it changed: a share of `before` if `relative`, else in `unit`.
        low: Lower end of the interval of `change`.
        high: Upper end of the interval of `change`.
        level: Level at which the intervals of all compared parameters hold together.
        relative: Whether `change`, `low` and `high` are shares of `before`.
        since: When the last log of the earlier fit was recorded, ISO 8601; None where unknown.
    """

    target: str
    unit: str
    before: float
    after: float
    change: float
    low: float
    high: float
    level: float
    relative: bool
    since: str | None

    def text(self) -> str:
        """Returns the change as people read it: `+40 % [28, 53]`, or with its unit `+0.02 [0.01, 0.03] rad`."""
        if self.relative:
            return f"{100 * self.change:+.0f} % [{100 * self.low:.0f}, {100 * self.high:.0f}]"
        return f"{self.change:+.3g} [{self.low:.3g}, {self.high:.3g}] {self.unit}"


@dataclass(frozen=True)
class Since:
    """The earlier fit that a fit was compared with.

    Attributes:
        fit: Its id in the catalogue, or the path of its JSON.
        recorded_to: When its last log was recorded, ISO 8601; None where unknown.
        compared: The parameters that were compared: determined in both fits, neither at a bound.
        level: Level at which the intervals of their changes hold together.
        refitted: Whether these logs were fitted again with the terms of the earlier fit, because theirs differ.
    """

    fit: str
    recorded_to: str | None
    compared: tuple[str, ...]
    level: float
    refitted: bool

    def when(self) -> str:
        """Returns since when, as people read it: a date, or `the earlier fit`."""
        return self.recorded_to[:10] if self.recorded_to else "the earlier fit"
