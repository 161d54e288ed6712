"""Servos that stall, sensors that freeze: the push example with a joint that stands still."""

from pathlib import Path

import numpy as np

from gapless.verbs import copy_example
from unit.check.faults import Columns, examined, held, spoil, texts


def test_a_servo_that_stalls_for_a_while_is_found_and_left_out(tmp_path: Path) -> None:
    def stalled(columns: Columns) -> Columns:
        values = columns["tip_x"].copy()
        values[60:140] = values[60] + 0.0003 * np.random.default_rng(0).standard_normal(80)
        return columns | {"tip_x": values}

    found = examined(spoil(copy_example("push", tmp_path), stalled, "motion1.csv"))
    assert "tip_x stands still while cmd_x travels" in texts(found)
    assert "stalled" in texts(found)
    off = np.flatnonzero(~found.evidence.tracks[1].usable)
    assert len(off) >= 40
    assert all(track.usable.all() for k, track in enumerate(found.evidence.tracks) if k != 1)


def test_a_joint_that_never_moves_is_refused(tmp_path: Path) -> None:
    found = examined(spoil(copy_example("push", tmp_path), held("tip_y", 0, 10_000)))
    assert found.refusal is not None
    assert "tip_y stands still" in found.refusal
    assert "freeze" in found.refusal


def test_a_servo_at_the_end_of_its_range_may_stand(tmp_path: Path) -> None:
    folder = copy_example("push", tmp_path)
    model = folder / "robot.xml"
    model.write_text(model.read_text().replace('range="-.4 .4"', 'range="-.4 .05"'))

    def blocked(columns: Columns) -> Columns:
        return columns | {"tip_x": np.minimum(columns["tip_x"], 0.05)}

    assert "tip_x stands" not in texts(examined(spoil(folder, blocked)))
