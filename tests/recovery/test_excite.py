"""Predicted intervals are those that `identify` then reports, and a chosen motion beats a plain one.

A pendulum whose parameters differ from the model's plays the robot. The motion is chosen on the model as written,
without any log, played on that robot with noise, and fitted.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.results import ExciteResult, IdentifyResult
from gapless.excite.knowledge import read_knowledge
from gapless.excite.motion import simulate_motions
from gapless.excite.play import motion_csv, play
from gapless.excite.search import ExciteConfig
from gapless.excite.verb import excite, make_search
from gapless.identify.verb import identify
from gapless.project.load import load_project
from gapless.project.log.write import write_log
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from unit.identify.realities import ANGLE, COMMANDS, PENDULUM, WHATEVER
from unit.sim.scenes import space_of, write_project

pytestmark = pytest.mark.slow
TRUTH = {
    "joint/hinge/damping": 0.08,
    "actuator/motor/gain": 0.8,
    "actuator/*/delay": 0.03,
    "measurement/q/bias": 0.02,
    "joint/hinge/frictionloss": 0.03,
}
PARAMETERS = (*WHATEVER, "{target: joint/hinge/frictionloss, low: 0, high: 0.3}")
SECONDS = 10.0
SEEDS = range(10, 14)
SLOW_HZ = 0.2  # of the plain motion, one sine


def fitted(folder: Path, motion: Path, start: dict[str, float], seed: int) -> IdentifyResult:
    """Plays a motion on the robot, which is read with noise, and fits it."""
    project = load_project(folder)
    blueprint = compile_project(project)
    robot = Simulation(blueprint, 1, space_of(blueprint, *TRUTH), 1, noisy=True)
    robot.set_parameters(np.array([list(TRUTH.values())]))
    shutil.rmtree(folder / "logs", ignore_errors=True)
    episode = play(project, robot, motion, start, np.random.default_rng(seed))
    write_log(project, replace(episode, source="real"))
    found = identify(folder, seed=seed)
    shutil.rmtree(folder / "logs")
    return found


def plain_motion(folder: Path) -> Path:
    """Writes one slow sine, as large as the limits of the project allow."""
    problem = make_search(read_knowledge(folder, None, ()), SECONDS)
    times_s = np.arange(round(50 * SECONDS)) / 50.0
    wave = np.sin(2 * np.pi * SLOW_HZ * times_s) * np.clip((times_s - 0.3) / 0.5, 0.0, 1.0)
    sizes = np.linspace(1.8, 0.1, 18)
    sent = (sizes[:, None] * wave)[:, :, None]
    kept = problem.is_allowed(simulate_motions(problem.known, problem.space, sent, problem.row))
    assert kept.any()
    (folder / "plain.csv").write_bytes(motion_csv(problem.known.project, sent[np.argmax(kept)]))
    return folder / "plain.csv"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[ExciteResult, IdentifyResult, IdentifyResult]]:
    """Returns per seed what was promised, what the motion told, and what the plain one told."""
    results = []
    brief = ExciteConfig(max_motions=28)  # a fifth of the usual search: it is the promise that is tested
    for seed in SEEDS:
        folder = write_project(
            tmp_path_factory.mktemp("pendulum"), PENDULUM, COMMANDS, ANGLE, rate_hz=50, parameters=PARAMETERS
        )
        plain = plain_motion(folder)
        promise = excite(folder, seconds=SECONDS, config=brief, seed=seed)
        start = dict(promise.start)
        told = fitted(folder, Path(str(promise.path)), start, seed)
        results.append((promise, told, fitted(folder, plain, start, seed)))
    return results


def widths(fit: ExciteResult | IdentifyResult) -> dict[str, float]:
    """Returns target -> width of its interval as a share of its range."""
    return {p.target: (p.high - p.low) / (p.prior_high - p.prior_low) for p in fit.parameters}


def test_predicted_intervals_are_as_wide_as_those_that_identify_reports(
    found: list[tuple[ExciteResult, IdentifyResult, IdentifyResult]],
) -> None:
    ratios = np.array([[widths(told)[t] / widths(promise)[t] for t in TRUTH] for promise, told, _ in found])
    assert np.all(ratios > 1 / 2.5), ratios
    assert np.all(ratios < 2.5), ratios
    assert 1 / 1.5 < np.median(ratios) < 1.5


def test_what_can_be_told_is_told(found: list[tuple[ExciteResult, IdentifyResult, IdentifyResult]]) -> None:
    for promise, told, _ in found:
        assert all(p.outlook == "can be told" for p in promise.parameters)
        for p in told.parameters:
            assert p.identifiable
            assert abs(p.value - TRUTH[p.target]) < 0.05 * (p.prior_high - p.prior_low)


def test_a_chosen_motion_beats_a_slow_sine_on_the_worst_parameter(
    found: list[tuple[ExciteResult, IdentifyResult, IdentifyResult]],
) -> None:
    for _, told, plain in found:
        assert max(widths(told).values()) < 0.5 * max(widths(plain).values())
