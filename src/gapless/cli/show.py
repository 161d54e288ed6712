"""How each verb's result reads on the screen: `show(result, console)`."""

import re
from collections.abc import Iterable, Sequence
from functools import singledispatch

from gapless.cli.output import Printer, number, span
from gapless.core import results
from gapless.core.recording import Skipped
from gapless.report.noise import TERM_NAMES, shown_value, term_remark

LIKELY = 0.5  # probability above which causes and their mechanisms are shown as what is wrong
MAX_MOMENTS = 6  # stretches of logs that a diagnosis names
MAX_ROWS = 200  # of a query that are shown
MAX_CORRELATIONS = 5  # pairs that are listed one by one on the screen; more would bury what is above them


@singledispatch
def show(result: object, console: Printer) -> None:
    """Prints a result for people."""
    raise TypeError(f"no way to show a {type(result).__name__}")


@show.register
def _(result: results.NewResult, console: Printer) -> None:
    _show_notes(result.notes, console)
    console.print(f"made {result.project}: look at gapless.yaml, then `gapless check {result.project}`")


@show.register
def _(result: results.ImportResult, console: Printer) -> None:
    changed = [each for each in result.mapping if each.becomes != each.column or each.what]
    if changed:
        rows = [(each.column, each.becomes or "(left out)", each.what or "-", each.reason) for each in changed]
        console.print_table(("recorded column", "becomes", "which is", "why"), rows)
    kept = len(result.mapping) - len(changed)
    if kept:
        console.print(f"{kept} column{'s keep their names' if kept > 1 else ' keeps its name'}")
    _show_notes(result.notes, console)
    _show_skipped(result.skipped, console)
    there = f", {result.known} of them were there" if result.known else ""
    one = result.episodes == 1
    would = "would come in" if result.dry_run else f"{'is' if one else 'are'} in the catalogue"
    console.print(f"{_count_rows(result)} {would}{there}: {result.project}")


@show.register
def _(result: results.ExportResult, console: Printer) -> None:
    for each in result.skipped:
        console.print(f"skipped {each.what}: {each.why}")
    console.print(f"wrote {_count_rows(result)} as {result.file_format}: {result.path}")


def _count_rows(result: results.ImportResult | results.ExportResult) -> str:
    return f"{result.episodes} episode{'s' if result.episodes != 1 else ''} with {result.samples} samples"


def _show_skipped(skipped: Sequence[Skipped], console: Printer) -> None:
    """Prints what was skipped; the same thing in many files is one line."""
    groups: dict[tuple[str, str], list[Skipped]] = {}
    for each in skipped:
        file, colon, column = each.what.rpartition(": ")
        same = re.sub(r"\d+", "#", each.why.replace(file, "")) if colon else each.why
        groups.setdefault((column, same), []).append(each)
    for each, *others in groups.values():
        more = f" (and in {len(others)} more)" if others else ""
        console.print(f"skipped {each.what}: {each.why}{more}")


@show.register
def _(result: results.CheckResult, console: Printer) -> None:
    _show_notes(result.notes, console)
    console.print("sound" if result.sound else "not sound: correct the faults above")


@show.register
def _(result: results.QueryResult, console: Printer) -> None:
    shown = [tuple(map(_cell, row)) for row in result.rows[:MAX_ROWS]]
    header: list[str] = []
    for k, name in enumerate(result.columns):
        is_number = all(isinstance(row[k], (int, float, type(None))) for row in result.rows)
        header.append(f">{name}" if is_number else name)
    console.print_table(tuple(header), shown)
    if len(result.rows) > MAX_ROWS:
        console.print(f"the first {MAX_ROWS} of {len(result.rows)} rows: --csv, --json and --parquet write all")
    elif not result.rows:
        console.print("no rows")


