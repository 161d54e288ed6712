"""Samples of the fitted parameters, as a Parquet file: one column per target, one row per sample."""

import io
import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gapless.core.parameters import ParameterSpace
from gapless.core.scaling import Scaling
from gapless.core.signal import Array
from gapless.fit.solution import Solution

NUM_SAMPLES = 1000
GAUSSIAN, NEURAL = "posterior.parquet", "posterior_sbi.parquet"


def gaussian_samples(
    space: ParameterSpace, solution: Solution, rng: np.random.Generator, num_samples: int = NUM_SAMPLES
) -> Array:
    """Draws from the posterior that the intervals describe, (num_samples, num_free), each column in its unit.

    It is normal in the solver's coordinates; what falls beyond a bound lies on the bound, as the intervals do.
    """
    unit = solution.unit + rng.standard_normal((num_samples, len(space))) @ square_root(solution.covariance).T
    return Scaling.of(space).values(np.clip(unit, 0.0, 1.0))


def square_root(covariance: Array) -> Array:
    """Returns S with S S^T = covariance, also where it is singular or has rounding errors below 0."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def parquet_bytes(space: ParameterSpace, samples: Array, about: Sequence[tuple[str, str]]) -> bytes:
    """Returns samples, (num_samples, num_parameters), as Parquet: columns are targets, in their units.

    The metadata has the units, and the pairs of `about`, such as the method.
    """
    units = json.dumps({p.target: p.unit for p in space.parameters})
    schema = pa.schema([pa.field(target, pa.float64()) for target in space.targets])
    schema = schema.with_metadata({"units": units, **dict(about)})
    table = pa.table([samples[:, k] for k in range(len(space))], schema=schema)
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()
