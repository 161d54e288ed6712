"""How each verb's result reads on the screen."""

from rich.console import Console

from gapless.cli.output import number, table
from gapless.core.results import (
    CheckResult,
    DiagnoseResult,
    EvaluateResult,
    IdentifyResult,
    LoopResult,
    MeasureResult,
    NewResult,
    RandomizeResult,
    TrainResult,
)


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


def show_identify(console: Console, result: IdentifyResult) -> None:
    """Prints the fitted parameters and the verdict."""
    rows = table("parameter", ">model", ">fitted", ">95 % interval", "unit", "")
    for p in result.parameters:
        remark = "cannot be told" if not p.identifiable else "at its bound" if p.at_bound else ""
        interval = f"{number(p.low)} .. {number(p.high)}"
        rows.add_row(p.target, number(p.nominal), number(p.value), interval, p.unit, remark)
    console.print(rows)
    for text in result.combinations:
        console.print(text, markup=False, soft_wrap=True)
    console.print(f"verdict: {result.verdict}", style="bold")
    for reason in result.reasons:
        console.print(f"  {reason}", markup=False, soft_wrap=True)
    if result.model:
        console.print(f"corrected model: {result.model}", markup=False, soft_wrap=True)


def show_diagnose(console: Console, result: DiagnoseResult) -> None:
    """Prints the causes, evidence and advice."""
    rows = table("cause", ">probability", ">share of the gap", ">95 % interval")
    for c in result.causes:
        rows.add_row(c.dimension, f"{c.probability:.2f}", f"{c.share:.2f}", f"{c.low:.2f} .. {c.high:.2f}")
    console.print(rows)
    console.print(f"no gap: {result.no_gap.probability:.2f}   unmodelled: {result.unmodelled.probability:.2f}")
    for group in result.ambiguous:
        console.print(f"cannot be told apart from these logs: {', '.join(group)}")
    for text in result.evidence:
        console.print(f"  {text}", markup=False, soft_wrap=True)
    for advice in result.advice:
        console.print(f"next: gapless {advice.verb}: {advice.text}", markup=False, soft_wrap=True)


def show_randomize(console: Console, result: RandomizeResult) -> None:
    """Prints the training ranges."""
    rows = table("parameter", "kind", ">low", ">mean", ">high", "why")
    for r in result.ranges:
        rows.add_row(r.target, r.kind, number(r.low), number(r.mean), number(r.high), r.reason)
    console.print(rows)
    console.print(f"ranges: {result.path}", markup=False, soft_wrap=True)


def show_train(console: Console, result: TrainResult) -> None:
    """Prints where the policy is and how it does in simulation."""
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
