"""Tables of `diagnose.py`."""

from collections.abc import Sequence

import numpy as np
from gap_causes import CAUSES
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
    ("null: false alarms (no gap below 0.5)", "false_alarm", "%"),
    ("unmodelled: said so (above 0.5)", "unmodelled_named", "%"),
    ("unmodelled against single and pair: AUROC", "auroc", ""),
    ("calibration error of the dimensions", "calibration_error", ""),
    ("calibration error of no gap", "calibration_error_no_gap", ""),
    ("seconds per diagnosis: median", "median_s", "s"),
    ("seconds per diagnosis: 95th percentile", "slow_s", "s"),
    ("seconds of the first diagnosis of a model: median", "first_s", "s"),
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
        bar("calibration error", found.calibration_error, 0.05, True),
        bar("median seconds", found.median_s, 30.0, True),
        bar("95th percentile of seconds", found.slow_s, 90.0, True),
        bar("seconds of a first diagnosis", found.first_s, 180.0, True),
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
    return Table("Truth (rows) and most probable of all (columns); pairs left out", ("", *verdicts), rows)


def detail_table(answers: Sequence[Answer]) -> Table:
    """Returns per robot and cause how often the verdict is right; of pairs, how often both are found."""
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

    def cells(some: Sequence[Answer]) -> list[str]:
        caused, nulls = [a for a in some if a.case.causes], [a for a in some if not a.case.causes]
        first = wilson(sum(a.case.causes <= a.first_causes(len(a.case.causes)) for a in caused), len(caused))
        recall = [d in a.likely for a in caused for d in sorted(a.case.causes)]
        calm = f"{sum(not a.likely for a in nulls)} of {len(nulls)}"
        return [*said(first, "%"), said(wilson(sum(recall), len(recall)), "%")[0], calm]

    machines = list(dict.fromkeys(a.case.robot for a in answers))
    rows = [[name, *cells([a for a in answers if a.case.robot == name])] for name in machines]
    header = ("machine", "planted first", "95 % interval", "n", "planted above 0.5", "nulls without a cause above 0.5")
    return Table(title, header, [*rows, ["all", *cells(answers)]], (), ())
