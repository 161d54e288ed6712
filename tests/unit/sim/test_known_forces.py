"""Commands that are torques as they are: masses are fitted against them, and gains are only tried."""

from pathlib import Path

import pytest

from gapless.project.load import load_project
from gapless.sim.auto import candidate_terms, parameter_space
from gapless.sim.blueprint import CompiledProject, compile_project

ARM = """<mujoco><worldbody>
<body name="upper"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass="2"/>
<body name="lower" pos="0 0 -.3"><joint name="b" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass="1"/></body></body></worldbody>
<actuator><motor name="ma" joint="a"/><motor name="mb" joint="b" {second}/></actuator></mujoco>"""


def arm(folder: Path, second: str = "", mapping: str = "") -> CompiledProject:
    (folder / "arm.xml").write_text(ARM.format(second=second))
    (folder / "gapless.yaml").write_text(
        "gapless: 1\nname: arm\nmodel: arm.xml\nrate_hz: 100\n"
        f"commands:\n  ta: {{actuator: ma}}\n  tb: {{actuator: mb{mapping}}}\n"
        "measurements:\n  qa: {joint: a, quantity: position}\n  qb: {joint: b, quantity: position}\n"
        "logs: logs\nparameters: auto\n"
    )
    return compile_project(load_project(folder))


def proposed(blueprint: CompiledProject) -> tuple[set[str], set[str]]:
    """Returns what may be wrong, and what of it and besides is only tried."""
    terms = candidate_terms(blueprint, [])
    return set(parameter_space(blueprint, []).targets), {target for term in terms for target in term.targets}


def test_torques_are_trusted_and_all_masses_tried(tmp_path: Path) -> None:
    _, tried = proposed(arm(tmp_path))
    assert {"actuator/ma/gain", "actuator/mb/gain", "body/upper/mass", "body/lower/mass"} <= tried


@pytest.mark.parametrize(
    ("second", "mapping"),
    [
        ('gear="6"', ""),  # some other unit
        ('ctrlrange="-1 1"', ""),  # a share of something
        ("", ", scale: 0.3"),  # converted, such as from a current
    ],
)
def test_with_one_force_that_is_not_known_only_ratios_show(tmp_path: Path, second: str, mapping: str) -> None:
    always, tried = proposed(arm(tmp_path, second, mapping))
    assert {"actuator/ma/gain", "actuator/mb/gain"} <= always - tried
    assert "body/upper/mass" not in tried  # the heaviest: what the others are relative to
