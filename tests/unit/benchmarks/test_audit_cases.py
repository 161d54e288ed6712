"""Ranges of the benchmark of audits are planted as they say."""

from pathlib import Path

import numpy as np
import pytest

from gapless.core.distribution import ranges_from_text
from gapless.project.load import load_project
from gapless.sim.blueprint import compile_project
from gapless.sim.targets import resolve
from unit.benchmarks.parts import part

TRUTH = {"joint/a/damping": 2.0, "actuator/m/gain": 1.0, "actuator/*/delay": 0.03}


@pytest.mark.parametrize("kind", ["too narrow", "too wide", "wrong", "fits"])
def test_only_ranges_that_are_too_narrow_exclude_the_truth(kind: str) -> None:
    cases = part("audit_cases")
    for seed in range(50):
        ranges, planted = cases.plant(kind, TRUTH, np.random.default_rng(seed))
        missed = {r.target for r in ranges if not r.low <= TRUTH[r.target] <= r.high}
        wide = {r.target for r in ranges if r.high > 3 * TRUTH[r.target]}
        assert missed == (set(planted) if kind == "too narrow" else set())
        assert wide == (set(planted) if kind == "too wide" else set())
        assert bool(planted) == (kind in ("too narrow", "too wide"))


def test_sixty_cases_have_twenty_of_each_kind_over_all_robots() -> None:
    cases = part("audit_cases").cases(0, 60)
    assert [sum(case.kind == kind for case in cases) for kind in ("too narrow", "too wide", "wrong")] == [20, 20, 20]
    assert {(case.kind, case.robot) for case in cases} == {
        (kind, robot) for kind in ("too narrow", "too wide", "wrong") for robot in ("cartpole", "arm", "torquearm")
    }


def test_reality_has_the_values_that_are_drawn(tmp_path: Path) -> None:
    cases = part("audit_cases")
    for robot, truth in cases.TRUTH.items():
        values = {target: ends[0] for target, ends in truth.items()}
        planted = cases.write(cases.Case(7, robot, "fits"), tmp_path)
        blueprint = compile_project(load_project(planted.folder))
        model = cases.reality_of(cases.ROBOTS[robot], values).model(cases.ROBOTS[robot])
        for target, value in values.items():
            element, name, field = target.split("/")
            resolve(target, blueprint.project, blueprint.model)
            if element == "joint":
                assert getattr(model.joint(name), field)[0] == pytest.approx(value)
            elif element == "body":
                assert model.body(name).mass[0] == pytest.approx(value)
            elif field == "kp":
                assert -model.actuator(name).biasprm[1] == pytest.approx(value)
        listed = {r.target for r in ranges_from_text(planted.ranges.read_text())[0]}
        assert listed == set(truth)
