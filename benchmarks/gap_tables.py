"""Tables of `diagnose.py`."""

from collections.abc import Sequence

import numpy as np
from gap_causes import CAUSES
from gap_mechanisms import count_contradicted
from gap_scores import NO_GAP, UNMODELLED, Answer, Scores, by_detail, confusion, score, shuffled_truths
from tables import Bar, Table

from gapless.core.interval import Interval, wilson

NUM_SHUFFLES = 100

LINES = (
    ("single: most probable of all is the cause (top-1)", "top_1", "%"),
    ("single: most probable dimension is the cause", "top_1_of_causes", "%"),
    ("single: cause among the two most probable dimensions (top-2)", "top_2", "%"),
    ("pair: both among the two most probable dimensions", "both", "%"),
    ("pair: exact, and both above 0.5", "exact_pair", "%"),
    ("single and pair: true dimensions above 0.5 (recall)", "recall", "%"),
    ("many: true dimensions above 0.5 (recall)", "many_recall", "%"),
    ("many: dimensions above 0.5 that are true (precision)", "many_precision", "%"),
    ("many: exactly the causes above 0.5", "many_exact", "%"),
    ("many: calibration error of the dimensions", "many_calibration_error", ""),
    ("far: cause first of those that are right but for it, above 0.5", "far_first", "%"),
    ("far: cause first of all dimensions", "far_strict", "%"),
    ("foreign: most probable of all is the cause", "foreign_top_1", "%"),
    ("scatter: most probable of all is the cause", "scatter_top_1", "%"),
    ("single: joint, body or column of its mechanism is right", "place", "%"),
    ("single: and so is the mechanism, its value inside the interval", "mechanism", "%"),
    ("null: false alarms (no gap below 0.5)", "false_alarm", "%"),
    ("unmodelled: said so (above 0.5)", "unmodelled_named", "%"),
    ("unmodelled against single and pair: AUROC", "auroc", ""),
    ("calibration error of the dimensions", "calibration_error", ""),
    ("calibration error of no gap", "calibration_error_no_gap", ""),
    ("seconds per diagnosis: median", "median_s", "s"),
    ("seconds per diagnosis: 95th percentile", "slow_s", "s"),
    ("CPU seconds per diagnosis: median", "median_cpu_s", "s"),
)


def said(interval: Interval, unit: str) -> list[str]:
    """Returns a number with its interval and how many stand behind it, as cells."""
    if not interval.n:
        return ["-", "-", "0"]
    scale, form = {"%": (100.0, ".1f"), "s": (1.0, ".1f")}.get(unit, (1.0, ".3f"))
    value, low, high = (format(scale * x, form) for x in (interval.value, interval.low, interval.high))
    return [f"{value} {unit}".strip(), f"{low} to {high}", str(interval.n)]


def bars(found: Scores) -> list[Bar]:
    """Returns what the scores have to reach."""

    def bar(text: str, interval: Interval, limit: float, at_most: bool) -> Bar:
        return Bar(text, interval.value if interval.n else None, limit, at_most)

    return [
        bar("top-1 on single causes", found.top_1, 0.95, False),
        bar("both of a pair found", found.both, 0.8, False),
        bar("false alarms on nulls", found.false_alarm, 0.05, True),
        bar("AUROC of unmodelled", found.auroc, 0.9, False),
        bar("recall of many causes", found.many_recall, 0.85, False),
        bar("precision of many causes", found.many_precision, 0.9, False),
        bar("exact sets of many causes", found.many_exact, 0.5, False),
        bar("calibration error of many causes", found.many_calibration_error, 0.05, True),
        bar("cause of a far model first", found.far_first, 0.85, False),
        bar("top-1 with another engine", found.foreign_top_1, 0.95, False),
        bar("top-1 on causes that act by chance", found.scatter_top_1, 0.85, False),
        bar("mechanism of single causes", found.mechanism, 0.85, False),
        bar("calibration error", found.calibration_error, 0.05, True),
        bar("median seconds", found.median_s, 90.0, True),
        bar("95th percentile of seconds", found.slow_s, 180.0, True),
    ]


def score_table(title: str, answers: Sequence[Answer], *, judged: bool = True) -> Table:
    """Returns the table of all scores; `judged`: with the bars that they have to reach."""
    found = score(answers)
    rows = [[text, *said(getattr(found, field), unit)] for text, field, unit in LINES]
    notes = [f"{found.num_failed} diagnoses failed; they count as wrong."] if found.num_failed else []
    return Table(title, ("measure", "value", "95 % interval", "n"), rows, bars(found) if judged else (), notes)


def confusion_table(answers: Sequence[Answer]) -> Table:
    """Returns how often each truth got each verdict."""
    counts = confusion(answers)
    verdicts = [*CAUSES, NO_GAP, UNMODELLED]
    verdicts += sorted({v for row in counts.values() for v in row} - set(verdicts))
    rows = [[truth, *(str(row[v]) if row[v] else "." for v in verdicts)] for truth, row in counts.items()]
    return Table("Truth (rows) and most probable of all (columns); pair, many and far left out", ("", *verdicts), rows)


