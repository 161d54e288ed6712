"""The causes on the page: the waterfall, where to look, and the conditions of runs."""

# ruff: noqa: RUF001 (typeset dashes are what is tested)

import math
import re
from collections.abc import Callable
from dataclasses import replace
from math import nan
from xml.etree import ElementTree

import pytest

from gapless.core.results import Cause, ConditionRate, DiagnoseResult, Result, TellingMoment
from gapless.report import numbers as n
from gapless.report import render_page, sections

Make = Callable[..., dict[str, Result]]
CONTACT = Cause("contact", 0.97, 0.55, 0.4, 0.7)
LATENCY = Cause("latency", 0.6, 0.3, 0.2, 0.5)
OBJECT = Cause("object", 0.5, 0.15, 0.0, 0.3)  # not above one half
DIM = ConditionRate("light", "dim", 12, 9, 0.73, 0.46, 0.91, 0.98)
BRIGHT = ConditionRate("light", "bright", 26, 2, 0.1, 0.02, 0.24, 0.98)
MORNING = ConditionRate("time of day", "morning", 20, 3, 0.17, 0.05, 0.36, 0.08)


@pytest.fixture(name="diagnose")
def diagnose_fixture(make: Make) -> DiagnoseResult:
    found = make()["diagnose"]
    assert isinstance(found, DiagnoseResult)
    return replace(found, causes=(CONTACT, LATENCY, OBJECT), unexplained=0.0, moments=(), conditions=())


def render(diagnose: DiagnoseResult) -> str:
    return render_page("push", {"diagnose": diagnose}, code_version="0.1.0", made_at="now")


def drawn(diagnose: DiagnoseResult) -> ElementTree.Element:
    """Returns the waterfall of a page."""
    found = re.findall(r'<svg class="fluid waterfall".*?</svg>', render(diagnose), re.DOTALL)
    assert len(found) == 1
    return ElementTree.fromstring(found[0])


def bars(root: ElementTree.Element) -> list[tuple[str, float, float]]:
    """Returns kind, start and width [%] of each bar, from the top."""
    rects = sorted(root.iter("rect"), key=lambda rect: float(rect.get("y", "nan")))
    sizes = [(rect.get("x", "").rstrip("%"), rect.get("width", "").rstrip("%")) for rect in rects]
    kinds = [rect.get("class", "").removeprefix("bar ") for rect in rects]
    return [(kind, float(x), float(width)) for kind, (x, width) in zip(kinds, sizes, strict=True)]


def whiskers(root: ElementTree.Element) -> list[tuple[str | None, str | None]]:
    lines = [line for line in root.iter("line") if line.get("class") == "whisker thin"]
    return [(line.get("x1"), line.get("x2")) for line in lines]


def texts(root: ElementTree.Element) -> list[str | None]:
    return [text.text for text in root.iter("text") if text.get("class") == "strong"]


def test_waterfall_goes_down_by_each_likely_cause(diagnose: DiagnoseResult) -> None:
    # 100 - 55 = 45, 45 - 30 = 15: contact takes 45 to 100, latency 15 to 45, and 15 are left.
    root = drawn(diagnose)
    assert bars(root) == [("measured", 0, 100), ("cause", 45, 55), ("cause", 15, 30), ("other", 0, 15)]
    words = ["contact 55 % [40, 70]", "latency 30 % [20, 50]", "left to other causes 15 %"]
    assert texts(root) == ["the explained gap 100 %", *words]
    title = root.findtext("title")
    assert title == root.get("aria-label")
    assert title == f"The explained gap by cause, 100 % in all: {words[0]}, {words[1]} and {words[2]}"


def test_whiskers_are_where_a_step_may_end(diagnose: DiagnoseResult) -> None:
    # From 100: 100 - 70 = 30 to 100 - 40 = 60, with a cap at both. From 45: 45 - 50 < 0 to 45 - 20 = 25: one cap.
    first = [("30%", "60%"), ("30%", "30%"), ("60%", "60%")]
    assert whiskers(drawn(diagnose)) == [*first, ("0%", "25%"), ("25%", "25%")]


def test_what_has_no_share_gets_a_dash(diagnose: DiagnoseResult) -> None:
    alone = replace(diagnose, causes=(Cause("visual", 0.95, 0.0, 0.0, 0.0), Cause("sensor", 0.4, 0.0, 0.0, 0.1)))
    assert [n.percent_span(*sections.share_span(cause)) for cause in alone.causes] == ["\u2013", "0 % [0, 10]"]


