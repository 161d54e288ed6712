import hashlib
from pathlib import Path

import mujoco
import numpy as np
import pytest

from gapless.core.errors import InputError
from gapless.core.interval import wilson
from gapless.data.catalogue import Catalogue
from gapless.learn.evaluate import evaluate
from gapless.learn.policy import NetworkPolicy
from gapless.verbs import copy_example, query

# Push where the pole leans and moves: catches it more often than not.
FRAMES = 3


def catcher() -> NetworkPolicy:
    """Returns a policy that is plain feedback of pole and cart, from two frames."""
    weights = np.zeros((1, FRAMES * 4))
    weights[0, -4:] = [0.5, 1.2, 0.0, 0.0]  # now: cart / 0.4, pole / 0.15, last command, action
    weights[0, :4] = [-0.35, -0.45, 0.0, 0.0]  # two frames ago: the difference is the rate
    return NetworkPolicy((weights,), (np.zeros(1),), FRAMES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = copy_example("balance", tmp_path_factory.mktemp("balance"))
    (place / "policy.npz").write_bytes(catcher().to_bytes())
    (place / "wrong.npz").write_bytes(NetworkPolicy((np.ones((1, 5)),), (np.zeros(1),), 1).to_bytes())
    return place


def test_numbers_follow_from_the_recorded_outcomes(folder: Path) -> None:
    reality = evaluate(folder, folder / "policy.npz", num_trials=12)
    simulation = evaluate(folder, folder / "policy.npz", where="simulation", num_trials=9)
    catalogue = Catalogue.open(folder)
    for result, source, count in ((reality, "twin", 12), (simulation, "sim", 9)):
        runs = [row for row in catalogue.episodes(source=source) if row.id in result.inputs]
        assert len(runs) == count
        won = sum(row.outcome == "success" for row in runs)
        assert result.success == wilson(won, count)
        assert sum(result.failed_in.values()) == count - won
        assert all(row.failed_in for row in runs if row.outcome == "failure")
    assert not set(reality.inputs) & set(simulation.inputs)
    assert simulation.success.value > 0.5  # the model as written is what the feedback was made for


def test_the_same_seed_gives_the_same_runs(folder: Path) -> None:
    first, again = (evaluate(folder, folder / "policy.npz", num_trials=4, seed=5) for _ in range(2))
    assert first == again
    assert evaluate(folder, folder / "policy.npz", num_trials=4, seed=6).inputs != first.inputs


def test_a_policy_of_another_task_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="for another task"):
        evaluate(folder, folder / "wrong.npz", num_trials=2)


def test_without_a_reality_only_simulation_is_possible(tmp_path: Path) -> None:
    place = copy_example("balance", tmp_path / "balance")
    (place / "policy.npz").write_bytes(catcher().to_bytes())
    text = (place / "gapless.yaml").read_text().replace("reality: twin.py:make\n", "")
    (place / "gapless.yaml").write_text(text)
    with pytest.raises(InputError, match="names no reality"):
        evaluate(place, place / "policy.npz", num_trials=2)
    assert evaluate(place, place / "policy.npz", where="simulation", num_trials=2).success.n == 2


def test_runs_say_which_policy_and_simulator_made_them_and_nothing_of_a_twin(folder: Path) -> None:
    evaluate(folder, folder / "policy.npz", where="simulation", num_trials=3, seed=8)
    evaluate(folder, folder / "policy.npz", num_trials=3, seed=8)
    digest = hashlib.sha256((folder / "policy.npz").read_bytes()).hexdigest()[:12]
    sql = "SELECT DISTINCT source, simulator, simulator_version, policy, policy_version FROM episodes "
    rows = query(folder, f"{sql} WHERE starts_with(made_by, 'evaluate') ORDER BY source").rows
    expected = ("sim", "mujoco", mujoco.__version__), ("twin", None, None)
    assert rows == tuple((*each, "policy.npz", digest) for each in expected)
