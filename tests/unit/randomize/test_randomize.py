import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gapless import verbs
from gapless.cli.commands import app
from gapless.cli.main import run
from gapless.core.errors import InputError
from gapless.core.results import SensorResult, to_json
from gapless.identify.verb import identify
from gapless.randomize import from_logs
from gapless.randomize.verb import METHODS, randomize
from unit.identify.realities import write_reality


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = write_reality(tmp_path_factory.mktemp("fitted"), {"actuator/motor/gain": 0.7}, num_logs=2)
    identify(made)
    return made


def test_ranges_lie_within_the_priors_and_are_kept(folder: Path) -> None:
    result = randomize(folder)
    priors = {p.target: p for p in identify(folder).parameters}
    assert [r.target for r in result.ranges] == list(priors)
    for item in result.ranges:
        prior = priors[item.target]
        assert prior.prior_low <= item.low <= item.mean <= item.high <= prior.prior_high
    assert json.loads(Path(result.path).read_text())["verb"] == "randomize"


def test_a_refused_fit_is_no_base_for_training(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, num_logs=2, duration_s=1.0)
    identify(folder)
    with pytest.raises(InputError, match="that fit was refused"):
        randomize(folder)


def test_without_a_fit_it_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="run `gapless identify DIR` first"):
        randomize(write_reality(tmp_path, {}, num_logs=1))


@pytest.mark.parametrize(
    "damage",
    [
        lambda fit: fit.pop("verdict"),
        lambda fit: fit.pop("held_out"),
        lambda fit: fit["parameters"][0].pop("prior_low"),
        lambda fit: fit["parameters"][0].update(value="much"),
        lambda fit: fit["parameters"][0].update(value=None),
        lambda fit: fit.update(parameters=5),
        lambda fit: fit.update(held_out=[]),
    ],
)
def test_a_damaged_fit_is_one_clear_line(folder: Path, tmp_path: Path, damage: Any) -> None:
    fit = json.loads(json.dumps(to_json(identify(folder))))
    damage(fit)
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(fit))
    with pytest.raises(InputError, match=r"run (identify|the verb) again") as caught:
        randomize(folder, fit=path)
    assert "\n" not in str(caught.value)


def test_an_unknown_method_lists_what_there_is(folder: Path) -> None:
    with pytest.raises(InputError, match="no method 'dropa'; choose from: dropo"):
        randomize(folder, method="dropa")


def test_methods_that_read_logs_take_no_fit(folder: Path) -> None:
    with pytest.raises(InputError, match="reads the logs, not a fit"):
        randomize(folder, method="dropo", fit="fit.json")


@pytest.mark.parametrize("option", [{"num_tries": 3}, {"num_trials": 5}, {"reality_seed": 0}])
def test_options_of_the_search_in_reality_are_refused_beside_other_methods(
    folder: Path, option: dict[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="are of --method bayrn, not of evidence: leave them out"):
        verbs.randomize(folder, **option)
    (name, value) = next(iter(option.items()))
    flag = {"num_tries": "--tries", "num_trials": "--trials", "reality_seed": "--reality-seed"}[name]
    assert run(["randomize", str(folder), flag, str(value)]) == 2
    assert run(["randomize", str(folder), "--audit", "ranges.txt", flag, str(value)]) == 2
    error = capsys.readouterr().err
    assert "are of --method bayrn" in error
    assert "does nothing beside --audit" in error
    assert error.count("\n") == 2


def test_the_noise_of_sensors_is_no_fit(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "noise.json").write_text(
        json.dumps(to_json(SensorResult((), "imu.csv", {}, "good", (), 100.0, 1.0, ())))
    )
    with pytest.raises(InputError, match="this is the noise of sensors, not a fit of the model"):
        randomize(folder, fit=tmp_path / "noise.json")


def test_sbi_needs_samples_of_sbi(folder: Path) -> None:
    with pytest.raises(InputError, match="--posterior sbi"):
        randomize(folder, method="sbi")


def test_sbi_takes_centre_and_width_from_the_neural_samples(folder: Path, tmp_path: Path) -> None:
    fit = json.loads(json.dumps(to_json(identify(folder))))
    told = [
        {"target": p["target"], "median": p["value"], "low": p["low"], "high": p["high"], "level": 0.95, "rank_p": 0.5}
        for p in fit["parameters"]
    ]
    gain = next(entry for entry in told if entry["target"] == "actuator/motor/gain")
    gain |= {"median": 0.8, "low": 0.4, "high": 1.6}  # a factor of 2 at 95 %: a deviation of ln 2 / 1.96
    numbers = {"num_simulations": 10, "num_checks": 10, "num_effective": 10}
    fit["neural"] = {"path": None, "calibrated": True, "parameters": told, "disagrees": [], **numbers}
    fit["held_out"]["residual_to_noise"] = fit["train"]["residual_to_noise"] = 1.0
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(fit))
    found = {item.target: item for item in randomize(folder, fit=path, method="sbi").ranges}["actuator/motor/gain"]
    assert found.mean == 0.8
    assert found.std == pytest.approx(0.69315 / 1.95996, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["dropo", "simopt"])
def test_methods_without_a_fit_find_a_weak_motor(tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name = method.upper()
    monkeypatch.setattr(from_logs, name, replace(getattr(from_logs, name), num_rounds=30))
    only = ["{target: actuator/motor/gain, low: 0.2, high: 2}", "{target: joint/hinge/damping, low: 0, high: 1}"]
    made = write_reality(tmp_path, {"actuator/motor/gain": 0.7}, parameters=only, num_logs=2)
    told: dict[str, list[float]] = {}
    result = randomize(made, method=method, progress=lambda label, share: told.setdefault(label, []).append(share))
    found = {item.target: item for item in result.ranges}["actuator/motor/gain"]
    assert found.low <= 0.7 <= found.high  # the truth
    assert found.high < 0.95  # and not the model's own value
    assert result.method == method
    assert "randomize" in told
    assert all(shares[-1] == 1.0 and sorted(shares) == shares for shares in told.values())


def test_every_method_is_on_the_command_line() -> None:
    shown = CliRunner().invoke(app, ["randomize", "--help"], terminal_width=200).output
    assert all(method in shown for method in (*METHODS, "bayrn"))
