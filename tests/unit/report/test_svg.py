"""Scales, ticks and elements."""

# ruff: noqa: RUF001 (typeset dashes and minus signs are what is tested)

from math import inf, nan
from xml.etree import ElementTree

import pytest

from gapless.report import plots, svg


def test_scale_is_linear() -> None:
    scale = svg.Scale(2.0, 4.0, 100.0, 0.0)
    # 100 + (2.5 - 2) / 2 * (0 - 100) = 75
    assert [scale(2.0), scale(2.5), scale(4.0)] == [100.0, 75.0, 0.0]


def test_scale_over_pads_and_survives_bad_values() -> None:
    scale = svg.scale_over([0.0, nan, 10.0, inf], 0.0, 1.0, margin=0.1)
    assert (scale.low, scale.high) == (-1.0, 11.0)
    assert svg.scale_over([5.0, 5.0], 0.0, 1.0)(5.0) == 0.5
    assert svg.scale_over([0.0], 0.0, 1.0)(0.0) == 0.5
    assert svg.scale_over([nan], 0.0, 1.0)(0.25) == 0.25


def test_ticks_are_round() -> None:
    assert svg.ticks(0.0, 1.0, 4) == (0.0, 0.5, 1.0)
    assert svg.ticks(0.3, 4.2, 4) == (1.0, 2.0, 3.0, 4.0)
    assert svg.ticks(-0.03, 0.03, 3) == pytest.approx((-0.02, 0.0, 0.02))
    assert svg.ticks(1.0, 1.0) == svg.ticks(nan, 1.0) == ()
    assert svg.tick_labels((-0.5, 0.0, 0.5)) == ("−0.5", "0.0", "0.5")


def test_path_breaks_at_gaps() -> None:
    drawn = svg.path([(0, 0), (1, 1), (2, nan), (3, 3)], "line")
    assert 'd="M0 0L1 1M3 3"' in drawn
    assert svg.path([(nan, 0.0)], "line") == ""


def test_elements_escape_text_and_attributes() -> None:
    root = ElementTree.fromstring(svg.drawing(1, 1, '<&"\x00', svg.text("<b>", 0, 0)))
    assert root.get("aria-label") == '<&"\ufffd'
    assert root.findtext("text") == "<b>"
    assert root.get("role") == "img"


def test_long_series_keep_their_spikes() -> None:
    values = [0.0] * 5000
    values[2501], values[4000] = 7.0, nan
    scale = svg.Scale(0.0, 5000.0, 0.0, 5000.0)
    drawn = plots._curve(scale, svg.Scale(0, 1, 0, 1), list(range(5000)), values, "line")
    assert "L2501 7" in drawn
    assert drawn.count("M") == 2
    assert drawn.count("L") <= plots.MAX_POINTS + 2


def test_series_break_where_the_time_is_unknown() -> None:
    scale = svg.Scale(0.0, 1.0, 0.0, 1.0)
    drawn = plots._curve(scale, scale, [0.0, 1.0, nan, 2.0, 3.0], [0.0, 1.0, 1.0, 2.0, 3.0], "line")
    assert 'd="M0 0L1 1M2 2L3 3"' in drawn
