"""The audit of ranges and the noise of sensors on the page: what is drawn, what is said, and which is the newest."""

# ruff: noqa: RUF001 (typeset dashes are what is tested)

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gapless.core.provenance import Provenance
from gapless.core.results import AuditResult, Result, SensorResult
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import store_result
from gapless.report import noise, plots, render_page
from gapless.verbs import copy_example, report

Make = Callable[..., dict[str, Result]]


@pytest.fixture(name="audit")
def audit_fixture(make: Make) -> AuditResult:
    found = make()["audit"]
    assert isinstance(found, AuditResult)
    return found


@pytest.fixture(name="sensor")
def sensor_fixture(make: Make) -> SensorResult:
    found = make()["noise"]
    assert isinstance(found, SensorResult)
    return found


def render(**results: Result) -> str:
    return render_page("push", results, code_version="0.1.0", made_at="now")


def table(page: str, label: str) -> list[str]:
    """Returns the rows of a table's body, without tags: cells are apart by `|`."""
    found = re.search(rf'aria-label="{re.escape(label)}">(.*?)</table>', page, re.DOTALL)
    assert found is not None
    rows = re.findall(r"<tr>(.*?)</tr>", found[1].partition("</thead>")[2], re.DOTALL)
    rows = [re.sub(r"<svg.*?</svg>", "", row, flags=re.DOTALL) for row in rows]
    rows = [re.sub(r"<[^>]+>", " ", re.sub(r"</t[hd]>", "|", row)) for row in rows]
    return ["|".join(" ".join(cell.split()) for cell in row.split("|")) for row in rows]


def drawn_band(svg: str) -> tuple[float, float]:
    """Returns where the band of a glyph begins and ends."""
    band = ElementTree.fromstring(svg).find("rect")
    assert band is not None
    left = float(band.attrib["x"])
    return left, left + float(band.attrib["width"])


def dot(svg: str) -> float:
    """Returns where the dot of a glyph stands."""
    found = ElementTree.fromstring(svg).find("circle")
    assert found is not None
    return float(found.attrib["cx"])


def test_a_range_beside_reality_is_drawn_beside_its_dot(audit: AuditResult) -> None:
    by_verdict = {(p.verdict, p.varied): plots.audit_glyph(p) for p in audit.parameters}
    narrow = by_verdict["too narrow", True]  # 0.8 .. 1.2, the logs say 0.46 of 0.37 .. 0.56
    assert dot(narrow) < drawn_band(narrow)[0]
    wide = by_verdict["too wide", True]
    assert drawn_band(wide)[0] < dot(wide) < drawn_band(wide)[1]
    whisker = re.search(r'<line x1="([\d.]+)" y1="11" x2="([\d.]+)" y2="11" class="whisker"/>', wide)
    assert whisker is not None
    # Of the band, 0.2 s wide, the line takes (0.067 - 0.045) / 0.2 = 11 %.
    width = drawn_band(wide)[1] - drawn_band(wide)[0]
    assert (float(whisker[2]) - float(whisker[1])) / width == pytest.approx(0.11, abs=0.002)


def test_what_training_does_not_vary_has_no_band_but_the_models_value(audit: AuditResult) -> None:
    kept = next(p for p in audit.parameters if not p.varied)
    assert 'class="diamond"' in plots.audit_glyph(kept)
    assert "<rect" not in plots.audit_glyph(kept)
    assert 'class="diamond"' not in plots.audit_glyph(replace(kept, varied=True))


