"""An audit in sentences."""

from collections.abc import Sequence

from gapless.core.results import AuditedParameter, AuditResult


def reasons_of(result: AuditResult, together: Sequence[str]) -> tuple[str, ...]:
    """Returns why an audit says what it says, and what to do, the gravest first."""
    found: list[str] = []
    if "wrong" in result.verdicts:
        found.append(_wrong(result))
    if "too narrow" in result.verdicts:
        found += [_narrow(result), *(_widen(p) for p in result.parameters if p.verdict == "too narrow")]
        if together:
            found.append(f"the logs tell only that {' and '.join(together)} together lie outside; others may, too")
    if "too wide" in result.verdicts:
        found += _wide(result)
    if result.verdict == "fits":
        found.append(
            f"the best values within the ranges leave {result.residual_in_ranges:.2g} times what noise explains, the "
            f"best anywhere {result.residual_to_noise:.2g}"
        )
    loose = [p.target for p in result.parameters if p.verdict == "cannot tell"]
    if loose:
        found.append(f"these logs cannot tell: {', '.join(loose)}: `gapless excite` proposes a motion that can")
    return tuple(found)


def _wrong(result: AuditResult) -> str:
    most = sorted(result.columns.items(), key=lambda item: -item[1].residual_to_noise)
    where = ", ".join(f"{name} {column.residual_to_noise:.1f}" for name, column in most[:3])
    return (
        f"no values explain the logs, within the ranges or beyond: what is left is {result.residual_to_noise:.1f} times "
        f"what noise explains ({where}): the model lacks something; `gapless diagnose` says which cause is likely"
    )


def _narrow(result: AuditResult) -> str:
    return (
        f"the best values within the ranges leave {result.residual_in_ranges:.2g} times what noise explains, the best "
        f"anywhere {result.residual_to_noise:.2g}: reality is outside"
    )


def _widen(p: AuditedParameter) -> str:
    span = f"{p.advised_low:.3g} .. {p.advised_high:.3g}"
    if not p.varied:
        return f"add {p.target}, {span}: training keeps it at {p.low:.3g}, and the logs say {p.value:.3g} {p.unit}"
    by = f"by {p.outside:.3g} {p.unit}, {100 * p.outside / max(p.high - p.low, 1e-12):.0f} % of its width"
    if p.high == p.low:
        by = f"by {p.outside:.3g} {p.unit}"
    return (
        f"widen {p.target} from {p.low:.3g} .. {p.high:.3g} to {span}: the logs say {p.value:.3g} {p.unit}, outside {by}"
    )


def _wide(result: AuditResult) -> list[str]:
    wide = [p for p in result.parameters if p.verdict == "too wide"]
    found = [
        f"narrow {p.target} from {p.low:.3g} .. {p.high:.3g} to {p.advised_low:.3g} .. {p.advised_high:.3g}: it is "
        f"{p.factor:.1f} times as wide as the logs call for"
        for p in wide
    ]
    found.append(
        f"together they take up {result.volume:.3g} times the volume that the logs call for: of that many worlds drawn "
        "for training, about one is a world that reality can be"
    )
    return found
