"""The verb `report`."""

import os
from datetime import datetime
from pathlib import Path

import gapless
from gapless.core.errors import InputError
from gapless.core.provenance import Provenance
from gapless.core.results import MeasureResult, ReportResult, Result
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import AUDIT, SENSOR, load_stored_result, newest_result
from gapless.project.load import load_project
from gapless.report.page import render_page

VERBS = ("check", "measure", "identify", "diagnose", "randomize", "train", "evaluate", "loop")
APART = {
    SENSOR: "noise",
    AUDIT: "audit",
}  # kind in the catalogue -> name on the page, of what options make


def report(directory: str | Path, *, out: str | Path | None = None) -> ReportResult:
    """Writes a page with the newest result of every verb, all in one file.

    Args:
        directory: The project folder.
        out: The page's path; None for `report.html` in the project folder.
    """
    project = load_project(directory)
    catalogue = Catalogue.open(project.directory)
    found = _newest_results(catalogue)
    if not found:
        raise InputError(f"nothing to report yet: run `gapless measure` or `gapless loop` first: {project.directory}")
    made_at = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    page = render_page(
        project.name,
        {name: result for name, (_, result) in found.items()},
        code_version=gapless.__version__,
        made_at=made_at,
        folder=project.directory,
    )
    path = Path(out) if out is not None else project.directory / "report.html"
    partial = path.with_name(f".{path.name}.part")
    try:
        partial.write_text(page, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise InputError(f"cannot write the page: {error.strerror}: {path}") from None
    ids = tuple(identity for identity, _ in found.values())
    identity = catalogue.add_artefact(
        "report",
        {"report.html": page.encode()},
        Provenance("report", gapless.__version__, ids, {"made_at": made_at}),
    )
    return ReportResult(ids, str(path.resolve()), id=identity)


def _newest_results(catalogue: Catalogue) -> dict[str, tuple[str, Result]]:
    """Returns verb -> id and record of its newest result; a measure with a fit is `measure_fitted`.

    The noise of sensors is `noise`, an audit of ranges is `audit`.
    """
    found: dict[str, tuple[str, Result]] = {}
    for verb in VERBS:
        if verb == "measure":
            for row in catalogue.artefacts("measure"):
                result = load_stored_result(catalogue, row.id)
                assert isinstance(result, MeasureResult)
                found["measure_fitted" if row.provenance.config.get("fitted") else "measure"] = (
                    row.id,
                    result,
                )
            continue
        identity = newest_result(catalogue, verb)
        if identity is not None:
            found[verb] = (identity, load_stored_result(catalogue, identity))
    for kind, name in APART.items():
        identity = newest_result(catalogue, kind)
        if identity is not None:
            found[name] = (identity, load_stored_result(catalogue, identity))
    if "loop" in found:
        found.pop("evaluate", None)  # the loop shows its own trials
    return found
