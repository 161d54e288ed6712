"""Does `diagnose` find the cause of a gap? On cases whose causes are known, of four robots and of six real machines.

    python benchmarks/diagnose.py [--split test] [--kinds single pair null unmodelled many far foreign scatter]
                                  [--robots ...] [--limit N] [--jobs 2] [--cases DIR] [--raw FILE.jsonl]
                                  [--contradictions] [--shuffled] [--out FILE.md]
    python benchmarks/diagnose.py --kinds planted [--machines ...] [...]
    python benchmarks/diagnose.py --kinds outcomes policy [...]

Plain MuJoCo plays reality, or PyBullet in the kind `foreign` (extra `engines`); `gap_cases.py` says what the kinds are.
`planted` takes logs of real machines, with the model that `identify` corrected on them, and makes one or two things
wrong: see `gap_planted.py`. The corrected models are made first, one to four minutes each, and kept in
`--cases DIR`/machines. The kinds `planted`, `outcomes` (runs without a log, by their conditions and phases) and
`policy` (logged runs of a policy that is tried in simulation) have tables of their own, with causes and nulls; they are
left out unless named.

Beside a case's folder stands NAME.truth.json: `causes`, `severity`, how well it shows, and `places`, the parameter
targets that express the causes with their true values (null: the place is right, but no value of this form is).

`--raw` keeps every result as a line of JSON, and goes on where such a file ends: a run may be stopped at any time.
Kinds take turns, in an order that is drawn once, so that what is done so far is a fair sample. `--from-raw FILE` only
prints the tables of such a file. `--shuffled` adds two controls, which have to be at chance: the measured columns of
each log permuted among each other, and truths dealt out anew among the cases. `--contradictions` runs `identify` on
every case, too, and counts where the two verbs contradict each other. Seconds are of wall time: more than one job at
once makes them longer. CPU seconds are of all threads.
"""

import argparse
import importlib.util
import itertools
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import gap_outcome_tables
import gap_outcomes
import gap_planted
import gap_policies
import gap_tables
import numpy as np
from gap_cases import KINDS, Case, NotShownError, Source, cases, write
from gap_mechanisms import find_contradictions
from gap_robots import ROBOTS
from gap_scores import FAILED, Answer
from identify import heading
from tables import Table, markdown

SOURCES: tuple[Source, ...] = ("planted", "outcomes", "policy")
"""Kinds of cases with tables of their own."""


@dataclass(frozen=True)
class Job:
    """One case to be diagnosed.

    Attributes:
        root: Where case folders are, written if they are not there.
        permuted: Whether the measured columns of its logs are to be permuted.
        contradictions: Whether to compare with what `identify` says.
    """

    case: Case
    root: Path
    permuted: bool = False
    contradictions: bool = False

    @property
    def folder(self) -> Path:
        """The case's project."""
        return self.root / (f"{self.case.name}-permuted" if self.permuted else self.case.name)


def run(job: Job) -> Answer | None:
    """Writes a case unless it is there, and diagnoses it; None where its cause does not show, however it is drawn."""
    from gapless.core.results import to_json
    from gapless.diagnose.verb import diagnose
    from gapless.identify.verb import identify

    folder, places = job.folder, {}
    found, seconds, cpu_s, said = FAILED, 0.0, 0.0, None
    try:
        places = prepare(job)
        policy = folder / gap_policies.POLICY if job.case.source == "policy" else None
        began, began_cpu_s = time.perf_counter(), cpu_seconds()
        result = diagnose(folder, policy=policy, seed=0)
        seconds, cpu_s = time.perf_counter() - began, cpu_seconds() - began_cpu_s
        found = json.loads(json.dumps(to_json(result)))
        if job.contradictions:
            said = find_contradictions(found, json.loads(json.dumps(to_json(identify(folder, seed=0)))))
        error = None
    except NotShownError as fault:
        print(f"left out: {fault}", file=sys.stderr, flush=True)
        return None
    except Exception as fault:  # one failure must not lose hours of others; it is reported, and counts as wrong
        error = f"{type(fault).__name__}: {fault}"
    return Answer(job.case, found, seconds, error, cpu_s, places, said)


def prepare(job: Job) -> dict[str, float | None]:
    """Writes a case unless it is there; returns the targets that express its causes."""
    folder = job.folder
    if not is_there(job.case, folder):
        shutil.rmtree(folder, ignore_errors=True)
        writers = {"signals": write, "planted": gap_planted.write}
        writers |= {"outcomes": gap_outcomes.write, "policy": gap_policies.write}
        writers[job.case.source](job.case, folder)
        if job.permuted:
            permute(folder, [column.name for column in ROBOTS[job.case.robot].columns])
    shutil.rmtree(folder / ".gapless", ignore_errors=True)
    return read_truth(folder).get("places", {})


