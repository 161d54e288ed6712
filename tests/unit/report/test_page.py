"""The page as a whole: complete, closed, safe, and honest."""

# ruff: noqa: RUF001 (typeset dashes and minus signs are what is tested)

import io
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from html.parser import HTMLParser
from itertools import combinations
from math import isfinite
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gapless.cli.output import Printer
from gapless.cli.show import show
from gapless.core.interval import wilson
from gapless.core.results import Decision, IdentifyResult, LoopResult, RandomizeResult, Result, TriedTerm
from gapless.report import render_page

HOSTILE = '<script>alert("1 & 2")</script><b a=\'\x07{{ 7 * 7 }}'
ID = "0123456789abcdef0123456789abcdef"
NAMES = ["check", "measure", "measure_fitted", "identify", "diagnose", "randomize", "train", "evaluate"]
NAMES += ["noise", "audit", "loop"]
VOID = {"meta", "br"}
Make = Callable[..., dict[str, Result]]


def render(results: dict[str, Result], title: str = "push") -> str:
    return render_page(title, results, code_version="0.1.0", made_at="2025-01-01 12:00 UTC")


class Balance(HTMLParser):
    """Checks that every element is closed where it should be; `tags` are all that were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check_closed(page: str) -> set[str]:
    """Checks that the page needs nothing from outside, and is well-formed; returns its tags."""
    assert "http://" not in page
    assert "https://" not in page
    assert "url(" not in page
    assert "@import" not in page
    balance = Balance()
    balance.feed(page)
    assert balance.open == []
    assert not balance.tags & {"script", "link", "img", "object", "embed"}
    for drawing in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        root = ElementTree.fromstring(drawing)
        assert root.get("aria-hidden") or (root.get("role") == "img" and root.get("aria-label"))
    assert not re.search(r"\b(nan|None|inf)\b", page)
    return balance.tags


def loop_with(make: Make, **changes: object) -> LoopResult:
    loop = make()["loop"]
    assert isinstance(loop, LoopResult)
    return replace(loop, **changes)  # type: ignore[arg-type]


def test_everything_is_shown_in_order(make: Make) -> None:
    page = render(make())
    check_closed(page)
    titles = ["The gap", "Causes", "Fitted parameters", "Predicted against measured", "Noise of the sensors"]
    titles += ["Training ranges", "Is reality inside the ranges?", "What to do next"]
    places = [page.index(f">{title}</h2>") for title in titles]
    assert places == sorted(places)
    assert f'title="{ID}">01234567…' in page
    assert "gapless 0.1.0 · 2025-01-01 12:00 UTC" in page


def test_nothing_at_all_names_every_verb() -> None:
    page = render({})
    check_closed(page)
    assert "Noise of the sensors" not in page
    assert "Is reality inside" not in page
    for verb in ("check", "measure", "diagnose", "identify", "randomize", "train", "evaluate", "loop"):
        assert f">gapless {verb} ." in page


@pytest.mark.parametrize("name", NAMES)
def test_each_result_alone(make: Make, name: str) -> None:
    page = render({name: make()[name]})
    check_closed(page)
    if name not in ("loop", "measure_fitted"):
        assert f">gapless {name} .</code>" not in page or name == "check"


def test_every_pair_and_all_but_one(make: Make) -> None:
    records = make()
    for pair in combinations(records, 2):
        check_closed(render({name: records[name] for name in pair}))
    for left_out in records:
        check_closed(render({name: record for name, record in records.items() if name != left_out}))


@pytest.mark.parametrize("name", [*NAMES, "all"])
def test_hostile_text_is_escaped(make: Make, name: str) -> None:
    records = make(HOSTILE)
    page = render(records if name == "all" else {name: records[name]}, title=HOSTILE)
    tags = check_closed(page)
    assert "b" not in tags
    assert "<script" not in page
    assert "{{ 7 * 7 }}" in page
    assert "\x07" not in page


def test_drift_is_shown_with_its_interval_and_no_drift_in_words(make: Make) -> None:
    results = make()
    page = render(results)
    assert "+40 % [28, 53]" in page
    assert "−0.02 [−0.03, –]" in page
    identify = results["identify"]
    assert isinstance(identify, IdentifyResult)
    none = render({"identify": replace(identify, drift=())})
    assert "No parameter changed by more than its intervals allow." in none
    assert "Drift since" not in render({"identify": replace(identify, since=None, drift=())})


def test_terms_that_were_tried_are_shown_with_what_they_saved(make: Make) -> None:
    identify = make()["identify"]
    assert isinstance(identify, IdentifyResult)
    tried = (TriedTerm(("world/tilt/x",), False, 0.031, 1.2), TriedTerm(("body/arm/length",), True, 0.31, 15.7))
    page = render({"identify": replace(identify, tried=tried)})
    assert "2 further terms were tried" in page
    assert '<th scope="col">Kept?</th></tr>' in page
    assert page.index("body/arm/length") < page.index("world/tilt/x</td>")
    assert '<td class="num">31 %</td><td class="num">15.7</td><td>kept</td>' in page
    assert "further terms" not in render({"identify": replace(identify, tried=())})


def test_ranges_that_were_not_written_have_no_line(make: Make) -> None:
    ranges = make()["randomize"]
    assert isinstance(ranges, RandomizeResult)
    assert "Ranges: <code>puck_x</code>" in render({"randomize": ranges})
    assert "Ranges:" not in render({"randomize": replace(ranges, path="")})


def test_every_table_scrolls_in_its_own_box_and_headers_wrap(make: Make) -> None:
    page = render(make())
    boxed = re.findall(r'<div class="scroll" tabindex="0" role="region" aria-label="[^"]+">\s*<table', page)
    assert len(boxed) == page.count("<table") > 5
    assert re.search(r"\.scroll \{[^}]*overflow-x: auto", page)
    assert not re.search(r"(thead th|th\.num[^{]*) \{[^}]*nowrap", page)


def test_overlapping_intervals_show_no_improvement(make: Make) -> None:
    # Wilson, 95 %: 16 of 40 is [26, 55] %, 20 of 40 is [35, 65] %: they overlap.
    page = render({"loop": loop_with(make, after=wilson(20, 40), reached=False)})
    assert "No improvement shown: the intervals before and after, [26, 55] and [35, 65] %, overlap" in page
    assert "Target of 80 % not reached" in page
    assert ">gapless evaluate .<" in page


def test_intervals_apart_show_an_improvement_or_a_loss(make: Make) -> None:
    # 36 of 40 is [77, 96] %, 2 of 40 is [1, 17] %.
    page = render({"loop": loop_with(make)})
    assert "Improvement shown" in page
    assert "No improvement" not in page
    assert "was 56 percentage points; after 2 rounds and 24 real episodes it is 6." in page
    assert "Worse than before" in render({"loop": loop_with(make, after=wilson(2, 40))})


def test_a_loop_that_stopped_says_why(make: Make) -> None:
    ended = dict.fromkeys(("identify", "measure_fitted", "randomize", "last"))
    loop = loop_with(make, **ended, reached=False, decision=Decision("stop", (), "the gap is unmodelled"))
    page = render({"loop": loop})
    check_closed(page)
    assert "The loop trained no further policy: the gap is unmodelled." in page
    assert "The loop stopped: the gap is unmodelled." in page
    assert "Reality, after" not in page
    assert "Improvement" not in page
    text = io.StringIO()
    show(loop, Printer(file=text, width=120))
    assert "decision: the gap is unmodelled" in text.getvalue()
    assert "after closing" not in text.getvalue()


def test_reached_target_with_a_low_end_below_it_says_so(make: Make) -> None:
    assert "reaches down to 77 %" in render({"loop": loop_with(make)})


def test_without_trials_nothing_is_claimed(make: Make) -> None:
    page = render({"loop": loop_with(make, after=wilson(0, 0), reached=False)})
    check_closed(page)
    assert "the gap before and after is not known" in page
    assert "– (no trials)" in page
    assert "No improvement shown" in page


def test_unbounded_and_unknown_parameters_are_words_too(make: Make) -> None:
    page = render({"identify": make()["identify"]})
    assert "not identifiable" in page
    assert "at bound" in page
    assert "[−∞, ∞]" in page


def test_what_each_run_has_its_own_of_is_shown_with_its_spread(make: Make) -> None:
    identify = make()["identify"]
    assert isinstance(identify, IdentifyResult)
    assert "between runs" not in render({"identify": identify})
    own = replace(identify.parameters[0], spread=0.1234, by_run={"a": 0.2, "b": 0.4})
    page = render({"identify": replace(identify, parameters=(own, *identify.parameters[1:]))})
    check_closed(page)
    assert page.count("± 0.123 between runs") == 1


def test_measures_before_and_after_share_one_plot(make: Make) -> None:
    records = make()
    page = render({"measure": records["measure"], "measure_fitted": records["measure_fitted"]})
    assert page.count('<svg class="plot"') == 1
    assert "in the records" not in page


def as_read_from_json(value: object) -> object:
    """Returns a record as it comes back from JSON, where what is not finite became None."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: as_read_from_json(getattr(value, f.name)) for f in fields(value)})
    if isinstance(value, dict):
        return {key: as_read_from_json(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(as_read_from_json(item) for item in value)
    return None if isinstance(value, float) and not isfinite(value) else value


def test_none_in_place_of_nan(make: Make) -> None:
    records = {name: as_read_from_json(record) for name, record in make().items()}
    check_closed(render(records))  # type: ignore[arg-type]
    loop = as_read_from_json(loop_with(make, after=wilson(0, 0), reached=True))
    assert "the gap before and after is not known" in render({"loop": loop})  # type: ignore[dict-item]


def test_ambiguous_causes_in_words(make: Make) -> None:
    assert "These logs do not distinguish contact and object." in render({"diagnose": make()["diagnose"]})


def test_files_of_the_project_are_named_from_its_folder(make: Make, tmp_path: Path) -> None:
    fit = replace(make("identify")["identify"], model=str(tmp_path / "fits" / "model.xml"))  # type: ignore[arg-type]
    page = render_page("arm", {"identify": fit}, code_version="0", made_at="now", folder=tmp_path)
    assert "fits/model.xml" in page
    assert str(tmp_path) not in page
