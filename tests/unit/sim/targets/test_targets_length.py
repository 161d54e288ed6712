"""How long a body is: its centre and inertia follow, its mass does not."""

from pathlib import Path

import numpy as np

from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from unit.sim.scenes import ARM, ARM_COMMANDS, ARM_MEASUREMENTS, ARM_VALUES, arm, run_plain, run_rows, write_project

WRITTEN = '<inertial pos="0 0 -.1" mass=".4" diaginertia=".002 .002 .0005"/>'
LONGER = '<inertial pos="0 0 -.13" mass=".4" diaginertia=".00338 .00338 .000845"/>'  # 1.3, and 1.3^2


def test_a_longer_link_is_one_whose_centre_and_inertia_are_further_out(tmp_path: Path) -> None:
    xml = ARM.format(**ARM_VALUES)
    assert WRITTEN in xml
    place = write_project(tmp_path / "long", xml.replace(WRITTEN, LONGER), ARM_COMMANDS, ARM_MEASUREMENTS)
    expected = run_plain(compile_project(load_project(place)))
    blueprint = arm(tmp_path / "written")
    seen = run_rows(blueprint, {"body/lower/length": 1.3})[:, 0]
    assert np.abs(run_plain(blueprint) - expected).max() > 1e-2
    np.testing.assert_allclose(seen, expected, rtol=0, atol=1e-6)
