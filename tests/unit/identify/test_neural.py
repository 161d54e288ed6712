"""Samples by neural estimation. Needs the extra `sbi`; without it, only its absence is tested."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from gapless.core.errors import InputError
from gapless.core.results import IdentifyResult, NeuralPosterior, SampledParameter, from_json, to_json
from gapless.core.scaling import Scaling
from gapless.fit.data import read_project_data
from gapless.fit.problem import FitProblem
from gapless.fit.search.structure import build_problem
from gapless.fit.solution import Solution
from gapless.fit.solve import solve_least_squares
from gapless.identify.posterior.samples import NUM_SAMPLES
from gapless.identify.verb import identify
from unit.identify.realities import WHATEVER, write_reality

TRUTH = {"joint/hinge/damping": 0.12, "actuator/motor/gain": 0.8}


def test_without_sbi_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sbi", None)
    monkeypatch.delitem(sys.modules, "gapless.identify.posterior.neural", raising=False)
    with pytest.raises(InputError, match=r"^--posterior sbi needs \w+: install it with pip install 'gapless\[sbi\]'$"):
        identify(tmp_path, posterior="sbi")  # before anything is read: there is no project here


def test_an_unknown_posterior_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no posterior 'mcmc'; choose from: gaussian, sbi"):
        identify(tmp_path, posterior="mcmc")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def neural() -> Any:
    pytest.importorskip("sbi", reason="sbi is not installed: pip install 'gapless[sbi]'")
    from gapless.identify.posterior import neural

    return neural


@pytest.fixture
def few(neural: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates less, where the quality of the samples does not matter."""
    monkeypatch.setattr(neural, "NUM_SIMULATIONS", 300)
    monkeypatch.setattr(neural, "LAST_EPOCHS", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reality(tmp_path_factory.mktemp("neural"), TRUTH, parameters=WHATEVER[:2])


@pytest.fixture(scope="module")
def solved(folder: Path) -> tuple[FitProblem, Solution]:
    evidence = read_project_data(folder)
    problem = build_problem(evidence, evidence.space, [0, 1, 2], 0.3, np.random.default_rng(0))
    solution = solve_least_squares(problem, evidence.space.nominal, ((0.03, 6), (0.01, 6), (0.003, 10)))
    return problem.with_starts_at(solution.row), solution


@pytest.fixture(scope="module")
def sampled(neural: Any, solved: tuple[FitProblem, Solution]) -> tuple[np.ndarray, NeuralPosterior]:
    return neural.sample_posterior(*solved, np.random.default_rng(0))


@pytest.mark.slow
def test_where_all_is_nearly_linear_it_agrees_with_the_fit(
    sampled: tuple[np.ndarray, NeuralPosterior], solved: tuple[FitProblem, Solution]
) -> None:
    (samples, found), (problem, solution) = sampled, solved
    unit = Scaling.of(problem.space).unit(samples)
    deviation = np.sqrt(np.diag(solution.covariance))
    assert np.all(np.abs(np.median(unit, axis=0) - solution.unit) < 0.5 * deviation)
    np.testing.assert_allclose(unit.std(axis=0), deviation, rtol=0.25)
    assert found.disagrees == ()
    assert found.num_effective == NUM_SAMPLES


@pytest.mark.slow
def test_it_says_that_it_is_calibrated(sampled: tuple[np.ndarray, NeuralPosterior]) -> None:
    _, found = sampled
    assert found.calibrated
    assert all(p.rank_p is not None and 0.025 < p.rank_p <= 1.0 for p in found.parameters)
    assert (found.num_simulations, found.num_checks) == (3000, 200)


@pytest.mark.slow
def test_the_check_notices_samples_that_are_too_narrow_or_aside(
    neural: Any, solved: tuple[FitProblem, Solution]
) -> None:
    rng = np.random.default_rng(1)
    flow = neural.Flow(neural.Cases.of(*solved, rng).focused(rng), rng, lambda label, share: None)
    draw = flow._draw

    def narrowed(told: np.ndarray, count: int) -> np.ndarray:
        found = draw(told, count)
        centre = found.mean(axis=1, keepdims=True)
        return centre + 0.6 * (found - centre)

    assert min(flow.rank_p_values()) > 0.01
    flow._draw = narrowed
    assert max(flow.rank_p_values()) < 0.01
    flow._draw = lambda told, count: draw(told, count) + 0.5 * np.sqrt(np.diag(solved[1].covariance))
    assert max(flow.rank_p_values()) < 0.01


@pytest.mark.usefixtures("few")
def test_what_no_window_shows_keeps_its_range(neural: Any, solved: tuple[FitProblem, Solution]) -> None:
    problem, solution = solved
    blind = replace(solution, information=solution.information * np.outer([0, 1], [0, 1]))
    samples, found = neural.sample_posterior(problem, blind, np.random.default_rng(2))
    unit = Scaling.of(problem.space).unit(samples)
    assert found.parameters[0].rank_p is None
    assert np.quantile(unit[:, 0], [0.1, 0.9]) == pytest.approx([0.1, 0.9], abs=0.05)
    assert unit[:, 1].std() < 0.01


@pytest.mark.usefixtures("few")
def test_the_same_seed_gives_the_same_samples_and_nothing_else_happens(
    neural: Any,
    solved: tuple[FitProblem, Solution],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import torch

    monkeypatch.chdir(tmp_path)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    first, second = (neural.sample_posterior(*solved, np.random.default_rng(3))[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert list(tmp_path.iterdir()) == []  # sbi writes a folder of logs unless told not to
    assert capsys.readouterr().out == ""


def test_reasons_name_what_is_wrong(neural: Any) -> None:
    parameters = (SampledParameter("a", 1, 0, 2, 0.95, 0.5), SampledParameter("b", 1, 0, 2, 0.95, 2e-5))
    good = NeuralPosterior(None, 10, 10, 1000, True, parameters[:1], ())
    assert neural.describe_posterior(good) == []
    bad = NeuralPosterior(None, 10, 10, 40, False, parameters, ("a",))
    assert neural.describe_posterior(bad) == [
        "do not use the neural posterior: it is not calibrated (ranks of b: p = 2e-05)",
        "only 40 samples of the neural posterior are independent: it lies aside of the fit",
        "the neural posterior disagrees with the intervals of: a",
    ]


@pytest.mark.usefixtures("few")
def test_the_verb_keeps_both_kinds_of_samples(folder: Path) -> None:
    labels: list[str] = []
    result = identify(folder, posterior="sbi", progress=lambda label, share: labels.append(label))
    assert result.neural is not None
    assert result.neural.path is not None
    table = pq.read_table(result.neural.path)
    assert table.num_rows == NUM_SAMPLES
    assert table.column_names == [p.target for p in result.parameters]
    assert table.schema.metadata[b"method"] == b"sbi"
    assert result.posterior is not None
    assert Path(result.posterior).parent == Path(result.neural.path).parent
    assert "neural posterior" in labels
    again = from_json(json.loads(json.dumps(to_json(result))))
    assert isinstance(again, IdentifyResult)
    assert again.neural == result.neural
