"""The commands that move data in and out: `import` and `export`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from gapless import verbs
from gapless.cli.commands import Directory, File, Json, Texts, app, publish, run_verb

SOURCES_HELP = "LeRobot data sets, MCAP, ROS 1 and 2 bags, HDF5 (robomimic, DROID), RLDS, CSV, Parquet, NPZ; or folders"
MAP_HELP = "YAML that says which column is which, `columns: {recorded: mine}`; empty: left out"
SET_HELP = "what holds for all: robot_serial=A7, site, operator, policy, participants=ana,ben, consent ..."
SOURCE_HELP = "what they are; default: what the files say, else real"
FORMAT_HELP = "lerobot-v3.0, lerobot-v2.1, mcap, rosbag2, rosbag1, robomimic, rlds, csv, parquet, npz"


@app.command("import")
def import_(
    directory: Directory,
    sources: Annotated[list[Path], Argument(metavar="SOURCE...", help=SOURCES_HELP)],
    map: Annotated[File, Option(metavar="FILE", help=MAP_HELP)] = None,
    yes: Annotated[bool, Option("--yes", help="where several columns may be meant, take the likeliest")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="read and map only, write nothing")] = False,
    time: Annotated[Literal["receipt", "message"], Option(help="of bags: which of the two times rows get")] = "receipt",
    source: Annotated[Literal["real", "twin", "sim", "augmented"] | None, Option(help=SOURCE_HELP)] = None,
    set_: Annotated[Texts, Option("--set", metavar="KEY=VALUE", help=SET_HELP)] = None,
    condition: Annotated[Texts, Option(metavar="KEY=VALUE", help="a condition of all, such as light=dim")] = None,
    json: Json = None,
) -> None:
    """Bring recordings of any format into a project; DIR without a gapless.yaml becomes a project with data only.

    Episodes come in whole or not at all, with what the files say of robot, task and origin. The same command again
    goes on where it stopped, and adds only what is new. Imported episodes count like logs in DIR/logs.

    gapless import my-data so101_pick/ monday.mcap --set site=lab --set operator=ana
    """
    from gapless.exchange.origin import Statement, read_pairs

    stated = Statement(source, read_pairs(set_ or [], "--set"), read_pairs(condition or [], "--condition"))
    ask = _ask if sys.stdin.isatty() and sys.stderr.isatty() and not dry_run else None
    options = {"map": map, "yes": yes, "dry_run": dry_run, "time": time, "statement": stated, "ask": ask}
    publish(run_verb(verbs.import_, directory, sources, **options), json)


@app.command()
def export(
    directory: Directory,
    out: Annotated[Path, Argument(metavar="OUT", help="file or folder to make")],
    format: Annotated[str, Option("--format", metavar="FORMAT", help=FORMAT_HELP)],
    where: Annotated[str | None, Option(metavar="SQL", help="which episodes, such as \"outcome = 'success'\"")] = None,
    purpose: Annotated[Literal["train", "test"], Option(help="`test` also writes frozen test splits")] = "train",
    json: Json = None,
) -> None:
    """Write episodes of a project in another format, with where each came from.

    Episodes of frozen test splits are left out, and it is said, unless --purpose test is given.

    gapless export my-data pick_v30 --format lerobot-v3.0 --where "source = 'real' AND outcome = 'success'"
    """
    publish(run_verb(verbs.export, directory, out, format=format, where=where, purpose=purpose), json)


def _ask(question: str, names: Sequence[str]) -> str | None:
    """Asks on the terminal which column is meant; None for none of them."""
    listed = "".join(f"\n  {number}  {name}" for number, name in enumerate(names, 1))
    answer: int = typer.prompt(f"{question}?{listed}\n  0  none of them\nnumber", type=int, default=0, err=True)
    return names[answer - 1] if 0 < answer <= len(names) else None
