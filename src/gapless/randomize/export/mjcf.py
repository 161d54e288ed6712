"""The model with the centre of the ranges in it."""

from pathlib import Path

import numpy as np

from gapless.randomize.export.entries import Entry, Job
from gapless.sim.corrected import corrected_xml
from gapless.sim.targets import is_dc_motor

CENTRE = "all: changed: a model has no ranges; this is the centre of each"


def write(job: Job, folder: Path) -> tuple[str, tuple[str, ...]]:
    """Returns the MJCF of the model at the mean of every range; how far they reach is not part of a model."""
    notes = (CENTRE, *(filter(None, (_note(entry, job) for entry in job.entries))))
    row = np.array([entry.range.mean for entry in job.entries])
    xml = corrected_xml(job.blueprint, job.distribution.space, row, folder)
    said = "".join(f"  {note}\n" for note in notes)
    head = f"<!-- The centre of the training ranges of {job.blueprint.project.name}, by gapless.\n{said}-->\n"
    return head.replace("--", "- -").replace("<!- -", "<!--").replace("- ->", "-->") + xml + "\n", notes


def _note(entry: Entry, job: Job) -> str | None:
    if entry.kind == "measurement":
        return f"{entry.target}: left out: readings are not part of a model"
    if entry.field == "backlash":
        return f"{entry.target}: left out: MJCF has no backlash"
    if entry.kind == "actuator" and entry.field == "offset":
        motors = [a for a in range(job.model.nu) if is_dc_motor(job.model, a)]
        some = any(entry.name in ("*", job.model.actuator(a).name) for a in motors)
        return f"{entry.target}: left out for DC motors: they have no place for it" if some else None
    if entry.field == "offset":
        return f"{entry.target}: changed: the servo follows the shifted zero; readings in the model are not shifted"
    return None