def test_ranges_that_disagree_with_the_logs_come_first(audit: AuditResult) -> None:
    rows = table(render(audit=audit), "Ranges beside what reality needs")
    assert [row.split("|")[4] for row in rows] == [
        "too narrow",
        "too wide 12 times as wide",
        "too narrow",
        "cannot tell",
    ]
    assert "[0.8, 1.2]|[0.37, 0.56]" in rows[0]
    assert "0, not varied|[0.2, 0.3]" in rows[2]
    assert rows[3].endswith("as it is|")
    columns = table(render(audit=audit), "What predictions leave of each column")
    assert columns == ["puck_x|0.98|9.95|57 %|40.1|19.5|", "q|–|∞|–|–|–|"]


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [("wrong", "bad"), ("too narrow", "bad"), ("too wide", "open"), ("fits", "good"), ("cannot tell", "open")],
)
def test_each_verdict_of_an_audit_has_its_sentence(audit: AuditResult, verdict: str, kind: str) -> None:
    alone = replace(audit, verdict=verdict, verdicts=(verdict,))  # type: ignore[arg-type]
    page = render(audit=alone)
    assert re.search(rf'<p class="badge {kind}">.*Verdict: {verdict}\. [^;]+</p>', page)
    two = replace(alone, verdicts=(verdict, "too wide"))  # type: ignore[arg-type]
    assert ("some ranges are too wide besides" in render(audit=two)) == (verdict != "too wide")


def test_an_audit_that_was_refused_has_no_tables(audit: AuditResult) -> None:
    refused = replace(audit, parameters=(), columns={}, reasons=("too few logs",), num_windows=0)
    page = render(audit=refused)
    assert "too few logs" in page
    section = page[page.index('id="audit"') : page.index('id="next"')]
    assert "<table" not in section
    assert "windows" not in section


def test_columns_with_an_allan_deviation_are_drawn(sensor: SensorResult) -> None:
    page = render(noise=sensor)
    plots_of_page = re.findall(r'<svg class="plot allan".*?</svg>', page, re.DOTALL)
    assert len(plots_of_page) == 2  # the third is refused, and has none
    lines = {part.attrib["class"] for part in ElementTree.fromstring(plots_of_page[0]).iter("path")}
    assert lines == {"line measured", "line fitted", "line white", "line flicker"}
    many = replace(sensor, columns={f"q{k}": sensor.columns["q"] for k in range(noise.MAX_CURVES + 3)})
    page = render(noise=many)
    assert page.count('<svg class="plot allan"') == noise.MAX_CURVES
    assert "3 more are in the records." in page
    assert len(table(page, "Noise of the sensors")) == noise.MAX_CURVES + 3


def test_what_cannot_be_told_is_said(sensor: SensorResult) -> None:
    page = render(noise=sensor)
    rows = table(page, "Noise of the sensors")
    assert "0.001 [9×10⁻⁴, 0.0011]" in rows[0]
    assert "averaging over 10.2 s" in rows[0]
    assert "9.96×10⁻⁴|" in rows[0]
    assert rows[2].split("|")[:6] == ["r", "1", "–", "–", "–", "–"]
    terms = table(page, "All terms of the noise")
    assert "random walk of the bias|–|[0, 7×10⁻⁵]|m/√s|not identifiable|" in terms
    assert any(row.startswith("drift|–|") and row.endswith("|not seen|") for row in terms)


@pytest.mark.parametrize(("verdict", "kind"), [("good", "good"), ("poor", "open"), ("refused", "bad")])
def test_each_verdict_on_a_log_at_rest_has_its_sentence(sensor: SensorResult, verdict: str, kind: str) -> None:
    page = render(noise=replace(sensor, verdict=verdict))  # type: ignore[arg-type]
    assert re.search(rf'<p class="badge {kind}">.*Verdict: {verdict}\. ', page)


def test_the_newest_of_the_catalogue_is_on_the_page(audit: AuditResult, sensor: SensorResult, tmp_path: Path) -> None:
    project = copy_example("balance", tmp_path / "balance")
    catalogue = Catalogue.open(project)
    for place, name in enumerate(("monday", "friday")):
        provenance = Provenance("test", "0", (), {}, place)
        store_result(catalogue, replace(audit, audited=f"{name}.txt"), provenance)
        store_result(catalogue, replace(sensor, sensor=f"{name} rest"), provenance)
    made = report(project)
    page = Path(made.path).read_text(encoding="utf-8")
    assert "friday.txt" in page
    assert "friday rest" in page
    assert "monday" not in page
    assert len(made.inputs) == 2
