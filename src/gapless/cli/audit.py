"""How an audit of ranges reads on the screen."""

from rich.console import Console

from gapless.cli.output import number, table
from gapless.core.results import AuditResult


def show_audit(console: Console, result: AuditResult) -> None:
    """Prints each range beside what the logs say, the band of predictions, the verdict and what to do."""
    rows = table("parameter", ">trained on", ">95 % interval of the logs", "unit", "", ">times as wide as needed")
    for p in result.parameters:
        trained = f"{number(p.low)} .. {number(p.high)}" if p.varied else f"{number(p.low)}, not varied"
        rows.add_row(
            p.target,
            trained,
            f"{number(p.value_low)} .. {number(p.value_high)}",
            p.unit,
            p.verdict,
            "-" if p.factor is None else f"{p.factor:.1f}",
        )
    if result.parameters:
        console.print(rows)
        console.print()
    if result.columns:
        bands = table("column", ">best anywhere", ">best in the ranges", ">in the 90 % band", ">band", ">band advised")
        for name, c in result.columns.items():
            ratios = (number(c.residual_to_noise), number(c.residual_in_ranges), f"{100 * c.coverage:.0f} %")
            bands.add_row(name, *ratios, number(c.band_to_noise), number(c.advised_band_to_noise))
        console.print(bands)
        console.print("errors and half widths of bands are in units of what noise explains", markup=False)
        console.print()
    others = f" (and {', '.join(result.verdicts[1:])})" if len(result.verdicts) > 1 else ""
    console.print(f"verdict: {result.verdict}{others}", style="bold", markup=False)
    for reason in result.reasons:
        console.print(f"  {reason}", markup=False, soft_wrap=True)
    for note in result.notes:
        if note.level != "fault":  # faults are among the reasons
            console.print(f"{note.level:8} {note.where}: {note.text}", markup=False, soft_wrap=True)
