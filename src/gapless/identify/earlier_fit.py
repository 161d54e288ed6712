"""Which earlier fit of the same robot a new one is compared with."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from gapless.core.episode import Episode
from gapless.core.errors import InputError
from gapless.core.results import IdentifyResult
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import load_stored_result
from gapless.data.tables import ArtefactRow
from gapless.fit.data import ProjectData
from gapless.project.fingerprint import fingerprint
from gapless.sim.ranges import read_result

EarlierFit = tuple[str, IdentifyResult]  # id in the catalogue, or path; and the fit


def recorded_span(episodes: Iterable[Episode]) -> tuple[str | None, str | None]:
    """Returns when the first and the last of some episodes were recorded; None unless all of them say."""
    stamps = [episode.recorded_at for episode in episodes]
    known = sorted((stamp for stamp in stamps if stamp is not None), key=_parse_time)
    return (known[0], known[-1]) if known and len(known) == len(stamps) else (None, None)


def find_earlier_fit(data: ProjectData, since: str | Path | None, window_s: float) -> EarlierFit | None:
    """Returns the fit to compare with: the one named, or else the earliest that fits the project as it is now.

    Without a name it must be in the catalogue, made with the same project files and windows, and all its logs must
    have been recorded before all of these. The earliest, because wear adds up.

    Args:
        data: The logs to be fitted.
        since: JSON that `identify` wrote; None looks in the catalogue.
        window_s: Length of the prediction windows [s].

    Raises:
        InputError: If the fit that is named cannot be compared with.
    """
    if since is not None:
        return str(since), _read_named_fit(data, Path(since))
    begin, _ = recorded_span(data.episodes)
    if begin is None:
        return None
    wanted = {"project": fingerprint(data.project), "window_s": window_s}
    found: list[tuple[datetime, EarlierFit]] = []
    for row in data.catalogue.artefacts("identify"):
        same = all(row.provenance.config.get(key) == value for key, value in wanted.items())
        if not same or set(row.provenance.parents) & set(data.ids):
            continue
        result = _load_stored_fit(data.catalogue, row)
        end = result.recorded_to if result and result.verdict != "refused" else None
        if result and end is not None and _parse_time(end) < _parse_time(begin):
            found.append((_parse_time(end), (row.id, result)))
    # Of several fits to the same logs the last one made counts: the catalogue lists it last.
    return min(reversed(found), key=lambda item: item[0], default=(None, None))[1]


def _read_named_fit(data: ProjectData, path: Path) -> IdentifyResult:
    try:
        result = read_result(path, IdentifyResult)
    except InputError as error:
        raise InputError(f"--since: this fit cannot be read, name another: {error}") from None
    if result.verdict == "refused":
        raise InputError(f"--since: that fit was refused ({'; '.join(result.reasons)}): name one that was not: {path}")
    shared = set(result.inputs) & set(data.ids)
    if shared:
        names = [e.name for e, identity in zip(data.episodes, data.ids, strict=True) if identity in shared]
        text = f"{len(shared)} logs are in both fits ({', '.join(names[:4])})"
        raise InputError(f"--since: {text}: choose others with --logs PATTERN: {path}")
    return result


def _load_stored_fit(catalogue: Catalogue, row: ArtefactRow) -> IdentifyResult | None:
    """Returns a stored fit; None where its file was deleted or damaged, which must not stop a new fit."""
    try:
        result = load_stored_result(catalogue, row.id)
    except (InputError, OSError, ValueError, TypeError):
        return None
    return result if isinstance(result, IdentifyResult) else None


def _parse_time(stamp: str) -> datetime:
    """Returns a time stamp that can be compared: without a zone it counts as UTC."""
    moment = datetime.fromisoformat(stamp)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
