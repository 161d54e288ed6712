from pathlib import Path

import numpy as np
import pytest

from gapless.diagnose.hypotheses.frame import Frame, make_frame
from gapless.diagnose.hypotheses.picture import Sums, look
from gapless.diagnose.hypotheses.rehearse import draw_cases, fewer_windows
from gapless.diagnose.hypotheses.suspects import Severities, field_of
from gapless.fit.data import read_project_data
from unit.identify.realities import write_reality


@pytest.fixture(scope="module")
def frame(tmp_path_factory: pytest.TempPathFactory) -> Frame:
    folder: Path = write_reality(tmp_path_factory.mktemp("auto"), {}, num_logs=4)
    text = (folder / "gapless.yaml").read_text().split("parameters:")[0]
    (folder / "gapless.yaml").write_text(text + "parameters: auto\n")
    evidence = read_project_data(folder)
    return make_frame(evidence, Severities.of(evidence), np.random.default_rng(0))


def test_auto_asks_about_more_than_identify_fits(frame: Frame) -> None:
    asked = {field_of(target) for target in frame.space.targets}
    assert {"gain", "limit", "damping", "frictionloss", "delay", "bias", "scale", "mass", "load"} <= asked
    assert frame.dimensions[-1] == "numerics"


def test_a_drawn_gap_moves_one_dimension_only(frame: Frame) -> None:
    rng = np.random.default_rng(1)
    for dimension in frame.dimensions[:-1]:
        for _ in range(10):
            row = frame.severities.draw(dimension, rng)
            moved = {p.dimension for p, value in zip(frame.space.parameters, row, strict=True) if value != p.nominal}
            assert moved == {dimension}
            assert np.all((frame.space.low <= row) & (row <= frame.space.high))


def test_a_limit_is_drawn_below_the_peak_effort_of_the_logs(frame: Frame) -> None:
    limits = [k for k, target in enumerate(frame.space.targets) if field_of(target) == "limit"]
    saturated = np.stack(frame.severities.saturated())[:, limits]
    assert saturated.min() < 1.0 * max(frame.severities.peaks.values())
    written = frame.residuals(
        frame.predict(np.stack([frame.point(row) for row in frame.severities.saturated()])), frame.written
    )
    assert np.abs(written).max() > 3.0


def test_a_picture_finds_what_moved(frame: Frame) -> None:
    picture = look(frame)
    entry = frame.space.targets.index("actuator/*/delay")
    point = np.zeros(len(frame.typical))
    point[entry] = 0.3 * frame.typical[entry]
    residual = frame.residuals(frame.written[None], frame.predict(point[None])[0])[0]
    scores = Sums(picture, residual).scores()
    alone = {subset[0]: total for subset, total in zip(scores.subsets, scores.totals, strict=True) if len(subset) == 1}
    assert max(alone, key=lambda d: alone[d]) == "latency"
    assert scores.fits[scores.subsets.index(("latency",))][entry] > 0.1 * frame.typical[entry]


def test_rehearsed_cases_take_turns_and_are_drawn_alike_from_one_seed(frame: Frame) -> None:
    small = fewer_windows(frame, 8, np.random.default_rng(0))
    drawn, again = (draw_cases(small, np.random.default_rng(3)) for _ in range(2))
    assert sorted({len(case.causes) for case in drawn}) == [0, 1, 2]
    assert all(len(set(case.causes)) == len(case.causes) for case in drawn)
    assert len({cause for case in drawn for cause in case.causes}) >= 4
    for one, other in zip(drawn, again, strict=True):
        assert one.causes == other.causes
        np.testing.assert_array_equal(one.measured, other.measured)
