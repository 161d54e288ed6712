from pathlib import Path

import numpy as np
import pytest

from gapless.excite.knowledge import read_knowledge
from gapless.excite.motion import record_motion, simulate_motions
from gapless.excite.prediction import PredictedFit, predict_fit
from unit.identify.realities import ANGLE_AND_RATE, PENDULUM, WHATEVER
from unit.sim.scenes import write_project

COMMANDS = {"u": "{actuator: motor}"}


def predict(folder: Path, size: float, *wanted: str, auto: bool = False) -> PredictedFit:
    """Returns what is predicted of sines of a torque of some size [N·m] at the joint of a pendulum."""
    write_project(folder, PENDULUM, COMMANDS, ANGLE_AND_RATE, rate_hz=50, parameters=[*WHATEVER[:2]])
    if auto:
        text = (folder / "gapless.yaml").read_text().split("parameters:")[0]
        (folder / "gapless.yaml").write_text(text + "parameters: auto\n")
    known = read_knowledge(folder, None, wanted)
    time_s = np.arange(600) / 50.0
    sent = size * (np.sin(2.0 * time_s) + np.sin(7.0 * time_s))[None, :, None]
    track = record_motion(known.project, simulate_motions(known, known.space(()), sent, known.row(known.space(()))), 0,
                          known.noise(), np.random.default_rng(0))  # fmt: skip
    space = known.space((track,))
    return predict_fit(known, track, dict(zip(space.targets, known.row(space), strict=True)))


def widths(fit: PredictedFit) -> dict[str, float]:
    return {p.target: p.high - p.low for p in fit.parameters}


def test_intervals_hold_the_assumed_values_and_are_narrower_after_a_stronger_push(tmp_path: Path) -> None:
    weak, strong = (predict(tmp_path / name, size) for name, size in (("weak", 0.05), ("strong", 0.5)))
    assert all(p.low <= p.value <= p.high for p in (*weak.parameters, *strong.parameters))
    assert widths(strong)["joint/hinge/damping"] < 0.5 * widths(weak)["joint/hinge/damping"]
    assert strong.reported >= {"joint/hinge/damping", "actuator/motor/gain"}


def test_what_identify_fits_only_if_it_is_wrong_is_not_reported(tmp_path: Path) -> None:
    fit = predict(tmp_path, 0.5, "joint/hinge/damping", "body/bob/mass", auto=True)
    targets = [p.target for p in fit.parameters]
    assert {"joint/hinge/damping", "body/bob/mass"} <= set(targets)
    assert "joint/hinge/damping" in fit.reported
    assert "body/bob/mass" not in fit.reported  # the robot is taken to weigh what its model does
    assert len(targets) == len(set(targets))


def test_the_same_recording_gives_the_same_prediction(tmp_path: Path) -> None:
    first, again = (predict(tmp_path / name, 0.5) for name in "ab")
    assert widths(first) == pytest.approx(widths(again))