def _cell(value: object) -> str:
    """Returns a cell of a query's table."""
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@show.register
def _(result: results.MeasureResult, console: Printer) -> None:
    rows = [
        (name, number(c.rmse), number(c.nrmse), number(c.bias), number(c.lag_s), c.unit)
        for name, c in result.columns.items()
    ]
    console.print_table(("column", ">rmse", ">share of spread", ">bias", ">lag s", "unit"), rows)
    windows = f"windows of {result.window_s:g} s" if result.window_s else "whole episodes"
    console.print(f"{result.num_windows} {windows} from {len(result.inputs)} logs")
    _show_horizons(result.horizons, console)
    for where, success in result.success.items():
        console.print(f"success in {where}: {success.percent()} of {success.n}")
    _show_notes((note for note in result.notes if note.level == "warning"), console)


@show.register
def _(result: results.IdentifyResult, console: Printer) -> None:
    rows: list[tuple[str, ...]] = []
    for p in result.parameters:
        remark = "not identifiable" if not p.identifiable else "at its bound" if p.at_bound else ""
        if p.identifiable and p.by_run:
            remark = f"{number(p.spread)} between {len(p.by_run)} runs"
        rows.append((p.target, number(p.nominal), number(p.value), span(p.low, p.high), p.unit, remark))
    console.print_table(("parameter", ">model", ">fitted", ">95 % interval", "unit", ""), rows)
    _print_lines(result.combinations, console)
    if result.tried:
        kept = [f"{' + '.join(t.targets)} ({100 * t.saving:.0f} %)" for t in result.tried if t.kept]
        text = f"needed, and what each saves of the squared error on other windows: {', '.join(kept)}; " if kept else ""
        console.print(f"{text}{len(result.tried) - len(kept)} more tried, not needed")
    _show_horizons(result.horizons, console)
    _show_verdict(result.verdict, result.reasons, console)
    _show_drift(result, console)
    if result.neural:
        word = "calibrated" if result.neural.calibrated else "not calibrated"
        console.print(f"neural posterior ({word}): {result.neural.path}")
    _show_notes((note for note in result.notes if note.level != "fault"), console)  # faults are among the reasons
    if result.model:
        console.print(f"corrected model: {result.model}")


def _show_horizons(horizons: Sequence[results.HorizonErrors], console: Printer) -> None:
    """Prints the error of each column by how long predictions run: before and, with a fit, after it."""
    if not horizons:
        return
    names = [">whole run" if each.horizon_s is None else f">{each.horizon_s:g} s" for each in horizons]
    rows: list[tuple[str, ...]] = []
    for column, first in horizons[0].columns.items():
        each = [horizon.columns[column] for horizon in horizons]
        cells = [number(c.before) if c.after is None else f"{number(c.before)} -> {number(c.after)}" for c in each]
        rows.append((column, *cells, number(first.noise), first.unit))
    console.print_table(("error of predictions over", *names, ">noise", "unit"), rows)


def _show_drift(result: results.IdentifyResult, console: Printer) -> None:
    """Prints what changed since an earlier fit, if there was one to compare with."""
    if result.since is None:
        return
    count = f"{len(result.since.compared)} parameters compared"
    if result.since.refitted:
        count += ", with the terms of that fit"
    if not result.drift:
        console.print(f"no drift since {result.since.when()}: {count}")
        return
    console.print(f"drift since {result.since.when()}, {count}:", style="bold")
    rows = [(f"  {d.target}", d.text(), number(d.before), number(d.after), d.unit) for d in result.drift]
    console.print_table(("", "", ">before", ">now", "unit"), rows)


@show.register
def _(result: results.SensorResult, console: Printer) -> None:
    count = f"{len(result.columns)} columns" if len(result.columns) != 1 else "1 column"
    console.print(f"{result.sensor}: {count}, {result.duration_s:.4g} s at {result.rate_hz:.4g} Hz")
    for name, column in result.columns.items():
        console.print()
        console.print(f"{name} [{column.unit}]: {column.verdict}", style="bold")
        rows = [
            (f"  {TERM_NAMES[key]}", number(shown_value(t)), span(t.low, t.high), t.unit, term_remark(column, key))
            for key, t in column.terms.items()
        ]
        if rows:
            console.print_table(("", ">value", ">95 % interval", "unit", ""), rows)
        _print_lines(column.reasons, console, "  ")
    console.print()
    about_all = [reason for reason in result.reasons if reason.startswith("the log")]  # columns have said the others
    _show_verdict(result.verdict, about_all, console)
    _show_notes(result.notes, console)
    if result.verdict == "refused":
        return
    console.print("for gapless.yaml, in the line of each column under `measurements` (SI units):")
    for name, column in result.columns.items():
        if column.noise is not None:
            console.print(f"  {name}: {{..., noise: {column.noise:.3g}}}")
    console.print("for a simulated sensor: `layer` of each column in the JSON (--json FILE)")


