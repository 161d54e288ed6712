"""The verb `report`: one HTML file with everything inside it."""

import os
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import gapless
from gapless.core.errors import InputError
from gapless.core.provenance import Provenance
from gapless.core.results import ReportResult, Result
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import AUDIT, SENSOR, load_stored_result, newest_result
from gapless.project.load import load_project
from gapless.report import noise, parts, plots, sections, svg
from gapless.report import numbers as n

VERBS = ("check", "measure", "identify", "diagnose", "randomize", "train", "evaluate", "loop", SENSOR, AUDIT)
NAMES = {SENSOR: "noise", AUDIT: "audit"}  # kind in the catalogue -> name on the page, where they differ
_HERE = Path(__file__).parent


def report(directory: str | Path, *, out: str | Path | None = None) -> ReportResult:
    """Writes a page with the newest result of every verb, to `out`, or to `report.html` in the project folder."""
    project = load_project(directory)
    catalogue = Catalogue.open(project.directory)
    found = _newest_results(catalogue)
    if not found:
        raise InputError(f"nothing to report yet: run `gapless measure` or `gapless loop` first: {project.directory}")
    made_at = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    about = {"code_version": gapless.__version__, "made_at": made_at, "folder": project.directory}
    page = render_page(project.name, {name: result for name, (_, result) in found.items()}, **about)
    path = Path(out) if out is not None else project.directory / "report.html"
    partial = path.with_name(f".{path.name}.part")
    try:
        partial.write_text(page, encoding="utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise InputError(f"cannot write the page: {error.strerror}: {path}") from None
    ids = tuple(identity for identity, _ in found.values())
    provenance = Provenance("report", gapless.__version__, ids, {"made_at": made_at})
    identity = catalogue.add_artefact("report", {"report.html": page.encode()}, provenance)
    return ReportResult(ids, str(path.resolve()), id=identity)


def _newest_results(catalogue: Catalogue) -> dict[str, tuple[str, Result]]:
    """Returns name on the page -> id and record of the newest result; a measure with a fit is `measure_fitted`."""
    ids = {NAMES.get(kind, kind): newest_result(catalogue, kind) for kind in VERBS if kind != "measure"}
    for row in catalogue.artefacts("measure"):
        ids["measure_fitted" if row.provenance.config.get("fitted") else "measure"] = row.id
    if ids["loop"]:
        del ids["evaluate"]  # the loop shows its own trials
    return {name: (identity, load_stored_result(catalogue, identity)) for name, identity in ids.items() if identity}


def render_page(
    title: str, results: Mapping[str, Result], *, code_version: str, made_at: str, folder: Path | None = None
) -> str:
    """Returns the results as one self-contained HTML page: no scripts, no fonts, nothing from a network.

    `results` has verb -> its record, any subset of check, measure, identify, diagnose, randomize, train, evaluate and
    loop, `measure_fitted` for the measure with the fit, `noise` for that of sensors and `audit` for that of ranges.
    Where a loop is given, its parts are shown. What is missing is left out, and the page names the verb that would fill
    it. Files in `folder` are named from there, so that the page can be sent to anyone.
    """
    root = None if folder is None else folder.resolve()

    def name_place(path: str) -> str:
        return str(Path(path).relative_to(root)) if root and Path(path).is_relative_to(root) else path

    about = {"title": title, "code_version": code_version, "made_at": made_at, "place": name_place}
    page = _environment().get_template("page.html").render(**about, **_context(parts.collect(results)))
    return svg.replace_illegal_characters(page)


def _context(found: parts.Parts) -> dict[str, Any]:
    """Returns what the template shows."""
    traces, identify = parts.collect_traces(found), found.identify
    labels = dict.fromkeys(label for trace in traces for label in trace.predicted)
    policies = parts.policies(found)
    curves = {name: policy.curve for name, policy in policies.items() if policy.curve}
    names = {"first": "train, first", "train": "train, last" if found.loop else "train"}
    names |= {"measure_fitted": "measure, fitted"}
    shown = {name: record for name, record in vars(found).items() if record is not None}
    sources = [
        (names.get(name, name), getattr(record, "seed", None), list(dict.fromkeys(record.inputs)))
        for name, record in shown.items()
    ]
    groups, errors = parts.error_table(found)
    horizons = (identify.horizons if identify else ()) or (found.measure.horizons if found.measure else ())
    return {
        "style": Markup((_HERE / "style.css").read_text(encoding="utf-8")),
        "parts": found,
        "rates": list(sections.list_rates(found)),
        "steps": sections.collect_next_steps(found),
        "missing": sections.list_missing_parts(found),
        "sources": sources,
        "fitted": {p.target: p for p in identify.parameters} if identify else {},
        "terms": sorted(identify.tried, key=lambda t: (not t.kept, -t.saving)) if identify else (),
        "level": n.join_words(sorted({n.percent(p.level) for p in identify.parameters})) if identify else "",
        "traces": traces,
        "horizons": horizons,
        "horizons_held_out": bool(identify and identify.horizons and identify.held_out.episodes),
        "legend": [(plots.line_class(label), plots.LABELS.get(label, label)) for label in labels],
        "error_groups": groups,
        "errors": errors,
        "policies": policies,
        "curve": plots.curve_plot(curves) if curves else None,
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {"plots": plots, "sections": sections, "noise": noise}
    environment.globals |= {"span": n.span, "percent_span": n.percent_span, "stretch": n.stretch, "plural": n.plural}
    environment.filters |= {"number": n.number, "percent": n.percent, "listed": n.join_words, "short": n.short_id}
    environment.filters |= {"success": n.success, "compact": n.compact, "unit": n.unit_text, "unit_cell": n.unit_cell}
    environment.filters |= {"probability": n.probability, "readable": n.readable_target}
    return environment
