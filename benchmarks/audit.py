"""Are ranges that are too narrow, too wide or wrong told from those that fit? On cases whose verdict is known.

    python benchmarks/audit.py [--first 0] [--planted 60] [--fits 15] [--jobs 1] [--raw FILE.jsonl] [--out FILE.md]

`audit_cases.py` says what is planted. Seeds from `--first` on are the planted cases, those after them fit. Thresholds
were tuned on seeds of 100 and up. `--raw` keeps every answer as a line of JSON, and a run that was stopped goes on from
there.
"""

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from audit_cases import KINDS, Case, cases, write
from identify import heading
from tables import Bar, Table, markdown

from gapless.core.interval import wilson

SAID = (*KINDS, "cannot tell")
PLANTED = KINDS[:3]
RIGHT = 0.9  # share of the planted cases


@dataclass(frozen=True)
class Answer:
    """What the audit said of one case.

    Attributes:
        said: Its verdict.
        planted: Targets that were planted.
        flagged: Targets that have the planted verdict.
        residual: What the best row anywhere leaves, in units of what noise explains.
        seconds: Wall time.
    """

    name: str
    kind: str
    detail: str
    said: str
    planted: tuple[str, ...]
    flagged: tuple[str, ...]
    residual: float | None
    seconds: float


def run(case: Case, root: Path) -> Answer:
    """Writes a case and audits it."""
    from gapless.randomize.audit.verb import audit

    planted = write(case, root)
    begin = time.monotonic()
    result = audit(planted.folder, planted.ranges, seed=case.seed)
    seconds = time.monotonic() - begin
    flagged = tuple(p.target for p in result.parameters if p.verdict == case.kind)
    return Answer(
        *(case.name, case.kind, planted.detail, result.verdict, planted.planted, flagged),
        *(result.residual_to_noise, seconds),
    )


def tables(answers: Sequence[Answer]) -> list[Table]:
    """Returns the confusion table with its bar, and how well single parameters are named."""
    rows = [
        [kind, *(str(sum(a.kind == kind and a.said == said for a in answers)) for said in SAID)]
        for kind in KINDS
        if any(a.kind == kind for a in answers)
    ]
    planted = [a for a in answers if a.kind in PLANTED]
    fits = [a for a in answers if a.kind == "fits"]
    right = wilson(sum(a.said == a.kind for a in planted), len(planted))
    calm = wilson(sum(a.said == a.kind for a in fits), len(fits))
    bar = Bar(f"planted cases that are right, of {len(planted)}", right.value, RIGHT, at_most=False)
    notes = [
        f"planted cases: {right.percent()} right of {right.n}; cases that fit: {calm.percent()} right of {calm.n}",
        f"seconds per audit: median {np.median([a.seconds for a in answers]):.1f}",
        *(f"{a.name} ({a.detail}): said {a.said}, residual {a.residual:.2f}" for a in answers if a.said != a.kind),
    ]
    confusion = Table("Planted (rows) and said (columns)", ["planted", *SAID], rows, [bar], notes)
    return [confusion, _parameters(planted)]


def _parameters(planted: Sequence[Answer]) -> Table:
    """Returns how many planted ranges were named, and how many others."""
    rows: list[list[str]] = []
    for kind in ("too narrow", "too wide"):
        some = [a for a in planted if a.kind == kind]
        found = sum(len(set(a.planted) & set(a.flagged)) for a in some)
        rows.append(
            [
                kind,
                str(sum(len(a.planted) for a in some)),
                str(found),
                str(sum(len(set(a.flagged) - set(a.planted)) for a in some)),
            ]
        )
    return Table("Ranges that were planted, and those that were named", ["", "planted", "named", "named besides"], rows)


def _read(path: Path) -> list[Answer]:
    """Returns the answers that were kept."""
    kept = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [Answer(**entry | {name: tuple(entry[name]) for name in ("planted", "flagged")}) for entry in kept]


def main() -> None:
    """Reads the command line, runs, prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="first seed; tune on 100 and up")
    parser.add_argument("--planted", type=int, default=60, help="cases that are too narrow, too wide or wrong, in turn")
    parser.add_argument("--fits", type=int, default=15, help="cases that fit")
    parser.add_argument("--jobs", type=int, default=1, help="audits at once; more than one makes seconds longer")
    parser.add_argument("--raw", type=Path, help="also write every answer to this file, a line of JSON each")
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    options = parser.parse_args()
    every = [*cases(options.first, options.planted), *cases(options.first + options.planted, options.fits, ("fits",))]
    answers = _read(options.raw) if options.raw and options.raw.exists() else []
    known = {answer.name for answer in answers}
    every = [case for case in every if case.name not in known]
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as root, ProcessPoolExecutor(options.jobs, spawn) as pool:
        for answer in pool.map(run, every, [Path(root)] * len(every)):
            answers.append(answer)
            print(asdict(answers[-1]), file=sys.stderr, flush=True)
            if options.raw:
                options.raw.write_text("".join(json.dumps(asdict(a)) + "\n" for a in answers), encoding="utf-8")
    text = "\n".join([heading(sys.argv[1:], "audit"), *map(markdown, tables(answers))])
    print(text)
    if options.out:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
