"""How each verb's result reads on the screen."""

from rich.console import Console
from rich.text import Text

from gapless.cli.output import number, table
from gapless.core.results import (
    CheckResult,
    DiagnoseResult,
    EvaluateResult,
    ExciteResult,
    IdentifyResult,
    LoopResult,
    MeasureResult,
    NewResult,
    RandomizeResult,
    TrainResult,
)

MOMENTS = 6  # stretches of logs that a diagnosis names
MOST_CORRELATIONS = 5  # pairs that are listed one by one on the screen; more would bury what is above them


def show_notes(console: Console, result: NewResult | CheckResult) -> None:
    """Prints notes, one line each."""
    for note in result.notes:
        console.print(f"{note.level:8} {note.where}: {note.text}", markup=False, soft_wrap=True)
    if isinstance(result, NewResult):
        console.print(
            f"made {result.project}: look at gapless.yaml, then `gapless check {result.project}`",
            markup=False,
            soft_wrap=True,
        )
    else:
        console.print("sound" if result.sound else "not sound: mend the faults above")


def show_measure(console: Console, result: MeasureResult) -> None:
    """Prints the error per column."""
    rows = table("column", ">rmse", ">share of spread", ">bias", ">lag s", "unit")
    for name, c in result.columns.items():
        rows.add_row(name, number(c.rmse), number(c.nrmse), number(c.bias), number(c.lag_s), c.unit)
    console.print(rows)
    span = f"windows of {result.window_s:g} s" if result.window_s else "whole episodes"
    console.print(f"{result.num_windows} {span} from {len(result.inputs)} logs")
    for where, success in result.success.items():
        console.print(f"success in {where}: {success.percent()} of {success.n}", markup=False)
    for note in result.notes:
        if note.level == "warning":
            console.print(f"{note.level:8} {note.where}: {note.text}", markup=False, soft_wrap=True)


def show_identify(console: Console, result: IdentifyResult) -> None:
    """Prints the fitted parameters and the verdict."""
    rows = table("parameter", ">model", ">fitted", ">95 % interval", "unit", "")
    for p in result.parameters:
        remark = "cannot be told" if not p.identifiable else "at its bound" if p.at_bound else ""
        if p.identifiable and p.by_run:
            remark = f"{number(p.spread)} between {len(p.by_run)} runs"
        interval = f"{number(p.low)} .. {number(p.high)}"
        rows.add_row(p.target, number(p.nominal), number(p.value), interval, p.unit, remark)
    console.print(rows)
    for text in result.combinations:
        console.print(text, markup=False, soft_wrap=True)
    _show_tried(console, result)
    console.print(f"verdict: {result.verdict}", style="bold")
    for reason in result.reasons:
        console.print(f"  {reason}", markup=False, soft_wrap=True)
    _show_drift(console, result)
    if result.neural:
        word = "calibrated" if result.neural.calibrated else "not calibrated"
        console.print(f"neural posterior ({word}): {result.neural.path}", markup=False, soft_wrap=True)
    for note in result.notes:
        if note.level != "fault":  # faults are among the reasons
            console.print(f"{note.level:8} {note.where}: {note.text}", markup=False, soft_wrap=True)
    if result.model:
        console.print(f"corrected model: {result.model}", markup=False, soft_wrap=True)


def _show_tried(console: Console, result: IdentifyResult) -> None:
    """Prints which terms the logs called for, and how many others were tried."""
    if not result.tried:
        return
    kept = [f"{' + '.join(t.targets)} ({100 * t.saving:.0f} %)" for t in result.tried if t.kept]
    left = len(result.tried) - len(kept)
    text = f"needed, and what each saves of the squared error on other windows: {', '.join(kept)}; " if kept else ""
    console.print(f"{text}{left} more tried, not needed", markup=False, soft_wrap=True)


def show_excite(console: Console, result: ExciteResult) -> None:
    """Prints what the motion would tell, the limits it keeps, where it is and what to do with it."""
    for text in result.assumed:
        console.print(f"assumed: {text}", markup=False, soft_wrap=True)
    rows = table("parameter", ">assumed", ">predicted 95 % interval", "unit", "")
    for p in result.parameters:
        if p.wanted:
            rows.add_row(p.target, number(p.value), f"{number(p.low)} .. {number(p.high)}", p.unit, p.outlook)
    if result.parameters:
        console.print(rows)
    for text in result.advice:
        console.print(text, markup=False, soft_wrap=True)
    if result.limits:
        limits = table("limit", ">allowed", ">reached", "unit", "from", "")
        for k in result.limits:
            spans = [f"{number(a)} .. {number(b)}" for a, b in ((k.low, k.high), (k.reached_low, k.reached_high))]
            limits.add_row(k.name, *spans, k.unit, k.source, "active" if k.active else "")
        console.print(limits)
        but = f", but for: {', '.join(result.may_touch)}" if result.may_touch else ""
        console.print(
            f"nothing that collides in the model is touched that is not touched at rest{but}",
            markup=False,
            soft_wrap=True,
        )
    if result.path is None:
        console.print("no motion was written", style="bold")
        return
    start = ", ".join(f"{column} {number(value)}" for column, value in result.start.items())
    console.print(f"start at: {start}", markup=False, soft_wrap=True)
    console.print(f"motion of {result.duration_s:g} s: {result.path}", markup=False, soft_wrap=True)
    console.print("next: play it on the robot twice or more, put the logs in the project, then gapless identify")


