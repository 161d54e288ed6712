"""Planted ranges are told: too narrow, too wide, wrong and fitting ones, and those that trade off."""

import json
from pathlib import Path

import numpy as np
import pytest

from gapless.core.results import AuditResult, from_json, to_json
from gapless.data.catalogue import Catalogue
from gapless.data.stored_results import load_stored_result, newest_result
from gapless.randomize.audit.verb import audit
from unit.identify.realities import CART, PLACE_AND_SPEED, write_csv, write_reality

TRUTH = {
    "joint/hinge/damping": 0.1,
    "actuator/motor/gain": 0.8,
    "actuator/*/delay": 0.03,
    "measurement/q/bias": 0.05,
}
FITS = {
    "joint/hinge/damping": (0.07, 0.12),
    "actuator/motor/gain": (0.7, 1.0),
    "actuator/*/delay": (0.02, 0.04),
    "measurement/q/bias": (0.02, 0.06),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reality(tmp_path_factory.mktemp("audited"), TRUTH, num_logs=3)


def audited(folder: Path, seed: int = 0, **changes: tuple[float, float]) -> AuditResult:
    """Returns the audit of ranges that fit, but for some: `gain=(1.1, 1.4)`."""
    ranges = {target: changes.get(target.rpartition("/")[2], ends) for target, ends in FITS.items()}
    path = folder / "ranges.txt"
    path.write_text("".join(f"{target} uniform {low} .. {high}\n" for target, (low, high) in ranges.items()))
    return audit(folder, path, seed=seed)


def verdicts(result: AuditResult) -> dict[str, str]:
    return {p.target: p.verdict for p in result.parameters}


def test_ranges_about_the_truth_fit(folder: Path) -> None:
    result = audited(folder)
    assert result.verdicts == ("fits",)
    assert set(verdicts(result).values()) == {"fits"}
    assert result.share == 1.0
    assert result.residual_to_noise == pytest.approx(1.0, abs=0.1)
    for column in result.columns.values():
        assert column.coverage > 0.9


def test_a_range_beside_the_truth_is_too_narrow(folder: Path) -> None:
    result = audited(folder, gain=(1.1, 1.4))
    assert result.verdicts == ("too narrow",)
    assert [target for target, said in verdicts(result).items() if said == "too narrow"] == ["actuator/motor/gain"]
    gain = next(p for p in result.parameters if p.verdict == "too narrow")
    assert gain.advised_low < TRUTH[gain.target] < gain.advised_high == 1.4
    assert gain.outside == pytest.approx(1.1 - 0.8, abs=0.02)
    assert any("widen actuator/motor/gain from 1.1 .. 1.4" in reason for reason in result.reasons)
    assert result.residual_in_ranges is not None
    assert result.residual_in_ranges > 2.0
    assert result.columns["v"].coverage < 0.9


def test_ranges_many_times_too_wide(folder: Path) -> None:
    result = audited(folder, gain=(0.1, 5.0), delay=(0.0, 0.2))
    assert result.verdicts == ("too wide",)
    wide = {p.target: p for p in result.parameters if p.verdict == "too wide"}
    assert sorted(wide) == ["actuator/*/delay", "actuator/motor/gain"]
    for target, p in wide.items():
        assert p.advised_low < TRUTH[target] < p.advised_high
    # Drawn evenly, the share of a range is that of its width.
    shares = [(p.advised_high - p.advised_low) / (p.high - p.low) for p in wide.values()]
    assert result.share == pytest.approx(np.prod(shares), rel=0.25)
    assert result.columns["v"].advised_band_to_noise < 0.5 * result.columns["v"].band_to_noise


def test_one_too_narrow_and_one_too_wide_are_both_said(folder: Path) -> None:
    result = audited(folder, gain=(1.1, 1.4), delay=(0.0, 0.2))
    assert result.verdicts == ("too narrow", "too wide")
    assert verdicts(result)["actuator/motor/gain"] == "too narrow"
    assert verdicts(result)["actuator/*/delay"] == "too wide"


def test_what_training_does_not_vary_is_named(folder: Path) -> None:
    path = folder / "few.txt"
    path.write_text("joint/hinge/damping uniform 0.07 .. 0.12\nactuator/motor/gain uniform 0.7 .. 1\n")
    result = audit(folder, path)
    assert result.verdict == "too narrow"
    added = {p.target: p for p in result.parameters if not p.varied}
    assert sorted(added) == ["actuator/*/delay", "measurement/q/bias"]
    for target, p in added.items():
        assert p.advised_low < TRUTH[target] < p.advised_high


def test_an_effect_that_no_parameter_has_is_wrong(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, TRUTH, num_logs=3)
    for path in sorted((folder / "logs").glob("*.csv")):
        names = path.read_text().splitlines()[0].split(",")
        columns = dict(zip(names, np.loadtxt(path, delimiter=",", skiprows=1).T, strict=True))
        wobble = 0.01 * np.sin(25 * columns["time_s"])  # a base that shakes: in the readings, not in the commands
        write_csv(path, columns | {"q": columns["q"] + wobble})
    result = audited(folder)
    assert result.verdict == "wrong"
    assert result.columns["q"].residual_to_noise > 3.0
    assert any("no values explain the logs" in reason and "q " in reason for reason in result.reasons)


@pytest.mark.parametrize(("mass", "inside"), [((0.4, 0.7), True), ((1.0, 1.3), False)])
def test_where_two_trade_off_only_both_together_can_be_outside(
    mass: tuple[float, float], inside: bool, tmp_path: Path
) -> None:
    # x'' = gain u / mass: the truth is 1 / 1, and 0.5 / 0.5 moves alike; 0.5 / 1 does not.
    listed = ("{target: actuator/motor/gain, low: 0.2, high: 5}", "{target: body/cart/mass, low: 0.2, high: 5}")
    kinds = {"xml": CART, "measurements": PLACE_AND_SPEED, "parameters": listed, "noise": (0.0001, 0.001)}
    folder = write_reality(tmp_path, {"actuator/motor/gain": 1.0}, num_logs=2, **kinds)
    path = folder / "ranges.txt"
    path.write_text(f"actuator/motor/gain uniform 0.4 .. 0.6\nbody/cart/mass uniform {mass[0]} .. {mass[1]}\n")
    result = audit(folder, path)
    if inside:
        assert "too narrow" not in result.verdicts
        assert set(verdicts(result).values()) == {"cannot tell"}
    else:
        assert result.verdict == "too narrow"
        assert "too narrow" in verdicts(result).values()
        assert any("together" in reason for reason in result.reasons)


def test_an_audit_is_kept_apart_from_ranges_and_read_back(folder: Path) -> None:
    result = audited(folder, seed=3)
    catalogue = Catalogue.open(folder)
    assert newest_result(catalogue, "randomize") is None
    identity = newest_result(catalogue, "randomize-audit")
    assert identity is not None
    assert load_stored_result(catalogue, identity) == result
    assert from_json(json.loads(json.dumps(to_json(result)))) == result


def test_logs_in_which_nothing_moves_tell_nothing(tmp_path: Path) -> None:
    folder = write_reality(tmp_path, {}, num_logs=2, size=0.0)
    result = audited(folder)
    assert result.verdict == "cannot tell"
    assert result.parameters == ()
    assert "moves" in result.reasons[0]