@show.register
def _(result: results.ExciteResult, console: Printer) -> None:
    _print_lines(result.assumed, console, "assumed: ")
    rows = [(p.target, number(p.value), span(p.low, p.high), p.unit, p.outlook) for p in result.parameters if p.wanted]
    if result.parameters:
        console.print_table(("parameter", ">assumed", ">predicted 95 % interval", "unit", ""), rows)
    _print_lines(result.advice, console)
    if result.limits:
        limits = [
            (k.name, span(k.low, k.high), span(k.reached_low, k.reached_high), k.unit, k.source, "active" * k.active)
            for k in result.limits
        ]
        console.print_table(("limit", ">allowed", ">reached", "unit", "from", ""), limits)
        but = f", but for: {', '.join(result.may_touch)}" if result.may_touch else ""
        console.print(f"nothing that collides in the model is touched that is not touched at rest{but}")
    if result.path is None:
        console.print("no motion was written", style="bold")
        return
    console.print(f"start at: {', '.join(f'{column} {number(value)}' for column, value in result.start.items())}")
    console.print(f"motion of {result.duration_s:g} s: {result.path}")
    console.print("next: play it on the robot twice or more, put the logs in the project, then gapless identify")


@show.register
def _(result: results.DiagnoseResult, console: Printer) -> None:
    rows = [
        (c.dimension, f"{c.probability:.2f}")
        + ((f"{c.share:.2f}", f"{c.low:.2f} .. {c.high:.2f}") if c.is_shared else ("-", "-"))
        for c in result.causes
    ]
    console.print_table(("cause", ">probability", ">share of the gap", ">95 % interval"), rows)
    mechanisms = [m for c in result.causes for m in c.mechanisms if min(c.probability, m.probability) > LIKELY]
    if mechanisms:
        shown = [
            (
                *(m.target, f"{m.probability:.2f}", number(m.nominal), number(m.value)),
                *(f"{number(m.low)} .. {number(m.high)}", m.unit),
            )
            for m in mechanisms
        ]
        console.print_table(("what is wrong", ">probability", ">model", ">fitted", ">95 % interval", "unit"), shown)
    console.print(f"no gap: {result.no_gap.probability:.2f}   unmodelled: {result.unmodelled.probability:.2f}")
    for group in result.ambiguous:
        console.print(f"these logs do not distinguish: {', '.join(group)}")
    _print_lines(result.evidence, console, "  ")
    for m in result.moments[:MAX_MOMENTS]:
        change = f"off by {m.without:.1f} times the noise without {m.dimension}, {m.with_it:.1f} with it"
        console.print(f"  look at {m.log} at {m.time_s:.1f} s, {m.column}: {change}")
    for advice in result.advice:
        console.print(f"next: gapless {advice.verb}: {advice.text}")


@show.register
def _(result: results.RandomizeResult, console: Printer) -> None:
    rows = [(r.target, r.kind, number(r.low), number(r.mean), number(r.high), r.reason) for r in result.ranges]
    console.print_table(("parameter", "kind", ">low", ">mean", ">high", "why"), rows)
    pairs = sorted(result.correlations, key=lambda pair: -abs(pair.value))
    texts = [f"{pair.first} and {pair.second}, {pair.value:+.2f}" for pair in pairs]
    if len(pairs) > MAX_CORRELATIONS:
        texts = [f"{len(pairs)} pairs, most of all {texts[0]}; all are in {result.path}"]
    _print_lines(texts, console, "together: ")
    if result.path:
        console.print(f"ranges: {result.path}")
    for export in result.exports:
        console.print(f"{export.format}: {export.path}")
        correlations = [note for note in export.notes if note.startswith("correlation ")]
        others = [note for note in export.notes if note not in correlations]
        if len(correlations) > MAX_CORRELATIONS:
            why = correlations[0].partition(": ")[2]
            correlations = [f"{len(correlations)} correlations: {why}; each is listed in {export.path}"]
        _print_lines((*others, *correlations), console, "  ")