def test_no_waterfall_without_a_likely_cause_or_without_shares(diagnose: DiagnoseResult) -> None:
    for found in ((), (OBJECT,), (Cause("visual", 0.9, 0.0, 0.0, 0.0), replace(OBJECT, share=0.0))):
        page = render(replace(diagnose, causes=found))
        assert "waterfall" not in page.split("</style>")[1]
        assert "explained gap 100 %" not in page


@pytest.mark.parametrize("unknown", [nan, None])
def test_an_unknown_share_leaves_the_rest_open(diagnose: DiagnoseResult, unknown: float) -> None:
    open_one = Cause("latency", 0.6, unknown, unknown, unknown)
    root = drawn(replace(diagnose, causes=(CONTACT, open_one)))
    assert bars(root) == [("measured", 0, 100), ("cause", 45, 55)]
    assert texts(root)[2:] == ["latency –", "left to other causes –"]


def test_a_cause_that_takes_all_leaves_nothing(diagnose: DiagnoseResult) -> None:
    root = drawn(replace(diagnose, causes=(Cause("contact", 0.99, 1.0, 0.9, 1.0),)))
    assert bars(root) == [("measured", 0, 100), ("cause", 0, 100)]
    assert texts(root)[-1] == "left to other causes 0 %"


def test_what_is_left_over_is_told_beside_the_shares(diagnose: DiagnoseResult) -> None:
    # An error of 3 times the noise: u = log((1 + 9) / 2) = log 5; back: sqrt(2 * 5 - 1) = 3.
    page = render(replace(diagnose, unexplained=math.log(5.0)))
    assert "even the best explanation leaves errors of about 3 times the noise." in page
    assert "The best explanation leaves no more than noise." in render(diagnose)
    assert sections.describe_left_over(replace(diagnose, unexplained=nan)) == ""


def test_telling_moments_say_where_to_look(diagnose: DiagnoseResult) -> None:
    moment = TellingMoment("push_07", 123.4, 0.5, "puck_x", "contact", 23.44, 1.25)
    page = render(replace(diagnose, moments=(moment,)))
    cells = '<td class="stacked">123.40 – 123.90</td><td class="name">puck_x</td><td>contact</td>'
    assert f'<th scope="row">push_07</th>{cells}<td class="num">23.4 → <span class="strong">1.25</span></td>' in page
    assert "in the records" not in page
    assert "Where to look" not in render(diagnose)


def test_at_most_nine_moments_are_shown_and_the_others_counted(diagnose: DiagnoseResult) -> None:
    moments = tuple(TellingMoment(f"log_{k:02d}", k, 0.5, "q", "contact", 9.0, 1.0) for k in range(11))
    page = render(replace(diagnose, moments=moments))
    assert re.findall(r"log_\d\d", page) == [f"log_{k:02d}" for k in range(9)]
    assert "2 more are in the records." in page


def test_conditions_are_grouped_and_those_that_matter_come_first(diagnose: DiagnoseResult) -> None:
    page = render(replace(diagnose, conditions=(MORNING, DIM, BRIGHT)))
    light = '<th scope="rowgroup" rowspan="2">light</th>'
    counts = '<td class="num">12</td><td class="num">9</td><td class="num">73 % [46, 91]</td>'
    assert f'<tr>{light}<td class="name">dim</td>{counts}<td class="num strong" rowspan="2">98 %</td></tr>' in page
    counts = '<td class="num">26</td><td class="num">2</td><td class="num">10 % [2, 24]</td>'
    assert f'<tr><td class="name">bright</td>{counts}</tr>' in page
    assert '<td class="num" rowspan="1">8 %</td>' in page
    assert page.index(">light<") < page.index(">dim<") < page.index(">bright<") < page.index(">time of day<")


def test_without_conditions_there_is_no_table_of_them(diagnose: DiagnoseResult) -> None:
    assert "Conditions" not in render(diagnose)
    assert sections.group_conditions(diagnose) == []


def test_a_condition_of_unknown_weight_comes_last(diagnose: DiagnoseResult) -> None:
    open_one = replace(DIM, condition="floor", matters=nan)
    groups = sections.group_conditions(replace(diagnose, conditions=(open_one, MORNING)))
    assert [(name, matters) for name, matters, _ in groups] == [("time of day", MORNING.matters), ("floor", None)]
