"""Ours against the peer on real logs: errors, and time to the peer's best error. Takes tens of minutes."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    sys.path.insert(0, str(HERE))  # its parts import each other by name
    spec = importlib.util.spec_from_file_location("identify_benchmark", HERE / "identify.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.bench
@pytest.mark.parametrize("name", ["so101", "qube", "cartpole", "double_pendulum", "cube", "crazyflie"])
def test_a_real_set_reaches_its_bars(benchmark: ModuleType, name: str) -> None:
    reason = benchmark.why_not(name)
    if reason:
        pytest.skip(reason)
    table = benchmark.set_table(name, with_peer=True, with_limit=False)
    assert table.bars, "a set without bars proves nothing"
    assert [bar.line() for bar in table.bars if not bar.met] == []