def detail_table(answers: Sequence[Answer]) -> Table:
    """Returns per robot and cause how often the answer is right, by what its kind asks for."""
    rows = [
        [name, f"{round(right.value * right.n)} of {right.n}"]
        for name, right in by_detail(answers).items()
        if right.value < 1
    ]
    return Table("Where it is not always right", ("robot: cause", "right"), rows)


def robot_table(answers: Sequence[Answer]) -> Table:
    """Returns the main scores per robot."""
    fields = ("top_1", "both", "recall", "false_alarm", "auroc", "calibration_error", "median_s")
    units = ("%", "%", "%", "%", "", "", "s")
    rows = []
    for robot in sorted({a.case.robot for a in answers}):
        found = score([a for a in answers if a.case.robot == robot])
        rows.append([robot, *(said(getattr(found, f), u)[0] for f, u in zip(fields, units, strict=True))])
    header = ("robot", "top-1", "both of a pair", "recall", "false alarms", "AUROC", "calibration", "median")
    return Table("Per robot", header, rows)


def shuffled_table(answers: Sequence[Answer]) -> Table:
    """Returns what is left when truths are dealt out anew among the cases of a robot."""
    rng = np.random.default_rng(0)
    rows: dict[str, list[float]] = {"top-1": [], "both of a pair": []}
    for _ in range(NUM_SHUFFLES):
        dealt = shuffled_truths(answers, rng)
        single, pair = ([a for a in dealt if a.case.kind == kind] for kind in ("single", "pair"))
        rows["top-1"] += [np.mean([a.verdict in a.case.causes for a in single])] if single else []
        rows["both of a pair"] += [np.mean([a.case.causes <= a.first_causes(2) for a in pair])] if pair else []
    cells = [
        [name, f"{100 * np.mean(values):.1f} %", f"{100 * min(values):.1f} to {100 * max(values):.1f}"]
        for name, values in rows.items()
        if values
    ]
    return Table(f"Control: truths shuffled, {NUM_SHUFFLES} times", ("measure", "mean", "range"), cells)


def planted_table(title: str, answers: Sequence[Answer]) -> Table:
    """Returns how often what was planted on real logs comes first, machine by machine, and what nulls are called."""

    def counts(some: Sequence[Answer]) -> tuple[Interval, Interval, Interval]:
        caused, nulls = [a for a in some if a.case.causes], [a for a in some if not a.case.causes]
        likely = [d in a.likely for a in caused for d in sorted(a.case.causes)]
        found = [a.right for a in caused], likely, [a.right for a in nulls]
        return tuple(wilson(sum(flags), len(flags)) for flags in found)  # type: ignore[return-value]

    def cells(some: Sequence[Answer]) -> list[str]:
        first, likely, calm = counts(some)
        times = [f"{np.median([getattr(a, f) or 0.0 for a in some]):.0f}" for f in ("seconds", "cpu_s")]
        nulls = f"{round(calm.value * calm.n) if calm.n else 0} of {calm.n}"
        return [*said(first, "%"), said(likely, "%")[0], nulls, *times]

    machines = list(dict.fromkeys(a.case.robot for a in answers))
    each = {name: [a for a in answers if a.case.robot == name] for name in machines}
    header = ("machine", "planted first", "95 % interval", "n", "planted above 0.5", "nulls without a cause above 0.5")
    rows = [[name, *cells(some)] for name, some in [*each.items(), ("all", list(answers))]]
    first, _, calm = counts(answers)
    bars = [Bar("planted first, all machines", first.value if first.n else None, 0.9, False)]
    bars += [Bar(f"planted first, {name}", counts(some)[0].value, 0.7, False) for name, some in each.items()]
    bars.append(Bar("nulls without a cause above 0.5", calm.value if calm.n else None, 0.9, False))
    return Table(title, (*header, "median s", "CPU s"), rows, bars)


def mechanism_table(answers: Sequence[Answer]) -> Table:
    """Returns per dimension how often the mechanism of a single cause is right."""
    placed = [a for a in answers if a.case.kind == "single" and a.places]
    rows = []
    for dimension in sorted({d for a in placed for d in a.case.causes}):
        found = score([a for a in placed if dimension in a.case.causes])
        rows.append([dimension, said(found.place, "%")[0], said(found.mechanism, "%")[0], str(found.place.n)])
    return Table("Mechanisms of single causes", ("dimension", "place right", "and value inside", "n"), rows)


def contradiction_table(answers: Sequence[Answer]) -> Table:
    """Returns where `identify` and `diagnose` contradict each other."""
    bad, asked = count_contradicted([a.contradictions for a in answers])
    rows = [[a.case.name, a.case.detail, text] for a in answers for text in a.contradictions or ()]
    title = f"Contradictions between identify and diagnose: in {bad} of {asked} cases"
    return Table(title, ("case", "truth", "contradiction"), rows, [Bar("cases with a contradiction", bad, 0.0)])
