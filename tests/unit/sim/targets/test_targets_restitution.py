"""How fast things leave what they hit."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.protocols import Start
from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from gapless.sim.targets.geom import damping_ratio, restitution
from unit.sim.scenes import space_of, write_project

# A ball in the air over a floor, which falls; without gravity it would fly on after the bounce at a steady speed.
BALL = """<mujoco><option timestep="0.001" gravity="0 0 0"/><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="ball" pos="0 0 .2"><freejoint name="ball"/><geom name="ball" size=".1" mass="1" solref="{}"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize(("ratio", "share"), [(0.0, 1.0), (1.0, np.exp(-2))])
def test_restitution_in_closed_form(ratio: float, share: float) -> None:
    # Without damping all speed comes back. At ratio 1: x = -t exp(-w t), its force is gone at w t = 2.
    np.testing.assert_allclose(restitution(ratio), share, rtol=1e-9)


@pytest.mark.parametrize("ratio", [0.05, 0.4, 0.99, 1.3, 4.0])
def test_restitution_against_many_small_steps(ratio: float) -> None:
    place, speed, step = 0.0, -1.0, 1e-5
    for _ in range(10_000_000):
        push = -2 * ratio * speed - place
        if push <= 0 and place < 0:
            break
        speed += push * step
        place += speed * step
    np.testing.assert_allclose(restitution(ratio), speed, atol=2e-4)


def test_the_damping_of_a_restitution_gives_it() -> None:
    shares = np.linspace(0.02, 1.0, 50)
    np.testing.assert_allclose(restitution(damping_ratio(shares)), shares, atol=1e-3)


@pytest.mark.parametrize("solref", [".02 1", "-4000 -20"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_ball_leaves_with_its_share_of_the_speed(tmp_path: Path, solref: str, share: float) -> None:
    names = {c: f"{{body: ball, quantity: {c}}}" for c in ("z", "vz")}
    blueprint = compile_project(load_project(write_project(tmp_path, BALL.format(solref), {}, names)))
    world = Simulation(blueprint, 1, space_of(blueprint, "geom/ball/restitution"), 1)
    world.set_parameters(np.array([[share]]))
    world.reset(Start({}, np.zeros((1, 0))), np.random.default_rng(0))
    world.restart(np.array([[0, 0, 0.2, 1, 0, 0, 0]]), np.array([[0, 0, -2.0, 0, 0, 0]]), np.zeros((1, 1, 0)))
    seen = np.stack([world.step(np.zeros((1, 0))).measured[0] for _ in range(60)])
    # MuJoCo's contacts are a little softer than their full impedance near the surface.
    np.testing.assert_allclose(seen[-1, 1] / 2.0, share, atol=0.02)


def test_nominal_is_what_the_model_has(tmp_path: Path) -> None:
    names = {"z": "{body: ball, quantity: z}"}
    blueprint = compile_project(load_project(write_project(tmp_path, BALL.format(".02 1"), {}, names)))
    target = resolve("geom/ball/restitution", blueprint.project, blueprint.model)
    assert target.nominal == pytest.approx(np.exp(-2))
    assert target.dimension == "contact"
