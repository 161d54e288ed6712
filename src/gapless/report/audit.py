"""The audit of training ranges: its verdict, each range beside what reality needs, and what predictions leave."""

from dataclasses import dataclass

from markupsafe import Markup

from gapless.core.results import AuditedParameter, AuditResult, AuditVerdict
from gapless.report import numbers as n
from gapless.report import plots
from gapless.report.headline import Badge

_SENTENCES: dict[AuditVerdict, tuple[str, str]] = {
    "wrong": ("bad", "No values explain the logs, within the ranges or beyond: the model lacks something"),
    "too narrow": ("bad", "Reality is outside the ranges"),
    "too wide": ("open", "Reality is inside the ranges, but they are far wider than these logs call for"),
    "fits": ("good", "Reality is inside the ranges, and they are no wider than they need be"),
    "cannot tell": ("open", "These logs cannot tell whether reality is inside the ranges"),
}


@dataclass(frozen=True)
class AuditRow:
    """One training range beside what the logs call for, in words, with its glyph; `marked` where the two disagree."""

    target: str
    name: str
    unit: str
    trained: str
    needed: str
    glyph: Markup
    advised: str
    verdict: str
    factor: str
    marked: bool


@dataclass(frozen=True)
class ColumnRow:
    """What predictions leave of one column, and the band of predictions that training sees, in words."""

    column: str
    anywhere: str
    inside: str
    coverage: str
    band: str
    advised: str


def badge(audit: AuditResult) -> Badge:
    """Returns the verdict in a sentence, with whatever else holds."""
    kind, sentence = _SENTENCES[audit.verdict]
    others = [verdict for verdict in audit.verdicts if verdict != audit.verdict]
    also = f"; some ranges are {n.listed(others)} besides" if others else ""
    return Badge(kind, f"Verdict: {audit.verdict}. {sentence}{also}")


def rows(audit: AuditResult) -> tuple[AuditRow, ...]:
    """Returns the ranges, those that disagree with the logs first, else in the order of the record."""
    return tuple(map(_row, sorted(audit.parameters, key=lambda p: not _disagrees(p))))


def column_rows(audit: AuditResult) -> tuple[ColumnRow, ...]:
    """Returns the measured columns in the order of the record."""
    return tuple(
        ColumnRow(
            name,
            n.number(c.residual_to_noise),
            n.number(c.residual_in_ranges),
            n.percent(c.coverage),
            n.number(c.band_to_noise),
            n.number(c.advised_band_to_noise),
        )
        for name, c in audit.columns.items()
    )


def _disagrees(p: AuditedParameter) -> bool:
    return p.verdict in ("too narrow", "too wide")


def _row(p: AuditedParameter) -> AuditRow:
    return AuditRow(
        target=p.target,
        name=n.readable_target(p.target),
        unit=n.unit_cell(p.unit),
        trained=n.span(p.low, p.high) if p.varied else f"{n.number(p.low)}, not varied",
        needed="cannot tell" if p.verdict == "cannot tell" else n.span(p.needed_low, p.needed_high),
        glyph=plots.audit_glyph(p),
        advised=n.span(p.advised_low, p.advised_high) if _disagrees(p) else "as it is",
        verdict=p.verdict,
        factor=f"{p.factor:.2g} times as wide" if p.verdict == "too wide" and p.factor is not None else "",
        marked=_disagrees(p),
    )
