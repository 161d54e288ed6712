"""The verb `export`: episodes of a project in any format that can be written."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from gapless.core.episode import Episode
from gapless.core.errors import InputError
from gapless.core.places import require_space
from gapless.core.protocols import Progress
from gapless.core.recording import Recording, Skipped
from gapless.core.results import Purpose
from gapless.core.results.exchange import ExportResult
from gapless.core.signal import Array
from gapless.data.catalogue import FOLDER, Catalogue
from gapless.data.splits import leave_out
from gapless.fit.enter import enter_logs
from gapless.formats.registry import choose_format, list_names
from gapless.project.data_folder import DataFolder, open_data_folder

STALE = "made_by LIKE 'log %'"  # episodes of logs, which are entered anew where their mapping changes


def export(
    directory: str | Path,
    out: str | Path,
    *,
    format: str,
    where: str | None = None,
    purpose: Purpose = "train",
    progress: Progress | None = None,
) -> ExportResult:
    """Writes episodes of a project in another format, with all that is known of where they came from.

    Logs of the project's folder come in model units under the names of their columns, imported recordings as they
    were recorded. The output appears whole or not at all.

    Args:
        directory: The project folder.
        out: The file or folder to make.
        format: Its format, such as `lerobot-v3.0`, `mcap`, `csv`.
        where: SQL condition on the view `episodes`, such as `outcome = 'success'`; None for all.
        purpose: What they are for: episodes of frozen test splits go out for `test` only.
        progress: Called with what is being done and how far it is, in [0, 1].

    Raises:
        InputError: If there is nothing to write, the format is unknown, or the output exists.
    """
    kind, target = choose_format(format, to_write=True), Path(out).expanduser()
    assert kind.write is not None  # choose_format has looked
    if target.exists():
        raise InputError(f"the output exists and is not overwritten: name another, or delete it: {target}")
    if kind.suffix and target.suffix.lower() != kind.suffix:
        raise InputError(f"{format} is one file whose name ends in {kind.suffix}: name it {target}{kind.suffix}")
    folder = open_data_folder(directory)
    catalogue, found = _select(folder, where)
    kept_back = leave_out(catalogue, found, purpose)
    ids = tuple(id for id in found if id not in kept_back)
    if found and not ids:
        reason = next(iter(kept_back.values()))
        raise InputError(f"none of these {len(found)} episodes may go out, the first is {reason}: choose others")
    if not ids:
        raise InputError(f"no episode to export: see `gapless query {directory} 'SELECT name, source FROM episodes'`")
    work = _Reading(catalogue, ids, progress)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    require_space(target.absolute().parent if target.absolute().parent.is_dir() else Path.cwd())
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        skipped = list(kind.write(work.read(), unfinished))
        if not unfinished.exists():
            why = skipped[0].why if skipped else "there are no rows"
            raise InputError(f"nothing could be written as {format}: {why}: choose from {', '.join(list_names())}")
        os.replace(unfinished, target)
    except OSError as error:
        raise InputError(f"cannot write ({error.strerror or error}): choose another place: {target}") from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True) if unfinished.is_dir() else unfinished.unlink(missing_ok=True)
    lost = {each.what for each in skipped}
    written = [name for name in work.num_rows if name not in lost]
    samples = sum(work.num_rows[name] for name in written)
    held = [
        Skipped(f"{list(kept_back.values()).count(why)} episodes", why) for why in dict.fromkeys(kept_back.values())
    ]
    return ExportResult(ids, str(target), kind.name, len(written), samples, (*held, *skipped))


def _select(folder: DataFolder, where: str | None) -> tuple[Catalogue, tuple[str, ...]]:
    """Returns the catalogue and the ids of the episodes to write, in the order in which they were added."""
    if folder.project is None and not (folder.directory / FOLDER).is_dir():
        raise InputError(f"nothing here yet: run `gapless import {folder.directory} SOURCE...` first")
    catalogue = Catalogue.open(folder.directory)
    logs = set(enter_logs(folder.project)) if folder.project else set[str]()
    found = catalogue.select_ids(where or "true")
    stale = set(catalogue.select_ids(STALE)) - logs
    return catalogue, tuple(id for id in found if id not in stale)


class _Reading:
    """Reads episodes as recordings with names that differ, and counts their rows."""

    def __init__(self, catalogue: Catalogue, ids: Sequence[str], progress: Progress | None) -> None:
        self._catalogue, self._ids, self._progress = catalogue, ids, progress
        self.num_rows: dict[str, int] = {}  # name -> number of rows, of what was read

    def read(self) -> Iterator[Recording]:
        """Yields the recordings one by one."""
        recorded = set(self._catalogue.select_ids("is_recording"))
        for number, id in enumerate(self._ids):
            if self._progress:
                self._progress("exporting", number / len(self._ids))
            found = self._catalogue.recording(id) if id in recorded else as_recording(self._catalogue.episode(id))
            name, count = found.name, 2
            while name in self.num_rows:
                name, count = f"{found.name}_{count}", count + 1
            self.num_rows[name] = len(found.times_s)
            yield replace(found, name=name)
        if self._progress:
            self._progress("exporting", 1.0)


def as_recording(episode: Episode) -> Recording:
    """Returns an episode's commands and measurements as the columns of a recording, in model units."""
    commands, measurements = episode.commands, episode.measurements
    times_s = np.union1d(commands.times_s, measurements.times_s) if commands.names else measurements.times_s
    start_s = float(times_s[0]) if len(times_s) else 0.0
    columns: dict[str, Array] = {}
    units: dict[str, str] = {}
    for series in (commands, measurements):
        rows = np.searchsorted(times_s, series.times_s)
        for k, name in enumerate(series.names):
            columns[name] = np.full(len(times_s), np.nan)
            columns[name][rows] = series.values[:, k]
            units[name] = series.units[k]
    return Recording(
        name=episode.name,
        times_s=times_s - start_s,
        columns=columns,
        source=episode.source,
        outcome=episode.outcome,
        failed_in=episode.failed_in,
        conditions=episode.conditions,
        recorded_at=episode.recorded_at,
        details={"units": units, "commands": list(commands.names)},
    )