def cpu_seconds() -> float:
    """Returns the processor time that this process, its threads and its children have used [s]."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def read_truth(folder: Path) -> dict:
    """Returns what is written beside a case's folder."""
    return json.loads(folder.with_name(f"{folder.name}.truth.json").read_text(encoding="utf-8"))


def is_there(case: Case, folder: Path) -> bool:
    """Tells whether a folder holds a case already, and not another one of the same number."""
    if not folder.with_name(f"{folder.name}.truth.json").is_file():
        return False
    truth = read_truth(folder)
    return truth["detail"] == case.detail and ("places" in truth or case.source in ("outcomes", "policy"))


def permute(folder: Path, columns: Sequence[str]) -> None:
    """Gives each measured column of every log the values of the next one."""
    for path in sorted((folder / "logs").glob("*.csv")):
        header, rest = path.read_text(encoding="utf-8").split("\n", 1)
        names = header.split(",")
        following = dict(zip(columns, (*columns[1:], columns[0]), strict=True))
        path.write_text("\n".join([",".join(following.get(name, name) for name in names), rest]), encoding="utf-8")


def answers_of(
    chosen: Sequence[Case], root: Path, num_jobs: int, *, permuted: bool = False, contradictions: bool = False
) -> Iterator[Answer]:
    """Yields the diagnoses of some cases that show."""
    jobs = [Job(case, root, permuted, contradictions) for case in chosen]
    if num_jobs == 1:
        yield from filter(None, map(run, jobs))
        return
    with ProcessPoolExecutor(num_jobs, multiprocessing.get_context("spawn")) as pool:
        yield from filter(None, pool.map(run, jobs))


def chosen_cases(
    split: str, kinds: Sequence[str], robots: Sequence[str], machines: Sequence[str], limit: int | None
) -> list[Case]:
    """Returns the cases that were asked for, kinds and machines in turn; with a limit, that many of each kind."""
    found: list[list[Case]] = []
    elsewhere = {"planted": gap_planted.cases, "outcomes": gap_outcomes.cases, "policy": gap_policies.cases}
    for kind in kinds:
        if kind in elsewhere:
            listed = elsewhere[kind](split)  # type: ignore[arg-type]
            listed = [case for case in listed if kind != "planted" or case.robot in machines]
        else:
            listed = [case for case in cases(split, kind) if case.robot in robots]  # type: ignore[arg-type]
        drawn = [listed[k] for k in np.random.default_rng(0).permutation(len(listed))[:limit]]
        groups = dict.fromkeys(case.robot for case in drawn) if kind == "planted" else [None]
        found += [[case for case in drawn if group in (None, case.robot)] for group in groups]
    return [case for turn in itertools.zip_longest(*found) for case in turn if case is not None]


def describe_answer(answer: Answer) -> str:
    """Returns an answer as one line."""
    if answer.error:
        return f"{answer.case.name} {answer.case.kind} {answer.case.detail}: FAILED: {answer.error}"
    top = ", ".join(f"{name} {p:.2f}" for name, p in list(answer.causes.items())[:3])
    rest = f"no gap {answer.no_gap:.2f}, unmodelled {answer.unmodelled:.2f}"
    mark = "right" if answer.right else "WRONG"
    times = f"{answer.seconds:.0f} s, CPU {answer.cpu_s or 0.0:.0f} s"
    return f"{mark} {answer.case.name} {answer.case.detail}: {top}; {rest} ({times})"


def as_line(answer: Answer) -> str:
    """Returns an answer as a line of JSON."""
    case = {**asdict(answer.case), "causes": sorted(answer.case.causes)}
    fields = ("result", "seconds", "error", "cpu_s", "places", "contradictions")
    return json.dumps({"case": case, **{name: getattr(answer, name) for name in fields}})


def from_line(line: str) -> Answer:
    """Returns the answer in a line of JSON."""
    entry = json.loads(line)
    case = Case(**{**entry["case"], "causes": frozenset(entry["case"]["causes"])})
    return Answer(**{**entry, "case": case})


