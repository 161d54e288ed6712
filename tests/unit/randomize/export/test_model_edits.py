from pathlib import Path

import numpy as np

from gapless.randomize.export.job import ExportJob
from gapless.randomize.export.model_edits import MAX_DIFFERENCE, NUM_KNOTS, ModelEdits, find_model_edits
from gapless.sim.simulation import Simulation
from unit.randomize.export.robots import EVERYTHING, job


def edits_of(folder: Path, text: str) -> ModelEdits:
    return find_model_edits(job(folder, text))


def test_a_straight_effect_has_two_knots_and_a_bent_one_many(tmp_path: Path) -> None:
    found = find_model_edits(
        job(tmp_path, "joint/elbow/damping uniform 0.1 .. 0.5\nworld/tilt/y uniform -0.1 .. 0.1\n")
    )
    damping, tilt = (edit for edit in found.edits)
    assert (damping.field, damping.places) == ("dof_damping", ((1,),))
    assert damping.knots == tuple(value for (value,) in damping.values) == (0.1, 0.5)
    assert (tilt.field, len(tilt.knots)) == ("opt.gravity", NUM_KNOTS)
    assert not found.derived


def test_a_servo_weaker_as_a_whole_and_in_its_gain_multiplies(tmp_path: Path) -> None:
    # force = gain * (kp (u - q) - kd v): both meet in -kp
    found = find_model_edits(
        job(tmp_path, "actuator/elbow/kp uniform 30 .. 50\nactuator/elbow/gain uniform 0.5 .. 1\n")
    )
    assert all(edit.multiplies for edit in found.edits if edit.field == "actuator_biasprm")
    assert found.notes == ()


def test_masses_derive_constants(tmp_path: Path) -> None:
    found = find_model_edits(job(tmp_path, "body/box/mass uniform 0.3 .. 0.8\n"))
    assert found.derived
    assert {edit.field for edit in found.edits} == {"body_mass", "body_inertia"}


def test_what_neither_multiplies_nor_adds_is_told(tmp_path: Path) -> None:
    # The tilt alone gives sin(tilt) * 9.81 across; together it is sin(tilt) * gravity, a fifth off at 8.
    found = find_model_edits(job(tmp_path, "world/tilt/y uniform -0.3 .. 0.3\nworld/gravity uniform 8 .. 12\n"))
    assert len(found.notes) == 1
    assert "world/tilt/y, world/gravity: changed: drawn together" in found.notes[0]


def test_a_friction_takes_over_its_contacts_once(tmp_path: Path) -> None:
    found = find_model_edits(job(tmp_path, "geom/box/friction uniform 0.3 .. 0.7\n"))
    (priority,) = [edit for edit in found.edits if edit.is_constant]
    assert (priority.field, priority.places, priority.values) == ("geom_priority", ((4,),), ((10.0,),))


def rebuilt(effects: ModelEdits, worked: ExportJob, row: np.ndarray, field: str, nominal: np.ndarray) -> np.ndarray:
    """Returns a field as the effects say it is for a row."""
    base = nominal.astype(float)
    here = [edit for edit in effects.edits if edit.field == field]
    for edit in here:
        if edit.is_constant:
            base[tuple(np.transpose(edit.places))] = edit.values[0]
    made = base.copy()
    targets = [entry.target for entry in worked.entries]
    for edit in here:
        if not edit.is_constant:
            for k, place in enumerate(edit.places):
                value = np.interp(row[targets.index(edit.target)], edit.knots, np.array(edit.values)[:, k])
                multiply = edit.multiplies and base[place] != 0
                made[place] = made[place] * value / base[place] if multiply else made[place] + value - base[place]
    return made


def test_every_field_of_fresh_rows_is_as_the_simulation_has_it(tmp_path: Path) -> None:
    """Rows that were not used to find the effects; what is told to differ may."""
    worked = job(tmp_path, EVERYTHING)
    effects = find_model_edits(worked)
    told = " ".join(effects.notes)
    worked = worked.without(["body/box/spread/x"])
    rows = worked.distribution.sample(np.random.default_rng(17), 20)
    world = Simulation(worked.blueprint, len(rows), worked.distribution.space, num_threads=1)
    world.set_parameters(rows)
    nominal = {name: np.array(world.fields.nominal(name)) for name in world.fields.expanded}
    checked = 0
    for field, written in nominal.items():
        if f"in {field}" in told:
            continue
        true = np.array(world.fields.of(field), dtype=float)
        made = np.stack([rebuilt(effects, worked, row, field, written) for row in rows])
        span = np.abs(true - true.mean(axis=0)).max(axis=0) + 1e-9 * np.abs(true).max() + 1e-12
        assert (np.abs(made - true) <= 2 * MAX_DIFFERENCE * span).all(), (
            field
        )  # told where it is above MAX_DIFFERENCE in other rows
        checked += 1
    assert checked >= 14
    # The axes of a cube change places where it is stretched by 1; a load is a spring far stretched, rest = load /
    # stiffness, which no product or sum of both is.
    expected = ["body/box/spread/x", "joint/elbow/load"]
    assert [note.split(":")[0] for note in effects.notes] == expected
