"""Contacts are left out of predictions only where nothing touches in the logs."""

from pathlib import Path

import mujoco

from gapless.fit.data import read_project_data
from gapless.fit.prediction.predict import without_idle_contacts
from unit.identify.realities import write_reality

CONTACT = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)


def test_a_pendulum_that_touches_nothing_needs_no_contacts(tmp_path: Path) -> None:
    evidence = read_project_data(write_reality(tmp_path, {}))
    spared = without_idle_contacts(evidence.blueprint, evidence.tracks)
    assert spared.model.opt.disableflags & CONTACT
    assert not evidence.blueprint.model.opt.disableflags & CONTACT


def test_what_touches_keeps_its_contacts(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {})
    xml = (folder / "robot.xml").read_text().replace('contype="0" conaffinity="0"', "")
    near = '<worldbody><geom name="near" type="box" size=".1 .1 .1" pos="0 0 -.4"/>'
    (folder / "robot.xml").write_text(xml.replace("<worldbody>", near, 1))
    evidence = read_project_data(folder)
    assert without_idle_contacts(evidence.blueprint, evidence.tracks) is evidence.blueprint
    (folder / "robot.xml").write_text(xml.replace("<worldbody>", near.replace("-.4", "-.6"), 1))
    further = read_project_data(folder)
    assert without_idle_contacts(further.blueprint, further.tracks) is not further.blueprint


def test_without_logs_nothing_is_left_out(tmp_path: Path) -> None:
    evidence = read_project_data(write_reality(tmp_path, {}))
    assert without_idle_contacts(evidence.blueprint, ()) is evidence.blueprint
