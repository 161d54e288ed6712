"""The command line as a process: interrupts, closed pipes, exit status."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gapless.data.catalogue import Catalogue
from gapless.verbs import copy_example

GAPLESS = [sys.executable, "-m", "gapless"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_example("balance", tmp_path / "balance")


def interrupted(arguments: list[str], ready: Path, after_s: float) -> tuple[int, str]:
    """Starts a command, sends Ctrl-C some time after `ready` exists; returns its status and standard error.

    A shell that runs these tests in the background makes them ignore Ctrl-C, which commands would inherit.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen([*GAPLESS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    limit = time.monotonic() + 60
    while not ready.exists() and time.monotonic() < limit:
        time.sleep(0.1)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


SLOW = pytest.mark.slow  # both load torch, twice


@pytest.mark.parametrize("verb", ["identify", pytest.param("train", marks=SLOW), pytest.param("loop", marks=SLOW)])
def test_ctrl_c_is_one_line_and_leaves_the_catalogue_whole(verb: str, folder: Path) -> None:
    status, said = interrupted([verb, str(folder)], folder / ".gapless" / "tables" / "artefacts" / "_delta_log", 1.0)
    assert status == 130
    assert said.count("\n") == 1, said
    assert said.startswith("gapless: stopped")
    catalogue = Catalogue.open(folder)
    assert all(row.id for row in catalogue.artefacts())
    assert len(catalogue.episodes()) in (0, 6)
    again = ["train", str(folder), "--steps", "100"] if verb != "identify" else ["measure", str(folder)]
    assert subprocess.run([*GAPLESS, *again], capture_output=True, check=False).returncode == 0


def test_a_reader_that_leaves_early_is_no_fault(folder: Path) -> None:
    for arguments in (["measure", str(folder), "--json", "-"], ["check", str(folder)], ["train", "--help"]):
        process = subprocess.Popen([*GAPLESS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.close()
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "Traceback" not in said
        assert "BrokenPipe" not in said


def test_the_status_reaches_the_shell(folder: Path) -> None:
    for arguments, status in ((["--version"], 0), (["measure", "nowhere"], 2), (["measure", str(folder)], 0)):
        done = subprocess.run([*GAPLESS, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert done.stderr.count("\n") == (status == 2)
