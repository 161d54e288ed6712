from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gapless.core.episode import Episode
from gapless.core.protocols import Start
from gapless.core.run import run_open
from gapless.diagnose.counterfactual.spread import (
    SpreadComparison,
    compare_spread,
    estimate_spread_ratio,
    find_repeats,
)
from gapless.project.load import load_project
from gapless.project.records import Project
from gapless.signals.track import make_track
from gapless.sim.blueprint import compile_project
from gapless.sim.simulation import Simulation
from unit.diagnose.lift import COMMANDS, MEASUREMENTS, SPACE, XML, row_of
from unit.sim.scenes import write_project

TOO_CERTAIN = "the simulation is too certain"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return load_project(write_project(tmp_path_factory.mktemp("swing"), XML, COMMANDS, MEASUREMENTS, rate_hz=50.0))


def trials(project: Project, *, vary: float, count: int = 5, start: float = 0.0) -> list[Episode]:
    """Returns trials with the same commands; the motor's gain varies between them by this standard deviation."""
    world = Simulation(compile_project(project), 1, SPACE, 1, noisy=True)
    found: list[Episode] = []
    rng = np.random.default_rng(8)
    units = (project.command_units, project.measurement_units)
    for k in range(count):
        world.set_parameters(row_of({"actuator/motor/gain": 1 + vary * rng.standard_normal()})[None])
        begin = Start({"hinge": np.array([[start * k]])}, np.zeros((1, 0)))
        steer = lambda time_s, measured: np.array([[0.5 * np.sin(4 * time_s)]])  # noqa: E731
        found.append(run_open(world, steer, begin, rng, 120, units=units, name=f"trial{k}"))
    return found


def compare(project: Project, episodes: list[Episode], unusable: slice | None = None) -> SpreadComparison | None:
    """Compares trials; the rows of a slice are marked as unusable in the first."""
    tracks = [make_track(project, episode) for episode in episodes]
    if unusable is not None:
        tracks[0].usable[unusable] = False
    data = SimpleNamespace(project=project, tracks=tuple(tracks), blueprint=compile_project(project))
    return compare_spread(data)  # type: ignore[arg-type]


def spread(project: Project, episodes: list[Episode], unusable: slice | None = None) -> SpreadComparison:
    found = compare(project, episodes, unusable)
    assert found is not None
    return found


def disturb(episode: Episode, rows: slice) -> Episode:
    """Returns a trial in which somebody held the robot for a while."""
    values = episode.measurements.values.copy()
    values[rows] += 0.3
    return replace(episode, measurements=replace(episode.measurements, values=values))


def test_a_robot_that_repeats_itself_less_than_its_model_is_told(project: Project) -> None:
    found = spread(project, trials(project, vary=0.15))
    assert found.ratios["q"].low > 1.25
    assert found.sentence.startswith("5 repeated trials spread")
    assert found.sentence.endswith(TOO_CERTAIN)


def test_noise_as_stated_is_no_reason_to_doubt(project: Project) -> None:
    found = spread(project, trials(project, vary=0.0))
    assert found.ratios["q"].low < 1.0 < found.ratios["q"].high * 1.1
    assert "not shown to be too certain" in found.sentence


@pytest.mark.parametrize("rows", [slice(80, 110), slice(0, 30)])
def test_a_stretch_that_is_marked_unusable_does_not_count(rows: slice, project: Project) -> None:
    first, *rest = trials(project, vary=0.0)
    disturbed = [disturb(first, rows), *rest]
    if rows.start:
        assert spread(project, disturbed).sentence.endswith(TOO_CERTAIN)
    found = spread(project, disturbed, unusable=rows)
    assert found.sentence.startswith("5 repeated trials spread")
    assert not found.sentence.endswith(TOO_CERTAIN)


def test_trials_that_repeat_nothing_say_nothing(project: Project) -> None:
    assert compare(project, trials(project, vary=0.1, count=1)) is None
    assert compare(project, trials(project, vary=0.1, start=0.1)) is None


def test_only_equal_commands_and_starts_are_repeats(project: Project) -> None:
    alike, apart = trials(project, vary=0.0, count=3), trials(project, vary=0.0, count=2, start=0.2)
    tracks = [make_track(project, episode) for episode in [*alike, apart[1]]]
    assert [[track.name for track in group] for group in find_repeats(tracks)] == [["trial0", "trial1", "trial2"]]


@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_intervals_of_spread_cover_the_truth(memory: float) -> None:
    # Three trials of 100 rows of an autoregression with twice the simulated standard deviation, 400 times.
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        noise = rng.standard_normal((3, 150))
        values = np.zeros_like(noise)
        for k in range(1, 150):
            values[:, k] = memory * values[:, k - 1] + np.sqrt(1 - memory**2) * noise[:, k]
        values = 2 * values[:, 50:]
        centred = (values - values.mean(axis=0)) * np.sqrt(3 / 2)
        ratio = estimate_spread_ratio([centred])
        covered += ratio.low <= 2.0 <= ratio.high
    assert 0.91 <= covered / 400 <= 0.985


def test_no_reading_gives_no_ratio() -> None:
    ratio = estimate_spread_ratio([np.full((2, 20), np.nan)])
    assert ratio.low == 0.0
    assert np.isnan(ratio.value)
