"""Offsets of commands are found again, and not claimed where a load does the same."""

from pathlib import Path

import pytest

from gapless.core.results import FittedParameter
from gapless.identify.verb import identify
from unit.identify.realities import PENDULUM, write_reality

# The motor's command is a torque; that of the servo an angle, with a horn one tooth of 25 off: 2 pi / 25 = 0.25 rad.
MOTOR = {
    "actuator/motor/offset": 0.06,
    "actuator/motor/gain": 0.8,
    "joint/hinge/damping": 0.1,
    "actuator/*/delay": 0.02,
}
SERVO = {"actuator/motor/offset": 0.25, "actuator/motor/kp": 3.0, "joint/hinge/damping": 0.1, "actuator/*/delay": 0.02}
MODELS = {
    "motor": (MOTOR, PENDULUM),
    "servo": (
        SERVO,
        PENDULUM.replace(
            '<motor name="motor" joint="hinge" ctrlrange="-2 2"/>', '<position name="motor" joint="hinge" kp="2"/>'
        ),
    ),
}
SEEDS = range(3)


def fitted(folder: Path, drive: str, seed: int, *others: str) -> dict[str, FittedParameter]:
    """Returns the fit of what is wrong in reality, and of other targets, by target."""
    truth, xml = MODELS[drive]
    listed = [f'{{target: "{target}"}}' for target in (*truth, *others)]
    write_reality(folder, truth, xml=xml, parameters=listed, seed=seed)
    return {p.target: p for p in identify(folder, seed=seed).parameters}


@pytest.mark.parametrize("seed", [SEEDS[0], *(pytest.param(seed, marks=pytest.mark.slow) for seed in SEEDS[1:])])
@pytest.mark.parametrize("drive", MODELS)
def test_an_offset_is_found_beside_other_faults(drive: str, seed: int, tmp_path: Path) -> None:
    found = fitted(tmp_path, drive, seed)["actuator/motor/offset"]
    truth = MODELS[drive][0][found.target]
    assert found.identifiable
    assert found.value == pytest.approx(truth, rel=0.05)
    assert abs(found.value - truth) < found.high - found.low


@pytest.mark.parametrize("drive", MODELS)
def test_an_offset_beside_a_load_is_not_claimed(drive: str, tmp_path: Path) -> None:
    found = fitted(tmp_path, drive, 0, "joint/hinge/load")
    assert not found["actuator/motor/offset"].identifiable
    assert not found["joint/hinge/load"].identifiable
