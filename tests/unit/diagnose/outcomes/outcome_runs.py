"""Runs with outcomes and conditions, and nothing recorded."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import numpy as np

from gapless.core.episode import Episode
from gapless.core.signal import Array, Indices, TimeSeries
from gapless.diagnose.outcomes.records import FailureFactor, OutcomeEvidence

NOTHING = TimeSeries(np.array([0.0, 1.0]), np.zeros((2, 0)), (), ())
LEVELS = {"light": 2, "object": 5, "camera": 2, "operator": 3, "site": 3, "robot": 2}


def run(
    failed: bool | np.bool_ | None,
    conditions: Mapping[str, str] | None = None,
    recorded_at: str | None = None,
    failed_in: str | None = None,
    source: str = "real",
) -> Episode:
    outcome = None if failed is None else "failure" if failed else "success"
    return Episode("run", source, NOTHING, NOTHING, outcome, failed_in, conditions or {}, recorded_at)  # type: ignore[arg-type]


def moment(day: float, hour: float = 0.0) -> str:
    return (datetime(2026, 3, 2) + timedelta(days=day, hours=hour)).isoformat()


def balanced(num_runs: int, rng: np.random.Generator) -> Indices:
    """Returns levels of all factors, (num_runs, 6), each level of a factor equally often."""
    return np.stack([rng.permutation(np.arange(num_runs) % n) for n in LEVELS.values()], axis=1)


def drawn(levels: Indices, probability: Array, rng: np.random.Generator) -> list[Episode]:
    failed = rng.random(len(levels)) < probability
    rows = [{name: f"v{k}" for name, k in zip(LEVELS, row, strict=True)} for row in levels]
    return [run(f, row) for f, row in zip(failed, rows, strict=True)]


def factor(evidence: OutcomeEvidence | None, name: str) -> FailureFactor:
    assert evidence is not None
    return next(f for f in evidence.factors if f.name == name)
