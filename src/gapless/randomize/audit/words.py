"""An audit in sentences."""

from collections.abc import Sequence

from gapless.core.results import AuditedParameter, AuditResult
from gapless.randomize.audit.explain import WRONG
from gapless.randomize.audit.ranges import NUM_DRAWS


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
    where = ", ".join(f"{name} {c.residual_to_noise:.1f}" for name, c in most if c.residual_to_noise > WRONG)
    return (
        "no values explain the logs, within the ranges or beyond: what is left, in units of what noise explains, is "
        f"{where}: the model lacks something; `gapless diagnose` says which cause is likely"
    )


def _narrow(result: AuditResult) -> str:
    return (
        f"the best values within the ranges leave {result.residual_in_ranges:.2g} times what noise explains, the best "
        f"anywhere {result.residual_to_noise:.2g}: reality is outside"
    )


def _widen(p: AuditedParameter) -> str:
    said = f"the logs say {_value(p.value, p.unit)}"
    needed = f"{p.needed_low:.3g} .. {p.needed_high:.3g}"
    if not p.varied:
        return f"add {p.target}, {needed}: training keeps it at {p.low:.3g}, and {said}"
    width = p.high - p.low
    of_width = f", {100 * p.outside / width:.0f} % of its width" if width > 0 else ""
    by = f"outside by {_value(p.outside, p.unit)}{of_width}"
    spans = f"from {p.low:.3g} .. {p.high:.3g} to {p.advised_low:.3g} .. {p.advised_high:.3g}"
    moved = f", or move it to {needed}" if p.told else ""
    return f"widen {p.target} {spans}{moved}: {said}, {by}"


def _wide(result: AuditResult) -> list[str]:
    found = [
        f"narrow {p.target} from {p.low:.3g} .. {p.high:.3g} to {p.advised_low:.3g} .. {p.advised_high:.3g}: it is "
        f"{p.factor:.1f} times as wide as the logs call for"
        for p in result.parameters
        if p.verdict == "too wide"
    ]
    count = f"1 in {1 / result.share:.0f}" if result.share > 0 else f"none of {NUM_DRAWS}"
    return [*found, f"what it costs: of the worlds drawn for training, {count} lies within what the logs call for"]


def _value(value: float, unit: str) -> str:
    return f"{value:.3g}" if unit == "1" else f"{value:.3g} {unit}"
