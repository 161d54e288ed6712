"""Which earlier fit of the same robot a new one is compared with."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from gapless.core.episode import Episode
from gapless.core.errors import InputError
from gapless.core.results import IdentifyResult
from gapless.data.catalogue import Catalogue
from gapless.data.rows import ArtefactRow
from gapless.data.stored_results import load_stored_result
from gapless.fit.data import ProjectData
from gapless.project.fingerprint import fingerprint
from gapless.sim.ranges import read_result

Earlier = tuple[str, IdentifyResult]  # id in the catalogue, or path; and the fit


def recorded_span(episodes: Iterable[Episode]) -> tuple[str | None, str | None]:
    """Returns when the first and the last of some episodes were recorded; None unless all of them say."""
    stamps = [episode.recorded_at for episode in episodes]
    known = sorted((stamp for stamp in stamps if stamp is not None), key=_moment)
    return (known[0], known[-1]) if known and len(known) == len(stamps) else (None, None)


def earlier_fit(evidence: ProjectData, since: str | Path | None, window_s: float) -> Earlier | None:
    """Returns the fit to compare with: the one named, or else the earliest that fits the project as it is now.

    Without a name it must be in the catalogue, made with the same project files and windows, and all its logs must
    have been recorded before all of these. The earliest, because wear adds up.

    Args:
        evidence: The logs to be fitted.
        since: JSON that `identify` wrote; None looks in the catalogue.
        window_s: Length of the prediction windows [s].

    Raises:
        InputError: If the fit that is named cannot be compared with.
    """
    if since is not None:
        return str(since), _named(evidence, Path(since))
    begin, _ = recorded_span(evidence.episodes)
    if begin is None:
        return None
    wanted = {"project": fingerprint(evidence.project), "window_s": window_s}
    found: list[Earlier] = []
    for row in evidence.catalogue.artefacts("identify"):
        same = all(row.provenance.config.get(key) == value for key, value in wanted.items())
        if not same or set(row.provenance.parents) & set(evidence.ids):
            continue
        result = _kept(evidence.catalogue, row)
        if result and result.verdict != "refused" and _is_before(result.recorded_to, begin):
            found.append((row.id, result))
    # Of several fits to the same logs the last one made counts: the catalogue lists it last.
    return min(reversed(found), key=lambda item: _moment(item[1].recorded_to or ""), default=None)


def _named(evidence: ProjectData, path: Path) -> IdentifyResult:
    try:
        result = read_result(path, IdentifyResult)
    except InputError as error:
        raise InputError(f"--since: {error}") from None
    if result.verdict == "refused":
        raise InputError(f"--since: that fit was refused ({'; '.join(result.reasons)}): name one that was not: {path}")
    shared = set(result.inputs) & set(evidence.ids)
    if shared:
        names = [e.name for e, identity in zip(evidence.episodes, evidence.ids, strict=True) if identity in shared]
        text = f"{len(shared)} logs are in both fits ({', '.join(names[:4])})"
        raise InputError(f"--since: {text}: choose others with --logs PATTERN: {path}")
    return result


def _kept(catalogue: Catalogue, row: ArtefactRow) -> IdentifyResult | None:
    """Returns a kept fit; None where its file was deleted or damaged, which must not stop a new fit."""
    try:
        result = load_stored_result(catalogue, row.id)
    except (InputError, OSError, ValueError, TypeError):
        return None
    return result if isinstance(result, IdentifyResult) else None


def _is_before(stamp: str | None, other: str) -> bool:
    return stamp is not None and _moment(stamp) < _moment(other)


def _moment(stamp: str) -> datetime:
    """Returns a time stamp that can be compared: without a zone it counts as UTC."""
    moment = datetime.fromisoformat(stamp)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
