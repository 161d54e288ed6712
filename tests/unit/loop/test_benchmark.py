"""The loop's benchmark speaks of the twins as they are drawn."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[3]
NUM_TWINS = 300


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("example", ["balance", "push"])
def test_family_is_where_twins_are_drawn_and_wide_holds_it(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    benchmark = load(ROOT / "benchmarks" / "loop.py")
    twin = load(ROOT / "src" / "gapless" / "examples" / example / "twin.py")
    drawn: list[dict[str, float]] = []
    monkeypatch.setattr(twin, "Twin", lambda folder, imperfections, *rest: drawn.append(imperfections.parameters))
    for seed in range(NUM_TWINS):
        twin.make(seed)
    family, wide = benchmark.FAMILY[example], benchmark.WIDE[example]
    assert set(family) == set(drawn[0])
    for target, (low, high) in family.items():
        values = np.array([row[target] for row in drawn])
        assert low - 1e-9 <= values.min() < low + 0.05 * (high - low), target
        assert high - 0.05 * (high - low) < values.max() <= high + 1e-9, target
        if target in wide:
            assert wide[target][0] <= low < high <= wide[target][1], target
