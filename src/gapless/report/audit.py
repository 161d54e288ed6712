"""The audit of training ranges: its verdict in words, and which ranges come first."""

from gapless.core.results import AuditedParameter, AuditResult, AuditVerdict
from gapless.report import numbers as n
from gapless.report.headline import Badge

_SENTENCES: dict[AuditVerdict, tuple[str, str]] = {
    "wrong": ("bad", "No values explain the logs, within the ranges or beyond: the model lacks something"),
    "too narrow": ("bad", "Reality is outside the ranges"),
    "too wide": ("open", "Reality is inside the ranges, but they are far wider than these logs call for"),
    "fits": ("good", "Reality is inside the ranges, and they are no wider than they need be"),
    "cannot tell": ("open", "These logs do not show whether reality is inside the ranges"),
}


def badge(audit: AuditResult) -> Badge:
    """Returns the verdict in a sentence, with whatever else holds."""
    kind, sentence = _SENTENCES[audit.verdict]
    others = [verdict for verdict in audit.verdicts if verdict != audit.verdict]
    also = f"; some ranges are {n.join_words(others)} besides" if others else ""
    return Badge(kind, f"Verdict: {audit.verdict}. {sentence}{also}")


def sort_parameters(audit: AuditResult) -> list[AuditedParameter]:
    """Returns the ranges, those that disagree with the logs first, else in the order of the record."""
    return sorted(audit.parameters, key=lambda p: not disagrees(p))


def disagrees(p: AuditedParameter) -> bool:
    """Returns whether a range is not what the logs call for."""
    return p.verdict in ("too narrow", "too wide")
