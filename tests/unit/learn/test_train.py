import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from gapless.core.distribution import Distribution
from gapless.core.errors import InputError
from gapless.core.results import TrainResult
from gapless.data.catalogue import Catalogue
from gapless.learn.policy import load_policy
from gapless.learn.train import INTERRUPTED, TrainConfig, _Learner, train
from gapless.project.code import load_task
from gapless.project.load import load_project
from gapless.sim.blueprint import EMPTY_SPACE, compile_project
from gapless.verbs import copy_example
from unit.learn.balance import SMALL


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_example("balance", tmp_path_factory.mktemp("balance"))


@pytest.fixture(scope="module")
def trained(folder: Path) -> TrainResult:
    return train(folder, config=SMALL)


def test_a_policy_is_made_and_scored(trained: TrainResult) -> None:
    assert Path(trained.policy).is_file()
    assert trained.num_steps == 2048
    assert trained.success.n == SMALL.num_trials
    assert load_policy(trained.policy).history == 3  # 0.06 s at 50 Hz


def test_the_same_training_is_not_done_again(folder: Path, trained: TrainResult) -> None:
    began = time.monotonic()
    assert train(folder, config=SMALL) == trained
    assert time.monotonic() - began < 2.0


def test_another_seed_or_config_trains_anew(folder: Path, trained: TrainResult) -> None:
    assert train(folder, config=SMALL, seed=1).policy_id != trained.policy_id
    assert train(folder, config=replace(SMALL, learning_rate=1e-3)).policy_id != trained.policy_id


def test_another_model_trains_anew(trained: TrainResult, tmp_path: Path) -> None:
    folder = copy_example("balance", tmp_path / "balance")
    first = train(folder, config=SMALL)
    model = folder / "robot.xml"
    model.write_text(model.read_text().replace('mass=".6"', 'mass=".9"'))
    changed = train(folder, config=SMALL)
    assert changed.policy_id != first.policy_id
    assert len(Catalogue.open(folder).artefacts("train")) == 2
    # the same numbers in another folder give the same policy
    np.testing.assert_array_equal(load_policy(first.policy).weights[0], load_policy(trained.policy).weights[0])


def test_another_module_of_the_task_or_another_gapless_trains_anew(tmp_path: Path, monkeypatch) -> None:
    folder = copy_example("balance", tmp_path / "balance")
    (folder / "task.py").write_text("import weights\n" + (folder / "task.py").read_text())
    (folder / "weights.py").write_text("WEIGHT = 1.0\n")
    ids = [train(folder, config=SMALL).id]
    (folder / "weights.py").write_text("WEIGHT = 2.0\n")
    ids.append(train(folder, config=SMALL).id)
    monkeypatch.setattr("gapless.learn.train.code_version", lambda: "0.1.0+edited")
    monkeypatch.setattr("gapless.data.stored_results.code_version", lambda: "0.1.0+edited")
    ids.append(train(folder, config=SMALL).id)
    assert len(set(ids)) == 3
    assert train(folder, config=SMALL).id == ids[2]


def test_an_interrupt_keeps_the_policy_so_far(tmp_path: Path) -> None:
    folder = copy_example("balance", tmp_path / "balance")

    def interrupt(label: str, share: float) -> None:
        if share >= 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(folder, config=SMALL, progress=interrupt)
    catalogue = Catalogue.open(folder)
    assert catalogue.artefacts("train") == ()
    (kept,) = catalogue.artefacts(INTERRUPTED)
    assert load_policy(catalogue.artefact_path(kept.id, "policy.npz")).history == 3
    num_done, _ = json.loads(catalogue.artefact_path(kept.id, "progress.json").read_text())
    assert 0 < num_done <= SMALL.num_steps
    # the same command goes on from there, up to the steps that were asked for
    shares: list[float] = []
    result = train(folder, config=SMALL, progress=lambda _, share: shares.append(share))
    assert shares[0] > num_done / SMALL.num_steps
    assert result.policy_id != kept.id
    assert train(folder, config=SMALL) == result


def test_training_goes_on_from_a_policy(folder: Path, trained: TrainResult) -> None:
    further = train(folder, start=trained.policy, config=SMALL)
    assert trained.policy_id in further.inputs
    assert further.policy_id != trained.policy_id


def test_a_start_of_another_shape_is_refused(folder: Path, trained: TrainResult) -> None:
    with pytest.raises(InputError, match="not of the layers 8: start anew"):
        train(folder, start=trained.policy, config=replace(SMALL, layers=(8,)))


def test_the_plain_policy_acts_as_the_network_does(folder: Path) -> None:
    project = load_project(folder)
    blueprint, task = compile_project(project), load_task(project)
    learner = _Learner(blueprint, task, Distribution(EMPTY_SPACE), TrainConfig(num_worlds=4), 0, None)
    seen = np.random.default_rng(0).normal(size=(50, 24)).astype(np.float32)
    network = learner.model.policy
    with torch.no_grad():
        wanted = network._predict(torch.as_tensor(seen), deterministic=True).numpy()
    np.testing.assert_allclose(learner.policy().act(seen), np.clip(wanted, -1, 1), atol=1e-6)


def test_a_project_without_a_task_is_told_so(tmp_path: Path) -> None:
    folder = copy_example("balance", tmp_path / "balance")
    text = (folder / "gapless.yaml").read_text()
    (folder / "gapless.yaml").write_text(text.replace("task: task.py:Balance\n", ""))
    with pytest.raises(InputError, match="names no task"):
        train(folder, config=SMALL)
