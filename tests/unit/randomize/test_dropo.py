"""Nobody is told what `cma` cannot plot."""

import subprocess
import sys

# Without matplotlib, whether it is installed or not; every warning is shown.
CODE = """
import sys, warnings
sys.modules["matplotlib"] = None
from gapless.verbs import randomize
{}
"""
IMPORTED = "assert 'cma' not in sys.modules"
USED = """
from gapless.randomize.from_logs import load_cma_es
before = list(warnings.filters)
search = load_cma_es()
assert warnings.filters == before
assert search([0.5, 0.5], 0.3, {"verbose": -9}).ask()
assert "cma" in sys.modules
"""


def said(code: str) -> str:
    command = [sys.executable, "-W", "always::UserWarning", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_cma_itself_would_say_it() -> None:
    assert "Could not import matplotlib" in said(CODE.format("import cma"))


def test_importing_the_verb_does_not_import_cma() -> None:
    assert said(CODE.format(IMPORTED)) == ""


def test_using_cma_is_silent_and_changes_no_filter() -> None:
    assert said(CODE.replace("{}", USED)) == ""
