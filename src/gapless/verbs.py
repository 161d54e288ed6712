"""Every verb as one function, with the same name and result record as on the command line.

    from gapless import verbs
    fit = verbs.identify("my-robot")
    ranges = verbs.randomize("my-robot", export={"isaaclab": "events.py"})

Verbs are imported when first used: reading logs needs no torch, only `train`, `loop` and `demo` do.
"""

import importlib
import inspect
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gapless.core.errors import InputError, nearest

if TYPE_CHECKING:
    from gapless.check.verb import check
    from gapless.core.results import LoopResult, RandomizeResult
    from gapless.data.consent import consent
    from gapless.data.labels import label
    from gapless.data.labels import measure_agreement as measure_agreement
    from gapless.data.query import query
    from gapless.data.splits import split
    from gapless.diagnose.verb import diagnose
    from gapless.exchange.exporting import export
    from gapless.exchange.importing import import_
    from gapless.excite.verb import excite
    from gapless.identify.verb import identify
    from gapless.learn.evaluate import evaluate
    from gapless.learn.train import train
    from gapless.loop.search import search_ranges as search_ranges
    from gapless.loop.verb import loop
    from gapless.measure.verb import measure
    from gapless.project.new.create import new_project as new
    from gapless.randomize.audit.verb import audit
    from gapless.randomize.export.formats import export_ranges as export_ranges
    from gapless.report.verb import report
    from gapless.signals.noise.verb import identify_sensor as identify_sensor
    from gapless.signals.noise.verb import noise

_ELSEWHERE = {  # the others are in `verb.py` of the room of their name
    "audit": ("gapless.randomize.audit.verb", "audit"),
    "consent": ("gapless.data.consent", "consent"),
    "evaluate": ("gapless.learn.evaluate", "evaluate"),
    "export": ("gapless.exchange.exporting", "export"),
    "export_ranges": ("gapless.randomize.export.formats", "export_ranges"),
    "identify_sensor": ("gapless.signals.noise.verb", "identify_sensor"),
    "import_": ("gapless.exchange.importing", "import_"),
    "label": ("gapless.data.labels", "label"),
    "measure_agreement": ("gapless.data.labels", "measure_agreement"),
    "new": ("gapless.project.new.create", "new_project"),
    "query": ("gapless.data.query", "query"),
    "noise": ("gapless.signals.noise.verb", "noise"),
    "search_ranges": ("gapless.loop.search", "search_ranges"),
    "split": ("gapless.data.splits", "split"),
    "train": ("gapless.learn.train", "train"),
}
_CHOOSING = ("consent", "label", "split")  # they choose among episodes: the project's logs are entered first
EXAMPLES = Path(__file__).parent / "examples"

__all__ = ["audit", "check", "consent", "demo", "diagnose", "evaluate", "excite", "export", "identify", "import_"]
__all__ += ["label", "loop", "measure", "new", "noise", "query", "randomize", "report", "split", "train"]


def __getattr__(name: str) -> Callable[..., Any]:
    """Returns a verb's function, imported on first use."""
    if name not in (*__all__, *_ELSEWHERE):
        raise AttributeError(f"no verb {name!r}; there are: {nearest(name, __all__)}")
    module, function = _ELSEWHERE.get(name, (f"gapless.{name}.verb", name))
    try:
        verb = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name in ("torch", "stable_baselines3", "gymnasium"):
            raise InputError(f"{name} needs {error.name}: install it with pip install 'gapless[train]'") from None
        raise
    return _enter_logs_first(verb) if name in _CHOOSING else verb


