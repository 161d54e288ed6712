import json
from pathlib import Path
from typing import Any

import pytest

from gapless.core.errors import InputError
from gapless.core.interval import normal_quantile
from gapless.core.results import to_json
from gapless.identify.verb import identify
from gapless.randomize.verb import randomize, training_range
from unit.identify.realities import write_reality

Z = normal_quantile(0.975)


def entry(**changes: Any) -> dict[str, Any]:
    made = {"target": "joint/j/damping", "nominal": 2.0, "value": 1.0, "low": 1.0 - 0.3 * Z, "high": 1.0 + 0.3 * Z}
    return made | {"level": 0.95, "identifiable": True, "prior_low": 0.0, "prior_high": 10.0} | changes


def test_a_determined_parameter_becomes_normal_about_its_fit() -> None:
    # The interval is 1 +- z 0.3, so std 0.3, times 2 unexplained = 0.6; cut at two of them: [-0.2, 2.2] -> [0, 2.2]
    found = training_range(entry(), 2.0)
    assert found.kind == "normal"
    assert (found.mean, found.std) == (1.0, pytest.approx(0.6))
    assert (found.low, found.high) == (0.0, pytest.approx(2.2))
    assert "2.0 times" in found.reason


def test_no_fit_is_surer_than_a_tenth_of_its_value() -> None:
    found = training_range(entry(value=5.0, low=5.0, high=5.0), 1.0)
    assert found.std == pytest.approx(0.5)
    assert (found.low, found.high) == (pytest.approx(4.0), pytest.approx(6.0))
    assert found.reason.endswith("10 % of the value")


def test_near_zero_the_floor_is_a_share_of_the_range() -> None:
    # 1 % of 10
    found = training_range(entry(value=0.0, low=0.0, high=0.0), 1.0)
    assert found.std == pytest.approx(0.1)
    assert found.reason.endswith("1 % of the prior range")


def test_an_undetermined_parameter_becomes_uniform_about_the_model() -> None:
    # 2 +- 0.15 * 10
    found = training_range(entry(identifiable=False, value=9.0), 3.0)
    assert (found.kind, found.low, found.high, found.mean) == ("uniform", 0.5, 3.5, 2.0)


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
        lambda fit: fit.update(parameters=5),
        lambda fit: fit.update(held_out=[]),
    ],
)
def test_a_damaged_fit_is_one_clear_line(folder: Path, tmp_path: Path, damage: Any) -> None:
    fit = json.loads(json.dumps(to_json(identify(folder))))
    damage(fit)
    path = tmp_path / "fit.json"
    path.write_text(json.dumps(fit))
    with pytest.raises(InputError, match="run identify again") as caught:
        randomize(folder, fit=path)
    assert "\n" not in str(caught.value)
