"""Assembles the page: one HTML file with everything inside it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from gapless.core.results import Result
from gapless.report import audit, causes, noise, plots, sections, svg
from gapless.report import numbers as n
from gapless.report.headline import Badge, build_headline, describe_check
from gapless.report.next_steps import collect_next_steps, list_missing_parts
from gapless.report.parts import Parts, collect

_HERE = Path(__file__).parent
_VERDICTS = {"good": "good", "poor": "open", "refused": "bad"}


@dataclass(frozen=True)
class Source:
    """Where one part of the page comes from."""

    name: str
    inputs: tuple[str, ...]
    seed: int | None


def render_page(
    title: str, results: Mapping[str, Result], *, code_version: str, made_at: str, folder: Path | None = None
) -> str:
    """Returns the results as one self-contained HTML page: no scripts, no fonts, nothing from a network.

    Args:
        title: Name of the project; any text.
        results: Verb -> its record, any subset of check, measure, identify, diagnose, randomize, train,
            evaluate and loop, `measure_fitted` for the measure with the fit, `noise` for that of sensors and `audit`
            for that of ranges. Where a loop is given, its parts are shown. What is missing is left out, and the page
            names the verb that would fill it; names that have no place on the page are listed in its footer.
        code_version: Version of gapless that made the results.
        made_at: When the page was made, as it is to be printed.
        folder: The project folder; files in it are named from there, so that the page can be sent to anyone.
    """
    parts = collect(results)
    about = {"title": title, "code_version": code_version, "made_at": made_at, "place": _place_in(folder)}
    return svg.replace_illegal_characters(_environment().get_template("page.html").render(**about, **_context(parts)))


def _place_in(folder: Path | None) -> Callable[[str], str]:
    """Returns what names a file from a folder, where the file is in it."""
    root = None if folder is None else folder.resolve()
    return lambda path: str(Path(path).relative_to(root)) if root and Path(path).is_relative_to(root) else path


def _context(parts: Parts) -> dict[str, Any]:
    traces = sections.collect_traces(parts)
    chosen = sections.choose_one_per_column(traces)
    labels = dict.fromkeys(label for trace in chosen for label in trace.predicted)
    policies = sections.policies(parts)
    curves = {name: policy.curve for name, policy in policies.items() if policy.curve}
    identify = parts.identify
    return {
        "style": Markup((_HERE / "style.css").read_text(encoding="utf-8")),
        "parts": parts,
        "headline": build_headline(parts),
        "steps": collect_next_steps(parts),
        "missing": list_missing_parts(parts),
        "sources": _sources(parts),
        "fitted": {p.target: p for p in identify.parameters} if identify else {},
        "terms": sorted(identify.tried, key=lambda t: (not t.kept, -t.saving)) if identify else (),
        "level": sections.levels(identify) if identify else "",
        "verdict": identify and Badge(_VERDICTS.get(identify.verdict, "open"), f"Verdict: {identify.verdict}"),
        "traces": chosen,
        "num_more_traces": len(traces) - len(chosen),
        "legend": [(plots.line_class(label), plots.LABELS.get(label, label)) for label in labels],
        "error_groups": sections.error_groups(parts),
        "errors": sections.error_rows(parts),
        "policies": policies,
        "curve": plots.curve_plot(curves) if curves else None,
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {"plots": plots, "causes": causes, "noise": noise, "audit": audit}
    environment.globals |= {"span": n.span, "percent_span": n.percent_span, "stretch": n.stretch, "plural": n.plural}
    environment.filters |= {"number": n.number, "percent": n.percent, "listed": n.join_words, "short": n.short_id}
    environment.filters |= {"success": n.success, "compact": n.compact, "unit": n.unit_text, "unit_cell": n.unit_cell}
    environment.filters |= {"probability": n.probability, "readable": n.readable_target, "outcome": describe_check}
    return environment


def _sources(parts: Parts) -> tuple[Source, ...]:
    names = {"first": "train, first", "train": "train, last" if parts.loop else "train"}
    names |= {"measure_fitted": "measure, fitted"}
    return tuple(
        Source(names.get(name, name), tuple(dict.fromkeys(record.inputs)), getattr(record, "seed", None))
        for name, record in parts.shown().items()
    )
