"""Drives that are off, and friction that is not."""

from pathlib import Path

import numpy as np

from unit.check.faults import Columns, examined, spoil, texts
from unit.identify.realities import ANGLE, CART, PLACE_AND_SPEED, REST_S, write_reality

RATE_HZ = 50


def switched_on_late(folder: Path, at_s: float, **options: object) -> Path:
    """Returns logs whose commands were sent from the start, while the drive was off until some time."""
    first = round(at_s * RATE_HZ)

    def earlier(columns: Columns) -> Columns:
        """Puts busy commands, and a reading at rest, before what was really done."""
        count = len(columns["time_s"])
        busy = 1.2 * np.sin(9 * np.arange(first) / RATE_HZ + 1)
        rng = np.random.default_rng(0)
        out = {"time_s": np.arange(count + first) / RATE_HZ, "u": np.concatenate([busy, columns["u"]])}
        for name in columns.keys() - out.keys():
            rest = columns[name][0] + 1e-3 * rng.standard_normal(first)
            out[name] = np.concatenate([rest, columns[name]])
        return out

    return spoil(write_reality(folder, {}, **options), earlier)


def test_a_drive_that_was_off_at_first_is_found_and_left_out(tmp_path: Path) -> None:
    found = examined(switched_on_late(tmp_path, 1.0, measurements=ANGLE, noise=(0.001,), size=0.5))
    assert not found.findings
    assert "q does not respond to u" in texts(found)
    assert "and in 3 more logs" in texts(found)
    for track in found.evidence.tracks:
        off = np.flatnonzero(~track.usable)
        assert off.min() <= 0.2 * RATE_HZ
        assert 0.8 * RATE_HZ <= off.max() <= (1.0 + REST_S + 0.4) * RATE_HZ
    assert found.refusal is None


def test_logs_of_a_drive_that_is_off_most_of_the_time_are_refused(tmp_path: Path) -> None:
    found = examined(switched_on_late(tmp_path, 6.0, measurements=ANGLE, noise=(0.001,), size=0.5))
    assert found.refusal is not None
    assert "q does not respond to u" in found.refusal


def test_a_cart_that_friction_holds_is_no_fault(tmp_path: Path) -> None:
    # Friction of 0.15 N holds the cart against small pushes; it breaks free at larger ones: physics, not a fault.
    folder = write_reality(
        tmp_path,
        {"joint/rail/frictionloss": 0.15},
        xml=CART,
        measurements=PLACE_AND_SPEED,
        parameters=None,
        noise=(0.0001, 0.001),
        duration_s=8.0,
        size=0.12,
    )
    assert texts(examined(folder)) == ""
