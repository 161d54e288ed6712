"""The exported function, run against a stand-in for jax on a real model.

With jax 0.10.2 and MuJoCo MJX 3.17.0 it was run by hand: docs/how-to/export-ranges.md.
"""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from scipy.stats import kstest

from gapless.randomize.export.job import ExportJob
from gapless.randomize.export.model_code import write_playground
from gapless.sim.simulation import Simulation
from unit.randomize.export.robots import EVERYTHING, job


class FakeArray(np.ndarray):
    """An array that is not numpy's own, as those of jax are."""


def fake_jax() -> dict[str, ModuleType]:
    """Returns jax and jax.numpy with just what the exported file calls."""
    jax, jnp = ModuleType("jax"), ModuleType("jax.numpy")
    jnp.asarray = lambda value: np.asarray(value).view(FakeArray)  # type: ignore[attr-defined]
    jax.numpy = jnp  # type: ignore[attr-defined]
    jax.tree_util = SimpleNamespace(tree_map=lambda function, model: model.axes())  # type: ignore[attr-defined]
    jax.random = SimpleNamespace(key_data=lambda keys: keys)  # type: ignore[attr-defined]
    return {"jax": jax, "jax.numpy": jnp}


class FakeModel:
    """A compiled model with mjx's ways; `tree_replace` takes only fields that the model has, in their shape."""

    def __init__(self, model: mujoco.MjModel, changed: dict[str, Any] | None = None) -> None:
        self._model, self._changed = model, changed or {}

    def __getattr__(self, name: str) -> Any:
        if name == "opt":
            gravity = self._changed.get("opt.gravity", np.array(self._model.opt.gravity).view(FakeArray))
            return SimpleNamespace(gravity=gravity)
        if name in self._changed:
            return self._changed[name]
        value = getattr(self._model, name)
        return np.array(value).view(FakeArray) if isinstance(value, np.ndarray) else value

    def tree_replace(self, changed: dict[str, Any]) -> "FakeModel":
        for name, value in changed.items():
            own = self._model.opt.gravity if name == "opt.gravity" else getattr(self._model, name)
            assert np.shape(value)[-own.ndim :] == own.shape, name
        return FakeModel(self._model, self._changed | changed)

    def axes(self) -> Any:
        model = self

        class Axes(dict):
            def tree_replace(self, changed: dict[str, int]) -> "Axes":
                for name in changed:
                    assert name == "opt.gravity" or hasattr(model._model, name)
                return Axes(self | changed)

        return Axes()