def read_answers(raw: Path | None, chosen: Sequence[Case]) -> list[Answer]:
    """Returns the answers to some cases that a file holds already."""
    lines = raw.read_text(encoding="utf-8").splitlines() if raw and raw.exists() else []
    asked = {case.name for case in chosen}
    return [answer for answer in map(from_line, lines) if answer.case.name in asked]


def collect(found: Iterator[Answer], total: int, raw: Path | None) -> list[Answer]:
    """Returns all answers; says each on standard error and adds it to a file as soon as it is there."""
    kept: list[Answer] = []
    for answer in found:
        kept.append(answer)
        print(f"[{len(kept)}/{total}] {describe_answer(answer)}", file=sys.stderr, flush=True)
        if raw:
            with raw.open("a", encoding="utf-8") as file:
                file.write(as_line(answer) + "\n")
    return kept


def tables(answers: Sequence[Answer], split: str) -> Iterator[Table]:
    """Yields the tables of a run."""
    planted = [answer for answer in answers if answer.case.source == "planted"]
    if planted:
        yield gap_tables.planted_table(f"Planted on real logs, {split} split", planted)
    if any(answer.contradictions is not None for answer in answers):
        yield gap_tables.contradiction_table(answers)
    for source in ("outcomes", "policy"):
        yield from gap_outcome_tables.tables([a for a in answers if a.case.source == source], split)
    answers = [answer for answer in answers if answer.case.source == "signals"]
    if not answers:
        return
    yield gap_tables.score_table(f"Diagnoses of the {split} split", answers)
    yield gap_tables.confusion_table(answers)
    yield gap_tables.robot_table(answers)
    yield gap_tables.mechanism_table(answers)
    yield gap_tables.detail_table(answers)


def controls(answers: Sequence[Answer], chosen: Sequence[Case], root: Path, num_jobs: int) -> Iterator[Table]:
    """Yields what is left with shuffled truths, and with permuted signals."""
    yield gap_tables.shuffled_table(answers)
    single = [case for case in chosen if case.kind == "single"]
    permuted = collect(answers_of(single, root, num_jobs, permuted=True), len(single), None)
    yield gap_tables.score_table("Control: measured columns permuted", permuted, judged=False)
    yield gap_tables.confusion_table(permuted)


def main() -> None:
    """Reads the command line, runs, prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--split", choices=("tuning", "test"), default="test")
    parser.add_argument("--kinds", nargs="+", choices=(*KINDS, *SOURCES), default=KINDS)
    parser.add_argument("--robots", nargs="+", choices=list(ROBOTS), default=list(ROBOTS))
    machines = list(gap_planted.MACHINES)
    parser.add_argument("--machines", nargs="+", choices=machines, default=machines, help="real ones, of `planted`")
    parser.add_argument("--limit", type=int, help="at most this many cases of each kind")
    parser.add_argument("--jobs", type=int, default=1, help="diagnoses at once; more than one makes each slower")
    parser.add_argument("--cases", type=Path, help="keep cases here, and use those that are there")
    parser.add_argument("--raw", type=Path, help="add every result to this file, and skip what it has")
    parser.add_argument("--from-raw", type=Path, help="diagnose nothing: tables of such a file")
    parser.add_argument("--contradictions", action="store_true", help="run identify as well, and compare")
    parser.add_argument("--shuffled", action="store_true", help="add the controls, which have to be at chance")
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    options = parser.parse_args()
    if "foreign" in options.kinds and importlib.util.find_spec("pybullet") is None:
        parser.error("the kind foreign needs the extra `engines`: pip install 'gapless[engines]', or leave it out")
    pieces = [heading(sys.argv[1:], "diagnose")]
    print(pieces[0], flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for table in _all_tables(options, options.cases or Path(scratch)):
            pieces.append(markdown(table))
            print(pieces[-1], flush=True)
            if options.out:
                options.out.write_text("\n".join(pieces), encoding="utf-8")


def _all_tables(options: argparse.Namespace, root: Path) -> Iterator[Table]:
    """Yields the tables that were asked for."""
    chosen = chosen_cases(options.split, options.kinds, options.robots, options.machines, options.limit)
    found = read_answers(options.from_raw or options.raw, chosen)
    if not options.from_raw:
        done = {answer.case.name for answer in found}
        left = [case for case in chosen if case.name not in done]
        answers = answers_of(left, root, options.jobs, contradictions=options.contradictions)
        found += collect(answers, len(left), options.raw)
    yield from tables(found, options.split)
    if options.shuffled:
        yield from controls(found, chosen, root, options.jobs)


if __name__ == "__main__":
    main()
