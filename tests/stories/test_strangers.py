"""A stranger's first hour: a robot that gapless never saw, from `new` to `report` in four commands."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from gapless.cli.main import run
from stories.strangers import ARM_JOINTS, make_arm, make_base, make_gripper

Made = tuple[Path, list[Path]]


def walk(folder: Path, make: Callable[[Path], Made], capfd: pytest.CaptureFixture[str], *verbs: str) -> dict[str, dict]:
    """Runs `new` and then some verbs on a stranger's robot; returns their JSON results, nothing where one refused."""
    model, logs = make(folder)
    project = folder / "project"
    results: dict[str, dict] = {}
    for verb in ("new", *verbs):
        arguments = [verb, *([str(model), *map(str, logs)] if verb == "new" else []), str(project)]
        status = run([*arguments, "--json", str(folder / f"{verb}.json")])
        errors = [line for line in capfd.readouterr().err.splitlines() if line.startswith("gapless: ")]
        assert status in (0, 2), errors
        assert len(errors) == (status == 2)
        results[verb] = json.loads((folder / f"{verb}.json").read_text()) if status == 0 else {}
    return results


def mapped(folder: Path) -> str:
    return (folder / "project" / "gapless.yaml").read_text()


def test_new_maps_the_arm(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert walk(tmp_path, make_arm, capfd)["new"]
    text = mapped(tmp_path)
    for k, joint in enumerate(ARM_JOINTS):
        actuator = joint.removesuffix("_joint")
        assert f"/forward_position_controller/commands.data[{k}]" in text
        assert f"{{actuator: {actuator}}}" in text
        for quantity in ("position", "velocity", "effort"):
            assert f"/joint_states.{quantity}.{joint}: {{joint: {joint}, quantity: {quantity}}}" in text
    assert len(list((tmp_path / "project" / "logs").glob("*.csv"))) == 3


def test_new_maps_the_base_and_check_says_what_its_pose_lacks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results = walk(tmp_path, make_base, capfd, "check", "measure", "report")
    text = mapped(tmp_path)
    for quantity, column in (
        ("x", "position.x"),
        ("y", "position.y"),
        ("qz", "orientation.z"),
        ("qw", "orientation.w"),
    ):
        assert f"/odom.pose.pose.{column}: {{body: base_link, quantity: {quantity}}}" in text
    for side in ("left", "right"):
        assert f"velocity.wheel_{side}_joint: {{joint: wheel_{side}_joint, quantity: velocity}}" in text
        assert f"/wheel_commands.wheel_{side}_joint: {{actuator: wheel_{side}_motor}}" in text
    said = " ".join(note["text"] for note in results["check"]["notes"])
    assert "qx" in said
    assert "assume" in said
    assert results["measure"]["columns"]
    assert Path(results["report"]["path"]).is_file()


def test_new_maps_the_gripper_in_millimetres(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert walk(tmp_path, make_gripper, capfd, "check")["check"]["sound"]
    text = mapped(tmp_path)
    assert "fingers_setpoint_mm: {actuator: fingers, scale: 0.001}" in text
    for side in ("left", "right"):
        assert f"{side}_finger_position_mm: {{joint: {side}_finger_joint, quantity: position, scale: 0.001}}" in text


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_arm, make_base, make_gripper])
def test_the_hour_ends_in_a_page(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], make: Callable[[Path], Made]
) -> None:
    results = walk(tmp_path, make, capfd, "identify", "diagnose", "report")
    fit = results["identify"]
    assert fit["verdict"] in ("good", "poor", "refused")
    assert fit["reasons"]
    assert results["diagnose"]["causes"]
    assert Path(results["report"]["path"]).is_file()
