"""The command line as a process: interrupts, closed pipes, exit status."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gapless import verbs
from gapless.cli.main import run
from gapless.data.catalogue import Catalogue
from gapless.verbs import copy_example

GAPLESS = [sys.executable, "-m", "gapless"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_example("balance", tmp_path / "balance")


def interrupted(arguments: list[str], ready: Path, after_s: float) -> tuple[int, str]:
    """Starts a command, sends Ctrl-C some time after `ready`, a pattern, exists; returns status and standard error.

    A shell that runs these tests in the background makes them ignore Ctrl-C, which commands would inherit.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen([*GAPLESS, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    limit = time.monotonic() + 60
    while not list(ready.parent.glob(ready.name)) and time.monotonic() < limit:
        time.sleep(0.1)
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    return process.returncode, said


GOES_ON = "and the same command goes on from there"
STOPPED = {
    "identify": f"what was fitted so far is kept, {GOES_ON}",
    "train": f"what was learned is kept, {GOES_ON}",
    "loop": f"trainings, recordings and steps of fits are kept, {GOES_ON}; trials that only score are run again",
    "measure": "there is no result, and the same command begins anew",
}
SLOW = pytest.mark.slow  # both load torch, twice


@pytest.mark.parametrize("verb", ["identify", pytest.param("train", marks=SLOW), pytest.param("loop", marks=SLOW)])
def test_ctrl_c_is_one_line_and_leaves_the_catalogue_whole(verb: str, folder: Path) -> None:
    ready = folder / ".gapless" / ("temporary/identify-*.json" if verb == "identify" else "tables/artefacts/_delta_log")
    status, said = interrupted([verb, str(folder)], ready, 0.2 if verb == "identify" else 1.0)
    assert status == 130
    *before, last = said.splitlines()
    assert last == f"gapless: stopped: {STOPPED[verb]}"
    assert all(line.startswith("  ") for line in before)  # progress
    catalogue = Catalogue.open(folder)
    assert all(row.id for row in catalogue.artefacts())
    assert len(catalogue.episodes()) in (0, 6)
    again = ["train", str(folder), "--steps", "100"] if verb != "identify" else ["measure", str(folder)]
    assert subprocess.run([*GAPLESS, *again], capture_output=True, check=False).returncode == 0


def test_ctrl_c_does_not_promise_what_is_not_kept(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def stop(*_: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(verbs.__dict__, "measure", stop)
    assert run(["measure", "anywhere"]) == 130
    assert capsys.readouterr().err == f"gapless: stopped: {STOPPED['measure']}\n"


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
