"""Exported event terms against what the functions of mjlab and Isaac Lab take."""

import ast
import math
from pathlib import Path
from typing import Any

import pytest

from gapless.randomize.event_terms import isaaclab, mjlab
from unit.randomize.event_terms import schemas
from unit.randomize.export.robots import EVERYTHING, job

STACKS = {
    "mjlab": (mjlab, "EventTermCfg", "dr.", schemas.MJLAB, schemas.MJLAB_NEEDED, schemas.MJLAB_MODES),
    "isaaclab": (isaaclab, "EventTerm", "mdp.", schemas.ISAACLAB, schemas.ISAACLAB_NEEDED, schemas.ISAACLAB_MODES),
}


def terms(folder: Path, stack: str, text: str) -> tuple[list[dict[str, Any]], tuple[str, ...], str]:
    source, notes = STACKS[stack][0].write(job(folder, text), folder)
    return schemas.calls(source, STACKS[stack][1]), notes, source


def plain(term: dict[str, Any], name: str) -> Any:
    return ast.literal_eval(term["params"][name])


@pytest.mark.parametrize("stack", STACKS)
def test_terms_call_what_exists_with_what_it_takes(stack: str, tmp_path: Path) -> None:
    _, _, prefix, functions, needed, modes = STACKS[stack]
    found, _, _ = terms(tmp_path, stack, EVERYTHING)
    assert len(found) >= 8
    for term in found:
        name = term["func"].removeprefix(prefix)
        assert set(term["params"]) <= functions[name], name
        assert set(term["params"]) >= needed[name], name
        assert term["mode"] in modes
        assert (term["interval"] is not None) == (term["mode"] == "interval")
        said = term["params"].get("distribution")
        if isinstance(said, ast.Constant):
            assert said.value in schemas.DISTRIBUTIONS
        if "operation" in term["params"]:
            assert plain(term, "operation") in ("abs", "scale", "add")


@pytest.mark.parametrize("stack", STACKS)
def test_every_range_has_a_term_or_a_note_and_the_file_says_so(stack: str, tmp_path: Path) -> None:
    _, notes, source = terms(tmp_path, stack, EVERYTHING)
    told = {note.split(": ")[0] for note in notes}
    body = "\n".join(line for line in source.splitlines() if not line.startswith("#"))
    for line in EVERYTHING.strip().splitlines():
        target = line.split()[0]
        if target == "correlation":
            continue
        merged = target.rsplit("/", 1)[0] if "/com/" in target else target
        assert target in told or merged in body, target
    assert any(note.startswith("correlation joint/shoulder/frictionloss geom/box/friction: left out") for note in notes)
    for note in notes:
        assert f"#   {note}" in source


def test_mjlab_says_modes_operations_and_ends(tmp_path: Path) -> None:
    text = "joint/shoulder/damping uniform 0.2 .. 0.8 per robot\n"
    text += "joint/elbow/frictionloss log-uniform 0.1 .. 0.2 per step\n"
    found, notes, _ = terms(tmp_path, "mjlab", text)
    first, second = found
    assert (first["func"], first["mode"], plain(first, "operation")) == ("dr.joint_damping", "startup", "abs")
    assert plain(first, "ranges") == (0.2, 0.8)
    assert (second["func"], second["mode"]) == ("dr.joint_friction", "step")
    assert ast.unparse(second["params"]["distribution"]) == "dr.log_uniform"
    assert notes == ()


