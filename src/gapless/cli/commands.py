"""The verbs of the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import gapless
from gapless import verbs
from gapless.cli import show
from gapless.cli.audit import show_audit
from gapless.cli.noise import show_sensor
from gapless.cli.output import checked, out, write_json
from gapless.cli.progress import progress
from gapless.core.errors import InputError
from gapless.core.places import writable
from gapless.report.noise import draw_allan

app = typer.Typer(
    name="gapless",
    help="Find out why a robot policy that works in simulation fails on the robot, and close that gap.\n\n"
    "Start with `gapless demo`, or with `gapless new MODEL LOG... DIR` for your own robot.",
    no_args_is_help=False,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="project folder, with its gapless.yaml")]
Json = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="FILE", callback=checked, help="also write the result as JSON; - is standard output"
    ),
]
Sensor = Annotated[
    str | None,
    typer.Option(metavar="LOG", help="instead: the noise of every measured column, from a log at rest (name, or file)"),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="with --sensor: column to look at (may be repeated); default: all"),
]
Svg = Annotated[Path | None, typer.Option(metavar="FILE.svg", help="with --sensor: draw the Allan deviations there")]
Seed = Annotated[int, typer.Option(min=0, help="seed of everything random")]
EXPORTS = "text, json, yaml, mjcf, gymnasium, mjlab, isaaclab or playground"
Reality = Annotated[int, typer.Option(min=0, help="which twin, where reality is one; robots ignore it")]


@app.callback(invoke_without_command=True)
def about(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="print the version")] = False
) -> None:
    """Find out why a robot policy that works in simulation fails on the robot, and close that gap."""
    if version:
        print(f"gapless {gapless.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def new(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="MJCF or URDF file")],
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG... DIR",
            help="logs (.csv, .parquet, .npz) or folders of them, with time and signals; last: the folder to make",
        ),
    ],
    drive_by_effort: Annotated[
        bool,
        typer.Option(
            "--drive-by-effort", help="for a model without actuators: add a motor per joint whose effort is logged"
        ),
    ] = False,
    json: Json = None,
) -> None:
    """Make a project from a model and logs: guesses the mapping and says what it guessed."""
    *logs, directory = paths
    result = verbs.new(model, logs, directory, drive_by_effort=drive_by_effort)
    show.show_notes(out(json), result)
    write_json(result, json)


@app.command()
def check(directory: Directory, json: Json = None) -> None:
    """Is this project sound: model, mapping, units, time stamps, missing data, converged simulation?

    Prints what is wrong, or "sound". Faults make the exit status 2.
    """
    result = _with_progress(verbs.check, directory)
    show.show_notes(out(json), result)
    write_json(result, json)
    if not result.sound:
        raise typer.Exit(2)


@app.command()
def measure(
    directory: Directory,
    fit: Annotated[Path | None, typer.Option(metavar="FIT.json", help="result of identify to predict with")] = None,
    window: Annotated[
        float,
        typer.Option(min=0, metavar="SECONDS", help="restart from the measured state this often; 0: once per episode"),
    ] = 0.3,
    json: Json = None,
) -> None:
    """How far is simulation from reality: prediction error, bias and lag of every measured column."""
    result = _with_progress(verbs.measure, directory, fit=fit, window_s=window)
    show.show_measure(out(json), result)
    write_json(result, json)


@app.command()
def identify(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="project folder, with its gapless.yaml; not needed with --sensor FILE"),
    ] = None,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="log to judge on instead of fitting (may be repeated); default: every fourth"
        ),
    ] = None,
    logs: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="logs to use, such as march-* (may be repeated); default: all"),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(metavar="FIT.json", help="earlier fit to compare with; default: the earliest that suits"),
    ] = None,
    posterior: Annotated[
        Literal["gaussian", "sbi"],
        typer.Option(help="sbi: also sample the posterior by neural estimation (needs the extra `sbi`)"),
    ] = "gaussian",
    window: Annotated[
        float | None,
        typer.Option(min=0.01, metavar="SECONDS", help="length of the prediction windows; without it the logs decide"),
    ] = None,
    sensor: Sensor = None,
    column: Columns = None,
    svg: Svg = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Which parameter values make the model match, and which can't be told from these logs?

    With --sensor it fits the noise of sensors instead, from a log in which nothing moves: a log of the project, or any
    file of readings, as in `gapless identify --sensor imu.csv`, which needs no project.
    """
    if sensor is not None:
        beside = {"--hold-out": hold_out, "--logs": logs, "--since": since, "--window": window}
        _not_beside("--sensor", beside | {"--posterior": posterior != "gaussian"})
        _identify_sensor(sensor, directory, column or (), svg, json)
        return
    _not_beside("a fit of the model, which needs no --sensor", {"--column": column, "--svg": svg})
    if directory is None:
        raise InputError("Missing argument 'DIR': name the project folder, or --sensor FILE for a log at rest")
    result = _with_progress(
        verbs.identify,
        directory,
        hold_out or (),
        logs=logs or (),
        since=since,
        posterior=posterior,
        window_s=window,
        seed=seed,
    )
    show.show_identify(out(json), result)
    write_json(result, json)


