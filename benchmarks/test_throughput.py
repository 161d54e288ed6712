"""Speed against a bare engine loop and against Gymnasium, in one run."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.mark.bench
def test_gapless_is_nearly_as_fast_as_the_engine_and_twice_as_fast_as_gymnasium() -> None:
    place = Path(__file__).with_name("throughput.py")
    spec = importlib.util.spec_from_file_location("throughput", place)
    assert spec is not None
    assert spec.loader is not None
    throughput = importlib.util.module_from_spec(spec)
    sys.modules["throughput"] = throughput
    spec.loader.exec_module(throughput)
    if throughput.free_share() < 0.9:
        pytest.skip("the machine is busy: contenders on several cores would lose what those on one keep")
    rows = throughput.measure(quick=True)
    for model in throughput.TARGETS:
        to_bare, to_gymnasium = throughput.ratios(rows, model)
        assert to_bare >= 0.85, model
        assert to_gymnasium >= 2.0, model
    for found in throughput.measure_layers(quick=True):
        assert found.median >= 0.5, found.model