def _enter_logs_first(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a verb that enters the logs of a project with a model before it looks for episodes."""

    @wraps(verb)
    def run(*arguments: Any, **options: Any) -> Any:
        given = inspect.signature(verb).bind(*arguments, **options).arguments
        if given.get("episodes") or given.get("where") is not None:
            from gapless.fit.enter import enter_logs
            from gapless.project.data_folder import open_data_folder

            if (project := open_data_folder(given["directory"]).project) is not None:
                enter_logs(project)
        return verb(*arguments, **options)

    return run


def __dir__() -> list[str]:
    """Returns what people call: every verb, and what copies examples; none of what this module imports."""
    return sorted({*__all__, *_ELSEWHERE, "EXAMPLES", "copy_example", "example_names"})


def example_names() -> tuple[str, ...]:
    """Returns the names of the bundled examples."""
    return tuple(sorted(path.parent.name for path in EXAMPLES.glob("*/gapless.yaml")))


def copy_example(name: str, directory: str | Path, *, reuse: bool = True) -> Path:
    """Copies a bundled example to a folder, made where it is missing; returns the folder.

    With `reuse`, an earlier copy of this example in the folder is left as it is, and used.
    """
    if name not in example_names():
        raise InputError(f"no example {name!r}; choose from: {nearest(name, example_names())}")
    place = Path(directory)
    source = EXAMPLES / name
    if reuse and (place / "gapless.yaml").is_file():
        if (place / "gapless.yaml").read_bytes() != (source / "gapless.yaml").read_bytes():
            raise InputError(f"this folder holds another project: name an empty one: {place}")
        return place
    if place.exists() and not place.is_dir():
        raise InputError(f"this is a file: name a folder: {place}")
    if place.exists() and any(place.iterdir()):
        raise InputError(f"this folder is not empty: name an empty one: {place}")
    try:
        shutil.copytree(source, place, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", ".gapless"))
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"cannot copy the example ({reason}): choose another folder: {place}") from None
    return place


def demo(
    directory: str | Path = "gapless-demo",
    example: str = "push",
    *,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> "LoopResult":
    """Runs the whole loop on a copy of a bundled example in `directory`; a copy that is there already is used again."""
    place = copy_example(example, directory)  # before torch is loaded: a wrong name is noticed at once
    return __getattr__("loop")(place, seed=seed, progress=progress)


def randomize(
    directory: str | Path,
    *,
    fit: str | Path | None = None,
    method: str = "evidence",
    num_tries: int | None = None,
    num_trials: int | None = None,
    reality_seed: int | None = None,
    export: Mapping[str, str | Path] | None = None,
    where: str | None = None,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> "RandomizeResult":
    """Finds the ranges to train on, and writes them for other training stacks.

    `fit` is JSON that `identify` wrote, None for the newest fit in the catalogue; `dropo` and `simopt` take none.
    Methods are `evidence` and `sbi`, about a fit; `dropo` and `simopt`, from logs; and `bayrn`, by trials in reality,
    which tries `num_tries` (6) ranges in `num_trials` (20) real trials each, on the twin of `reality_seed` where
    reality is one.
    `where` is an SQL condition on the view `episodes` of the logs that `dropo` and `simopt` read.
    `export` has format -> file to write the ranges to, such as `{"isaaclab": "events.py"}`.
    """
    from gapless.randomize import verb
    from gapless.randomize.export.formats import check_exports, export_ranges

    check_exports(export or {})
    sizes = (("num_tries", num_tries), ("num_trials", num_trials))
    given: dict[str, Any] = {name: value for name, value in sizes if value is not None}
    if method == "bayrn":
        if where is not None:
            raise InputError("--where chooses logs, and --method bayrn reads none: leave it out")
        search: Any = __getattr__("search_ranges")
        from gapless.loop.search import BayrnConfig

        options = {"fit": fit, "config": BayrnConfig(**given), "seed": seed, "progress": progress}
        result = search(directory, reality_seed=reality_seed or 0, **options)
    else:
        if given or reality_seed is not None:
            raise InputError(
                f"--tries, --trials and --reality-seed are of --method bayrn, not of {method}: leave them out"
            )
        result = verb.randomize(directory, fit=fit, method=method, where=where, seed=seed, progress=progress)
    return replace(result, exports=export_ranges(directory, result, export)) if export else result
