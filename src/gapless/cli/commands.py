"""The verbs of the command line. What a verb needs is imported when it runs, so that `--help` is quick."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

import gapless
from gapless import verbs
from gapless.core.errors import InputError
from gapless.core.places import require_writable

HELP = """Find out why a robot policy that works in simulation fails on the robot, and close that gap.

Start with `gapless demo`, or with `gapless new MODEL LOG... DIR` for your own robot."""
SWITCHED_OFF: dict[str, Any] = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
app = typer.Typer(name="gapless", help=HELP, **SWITCHED_OFF)


def _check_json_target(target: str | None) -> str | None:
    """Returns the target of `--json` after a look at whether it can be written."""
    if target is not None and target != "-":
        require_writable(Path(target), "--json")
    return target


DIRECTORY = Argument(metavar="DIR", help="project folder, with its gapless.yaml")
Directory = Annotated[Path, DIRECTORY]
File = Path | None
Texts = list[str] | None
REPEATED = "(may be repeated); default:"
JSON_HELP = "also write the result as JSON; - is standard output"
Json = Annotated[str | None, Option("--json", metavar="FILE", callback=_check_json_target, help=JSON_HELP)]
WHERE_HELP = "SQL condition on the view `episodes`, such as \"site = 'lab'\"; default: all runs"
RunsWhere = Annotated[str | None, Option("--where", metavar="SQL", help=WHERE_HELP)]
Seed = Annotated[int, Option(min=0, help="seed of everything random")]
RealitySeed = Annotated[int, Option(min=0, help="which twin, where reality is one; robots ignore it")]
LOGS_HELP = "logs of any format that `gapless import` reads, or folders of them; last: the folder to make"
DRIVE_HELP = "for a model without actuators: add a motor per joint whose effort is logged"
EXPORTS = "text, json, yaml, mjcf, gymnasium, mjlab, isaaclab or playground"


@app.callback(invoke_without_command=True)
def about(
    context: typer.Context, version: Annotated[bool, Option("--version", help="print the version")] = False
) -> None:
    """Find out why a robot policy that works in simulation fails on the robot, and close that gap."""
    if version:
        print(f"gapless {gapless.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def new(
    model: Annotated[Path, Argument(metavar="MODEL", help="MJCF or URDF file")],
    paths: Annotated[list[Path], Argument(metavar="LOG... DIR", help=LOGS_HELP)],
    drive_by_effort: Annotated[bool, Option("--drive-by-effort", help=DRIVE_HELP)] = False,
    json: Json = None,
) -> None:
    """Make a project from a model and logs: guesses the mapping and says what it guessed."""
    *logs, directory = paths
    publish(run_verb(verbs.new, model, logs, directory, drive_by_effort=drive_by_effort), json)


@app.command()
def check(directory: Directory, json: Json = None) -> None:
    """Is this project sound: model, mapping, units, time stamps, missing data, converged simulation?

    Prints what is wrong, or "sound". Faults make the exit status 2.
    """
    result = run_verb(verbs.check, directory)
    publish(result, json)
    if not result.sound:
        raise typer.Exit(2)


@app.command()
def measure(
    directory: Directory,
    fit: Annotated[File, Option(metavar="FIT.json", help="result of identify to predict with")] = None,
    window: Annotated[float, Option(min=0, metavar="SECONDS", help="restart this often; 0: once per episode")] = 0.3,
    where: RunsWhere = None,
    json: Json = None,
) -> None:
    """How far is simulation from reality: prediction error, bias and lag of every measured column."""
    publish(run_verb(verbs.measure, directory, fit=fit, window_s=window, where=where), json)


@app.command()
def identify(
    directory: Annotated[File, DIRECTORY] = None,
    hold_out: Annotated[Texts, Option(metavar="NAME", help=f"log to test the fit on {REPEATED} every fourth")] = None,
    logs: Annotated[Texts, Option(metavar="PATTERN", help=f"logs to use, such as march-* {REPEATED} all")] = None,
    where: RunsWhere = None,
    since: Annotated[File, Option(metavar="FIT.json", help="fit to compare with; default: the earliest")] = None,
    posterior: Annotated[
        Literal["gaussian", "sbi"], Option(help="sbi: also sample it by neural estimation (needs the extra `sbi`)")
    ] = "gaussian",
    window: Annotated[
        float | None, Option(min=0.01, metavar="SECONDS", help="length of the windows; default: the logs decide")
    ] = None,
    sensor: Annotated[str | None, Option(metavar="LOG", help="deprecated: use `gapless noise LOG [DIR]`")] = None,
    column: Annotated[Texts, Option(metavar="NAME", help="deprecated, with --sensor: use `gapless noise`")] = None,
    svg: Annotated[File, Option(metavar="FILE.svg", help="deprecated, with --sensor: use `gapless noise`")] = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Which parameter values make the model match, and which do these logs not identify?"""
    if sensor is not None:
        useless = {"--hold-out": hold_out, "--logs": logs, "--where": where, "--since": since, "--window": window}
        _refuse_unused("--sensor", useless | {"--posterior": posterior != "gaussian"})
        noise(sensor, directory, column, svg, json)
        return
    _refuse_unused("a fit of the model, which needs no --sensor", {"--column": column, "--svg": svg})
    if directory is None:
        raise InputError("Missing argument 'DIR': name the project folder; for a log at rest use `gapless noise LOG`")
    options = {"logs": logs or (), "where": where, "since": since, "posterior": posterior, "window_s": window}
    publish(run_verb(verbs.identify, directory, hold_out or (), seed=seed, **options), json)


