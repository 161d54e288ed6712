"""Other people's scripts: they write project folders by the contract and read the results' JSON."""

import subprocess
import sys
from pathlib import Path

import pytest

from architecture.tree import ROOT

SCRIPTS = ROOT.parent / "shared" / "contract"


@pytest.mark.slow
@pytest.mark.skipif(not SCRIPTS.is_dir(), reason="no folder shared/contract beside the repository")
def test_the_contract_scripts_are_content(tmp_path: Path) -> None:
    subprocess.run([sys.executable, SCRIPTS / "make_projects.py", tmp_path], check=True, capture_output=True)
    check = [sys.executable, SCRIPTS / "check_contract.py", tmp_path, sys.executable, "-m", "gapless"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
