"""Parts of the benchmarks, which stand outside of the package."""

import importlib
from typing import Any


def part(name: str) -> Any:
    """Returns a module of the benchmarks; `conftest.py` puts their folder on the path."""
    return importlib.import_module(name)
