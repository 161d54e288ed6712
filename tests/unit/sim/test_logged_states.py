"""States that logs show: geoms near each other are found, also in bodies of several geoms."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from gapless.sim.logged_states import find_near_pairs
from unit.sim.scenes import write_project

NEAR_M = 0.15
RADIUS_M = 0.05


def test_near_pairs_are_all_that_are_near(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for trial in range(20):
        places = rng.uniform(-0.3, 0.3, (2, 6, 3)) + np.array([[[0.0, 0, 0]], [[0.9, 0, 0]]])
        spheres = [
            "".join(f'<geom type="sphere" size="{RADIUS_M}" pos="{x} {y} {z}"/>' for x, y, z in of_body)
            for of_body in places
        ]
        bodies = "".join(f'<body name="b{k}"><freejoint/>{text}</body>' for k, text in enumerate(spheres))
        xml = f"<mujoco><worldbody>{bodies}</worldbody></mujoco>"
        folder = write_project(tmp_path / str(trial), xml, {}, {"x": "{body: b0, quantity: x}"})
        blueprint = compile_project(load_project(folder))
        track: Any = SimpleNamespace(smooth=np.zeros((1, 1)), slope=np.zeros((1, 1)), commands=np.zeros((1, 0)))
        found = {
            tuple(sorted(pair)) for pairs in find_near_pairs(blueprint, [track], NEAR_M) for pair in pairs.tolist()
        }
        gap_m = np.linalg.norm(places[0][:, None] - places[1][None], axis=2) - 2 * RADIUS_M
        assert found == {
            (int(a), int(b) + 6) for a, b in np.argwhere(gap_m < 2 * NEAR_M)
        }  # a margin of each of the two