def _show_drift(console: Console, result: IdentifyResult) -> None:
    """Prints what changed since an earlier fit, if there was one to compare with."""
    if result.since is None:
        return
    count = f"{len(result.since.compared)} parameters compared"
    if result.since.refitted:
        count += ", with the terms of that fit"
    if not result.drift:
        console.print(f"no drift since {result.since.when()}: {count}", markup=False, soft_wrap=True)
        return
    console.print(f"drift since {result.since.when()}, {count}:", style="bold", markup=False, soft_wrap=True)
    rows = table("", "", ">before", ">now", "unit")
    for d in result.drift:
        rows.add_row(f"  {d.target}", Text(d.text()), number(d.before), number(d.after), d.unit)
    console.print(rows)


def show_diagnose(console: Console, result: DiagnoseResult) -> None:
    """Prints the causes, evidence and advice."""
    rows = table("cause", ">probability", ">share of the gap", ">95 % interval")
    for c in result.causes:
        share = (f"{c.share:.2f}", f"{c.low:.2f} .. {c.high:.2f}") if c.is_shared else ("-", "-")
        rows.add_row(c.dimension, f"{c.probability:.2f}", *share)
    console.print(rows)
    console.print(f"no gap: {result.no_gap.probability:.2f}   unmodelled: {result.unmodelled.probability:.2f}")
    for group in result.ambiguous:
        console.print(f"cannot be told apart from these logs: {', '.join(group)}")
    for text in result.evidence:
        console.print(f"  {text}", markup=False, soft_wrap=True)
    for m in result.moments[:MOMENTS]:
        where = f"{m.log} at {m.time_s:.1f} s, {m.column}"
        change = f"off by {m.without:.1f} times the noise without {m.dimension}, {m.with_it:.1f} with it"
        console.print(f"  look at {where}: {change}", markup=False, soft_wrap=True)
    for advice in result.advice:
        console.print(f"next: gapless {advice.verb}: {advice.text}", markup=False, soft_wrap=True)


def show_randomize(console: Console, result: RandomizeResult) -> None:
    """Prints the training ranges."""
    rows = table("parameter", "kind", ">low", ">mean", ">high", "why")
    for r in result.ranges:
        rows.add_row(r.target, r.kind, number(r.low), number(r.mean), number(r.high), r.reason)
    console.print(rows)
    _show_correlations(console, result)
    if result.path:
        console.print(f"ranges: {result.path}", markup=False, soft_wrap=True)
    for export in result.exports:
        console.print(f"{export.format}: {export.path}", markup=False, soft_wrap=True)
        pairs = [note for note in export.notes if note.startswith("correlation ")]
        notes = [note for note in export.notes if note not in pairs]
        if len(pairs) > MOST_CORRELATIONS:
            why = pairs[0].partition(": ")[2]
            pairs = [f"{len(pairs)} correlations: {why}; each is listed in {export.path}"]
        for note in (*notes, *pairs):
            console.print(f"  {note}", markup=False, soft_wrap=True)


def _show_correlations(console: Console, result: RandomizeResult) -> None:
    """Prints which parameters go together: each pair, or the strongest where they would fill the screen."""
    pairs = sorted(result.correlations, key=lambda pair: -abs(pair.value))
    texts = [f"{pair.first} and {pair.second}, {pair.value:+.2f}" for pair in pairs]
    if len(pairs) > MOST_CORRELATIONS:
        texts = [f"{len(pairs)} pairs, most of all {texts[0]}; all are in {result.path}"]
    for text in texts:
        console.print(f"together: {text}", markup=False, soft_wrap=True)


def show_train(console: Console, result: TrainResult) -> None:
    """Prints where the policy is and how it does in simulation; what a curriculum reached."""
    if result.grown:
        rows = table("parameter", "kind", ">low", ">mean", ">high", ">std")
        for r in result.grown:
            rows.add_row(r.target, r.kind, number(r.low), number(r.mean), number(r.high), number(r.std))
        console.print(rows)
    console.print(f"success in the simulation it was trained in: {result.success.percent()}", markup=False)
    console.print(f"policy: {result.policy}", markup=False, soft_wrap=True)


def show_evaluate(console: Console, result: EvaluateResult) -> None:
    """Prints the success rate and where runs failed."""
    console.print(f"success in {result.where}: {result.success.percent()} of {result.success.n}", markup=False)
    for phase, count in sorted(result.failed_in.items(), key=lambda item: -item[1]):
        console.print(f"  {count} failed in phase {phase}", markup=False)


def show_loop(console: Console, result: LoopResult) -> None:
    """Prints the loop as one table and one line."""
    show_identify(console, result.identify)
    console.print()
    rows = table("", ">success", ">trials")
    rows.add_row(
        "policy from the model as written, in simulation",
        result.simulation.percent(),
        str(result.simulation.n),
    )
    rows.add_row("the same policy in reality", result.before.percent(), str(result.before.n))
    rows.add_row("policy trained in the ranges found, in reality", result.after.percent(), str(result.after.n))
    console.print(rows)
    console.print()
    causes = ", ".join(f"{c.dimension} {c.probability:.2f}" for c in result.diagnose.causes[:3])
    simulation = f"simulation {100 * result.simulation.value:.0f} %"
    line = f"{simulation}  ->  reality {result.before.percent()}  ->  cause: {causes}  ->  "
    line += f"after closing {result.after.percent()}   ({result.real_episodes} real episodes used)"
    console.print(line, markup=False, style="bold", soft_wrap=True)
    if not result.reached:
        console.print(f"the target of {100 * result.target:.0f} % is not reached", markup=False)
