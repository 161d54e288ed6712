"""Tables of the cases of `diagnose.py` that have outcomes alone, or a policy."""

from collections.abc import Callable, Sequence

import gap_outcomes
from gap_cases import Case
from gap_scores import NO_GAP, Answer, confusion, score
from gap_tables import said
from tables import Table

from gapless.core.interval import wilson

LINES = (
    ("planted: most probable of all is the cause (top-1)", "top_1", "%"),
    ("planted: most probable dimension is the cause", "top_1_of_causes", "%"),
    ("planted: cause among the two most probable dimensions (top-2)", "top_2", "%"),
    ("planted: cause above 0.5 (recall)", "recall", "%"),
    ("null: false alarms (no gap below 0.5)", "false_alarm", "%"),
    ("calibration error of the dimensions", "calibration_error", ""),
    ("calibration error of no gap", "calibration_error_no_gap", ""),
    ("seconds per diagnosis: median", "median_s", "s"),
)
HEADER = ("measure", "value", "95 % interval", "n")
BY_HEADER = ("", "planted: top-1", "95 % interval", "n", "oracle", "most probable dimension", "false alarms", "nulls")


def source_table(title: str, answers: Sequence[Answer]) -> Table:
    """Returns the scores of cases with outcomes alone, or with a policy."""
    found = score(answers)
    rows = [[text, *said(getattr(found, field), unit)] for text, field, unit in LINES]
    rows[1:1] = (
        [["planted: top-1 of an oracle who knows the rates", *oracle_cells(answers)]] if has_oracle(answers) else []
    )
    failed = [f"{found.num_failed} diagnoses failed; they count as wrong."] if found.num_failed else []
    return Table(title, HEADER, rows, (), failed)


def has_oracle(answers: Sequence[Answer]) -> bool:
    """Returns whether there is an oracle for these cases."""
    return all(answer.case.source == "outcomes" for answer in answers)


def oracle_cells(answers: Sequence[Answer]) -> list[str]:
    """Returns how often the oracle names what is planted, as cells."""
    planted = [answer.case for answer in answers if answer.case.causes]
    right = sum(gap_outcomes.oracle(case) in case.causes for case in planted)
    return said(wilson(right, len(planted)), "%")


def by_table(title: str, answers: Sequence[Answer], key: Callable[[Case], str]) -> Table:
    """Returns the main scores of groups of cases."""
    rows: list[list[str]] = []
    answers = sorted(answers, key=lambda answer: answer.case.seed)
    for name in dict.fromkeys(key(answer.case) for answer in answers):
        group = [answer for answer in answers if key(answer.case) == name]
        found = score(group)
        best = oracle_cells(group)[0] if has_oracle(group) and found.top_1.n else "-"
        top, alarm = said(found.top_1, "%"), said(found.false_alarm, "%")
        rows.append([name, *top, best, said(found.top_1_of_causes, "%")[0], alarm[0], alarm[2]])
    return Table(title, BY_HEADER, rows)


def confusion_table(answers: Sequence[Answer]) -> Table:
    """Returns how often each truth got each verdict."""
    counts = confusion(answers)
    given = {verdict for row in counts.values() for verdict in row}
    verdicts = [*(name for name in counts if name != NO_GAP), *sorted(given - set(counts)), NO_GAP]
    rows = [[truth, *(str(row[v]) if row[v] else "." for v in verdicts)] for truth, row in counts.items()]
    return Table("Truth (rows) and most probable of all (columns)", ("", *verdicts), rows)


def tables(answers: Sequence[Answer], split: str) -> list[Table]:
    """Returns the tables of one source, outcomes or policy."""
    if not answers:
        return []
    planted = [answer for answer in answers if answer.case.causes]
    if has_oracle(answers):
        title = f"Outcomes alone, {split} split"
        by = [by_table("By number of runs", answers, lambda case: case.robot)]
    else:
        title, by = f"Signals, outcomes and a policy, {split} split", []
    by += [
        by_table("By dimension", planted, lambda case: ", ".join(sorted(case.causes))),
        by_table("By what failures follow", planted, lambda case: case.detail),
    ]
    return [source_table(title, answers), *by, confusion_table(answers)]