@pytest.mark.parametrize("reverse", [False, True])
def test_a_term_for_all_leaves_out_what_has_a_range_of_its_own(reverse: bool, tmp_path: Path) -> None:
    lines = ["joint/elbow/damping uniform 0.2 .. 0.8 per robot\n", "joint/*/damping uniform 0.5 .. 1.5\n"]
    lines += ["actuator/elbow/limit uniform 10 .. 15 per robot\n", "actuator/*/limit uniform 0.5 .. 1\n"]
    found, notes, source = terms(tmp_path, "mjlab", "".join(lines[::-1] if reverse else lines))
    names = {term["func"] + plain(term, "operation"): ast.unparse(term["params"]["asset_cfg"]) for term in found}
    assert "joint_names=['elbow']" in names["dr.joint_dampingabs"]
    assert "joint_names=['shoulder', 'wrist']" in names["dr.joint_dampingscale"]
    assert "actuator/*/limit: left out: effort_limits is for position actuators" in source  # the wrist is a motor
    masses = "".join(f"body/{name}/mass uniform 0.4 .. 0.6\n" for name in ("box", "fore", "upper"))
    lines = [masses, "body/*/mass uniform 0.5 .. 1.5\n"]
    found, notes, _ = terms(tmp_path, "isaaclab", "".join(lines[::-1] if reverse else lines))
    everyone = [term for term in found if plain(term, "operation") == "scale"]
    assert ["'wrist'" in ast.unparse(term["params"]["asset_cfg"]) for term in everyone] == [True]
    assert "fore" not in ast.unparse(everyone[0]["params"]["asset_cfg"])
    found, notes, _ = terms(tmp_path, "isaaclab", "body/wrist/mass uniform 0.1 .. 0.3\n" + "".join(lines))
    assert [plain(term, "operation") for term in found] == ["abs"] * 4
    assert "body/*/mass: left out: each body has a range of its own" in notes


def test_mjlab_shares_one_factor(tmp_path: Path) -> None:
    found, notes, source = terms(tmp_path, "mjlab", "joint/*/damping uniform 0.5 .. 1.5\n")
    assert [plain(term, "operation") for term in found] == ["scale"]
    assert plain(found[0], "shared_random") is True
    assert "['shoulder', 'elbow', 'wrist']" in source  # and not the box, whose free joint has no damping
    assert notes == ()


def test_mjlab_scales_mass_and_inertia_together(tmp_path: Path) -> None:
    # mass = nominal exp(2 alpha): 0.3 and 1.2 of 0.6 are alpha = +- log(2) / 2
    found, _, source = terms(tmp_path, "mjlab", "body/fore/mass log-uniform 0.3 .. 1.2\n")
    assert found[0]["func"] == "dr.pseudo_inertia"
    assert plain(found[0], "alpha_range") == pytest.approx((-0.5 * math.log(2), 0.5 * math.log(2)))
    assert "of_mass(dr.log_uniform, 0.6)" in source


def test_mjlab_has_one_term_for_both_gains(tmp_path: Path) -> None:
    # pd_gains writes both gains: two terms would undo each other
    text = (
        "actuator/shoulder/kp uniform 30 .. 90\nactuator/shoulder/kd uniform 2 .. 6\nactuator/elbow/kd uniform 1 .. 3\n"
    )
    found, _, _ = terms(tmp_path, "mjlab", text)
    assert [term["func"] for term in found] == ["dr.pd_gains"] * 2
    assert (plain(found[0], "kp_range"), plain(found[0], "kd_range")) == ((0.5, 1.5), (0.5, 1.5))
    assert (plain(found[1], "kp_range"), plain(found[1], "kd_range")) == ((1.0, 1.0), (0.5, 1.5))


def test_one_term_draws_both_as_often_as_the_first(tmp_path: Path) -> None:
    text = "actuator/shoulder/kp uniform 30 .. 90\nactuator/shoulder/kd uniform 2 .. 6 per robot\n"
    found, notes, _ = terms(tmp_path, "mjlab", text)
    assert [term["mode"] for term in found] == ["reset"]
    assert "actuator/shoulder/kd: changed: drawn per episode, in one term with actuator/shoulder/kp" in notes
    text = "geom/box/friction uniform 0.3 .. 0.7 per robot\ngeom/box/restitution uniform 0 .. 0.5\n"
    found, notes, _ = terms(tmp_path, "isaaclab", text)
    assert [term["mode"] for term in found] == ["startup"]
    assert "geom/box/restitution: changed: drawn per robot, in one term with geom/box/friction" in notes