@app.command()
def excite(
    directory: Directory,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET",
            help="parameter to tell (may be repeated); default: what the fit could not tell, or else what is fitted",
        ),
    ] = None,
    fit: Annotated[
        Path | None,
        typer.Option(metavar="FIT.json", help="result of identify to start from; default: the newest, if any"),
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="SECONDS", help="length of the motion")] = 20.0,
    max_speed: Annotated[
        list[str] | None,
        typer.Option(metavar="SHARE|JOINT=VALUE", help="largest speed: a share of the default, or rad/s or m/s"),
    ] = None,
    max_effort: Annotated[
        list[str] | None,
        typer.Option(metavar="SHARE|ACTUATOR=VALUE", help="largest effort: a share of the model's, or its unit"),
    ] = None,
    lowest: Annotated[
        float | None,
        typer.Option(
            metavar="METRES", help="height that nothing may go below; default: the model's floor, else its base"
        ),
    ] = None,
    motion: Annotated[
        Path | None, typer.Option("--out", metavar="FILE.csv", help="the motion; default: DIR/excite.csv")
    ] = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Which motion to record so that the parameters can be told? Predicts their intervals before it is recorded."""
    wishes = {"max_speed": max_speed or (), "max_effort": max_effort or (), "lowest_m": lowest}
    result = _with_progress(
        verbs.excite, directory, parameter or (), fit=fit, seconds=seconds, out=motion, seed=seed, **wishes
    )
    show.show_excite(out(json), result)
    write_json(result, json)


@app.command()
def diagnose(
    directory: Directory,
    policy: Annotated[
        Path | None,
        typer.Option(metavar="POLICY.npz", help="policy whose real runs are in the logs: how it fails speaks as well"),
    ] = None,
    fit: Annotated[
        Path | None,
        typer.Option(metavar="FIT.json", help="result of identify to search near as well, for a model that is far off"),
    ] = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Which dimension causes the gap, how sure are we, what to do next?

    The first time for a model it rehearses on simulated cases of that model (a minute or two), and keeps what it
    learned in the project.
    """
    result = _with_progress(verbs.diagnose, directory, policy=policy, fit=fit, seed=seed)
    show.show_diagnose(out(json), result)
    write_json(result, json)


@app.command()
def randomize(
    directory: Directory,
    fit: Annotated[
        Path | None,
        typer.Option(metavar="FIT.json", help="result of identify; default: the newest in the catalogue"),
    ] = None,
    method: Annotated[
        Literal["evidence", "sbi", "dropo", "simopt", "bayrn"],
        typer.Option(help="evidence, sbi: about a fit; dropo, simopt: from logs; bayrn: by trials in reality"),
    ] = "evidence",
    tries: Annotated[
        int | None, typer.Option(min=2, help="bayrn: ranges to train in and try in reality; default: 6")
    ] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="bayrn: real trials of each; default: 20")] = None,
    export: Annotated[
        list[str] | None,
        typer.Option(metavar="FORMAT=FILE", help=f"also write them (may be repeated): {EXPORTS}"),
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(metavar="RANGES", help="instead: is reality, as the logs show it, inside these ranges?"),
    ] = None,
    seed: Seed = 0,
    reality_seed: Annotated[
        int | None, typer.Option(min=0, help="bayrn: which twin, where reality is one; robots ignore it; default: 0")
    ] = None,
    json: Json = None,
) -> None:
    """Which ranges to train on: about the fit, as wide as what is left unexplained.

    With --audit it judges ranges instead, whoever wrote them: too narrow, too wide, wrong, or fits.
    """
    if audit is not None:
        searching = any(option is not None for option in (tries, trials, reality_seed))
        others = {"--fit": fit, "--method": method != "evidence", "--export": export}
        _not_beside("--audit", others | {"--tries, --trials, --reality-seed": searching})
        audited = _with_progress(verbs.audit, directory, audit, seed=seed)
        show_audit(out(json), audited)
        write_json(audited, json)
        return
    from gapless.randomize.export import parse_exports

    result = _with_progress(
        verbs.randomize,
        directory,
        fit=fit,
        method=method,
        num_tries=tries,
        num_trials=trials,
        reality_seed=reality_seed,
        export=parse_exports(export or ()),
        seed=seed,
    )
    show.show_randomize(out(json), result)
    write_json(result, json)


