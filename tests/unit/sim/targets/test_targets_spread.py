"""How far the mass of a body spreads, and what is proposed for things that are thrown."""

from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.project.load import load_project
from gapless.sim.auto import candidate_terms, parameter_space
from gapless.sim.blueprint import CompiledProject, compile_project
from gapless.sim.bounds import half_extent
from gapless.sim.simulation import Simulation
from gapless.sim.targets import resolve
from unit.sim.scenes import space_of

BOX = """<mujoco><worldbody><geom type="plane" size="0 0 1"/><body name="box" pos="0 0 1"><freejoint/>
<inertial pos="0 0 0" mass="1" diaginertia="5 6 7" {turn}/>
<geom type="box" size=".06 .04 .02" euler="0 0 {geom}"/><geom type="sphere" size=".01"/></body></worldbody></mujoco>"""


def box(folder: Path, turn: str = "", geom: float = 0.0, columns: tuple[str, ...] = ("x", "y", "z")) -> CompiledProject:
    folder.mkdir(exist_ok=True)
    (folder / "box.xml").write_text(BOX.format(turn=turn, geom=geom))
    mapped = "".join(f"  {name}: {{body: box, quantity: {name}}}\n" for name in columns)
    text = f"gapless: 1\nname: box\nmodel: box.xml\nrate_hz: 100\nmeasurements:\n{mapped}"
    (folder / "gapless.yaml").write_text(f"{text}logs: logs\nparameters: auto\n")
    return compile_project(load_project(folder))


def tensor(blueprint: CompiledProject, **factors: float) -> np.ndarray:
    """Returns the inertia of the box in its own frame, (3, 3), with its spreads multiplied."""
    targets = [f"body/box/spread/{axis}" for axis in factors]
    world = Simulation(blueprint, 1, space_of(blueprint, *targets))
    world.set_parameters(np.array([list(factors.values())]))
    model, frame = world.batch.get_model(0), np.zeros(9)
    mujoco.mju_quat2Mat(frame, model.body_iquat[1])
    axes = frame.reshape(3, 3)
    return axes @ np.diag(model.body_inertia[1]) @ axes.T


def test_a_body_twice_as_long_along_x_in_closed_form(tmp_path: Path) -> None:
    # Second moments (6 + 7 - 5, 5 + 7 - 6, 5 + 6 - 7) / 2 = (4, 3, 2). Twice along x: (16, 3, 2), so inertias
    # (3 + 2, 16 + 2, 16 + 3). Then half along y: (16, 0.75, 2).
    blueprint = box(tmp_path)
    np.testing.assert_allclose(tensor(blueprint, x=2.0), np.diag([5.0, 18.0, 19.0]), atol=1e-9)
    np.testing.assert_allclose(tensor(blueprint, x=2.0, y=0.5), np.diag([2.75, 18.0, 16.75]), atol=1e-9)
    np.testing.assert_allclose(tensor(blueprint, x=1.0), np.diag([5.0, 6.0, 7.0]), atol=1e-12)


def test_axes_are_those_of_the_body_however_its_inertia_is_written(tmp_path: Path) -> None:
    # The inertial frame is turned by 90 degrees about z: along the body's x the inertia is 6, so S = (3, 4, 2).
    blueprint = box(tmp_path, turn='euler="0 0 90"')
    np.testing.assert_allclose(tensor(blueprint, x=2.0), np.diag([4 + 2, 12 + 2, 12 + 4]), atol=1e-9)


def test_whatever_the_factors_the_inertia_is_possible(tmp_path: Path) -> None:
    blueprint, rng = box(tmp_path, turn='euler="20 30 40"'), np.random.default_rng(0)
    for factors in rng.uniform(0.1, 10.0, (20, 3)):
        least, middle, most = np.linalg.eigvalsh(tensor(blueprint, **dict(zip("xyz", factors, strict=True))))
        assert least > 0
        assert most < least + middle


def test_a_spread_belongs_to_one_body(tmp_path: Path) -> None:
    blueprint = box(tmp_path)
    with pytest.raises(InputError, match="a spread belongs to one body"):
        resolve("body/*/spread/x", blueprint.project, blueprint.model)


def test_geoms_without_a_name_are_named_after_their_body(tmp_path: Path) -> None:
    targets = parameter_space(box(tmp_path), []).targets
    assert targets[:2] == ("geom/box/friction", "geom/box_2/friction")
    assert not [target for target in targets if target.endswith("/mass")]


def test_centre_and_spread_are_proposed_only_where_turning_is_measured(tmp_path: Path) -> None:
    unseen, seen = box(tmp_path / "a"), box(tmp_path / "b", columns=("x", "y", "z", "qw", "qx", "qy", "qz"))
    assert "body/box/com/x" not in parameter_space(unseen, []).targets
    assert candidate_terms(unseen, []) == ()
    assert "body/box/com/x" in parameter_space(seen, []).targets
    assert [term.targets[0] for term in candidate_terms(seen, [])] == ["body/box/spread/x"]


def test_a_centre_stays_within_its_body(tmp_path: Path) -> None:
    # Turned by 90 degrees the box reaches 0.04 along x and 0.06 along y.
    blueprint = box(tmp_path, geom=90.0, columns=("x", "y", "z", "qw", "qx", "qy", "qz"))
    np.testing.assert_allclose(half_extent(blueprint.model, 1), [0.04, 0.06, 0.02], atol=1e-9)
    space = parameter_space(blueprint, [])
    centre = space.parameters[space.index("body/box/com/x")]
    assert (centre.low, centre.high) == pytest.approx((-0.04, 0.04))
