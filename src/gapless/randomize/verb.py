"""The verb `randomize`: a fit becomes training ranges."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import gapless
from gapless.core.distribution import Range
from gapless.core.errors import InputError
from gapless.core.interval import normal_quantile
from gapless.core.provenance import Provenance
from gapless.core.results import RandomizeResult
from gapless.data.catalogue import Catalogue
from gapless.data.keep import RESULT, ids_of, keep_result, newest
from gapless.project.fingerprint import fingerprint
from gapless.project.load import load_project
from gapless.sim.ranges import read_result

OF_VALUE = 0.1  # least standard deviation as a share of the fitted value: no fit is surer of reality than that
OF_RANGE = 0.01  # and as a share of the prior range, for values near 0
UNKNOWN = 0.15  # half width around the model's value where the logs could not tell, as a share of the prior range


def randomize(directory: str | Path, *, fit: str | Path | None = None, seed: int = 0) -> RandomizeResult:
    """Turns a fit into training ranges: around what was fitted, as wide as what was left unexplained.

    A parameter that the logs determine becomes a normal distribution about its fitted value. Its standard
    deviation is that of the fit times the ratio of residual to noise, and at least `OF_VALUE` of the value and
    `OF_RANGE` of the prior range. One that they do not determine becomes uniform about the model's value.

    Args:
        directory: The project folder.
        fit: JSON that `identify` wrote; None for the newest fit in the catalogue.
        seed: Kept with the result.

    Raises:
        InputError: If there is no fit, or it refused.
    """
    project = load_project(directory)
    catalogue = Catalogue.open(project.directory)
    path = Path(fit) if fit is not None else _newest_fit(catalogue)
    found = read_result(path, "identify")
    try:
        if found["verdict"] == "refused":
            raise InputError(f"that fit was refused ({'; '.join(found['reasons'])}): record more first: {path}")
        judged = found["held_out"] if found["held_out"].get("residual_to_noise") else found["train"]
        unexplained = max(1.0, float(judged.get("residual_to_noise") or 1.0))
        ranges = tuple(training_range(entry, unexplained) for entry in found["parameters"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the fit lacks a part, or one is no number ({error}): run identify again: {path}") from None
    result = RandomizeResult(ids_of(path), ranges, "", seed)
    provenance = Provenance("randomize", gapless.__version__, ids_of(path), {"project": fingerprint(project)}, seed)
    identity = keep_result(catalogue, result, provenance)
    return replace(result, path=str(catalogue.artefact_path(identity, RESULT).resolve()))


def training_range(entry: dict[str, Any], unexplained: float) -> Range:
    """Returns the range of one fitted parameter, as its JSON entry says it.

    Args:
        entry: A parameter of a fit.
        unexplained: Ratio of residual to noise that the fit left, at least 1.
    """
    bottom, top = float(entry["prior_low"]), float(entry["prior_high"])
    value, width = float(entry["value"]), top - bottom
    if not entry["identifiable"]:
        centre = float(entry["nominal"])
        low, high = max(bottom, centre - UNKNOWN * width), min(top, centre + UNKNOWN * width)
        reason = "the logs cannot tell: about the model's value"
        return Range(entry["target"], "uniform", low, high, (low + high) / 2, reason=reason)
    half = max(float(entry["high"]) - value, value - float(entry["low"]))
    fitted = half / normal_quantile((1 + float(entry["level"])) / 2)
    floor = max(OF_VALUE * abs(value), OF_RANGE * width)
    std = max(fitted * unexplained, floor)
    reason = f"fitted, widened {unexplained:.1f} times for what is unexplained"
    if std == floor:
        of_value = OF_VALUE * abs(value) >= OF_RANGE * width
        share, whole = (OF_VALUE, "value") if of_value else (OF_RANGE, "prior range")
        reason = f"fitted, at least {100 * share:.0f} % of the {whole}"
    return Range(entry["target"], "normal", max(bottom, value - 2 * std), min(top, value + 2 * std), value, std, reason)


def _newest_fit(catalogue: Catalogue) -> Path:
    identity = newest(catalogue, "identify")
    if identity is None:
        raise InputError("there is no fit yet: run `gapless identify DIR` first, or name one with --fit FILE")
    return catalogue.artefact_path(identity, RESULT)
