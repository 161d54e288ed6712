"""Training ranges are read from results of randomize, from JSON by hand, and from text."""

import json
from pathlib import Path

import pytest

from gapless.core.distribution import Correlation, Part, Range
from gapless.core.errors import InputError
from gapless.core.results import RandomizeResult, to_json
from gapless.project.load import load_project
from gapless.sim.blueprint import CompiledProject, compile_project
from gapless.sim.ranges import read_ranges
from gapless.verbs import copy_example

GAIN = Range("actuator/motor/gain", "normal", 0.5, 1.5, 1.0, 0.1, per="robot")
DELAY = Range("actuator/*/delay", "mixture", 0.0, 0.1, 0.05, parts=(Part(1.0, 0.02, 0.01), Part(1.0, 0.06, 0.01)))
DAMPING = Range("joint/cart/damping", "normal", 0.0, 2.0, 1.0, 0.2, per="robot")
PAIR = Correlation(GAIN.target, DAMPING.target, 0.7)


@pytest.fixture(scope="module")
def blueprint(tmp_path_factory: pytest.TempPathFactory) -> CompiledProject:
    return compile_project(load_project(copy_example("balance", tmp_path_factory.mktemp("balance"))))


def test_a_result_comes_back_with_all_that_it_holds(blueprint: CompiledProject, tmp_path: Path) -> None:
    path = tmp_path / "ranges.json"
    path.write_text(json.dumps(to_json(RandomizeResult((), (GAIN, DELAY, DAMPING), "", 0, "evidence", (PAIR,)))))
    found = read_ranges(path, blueprint)
    assert found.ranges == (GAIN, DELAY, DAMPING)
    assert found.correlations == (PAIR,)
    assert found.space.targets == (GAIN.target, DELAY.target, DAMPING.target)


def test_json_by_hand_needs_the_ranges_only(blueprint: CompiledProject, tmp_path: Path) -> None:
    path = tmp_path / "ranges.json"
    entry = {"target": GAIN.target, "kind": "uniform", "low": 0.5, "high": 1.5, "mean": 1.0}
    path.write_text(json.dumps({"verb": "randomize", "ranges": [entry]}))
    assert read_ranges(path, blueprint).ranges == (Range(GAIN.target, "uniform", 0.5, 1.5, 1.0),)


def test_text_is_read_by_its_name(blueprint: CompiledProject, tmp_path: Path) -> None:
    path = tmp_path / "ranges.txt"
    path.write_text("actuator/motor/gain normal 1 +- 0.1 within 0.5 .. 1.5 per robot\n")
    assert read_ranges(path, blueprint).ranges == (GAIN,)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.txt", "actuator/motor/gain uniform 1\n", r"line 1: .*write it like"),
        ("r.txt", "actuator/moter/gain uniform 1 .. 2\n", "no actuator 'moter'"),
        ("r.json", '{"verb": "randomize", "ranges": [{"target": "actuator/motor/gain"}]}', "lacks kind, low"),
        ("r.json", '{"verb": "randomize", "ranges": [3]}', "lacks a field|no number"),
        ("r.json", '{"verb": "identify"}', "no result of `gapless randomize`"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_the_file(
    blueprint: CompiledProject, tmp_path: Path, name: str, text: str, said: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_ranges(path, blueprint)