@app.command()
def noise(
    log: Annotated[str, Argument(metavar="LOG", help="log in which nothing moves: a file, or a log of the project")],
    directory: Annotated[File, Argument(metavar="[DIR]", help="project folder; a file of readings needs none")] = None,
    column: Annotated[Texts, Option(metavar="NAME", help=f"column to look at {REPEATED} all")] = None,
    svg: Annotated[File, Option(metavar="FILE.svg", help="draw the Allan deviations there")] = None,
    json: Json = None,
) -> None:
    """How noisy are the sensors: white noise, bias instability, random walk and drift, from a log at rest."""
    if svg is not None:
        require_writable(svg, "--svg")
    publish(run_verb(verbs.noise, log, directory, columns=column or ()), json, svg)


@app.command()
def excite(
    directory: Directory,
    parameter: Annotated[
        Texts, Option(metavar="TARGET", help=f"to identify {REPEATED} what the fit does not identify, or else all")
    ] = None,
    fit: Annotated[File, Option(metavar="FIT.json", help="result of identify to start from, or the newest")] = None,
    seconds: Annotated[float, Option(metavar="SECONDS", help="length of the motion")] = 20.0,
    max_speed: Annotated[Texts, Option(metavar="SHARE|JOINT=VALUE", help="share of the default, or rad/s, m/s")] = None,
    max_effort: Annotated[Texts, Option(metavar="SHARE|ACTUATOR=VALUE", help="share of the model's, or value")] = None,
    lowest: Annotated[
        float | None, Option(metavar="METRES", help="nothing may go lower; default: the model's floor, else its base")
    ] = None,
    motion: Annotated[File, Option("--out", metavar="FILE.csv", help="the motion; default: DIR/excite.csv")] = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Which motion to record so that the parameters are identified? Predicts their intervals before it is recorded."""
    limits = {"max_speed": max_speed or (), "max_effort": max_effort or (), "lowest_m": lowest}
    options = {"fit": fit, "seconds": seconds, "out": motion, "seed": seed}
    publish(run_verb(verbs.excite, directory, parameter or (), **options, **limits), json)


@app.command()
def diagnose(
    directory: Directory,
    policy: Annotated[File, Option(metavar="POLICY.npz", help="policy of the runs: its failures are evidence")] = None,
    fit: Annotated[File, Option(metavar="FIT.json", help="no longer needed: the fit of these logs is taken")] = None,
    where: RunsWhere = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Which dimension causes the gap, how sure are we, what to do next?

    Names what is wrong (which joint, body, column), with the values and intervals that identify gives for the same
    logs: what one of the two has searched or fitted, the other takes from the catalogue.
    """
    publish(run_verb(verbs.diagnose, directory, policy=policy, fit=fit, where=where, seed=seed), json)


@app.command()
def query(
    directory: Directory,
    sql: Annotated[
        str, Argument(metavar="SQL", help="one SELECT over episodes, artefacts, samples, labels, splits, consents")
    ],
    csv: Annotated[str | None, Option(metavar="FILE", help="also write the rows as CSV; - is standard output")] = None,
    parquet: Annotated[File, Option(metavar="FILE", help="also write the rows as Parquet")] = None,
    json: Json = None,
) -> None:
    """What is in the catalogue: episodes, fits, policies, reports, and what each was made from, asked in SQL.

    Try: gapless query DIR "SELECT source, outcome, count(*) AS runs FROM episodes GROUP BY ALL"
    """
    from gapless.cli.output import open_console, write_csv, write_json
    from gapless.cli.show import show

    if csv == json == "-":
        raise InputError("--csv and --json cannot both go to standard output: name a file for one")
    result = verbs.query(directory, sql, parquet=parquet)
    show(result, open_console("-" if "-" in (csv, json) else None))
    write_csv(result, csv)
    write_json(result, json)


@app.command()
def randomize(
    directory: Directory,
    fit: Annotated[File, Option(metavar="FIT.json", help="result of identify; default: the newest")] = None,
    method: Annotated[
        Literal["evidence", "sbi", "dropo", "simopt", "bayrn"],
        Option(help="evidence, sbi: about a fit; dropo, simopt: from logs; bayrn: by trials in reality"),
    ] = "evidence",
    tries: Annotated[int | None, Option(min=2, help="bayrn: ranges to train in and try in reality; default: 6")] = None,
    trials: Annotated[int | None, Option(min=1, help="bayrn: real trials of each; default: 20")] = None,
    export: Annotated[
        Texts, Option(metavar="FORMAT=FILE", help=f"also write them (may be repeated): {EXPORTS}")
    ] = None,
    audit: Annotated[File, Option(metavar="RANGES", help="deprecated: use `gapless audit DIR RANGES`")] = None,
    where: RunsWhere = None,
    seed: Seed = 0,
    reality_seed: Annotated[int | None, Option(min=0, help="bayrn: which twin, where reality is one")] = None,
    json: Json = None,
) -> None:
    """Which ranges to train on: about the fit, as wide as what is left unexplained."""
    if audit is not None:
        useless = {"--fit": fit, "--method": method != "evidence", "--export": export}
        useless |= {"--where": where, "--tries": tries, "--trials": trials, "--reality-seed": reality_seed is not None}
        _refuse_unused("--audit", useless)
        publish(run_verb(verbs.audit, directory, audit, seed=seed), json)
        return
    from gapless.randomize.export.formats import parse_exports

    bayrn = {"num_tries": tries, "num_trials": trials, "reality_seed": reality_seed}
    options = {"fit": fit, "method": method, "export": parse_exports(export or ()), "where": where, "seed": seed}
    publish(run_verb(verbs.randomize, directory, **options, **bayrn), json)


@app.command()
def audit(
    directory: Directory,
    ranges: Annotated[
        Path, Argument(metavar="RANGES", help="result of randomize, ranges as text, or a file of Isaac Lab or mjlab")
    ],
    where: RunsWhere = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Is reality, as the logs show it, inside these training ranges: too narrow, too wide, wrong, or do they fit?"""
    publish(run_verb(verbs.audit, directory, ranges, where=where, seed=seed), json)


@app.command()
def train(
    directory: Directory,
    ranges: Annotated[File, Option(metavar="FILE", help="result of randomize; default: the model as written")] = None,
    start: Annotated[File, Option(metavar="POLICY.npz", help="policy to go on from")] = None,
    steps: Annotated[int, Option(min=1, help="control steps over all worlds")] = 600_000,
    curriculum: Annotated[
        Literal["none", "adr", "max-entropy"],
        Option(help="grow the ranges from their centre as the policy gets better"),
    ] = "none",
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Train a policy for the project's task in simulation (needs the extra `train`)."""
    learner: Any = verbs.train
    from gapless.learn.train import TrainConfig

    config = TrainConfig(num_steps=steps, curriculum=curriculum)
    publish(run_verb(learner, directory, ranges, start=start, config=config, seed=seed), json)


@app.command()
def evaluate(
    directory: Directory,
    policy: Annotated[Path, Argument(metavar="POLICY.npz", help="policy that train wrote")],
    simulation: Annotated[bool, Option("--simulation", help="in the model as written instead of in reality")] = False,
    trials: Annotated[int, Option(min=1, help="number of runs")] = 50,
    seed: Seed = 0,
    reality_seed: RealitySeed = 0,
    json: Json = None,
) -> None:
    """How often does a policy succeed, with its interval? Every run is kept in the catalogue."""
    options = {"where": "simulation" if simulation else "reality", "num_trials": trials}
    publish(run_verb(verbs.evaluate, directory, policy, seed=seed, reality_seed=reality_seed, **options), json)


@app.command()
def loop(
    directory: Directory,
    policy: Annotated[File, Option(metavar="POLICY.npz", help="policy to begin with; default: train one")] = None,
    target: Annotated[float, Option(min=0, max=1, help="success in reality that ends the loop")] = 0.85,
    rounds: Annotated[int, Option(min=1, help="rounds at most")] = 1,
    episodes: Annotated[int, Option(min=2, help="real episodes per round to close the gap with, logs included")] = 12,
    trials: Annotated[int, Option(min=1, help="real trials that score before and after")] = 50,
    seed: Seed = 0,
    reality_seed: RealitySeed = 0,
    json: Json = None,
) -> None:
    """All of it: train, try in reality, find the cause, fit, train on, try again, until the target is met."""
    runner: Any = verbs.loop
    from gapless.loop.verb import LoopConfig

    config = LoopConfig(target=target, max_rounds=rounds, real_episodes=episodes, num_trials=trials)
    options = {"config": config, "policy": policy, "seed": seed, "reality_seed": reality_seed}
    publish(run_verb(runner, directory, **options), json, page_of=directory)


@app.command()
def report(
    directory: Directory,
    page: Annotated[File, Option(metavar="FILE", help="the page; default: DIR/report.html")] = None,
    json: Json = None,
) -> None:
    """A page to share: the newest result of every verb in one self-contained file."""
    publish(verbs.report(directory, out=page), json)


@app.command()
def demo(
    example: Annotated[str, Argument(metavar="[EXAMPLE]", help="push, balance or handover")] = "push",
    folder: Annotated[File, Argument(metavar="[DIR]", help="folder to work in; default: gapless-demo/EXAMPLE")] = None,
    directory: Annotated[File, Option("--dir", metavar="DIR", help="the same, as an option")] = None,
    copy: Annotated[bool, Option("--copy", help="only copy the example to DIR, and run nothing")] = False,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """The whole loop on a bundled example, without hardware; or only a copy of it, to work on."""
    if folder is not None and directory is not None:
        raise InputError(f"the folder is named twice, {folder} and --dir {directory}: keep one")
    place = folder or directory or Path("gapless-demo") / example
    if copy:
        _refuse_unused("--copy", {"--json": json, "--seed": seed})
        verbs.copy_example(example, place, reuse=False)
        print(f"copied {example} to {place}\nnext: gapless check {place}")
        return
    publish(run_verb(verbs.demo, place, example, seed=seed), json, page_of=place)


def _refuse_unused(what: str, options: dict[str, Any]) -> None:
    """Raises an error for options that were given and would do nothing."""
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(f"{', '.join(given)} does nothing beside {what}: leave it out")


def run_verb(verb: Any, *arguments: Any, **options: Any) -> Any:
    """Runs a verb and shows on standard error what it does and how far it is."""
    from gapless.cli.output import Console, ProgressDisplay

    with ProgressDisplay(Console(stderr=True)).display() as progress:
        return verb(*arguments, progress=progress, **options)


def publish(result: Any, json: str | None, svg: Path | None = None, page_of: Path | None = None) -> None:
    """Prints a result and writes it as JSON; also draws the Allan deviations of a `SensorResult`, or a report page."""
    from gapless.cli.output import open_console, write_json
    from gapless.cli.show import show

    console = open_console(json)
    show(result, console)
    if svg is not None:
        from gapless.report.noise import draw_allan

        console.print(f"open {svg}" if draw_allan(result, svg) else "nothing to draw")
    if page_of is not None:
        console.print(f"open {verbs.report(page_of).path}")
    write_json(result, json)


from gapless.cli import data_commands as data_commands  # noqa: E402  its commands belong to `app` too