@show.register
def _(result: results.AuditResult, console: Printer) -> None:
    rows: list[tuple[str, ...]] = []
    for p in result.parameters:
        trained = span(p.low, p.high) if p.varied else f"{number(p.low)}, not varied"
        factor = "-" if p.factor is None else f"{p.factor:.1f}"
        rows.append((p.target, trained, span(p.value_low, p.value_high), p.unit, p.verdict, factor))
    if rows:
        header = ("parameter", ">trained on", ">95 % interval of the logs", "unit", "", ">times as wide as needed")
        console.print_table(header, rows)
        console.print()
    if result.columns:
        bands: list[tuple[str, ...]] = []
        for name, c in result.columns.items():
            errors = (number(c.residual_to_noise), number(c.residual_in_ranges), f"{100 * c.coverage:.0f} %")
            bands.append((name, *errors, number(c.band_to_noise), number(c.advised_band_to_noise)))
        header = ("column", ">best anywhere", ">best in the ranges", ">in the 90 % band", ">band", ">band advised")
        console.print_table(header, bands)
        console.print("errors and half widths of bands are in units of what noise explains")
        console.print()
    others = f" (and {', '.join(result.verdicts[1:])})" if len(result.verdicts) > 1 else ""
    _show_verdict(f"{result.verdict}{others}", result.reasons, console)
    _show_notes((note for note in result.notes if note.level != "fault"), console)  # faults are among the reasons


@show.register
def _(result: results.TrainResult, console: Printer) -> None:
    if result.grown:
        rows = [(r.target, r.kind, *map(number, (r.low, r.mean, r.high, r.std))) for r in result.grown]
        console.print_table(("parameter", "kind", ">low", ">mean", ">high", ">std"), rows)
    console.print(f"success in the simulation it was trained in: {result.success.percent()}")
    console.print(f"policy: {result.policy}")


@show.register
def _(result: results.EvaluateResult, console: Printer) -> None:
    console.print(f"success in {result.where}: {result.success.percent()} of {result.success.n}")
    failures = sorted(result.failed_in.items(), key=lambda item: -item[1])
    _print_lines((f"{count} failed in phase {phase}" for phase, count in failures), console, "  ")


@show.register
def _(result: results.LoopResult, console: Printer) -> None:
    if result.identify:
        show(result.identify, console)
        console.print()
    stages = {"policy from the model as written, in simulation": result.simulation}
    stages["the same policy in reality"] = result.before
    line = f"simulation {100 * result.simulation.value:.0f} %  ->  reality {result.before.percent()}"
    if result.diagnose:
        line += "  ->  cause: " + ", ".join(f"{c.dimension} {c.probability:.2f}" for c in result.diagnose.causes[:3])
    if result.last:
        stages["policy trained in the ranges found, in reality"] = result.after
        line += f"  ->  after closing {result.after.percent()}   ({result.real_episodes} real episodes used)"
    rows = [(stage, success.percent(), str(success.n)) for stage, success in stages.items()]
    console.print_table(("", ">success", ">trials"), rows)
    console.print()
    console.print(line, style="bold")
    if result.decision:
        console.print(f"decision: {result.decision.reason}")
    if not result.reached:
        console.print(f"the target of {100 * result.target:.0f} % is not reached")


@show.register
def _(result: results.ReportResult, console: Printer) -> None:
    console.print(f"open {result.path}")


def _show_verdict(verdict: str, reasons: Iterable[str], console: Printer) -> None:
    console.print(f"verdict: {verdict}", style="bold")
    _print_lines(reasons, console, "  ")


def _show_notes(notes: Iterable[results.Note], console: Printer) -> None:
    _print_lines((f"{note.level:8} {note.where}: {note.text}" for note in notes), console)


def _print_lines(texts: Iterable[str], console: Printer, begin: str = "") -> None:
    for text in texts:
        console.print(f"{begin}{text}")
