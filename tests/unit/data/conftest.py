"""A fresh catalogue, and the folder of the tests' own module on the path."""

import sys
from pathlib import Path

import pytest

from gapless.data.catalogue import Catalogue

sys.path.insert(0, str(Path(__file__).parent))  # for catalogue_writer


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    return Catalogue.open(tmp_path)