@app.command()
def train(
    directory: Directory,
    ranges: Annotated[
        Path | None, typer.Option(metavar="FILE", help="result of randomize; default: the model as written")
    ] = None,
    start: Annotated[Path | None, typer.Option(metavar="POLICY.npz", help="policy to go on from")] = None,
    steps: Annotated[int, typer.Option(min=1, help="control steps over all worlds")] = 600_000,
    curriculum: Annotated[
        Literal["none", "adr", "max-entropy"],
        typer.Option(help="begin at the centre of the ranges and grow to their ends as the policy gets better"),
    ] = "none",
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Train a policy for the project's task in simulation (needs the extra `train`)."""
    learner: Any = verbs.train
    from gapless.learn.train import TrainConfig

    config = TrainConfig(num_steps=steps, curriculum=curriculum)
    result = _with_progress(learner, directory, ranges, start=start, config=config, seed=seed)
    show.show_train(out(json), result)
    write_json(result, json)


@app.command()
def evaluate(
    directory: Directory,
    policy: Annotated[Path, typer.Argument(metavar="POLICY.npz", help="policy that train wrote")],
    simulation: Annotated[
        bool, typer.Option("--simulation", help="in the model as written instead of in reality")
    ] = False,
    trials: Annotated[int, typer.Option(min=1, help="number of runs")] = 50,
    seed: Seed = 0,
    reality_seed: Reality = 0,
    json: Json = None,
) -> None:
    """How often does a policy succeed, with its interval? Every run is kept in the catalogue."""
    where = "simulation" if simulation else "reality"
    result = _with_progress(
        verbs.evaluate,
        directory,
        policy,
        where=where,
        num_trials=trials,
        seed=seed,
        reality_seed=reality_seed,
    )
    show.show_evaluate(out(json), result)
    write_json(result, json)


@app.command()
def loop(
    directory: Directory,
    policy: Annotated[
        Path | None, typer.Option(metavar="POLICY.npz", help="policy to begin with; default: train one")
    ] = None,
    target: Annotated[float, typer.Option(min=0, max=1, help="success in reality that ends the loop")] = 0.85,
    rounds: Annotated[int, typer.Option(min=1, help="rounds at most")] = 1,
    episodes: Annotated[
        int, typer.Option(min=2, help="real episodes per round to close the gap with, logs included")
    ] = 12,
    trials: Annotated[int, typer.Option(min=1, help="real trials that score before and after")] = 50,
    seed: Seed = 0,
    reality_seed: Reality = 0,
    json: Json = None,
) -> None:
    """All of it: train, try in reality, find the cause, fit, train on, try again, until the target is met."""
    runner: Any = verbs.loop
    from gapless.loop.verb import LoopConfig

    config = LoopConfig(target=target, max_rounds=rounds, real_episodes=episodes, num_trials=trials)
    result = _with_progress(runner, directory, config=config, policy=policy, seed=seed, reality_seed=reality_seed)
    _finish_loop(directory, result, json)


@app.command()
def report(
    directory: Directory,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="the page; default: DIR/report.html")] = None,
    json: Json = None,
) -> None:
    """A page to share: the newest result of every verb in one self-contained file."""
    result = verbs.report(directory, out=page)
    out(json).print(f"open {result.path}", markup=False, soft_wrap=True)
    write_json(result, json)


@app.command()
def demo(
    example: Annotated[str, typer.Argument(metavar="[EXAMPLE]", help="push, balance or handover")] = "push",
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="folder to work in; default: gapless-demo/EXAMPLE")
    ] = None,
    directory: Annotated[Path | None, typer.Option("--dir", metavar="DIR", help="the same, as an option")] = None,
    copy: Annotated[bool, typer.Option("--copy", help="only copy the example to DIR, and run nothing")] = False,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """The whole loop on a bundled example, without hardware; or only a copy of it, to work on."""
    if folder is not None and directory is not None:
        raise InputError(f"the folder is named twice, {folder} and --dir {directory}: keep one")
    place = folder or directory or Path("gapless-demo") / example
    if copy:
        _not_beside("--copy", {"--json": json, "--seed": seed})
        verbs.copy_example(example, place, reuse=False)
        out(None).print(f"copied {example} to {place}\nnext: gapless check {place}", markup=False, soft_wrap=True)
        return
    result = _with_progress(verbs.demo, place, example, seed=seed)
    _finish_loop(place, result, json)


def _identify_sensor(
    log: str, directory: Path | None, columns: Sequence[str], svg: Path | None, json: str | None
) -> None:
    if svg is not None:
        writable(svg, "--svg")
    result = verbs.noise(log, directory, columns=columns)
    show_sensor(out(json), result)
    if svg is not None:
        drawn = draw_allan(result, svg)
        out(json).print(f"open {svg}" if drawn else "nothing to draw", markup=False, soft_wrap=True)
    write_json(result, json)


def _not_beside(what: str, options: dict[str, Any]) -> None:
    """Raises an error for options that would do nothing."""
    given = [name for name, value in options.items() if value]
    if given:
        raise InputError(f"{', '.join(given)} does nothing beside {what}: leave it out")


def _finish_loop(directory: Path, result: Any, json: str | None) -> None:
    console = out(json)
    show.show_loop(console, result)
    console.print(f"open {verbs.report(directory).path}", markup=False, soft_wrap=True)
    write_json(result, json)


def _with_progress(verb: Any, *arguments: Any, **options: Any) -> Any:
    with progress().shown() as steps:
        return verb(*arguments, progress=steps, **options)
