"""Numbers as people read them."""

# ruff: noqa: RUF001 (typeset dashes and minus signs are what is tested)

from math import inf, nan

import pytest

from gapless.core.interval import Interval, wilson
from gapless.report import numbers as n


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.12345, "0.123"), (12345.0, "12300"), (-0.5, "−0.5"), (0, "0"), (100, "100"), (999.6, "1000"),
        (0.000012, "1.2×10⁻⁵"), (-2.5e8, "−2.5×10⁸"), (nan, "–"), (None, "–"), (inf, "∞"), (-inf, "−∞"),
    ],
)  # fmt: skip
def test_number_has_three_significant_digits(value: float | None, text: str) -> None:
    assert n.number(value) == text


def test_success_reads_as_in_the_style_guide() -> None:
    assert n.success(Interval(0.41, 0.28, 0.56, 0.95, 40, "wilson")) == "41 % [28, 56]"
    assert n.success(wilson(0, 0)) == "– (no trials)"
    assert n.percent_span(0.4, nan, nan) == "40 %"


def test_probabilities_never_round_to_certainty() -> None:
    shown = [n.probability(p) for p in (0, 0.001, 0.5, 0.999, 1, nan)]
    assert shown == ["0 %", "< 1 %", "50 %", "> 99 %", "100 %", "–"]


def test_words() -> None:
    assert n.join_words(["a", "b", "c"]) == "a, b and c"
    assert n.join_words([]) == ""
    assert n.readable_target("joint/elbow/damping") == "elbow joint damping"
    assert n.readable_target("actuator/*/delay") == "all actuators: delay"
    assert n.readable_target("world/tilt/x") == "world tilt x"
    assert n.short_id("0123456789abcdef") == "01234567…"
    assert (n.unit_cell("1"), n.unit_cell(""), n.unit_cell("N*m")) == ("1", "–", "N·m")
    assert (n.compact(950), n.compact(1.5e6)) == ("950", "1.5 M")