def ran(source: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Returns what an exported file defines; the stand-in is there while it is imported, not longer."""
    space: dict[str, Any] = {}
    with monkeypatch.context() as patch:
        for name, module in fake_jax().items():
            patch.setitem(sys.modules, name, module)
        exec(compile(source, "exported.py", "exec"), space)
    return space


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    def run(text: str, count: int) -> tuple[Any, dict[str, int], ExportJob, tuple[str, ...]]:
        worked = job(tmp_path, text)
        source, notes = write_playground(worked, tmp_path)
        space = ran(source, monkeypatch)
        made, axes = space["domain_randomize"](FakeModel(worked.model), np.arange(count)[:, None])
        return made, axes, worked, notes

    return run


def field(model: Any, name: str) -> np.ndarray:
    return np.asarray(model.opt.gravity if name == "opt.gravity" else getattr(model, name), dtype=float)


def test_each_range_lands_where_gapless_writes_it(drawn: Any) -> None:
    """All parameters fixed at a drawn row: the fields are those of the simulation."""
    names = ["joint/shoulder/damping", "joint/elbow/armature", "actuator/elbow/kp", "actuator/elbow/gain"]
    names += ["body/fore/mass", "body/box/com/x", "geom/box/friction", "world/gravity", "geom/wrist/size/x"]
    values = [0.7, 0.02, 45.0, 0.8, 0.9, 0.004, 0.31, 9.7, 0.021]
    spread = "".join(f"{n} uniform {v * 0.9!r} .. {v * 1.1!r}\n" for n, v in zip(names, values, strict=True))
    model, axes, worked, notes = drawn(spread, 30)
    assert set(axes.values()) == {0}
    rows = np.tile(worked.distribution.space.nominal, (30, 1))
    rows[:, 0] = field(model, "dof_damping")[:, 0]
    rows[:, 1] = field(model, "dof_armature")[:, 1]
    rows[:, 3] = field(model, "actuator_biasprm")[:, 1, 2] / -2.0
    rows[:, 2] = field(model, "actuator_gainprm")[:, 1, 0] / rows[:, 3]
    rows[:, 4] = field(model, "body_mass")[:, 2]
    rows[:, 5] = field(model, "body_ipos")[:, 4, 0]
    rows[:, 6] = field(model, "geom_friction")[:, 4, 0]
    rows[:, 7] = -field(model, "opt.gravity")[:, 2]
    rows[:, 8] = field(model, "geom_size")[:, 3, 0]
    ends = np.array(values)
    assert ((rows > 0.9 * ends - 1e-9) & (rows < 1.1 * ends + 1e-9)).all()
    world = Simulation(worked.blueprint, 30, worked.distribution.space, num_threads=1)
    world.set_parameters(rows)
    for name in world.fields.expanded:
        true = np.array(world.fields.of(name), dtype=float)
        assert np.broadcast_to(field(model, name), true.shape) == pytest.approx(true, rel=1e-6, abs=1e-9), name
    assert "all: changed: drawn once per world" in notes[0]


def test_each_kind_has_its_distribution(drawn: Any) -> None:
    kinds = [
        "normal 0.3 +- 0.1 within 0.2 .. 0.5",
        "log-normal 0.3 +- 30 % within 0.2 .. 0.5",
        "log-uniform 0.2 .. 0.5",
    ]
    kinds += ["beta 0.3 +- 0.05 within 0.2 .. 0.5", "mixture 0.6: 0.25 +- 0.05, 0.4: 0.45 +- 0.05 within 0.2 .. 0.5"]
    joints = ["joint/shoulder/damping", "joint/elbow/damping", "joint/wrist/damping", "joint/shoulder/armature"]
    joints += ["joint/elbow/armature"]
    text = "".join(f"{joint} {kind}\n" for joint, kind in zip(joints, kinds, strict=True))
    model, _, worked, _ = drawn(text, 3000)
    damping, armature = field(model, "dof_damping"), field(model, "dof_armature")
    columns = [damping[:, 0], damping[:, 1], damping[:, 2], armature[:, 0], armature[:, 1]]
    for entry, column in zip(worked.entries, columns, strict=True):
        reference = entry.range.draw(np.random.default_rng(2), 20000)
        assert kstest(column, reference).pvalue > 1e-3, entry.target


def test_correlations_are_carried(drawn: Any) -> None:
    text = "joint/shoulder/damping normal 0.4 +- 0.1 within 0.1 .. 0.7\n"
    text += "joint/elbow/damping log-normal 0.2 +- 20 % within 0.1 .. 0.4\n"
    text += "correlation joint/shoulder/damping joint/elbow/damping -0.8\n"
    model, _, worked, _ = drawn(text, 3000)
    made = field(model, "dof_damping")[:, :2]
    true = worked.distribution.sample(np.random.default_rng(1), 20000)
    assert np.corrcoef(made.T)[0, 1] == pytest.approx(np.corrcoef(true.T)[0, 1], abs=0.04)
    assert made.std(axis=0) == pytest.approx(true.std(axis=0), rel=0.05)


def test_every_range_acts_or_has_a_note(drawn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, worked, notes = drawn(EVERYTHING, 2)
    told = {note.split(": ")[0] for note in notes}
    acting = {edit.target for edit in ran(write_playground(worked, Path())[0], monkeypatch)["EDITS"]}
    assert {entry.target for entry in worked.entries} <= told | acting
    assert "actuator/*/delay" in told
    assert "all" in told


def test_friction_that_the_model_lacks_is_told(drawn: Any) -> None:
    notes = drawn("joint/elbow/frictionloss uniform 0.1 .. 0.2 per robot\n", 2)[3]
    assert [note.split(": ")[0] for note in notes] == ["joint/elbow/frictionloss"]


def test_another_model_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    worked = job(tmp_path, "joint/elbow/damping uniform 0.1 .. 0.2\n")
    space = ran(write_playground(worked, tmp_path)[0], monkeypatch)
    other = mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(AssertionError, match="another model"):
        space["domain_randomize"](FakeModel(other), np.zeros((1, 1)))
