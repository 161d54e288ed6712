"""All that speaks against the data of a project, and the project without what is of no use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gapless.check.doubts import find_doubts
from gapless.check.findings import Mistake, Stretch, without
from gapless.check.mistakes import find_mistakes
from gapless.check.response import unresponsive
from gapless.check.standstill import standing
from gapless.core.results import Note
from gapless.core.signal import Array
from gapless.fit.data import Progress, ProjectData
from gapless.signals.excerpts import take_excerpts
from gapless.signals.smoother import estimate_noise
from gapless.signals.track import Track, make_track

EXAMINING = "looking for mistakes"
FAR_MORE = 5.0  # times the noise that a project states
NO_SIGNALS = "signals were not judged: no run has a log"
NO_TARGETS = "nothing can be fitted to these commands: they are no targets of the servos that they are mapped to"
MOST_LOST = 0.5  # share of the logs that may be of no use


@dataclass(frozen=True)
class Examination:
    """What speaks against the data of a project.

    Attributes:
        evidence: The project with the stretches of no use marked in its tracks.
        mistakes: Mistakes in the mapping or in what columns hold; a fit of such data means nothing.
        notes: All that was found, as people read it; mistakes are faults.
        refusal: Why nothing can be fitted to these logs; None if it can be tried.
    """

    evidence: ProjectData
    mistakes: tuple[Mistake, ...]
    notes: tuple[Note, ...]
    refusal: str | None

    @property
    def every_note(self) -> tuple[Note, ...]:
        """What reading the logs had to say, and what was found since."""
        return (*self.evidence.notes, *self.notes)

    @property
    def reasons_not_good(self) -> tuple[str, ...]:
        """Why a fit of these data cannot be called good; empty if nothing in the data speaks against it."""
        return tuple(mistake.text for mistake in self.mistakes)


def examine_data(evidence: ProjectData, progress: Progress | None = None) -> Examination:
    """Looks for mistakes in a project's data and for stretches of its logs that are of no use.

    A column that is mapped wrongly would seem not to respond, so stretches are looked for only where no mistake is.
    Runs without a log have no data to examine.

    Args:
        evidence: The project with its logs.
        progress: Called with what is being done and how far it is, in [0, 1].
    """
    tell = progress or (lambda label, share: None)
    if not evidence.tracks:
        return Examination(evidence, (), (), NO_SIGNALS)
    tell(EXAMINING, 0.0)
    blueprint, tracks = evidence.blueprint, _smoothed_anew(evidence)
    doubts = find_doubts(blueprint, tracks)
    still = _constant_commands(evidence)
    mistakes = find_mistakes(blueprint, take_excerpts(tracks, evidence.project.rate_hz), doubts)
    tell(EXAMINING, 0.7)
    stretches: list[Stretch] = []
    if not mistakes:
        stretches = [*standing(blueprint, tracks), *unresponsive(blueprint, tracks, doubts)]
    notes = [Note("fault", ", ".join(mistake.columns), mistake.text) for mistake in mistakes]
    notes += [*evidence.assumptions, *_stretch_notes(evidence, stretches), *still]
    tell(EXAMINING, 1.0)
    marked = without(evidence.tracks, stretches)
    refusal = NO_TARGETS if any(mistake.prevents_fit for mistake in mistakes) else _refusal(marked, stretches)
    return Examination(replace(evidence, tracks=marked), mistakes, tuple(notes), refusal)


def _smoothed_anew(evidence: ProjectData) -> Sequence[Track]:
    """Returns the tracks, smoothed by the noise that readings show where that is far more than the project states.

    A column in degrees is 57 times as noisy as stated in radians: its slopes would be nothing but noise.
    """
    measurements = list(evidence.project.measurements)
    for column, item in enumerate(measurements):
        shown = np.median([_noise(track.measured[:, column]) for track in evidence.tracks])
        if item.noise is not None and shown > FAR_MORE * item.noise:
            measurements[column] = replace(item, noise=None)
    if measurements == list(evidence.project.measurements):
        return evidence.tracks
    project = replace(evidence.project, measurements=tuple(measurements))
    anew = [make_track(project, episode) for episode in evidence.episodes]
    return [
        replace(track, commands=before.commands, usable=before.usable)
        for track, before in zip(anew, evidence.tracks, strict=True)
    ]


def _noise(values: Array) -> float:
    return estimate_noise(values[np.isfinite(values)])


def _stretch_notes(evidence: ProjectData, stretches: Sequence[Stretch]) -> list[Note]:
    """Returns one note per column and finding, with where it is found first and in how many logs."""
    groups: dict[tuple[str, str], list[Stretch]] = {}
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


def _constant_commands(evidence: ProjectData) -> list[Note]:
    """Returns a note per command that never changes in any log."""
    notes: list[Note] = []
    for column, item in enumerate(evidence.project.commands):
        if all(np.ptp(track.commands[:, column]) == 0 for track in evidence.tracks):
            text = "the command never changes in any log: its gain and delay cannot be told"
            notes.append(Note("warning", item.column, text))
    return notes


def _refusal(tracks: Sequence[Track], stretches: Sequence[Stretch]) -> str | None:
    lost = 1 - float(np.mean(np.concatenate([track.usable for track in tracks])))
    if lost <= MOST_LOST:
        return None
    texts = dict.fromkeys(stretch.text for stretch in stretches)
    return f"{100 * lost:.0f} % of these logs are of no use: {next(iter(texts))}"