def test_mjlab_writes_masses_before_centres(tmp_path: Path) -> None:
    # pseudo_inertia puts the centre back; drawn more often than the centre it would undo it
    text = "body/box/com/x uniform -0.01 .. 0.01 per robot\nbody/box/mass uniform 0.3 .. 0.8\n"
    found, notes, _ = terms(tmp_path, "mjlab", text)
    assert [(term["func"], term["mode"]) for term in found] == [
        ("dr.pseudo_inertia", "reset"),
        ("dr.body_com_offset", "reset"),
    ]
    assert notes == ("body/box/com/x: changed: drawn per episode, as the mass is",)


def test_mjlab_tells_the_lags_that_come_near_a_delay(tmp_path: Path) -> None:
    _, notes, _ = terms(tmp_path, "mjlab", "actuator/*/delay uniform 0.01 .. 0.03\n")
    assert "delay_min_lag=2, delay_max_lag=6 of the ActuatorCfg at steps of 0.005 s" in notes[0]


def test_isaac_adds_to_a_centre_once_and_for_all_axes(tmp_path: Path) -> None:
    # The wrist's centre is at x = 0.02: the term adds to it.
    text = "body/wrist/com/x uniform 0.01 .. 0.04 per robot\nbody/wrist/com/y uniform -0.01 .. 0.01 per robot\n"
    found, notes, _ = terms(tmp_path, "isaaclab", text)
    assert len(found) == 1
    assert found[0]["mode"] == "startup"
    assert plain(found[0], "com_range") == {"x": pytest.approx((-0.01, 0.02)), "y": (-0.01, 0.01)}
    assert notes == ()


def test_isaac_takes_gains_at_the_joint(tmp_path: Path) -> None:
    # torque = gear * kp (u - gear q): the stiffness of the joint is 2^2 times that of the actuator
    found, notes, _ = terms(tmp_path, "isaaclab", "actuator/elbow/kp uniform 30 .. 50\n")
    assert plain(found[0], "stiffness_distribution_params") == (120.0, 200.0)
    assert notes == ()


def test_isaac_scales_joint_friction_or_leaves_it(tmp_path: Path) -> None:
    text = "joint/shoulder/frictionloss uniform 0.05 .. 0.2\njoint/elbow/frictionloss uniform 0.05 .. 0.2\n"
    found, notes, _ = terms(tmp_path, "isaaclab", text)
    assert len(found) == 1
    assert plain(found[0], "friction_distribution_params") == pytest.approx((0.5, 2.0))
    assert plain(found[0], "operation") == "scale"
    assert [note.split(": ")[1] for note in notes] == ["changed", "left out"]


def test_isaac_has_bells_where_they_cannot_change_sign(tmp_path: Path) -> None:
    text = "body/fore/mass normal 0.6 +- 0.05 within 0.5 .. 0.7\nbody/box/mass normal 0.5 +- 0.2 within 0.1 .. 0.9\n"
    found, notes, _ = terms(tmp_path, "isaaclab", text)
    assert (plain(found[0], "distribution"), plain(found[0], "mass_distribution_params")) == ("gaussian", (0.6, 0.05))
    assert (plain(found[1], "distribution"), plain(found[1], "mass_distribution_params")) == ("uniform", (0.1, 0.9))
    assert "1 in 22 is outside" in notes[0]  # two standard deviations
    assert "uniform over its ends" in notes[1]


def test_isaac_pulls_down_by_gravity(tmp_path: Path) -> None:
    found, _, _ = terms(tmp_path, "isaaclab", "world/gravity uniform 9.7 .. 9.9 per step\n")
    assert plain(found[0], "gravity_distribution_params") == ([0.0, 0.0, -9.9], [0.0, 0.0, -9.7])
    assert found[0]["mode"] == "interval"
    assert ast.literal_eval(found[0]["interval"]) == (0.02, 0.02)
