"""Fits in the catalogue: stored with their model and samples, and found again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import ModuleType

import gapless
from gapless.core.protocols import Progress
from gapless.core.provenance import Provenance
from gapless.core.results import IdentifyResult
from gapless.core.signal import Array
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import find_same_result, store_result_if_possible
from gapless.fit.data import ProjectData
from gapless.fit.problem import Watch
from gapless.identify.drift import load_stored_fit
from gapless.identify.posterior.samples import GAUSSIAN, NEURAL
from gapless.project.fingerprint import fingerprint
from gapless.sim.corrected import corrected_xml

MODEL = "model.xml"  # the corrected model, beside the result
WINDOW = "window_s"  # in the provenance of a fit: the length of windows that was found best [s]


@dataclass(frozen=True)
class FitOptions:
    """What a fit was asked for; see `identify`."""

    hold_out: tuple[str, ...] = ()
    window_s: float | None = None
    neural: ModuleType | None = None  # the module that samples with `sbi`, if that is asked for
    posterior: str = "gaussian"
    seed: int = 0
    progress: Progress | None = None
    watch: Watch | None = None

    def provenance(self, data: ProjectData) -> Provenance:
        """Returns the provenance of the fit of some logs, but for what is found on the way."""
        asked = {
            "project": fingerprint(data.project),
            "held_out": [data.episodes[k].name for k in data.split(self.hold_out)[1]],
            "asked_window_s": self.window_s,
            "posterior": self.posterior,
        }
        return Provenance("identify", gapless.__version__, data.ids[: len(data.episodes)], asked, self.seed)


def store_fit(
    data: ProjectData, provenance: Provenance, result: IdentifyResult, row: Array, samples: Mapping[str, bytes]
) -> IdentifyResult:
    """Enters the fit, its corrected model and its samples in the catalogue; returns the result with their paths."""
    provenance = replace(provenance, config={**provenance.config, **{WINDOW: result.window_s}})
    files: dict[str, bytes] = {}
    if result.verdict != "refused":
        folder = data.catalogue.artefact_folder("0")
        files[MODEL] = corrected_xml(data.blueprint, data.whole.shared, row, folder).encode()
        files |= samples
    identity = store_result_if_possible(data.catalogue, result, provenance, files)
    return result if identity is None else _add_paths(data.catalogue, replace(result, id=identity), files)


def _add_paths(catalogue: Catalogue, result: IdentifyResult, files: Iterable[str]) -> IdentifyResult:
    """Returns a stored result with the paths of its files."""
    path = {name: str(catalogue.artefact_path(result.id or "", name).resolve()) for name in files}
    neural = replace(result.neural, path=path.get(NEURAL)) if result.neural else None
    return replace(result, model=path.get(MODEL), posterior=path.get(GAUSSIAN), neural=neural)


def find_stored_fit(data: ProjectData, options: FitOptions) -> IdentifyResult | None:
    """Returns the fit that the same code made of the same logs with the same options, if it is whole; else None."""
    catalogue = data.catalogue
    identity = find_same_result(catalogue, "identify", options.provenance(data), found_keys=(WINDOW,))
    result = load_stored_fit(catalogue, identity) if identity else None
    if result is None:
        return None
    names = () if result.verdict == "refused" else (MODEL, GAUSSIAN, *((NEURAL,) if result.neural else ()))
    whole = all(catalogue.artefact_path(result.id or "", name).is_file() for name in names)
    return _add_paths(catalogue, result, names) if whole else None
