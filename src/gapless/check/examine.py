"""Runs all checks on a project's data and collects what they find."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.check.findings import Finding, UnusableRows
from gapless.check.mapping import find_mapping_faults
from gapless.check.rows import find_standstills, find_unresponsive_rows
from gapless.check.skill import make_tolerance
from gapless.core.protocols import Progress
from gapless.core.results import Note
from gapless.fit.data import ProjectData
from gapless.signals.smoother import estimate_noise
from gapless.signals.track import Track, make_track, take_excerpts

EXAMINING = "looking for mistakes"  # what it is called where progress is shown
MAX_NOISE_RATIO = 5.0  # of the noise that readings show to what the project states
MAX_UNUSABLE_SHARE = 0.5  # of all rows
NO_SIGNALS = "signals were not judged: no run has a log"
NO_TARGETS = "nothing can be fitted to these commands: they are no targets of the servos that they are mapped to"


@dataclass(frozen=True)
class Examination:
    """What is wrong with the data of a project. It gives findings; verbs decide what follows from them."""

    evidence: ProjectData  # the project with the unusable rows marked in its tracks
    findings: tuple[Finding, ...]  # faults in the mapping or in what columns hold
    notes: tuple[Note, ...]  # all that was found, as people read it; findings are faults
    refusal: str | None  # why nothing can be fitted to these logs; None if it can be tried

    @property
    def every_note(self) -> tuple[Note, ...]:
        """What reading the logs had to say, and what was found since."""
        return (*self.evidence.notes, *self.notes)

    @property
    def reasons_not_good(self) -> tuple[str, ...]:
        """Why a fit of these data cannot be called good; empty if nothing is wrong with them."""
        return tuple(finding.text for finding in self.findings)


def examine_data(evidence: ProjectData, progress: Progress | None = None) -> Examination:
    """Looks for faults in the mapping of a project's columns, and for rows of its logs that cannot be used.

    A column that is mapped wrongly would seem not to respond, so rows are judged only where the mapping is sound.
    Runs without a log have no data to examine.
    """
    report = progress or (lambda label, share: None)
    if not evidence.tracks:
        return Examination(evidence, (), (), NO_SIGNALS)
    report(EXAMINING, 0.0)
    blueprint, tracks = evidence.blueprint, _correct_stated_noise(evidence)
    tolerance = make_tolerance(blueprint, tracks)
    findings = find_mapping_faults(blueprint, take_excerpts(tracks, evidence.project.rate_hz), tolerance)
    report(EXAMINING, 0.7)
    stretches: list[UnusableRows] = []
    if not findings:
        stretches = find_standstills(blueprint, tracks) + find_unresponsive_rows(blueprint, tracks, tolerance)
    text = "the command never changes in any log: these logs do not identify its gain and delay"
    constant = np.all([np.ptp(track.commands, axis=0) == 0 for track in evidence.tracks], axis=0)
    commands = zip(evidence.project.commands, constant, strict=True)
    notes = [Note("fault", ", ".join(finding.columns), finding.text) for finding in findings]
    notes += [*evidence.assumptions, *_describe_stretches(evidence, stretches)]
    notes += [Note("warning", item.column, text) for item, is_constant in commands if is_constant]
    report(EXAMINING, 1.0)
    masks = [track.usable.copy() for track in evidence.tracks]
    for stretch in stretches:
        masks[stretch.track][stretch.first_row : stretch.end_row] = False
    marked = tuple(replace(track, usable=mask) for track, mask in zip(evidence.tracks, masks, strict=True))
    lost = 1 - float(np.mean(np.concatenate(masks)))
    refusal = NO_TARGETS if any(finding.prevents_fit for finding in findings) else None
    if stretches and lost > MAX_UNUSABLE_SHARE:
        refusal = f"{100 * lost:.0f} % of these logs are of no use: {stretches[0].text}"
    return Examination(replace(evidence, tracks=marked), findings, tuple(notes), refusal)


def _correct_stated_noise(evidence: ProjectData) -> Sequence[Track]:
    """Returns the tracks, columns smoothed by the noise that they show where it is far more than the project states.

    A column in degrees is 57 times as noisy as stated in radians: its slopes would be nothing but noise.
    """
    project, maps = evidence.project, list(evidence.project.measurements)
    for column, item in enumerate(maps):
        readings = [track.measured[:, column] for track in evidence.tracks]
        shown = np.median([estimate_noise(values[np.isfinite(values)]) for values in readings])
        if item.noise is not None and shown > MAX_NOISE_RATIO * item.noise:
            maps[column] = replace(item, noise=None)
    if tuple(maps) == project.measurements:
        return evidence.tracks
    return [make_track(replace(project, measurements=tuple(maps)), episode) for episode in evidence.episodes]


def _describe_stretches(evidence: ProjectData, stretches: Sequence[UnusableRows]) -> list[Note]:
    """Returns one note per column and cause, with where it is found first and in how many logs."""
    groups: dict[tuple[str, str], list[UnusableRows]] = {}
    for stretch in dict.fromkeys(stretches):
        groups.setdefault((stretch.column, stretch.text.split(":")[-1]), []).append(stretch)
    rate_hz = evidence.project.rate_hz
    notes: list[Note] = []
    for same in groups.values():
        first, logs = same[0], len({stretch.track for stretch in same})
        seconds = sum(stretch.end_row - stretch.first_row for stretch in same) / rate_hz
        where = f"{evidence.episodes[first.track].name}: {first.column}"
        span = f"from {first.first_row / rate_hz:.4g} s to {first.end_row / rate_hz:.4g} s"
        more = f", and in {logs - 1} more log{'s' if logs > 2 else ''}" if logs > 1 else ""
        notes.append(Note("warning", where, f"{span}{more} {first.text} These {seconds:.4g} s are left out"))
    return notes
