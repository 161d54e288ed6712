"""Fits as `identify` writes them, made by hand."""

import json
from pathlib import Path
from typing import Any

from gapless.core.results import FitErrors, FittedParameter, IdentifyResult, to_json


def fitted(target: str, value: float, **changes: Any) -> FittedParameter:
    """Returns a fitted parameter, identified to 10 % of its value unless something else is said."""
    made = {"nominal": value, "low": 0.9 * value, "high": 1.1 * value, "level": 0.95}
    made |= {"identifiable": True, "at_bound": False, "prior_low": 0.0, "prior_high": 10.0}
    return FittedParameter(**{"target": target, "dimension": "actuator", "unit": "1", "value": value} | made | changes)


def write_fit(path: Path, *parameters: FittedParameter, residual_to_noise: float = 1.0) -> Path:
    """Writes a good fit with these parameters; returns its path."""
    errors = FitErrors((), {}, None, None, residual_to_noise)
    result = IdentifyResult((), parameters, (), errors, errors, "good", (), None, 0.3, 0)
    path.write_text(json.dumps(to_json(result)))
    return path
