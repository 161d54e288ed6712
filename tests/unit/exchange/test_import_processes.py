"""Imports that are killed, and imports at the same time, lose nothing."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gapless import verbs
from gapless.data.catalogue import Catalogue
from unit.exchange.test_import import MOTION, write_csv

COMMAND = [sys.executable, "-m", "gapless", "import"]
NUM_EPISODES = 70  # two commits
ROWS = 200


def write_many(folder: Path) -> Path:
    for number in range(NUM_EPISODES):
        write_csv(folder / f"run_{number:03d}.csv", {"q": MOTION + number, "v": MOTION * number})
    return folder


def start(directory: Path, source: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, str(directory), str(source)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def check_whole(directory: Path) -> None:
    """Every episode that is in the catalogue has all of its samples, and none is there twice."""
    catalogue = Catalogue.open(directory)
    ids = catalogue.select_ids("true")
    names = [catalogue.recording(id).name for id in ids]
    assert len(set(names)) == len(names)
    assert all(len(catalogue.recording(id).times_s) == ROWS for id in ids[:5])
    counted = verbs.query(directory, "SELECT count(*) FROM samples").rows[0][0]
    assert counted == len(ids) * ROWS * 2


def kill_at_random(directory: Path, source: Path, took_s: float, times: int) -> None:
    rng = random.Random(5)
    for _ in range(times):
        process = start(directory, source)
        time.sleep(rng.uniform(0.0, took_s))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if (directory / ".gapless").is_dir():
            check_whole(directory)


def finish(directory: Path, source: Path) -> None:
    process = start(directory, source)
    assert process.wait() == 0, process.stderr and process.stderr.read()
    check_whole(directory)
    assert len(Catalogue.open(directory).select_ids("true")) == NUM_EPISODES


@pytest.mark.slow
def test_an_import_killed_at_fifty_moments_goes_on(tmp_path: Path) -> None:
    source = write_many(tmp_path / "set")
    begin = time.monotonic()
    finish(tmp_path / "timed", source)
    took_s = time.monotonic() - begin
    for number in range(10):  # ten imports, each killed five times
        kill_at_random(tmp_path / f"data{number}", source, took_s, 5)
        finish(tmp_path / f"data{number}", source)


def test_two_importers_at_once_lose_nothing(tmp_path: Path) -> None:
    source = write_many(tmp_path / "set")
    both = [start(tmp_path / "data", source) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    check_whole(tmp_path / "data")
    assert len(Catalogue.open(tmp_path / "data").select_ids("true")) == NUM_EPISODES


def test_interrupting_keeps_what_is_in(tmp_path: Path) -> None:
    source = write_many(tmp_path / "set")
    process = start(tmp_path / "data", source)
    deadline = time.monotonic() + 60
    while not (tmp_path / "data" / ".gapless").is_dir() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate()
    if process.returncode:  # it may have been done already
        assert process.returncode == 130
        assert b"the same command goes on where this one stopped" in said
    finish(tmp_path / "data", source)
    result = verbs.import_(tmp_path / "data", source)
    assert json.loads(json.dumps([result.episodes, result.known])) == [NUM_EPISODES, NUM_EPISODES]
