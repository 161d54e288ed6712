import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from gapless.core.parameters import Parameter, ParameterSpace
from gapless.core.results import IdentifyResult, from_json, to_json
from gapless.core.scaling import Scaling
from gapless.fit.solution import Solution
from gapless.fit.summary import describe_parameters
from gapless.identify.posterior.samples import NUM_SAMPLES, gaussian_samples, parquet_bytes, square_root
from gapless.identify.verb import identify
from unit.identify.realities import WHATEVER, write_reality

SPACE = ParameterSpace(
    (
        Parameter("joint/j/damping", "actuator", "N·m·s/rad", 0.5, 0.05, 5.0),  # stepped in by factors
        Parameter("joint/j/frictionloss", "actuator", "N·m", 0.0, 0.0, 2.0),  # here at its bound
        Parameter("measurement/q/bias", "sensor", "rad", 0.0, -0.1, 0.1),
    )
)
UNIT = np.array([0.4, 0.0, 0.6])
COVARIANCE = np.array([[4e-4, 0.0, 3e-4], [0.0, 1e-2, 0.0], [3e-4, 0.0, 9e-4]])


def solution() -> Solution:
    return Solution(Scaling.of(SPACE).values(UNIT), UNIT, COVARIANCE, np.linalg.inv(COVARIANCE), 0.0)


def test_the_root_of_a_singular_covariance() -> None:
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    root = square_root(singular)
    np.testing.assert_allclose(root @ root.T, singular, atol=1e-12)


def test_quantiles_of_the_samples_are_the_intervals() -> None:
    rng = np.random.default_rng(0)
    unit = Scaling.of(SPACE).unit(gaussian_samples(SPACE, solution(), rng, 100_000))
    low, high = np.quantile(unit, [0.025, 0.975], axis=0)
    fitted = describe_parameters(SPACE, solution())
    ends = Scaling.of(SPACE).unit(np.array([[p.low for p in fitted], [p.high for p in fitted]]))
    # A 2.5 % quantile of n normal draws has a standard error of sqrt(p (1 - p) / n) / density(1.96) = 0.0085 sd.
    assert np.all(np.abs([low, high] - ends) < 0.04 * np.sqrt(np.diag(COVARIANCE)))


def test_samples_keep_correlations_and_bounds() -> None:
    values = gaussian_samples(SPACE, solution(), np.random.default_rng(1), 20_000)
    unit = Scaling.of(SPACE).unit(values)
    assert np.corrcoef(unit[:, 0], unit[:, 2])[0, 1] == pytest.approx(0.5, abs=0.03)  # 3e-4 / sqrt(4e-4 * 9e-4)
    assert np.all((values >= SPACE.low) & (values <= SPACE.high))
    assert np.mean(values[:, 1] == 0.0) == pytest.approx(0.5, abs=0.02)  # half of N(0, 0.1) lies beyond the bound


def test_the_same_seed_writes_the_same_bytes() -> None:
    files = [
        parquet_bytes(SPACE, gaussian_samples(SPACE, solution(), np.random.default_rng(3)), [("method", "gaussian")])
        for _ in range(2)
    ]
    assert files[0] == files[1]


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> IdentifyResult:
    truth = {"joint/hinge/damping": 0.12, "actuator/motor/gain": 0.8}
    return identify(write_reality(tmp_path_factory.mktemp("samples"), truth, parameters=WHATEVER[:2], num_logs=2))


def test_every_fit_comes_with_samples(result: IdentifyResult) -> None:
    assert result.posterior is not None
    table = pq.read_table(result.posterior)
    assert table.column_names == [p.target for p in result.parameters]
    assert table.num_rows == NUM_SAMPLES
    assert json.loads(table.schema.metadata[b"units"]) == {p.target: p.unit for p in result.parameters}
    assert Path(result.posterior).parent == Path(str(result.model)).parent
    for p in result.parameters:
        low, middle, high = np.quantile(table[p.target], [0.025, 0.5, 0.975])
        # of 1000 draws: 0.085 standard deviations for the ends, a 46th of the interval; four times that is allowed
        assert np.allclose([low, high], [p.low, p.high], atol=(p.high - p.low) / 11)
        assert p.low < middle < p.high


def test_the_paths_survive_json(result: IdentifyResult) -> None:
    again = from_json(json.loads(json.dumps(to_json(result))))
    assert isinstance(again, IdentifyResult)
    assert again.posterior == result.posterior
    assert again.neural is None


def test_a_refusal_has_no_samples(tmp_path: Path) -> None:
    refused = identify(write_reality(tmp_path, {}, num_logs=2, duration_s=1.0))
    assert refused.verdict == "refused"
    assert refused.posterior is None
