"""Faults of the mapping that only predictions show: a motor turns a pendulum, a motor pushes a cart."""

from pathlib import Path

import numpy as np
import pytest

from unit.check.faults import examined, scaled, shifted, spoil, texts
from unit.identify.realities import ANGLE, CART, write_reality

PLACE = {"x": "{joint: rail, quantity: position, noise: 0.0001}"}
STRONG = {"actuator/motor/gain": 0.5, "joint/hinge/damping": 0.15, "actuator/*/delay": 0.06}


def pendulum(folder: Path, truth: dict[str, float], **options: object) -> Path:
    """Returns a pendulum of which the angle alone is measured; it swings far, so that gravity is not linear."""
    settings = {"measurements": ANGLE, "noise": (0.001,), "size": 0.5, "parameters": None} | options
    return write_reality(folder, truth, **settings)


@pytest.mark.parametrize("truth", [{}, STRONG], ids=["as modelled", "far from it"])
def test_sound_data_raise_no_finding(truth: dict[str, float], tmp_path: Path) -> None:
    found = examined(pendulum(tmp_path, truth))
    assert texts(found) == ""
    assert found.refusal is None


@pytest.mark.parametrize("truth", [{}, STRONG], ids=["as modelled", "far from it"])
@pytest.mark.parametrize(
    ("column", "factor", "words"),
    [("q", -1.0, "wrong sign"), ("u", -1.0, "wrong sign"), ("q", 180 / np.pi, "degrees")],
)
def test_a_wrong_column_is_named(
    column: str, factor: float, words: str, truth: dict[str, float], tmp_path: Path
) -> None:
    found = examined(spoil(pendulum(tmp_path, truth), scaled(column, factor)))
    assert column in {name for finding in found.findings for name in finding.columns}
    assert words in texts(found)


def test_commands_stamped_too_late_are_named(tmp_path: Path) -> None:
    found = examined(spoil(pendulum(tmp_path, {}), shifted(("u",), 5)))  # 0.1 s
    assert "ms earlier than the commands that cause them" in texts(found)


def test_a_sign_that_does_not_show_is_no_finding(tmp_path: Path) -> None:
    # A cart on a level rail is its own mirror image: with place and push turned about nothing changes.
    folder = write_reality(tmp_path, {}, xml=CART, measurements=PLACE, noise=(0.0001,), parameters=None)
    both = spoil(spoil(folder, scaled("x", -1.0)), scaled("u", -1.0))
    assert texts(examined(both)) == ""


def test_a_sign_that_could_be_either_columns_names_both(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, xml=CART, measurements=PLACE, noise=(0.0001,), parameters=None)
    (finding,) = examined(spoil(folder, scaled("x", -1.0))).findings
    assert set(finding.columns) == {"x", "u"}
