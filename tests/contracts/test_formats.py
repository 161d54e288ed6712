"""What every format must do: give back what it was given, and answer damage with one line."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.errors import GaplessError
from gapless.core.recording import Origin, Recording, Skipped, describe_recording
from gapless.formats.format import Format, ReadOptions
from gapless.formats.registry import FORMATS, find_format

RATE_HZ = 50.0
WRITTEN = [each for each in FORMATS if each.write]
NUM_FUZZED = 200


def make_recordings(num_episodes: int = 3) -> list[Recording]:
    """Returns episodes with columns of several types, whose numbers need every digit."""
    rng = np.random.default_rng(7)
    found = []
    for number in range(num_episodes):
        num_rows = 40 + 7 * number
        # what a clock of 50 Hz gives, as float32 holds it: formats differ in how they keep time
        times_s = (np.arange(num_rows) / RATE_HZ).astype(np.float32).astype(float)
        columns = {
            "observation.state.shoulder": rng.normal(size=num_rows).astype(np.float32).astype(float),
            "observation.state.elbow": rng.normal(size=num_rows).astype(np.float32).astype(float),
            "action.shoulder": rng.normal(size=num_rows).astype(np.float32).astype(float),
            "action.elbow": rng.normal(size=num_rows).astype(np.float32).astype(float),
            "force": rng.normal(size=num_rows) * 1e-7,
            "count": np.arange(num_rows) + 2.0**40,
            "touches": (np.arange(num_rows) % 3 == 0).astype(float),
        }
        states = [name for name in columns if name.startswith(("observation", "action"))]
        types = {**dict.fromkeys(states, "float32"), "count": "int64", "touches": "bool"}
        origin = Origin(robot="two-link arm", robot_serial="A7", site="lab", operator="ana", participants=("p1",))
        found.append(
            Recording(
                name=f"reach_{number}",
                times_s=times_s,
                columns=columns,
                types=types,
                start_ns=1_760_000_000_123_456_789 + number * 10**11,
                source="real" if number else "sim",
                outcome="success" if number else "failure",
                failed_in=None if number else "grasp",
                conditions={"object": "mug", "task": "pick up the mug"},
                recorded_at="2026-03-01T14:05:00+00:00",
                origin=replace(origin, parameters={"joint/elbow/damping": 0.1} if not number else {}),
            )
        )
    return found


def write_all(kind: Format, recordings: list[Recording], folder: Path) -> Path:
    """Writes recordings; nothing of them may be skipped."""
    assert kind.write is not None
    path = folder / f"set{kind.suffix}"
    assert list(kind.write(iter(recordings), path)) == []
    return path


def read_all(kind: Format, path: Path) -> tuple[list[Recording], list[Skipped]]:
    """Returns recordings and what was skipped."""
    found = list(kind.read(path, ReadOptions()))
    return [r for r in found if isinstance(r, Recording)], [s for s in found if isinstance(s, Skipped)]


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
def test_a_round_trip_keeps_every_number_and_all_that_was_said(kind: Format, tmp_path: Path) -> None:
    given = make_recordings()
    path = write_all(kind, given, tmp_path)
    assert find_format(path) == kind
    found, skipped = read_all(kind, path)
    assert skipped == []
    assert len(found) == len(given)
    for one, other in zip(given, found, strict=True):
        np.testing.assert_array_equal(one.times_s, other.times_s)
        assert set(one.columns) <= set(other.columns)
        for name, values in one.columns.items():
            np.testing.assert_array_equal(values, other.columns[name], err_msg=name)
            assert other.types.get(name) == one.types.get(name)
        said, heard = describe_recording(one), describe_recording(other)
        said.pop("details", None), heard.pop("details", None)
        heard["types"] = {name: heard["types"][name] for name in said["types"]}  # a format's own columns have some too
        assert heard == said


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
def test_names_differ_and_stay(kind: Format, tmp_path: Path) -> None:
    path = write_all(kind, make_recordings(), tmp_path)
    names = [r.name for r in read_all(kind, path)[0]]
    assert len(set(names)) == 3
    assert names == [r.name for r in read_all(kind, path)[0]]
    left = list(kind.read(path, ReadOptions(known=set(names[:2]))))
    assert [r.name for r in left if isinstance(r, Recording)] == names[2:]


def damage(data: bytes, rng: np.random.Generator) -> bytes:
    """Returns a file cut off, or with a few bytes flipped."""
    if rng.random() < 0.5:
        return data[: int(rng.integers(0, len(data)))]
    changed = bytearray(data)
    for place in rng.integers(0, len(data), size=int(rng.integers(1, 20))):
        changed[place] ^= int(rng.integers(1, 256))
    return bytes(changed)


def damaged_sources(kind: Format, folder: Path, count: int) -> Iterator[Path]:
    """Yields a source again and again, each time with one of its files damaged."""
    path = write_all(kind, make_recordings(2), folder)
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    rng = np.random.default_rng(3)
    for _ in range(count):
        chosen = files[int(rng.integers(len(files)))]
        whole = chosen.read_bytes()
        if not whole:
            continue
        chosen.write_bytes(damage(whole, rng))
        yield path
        chosen.write_bytes(whole)


def is_noticed(kind: Format, path: Path) -> bool:
    """Returns whether damage was noticed; anything but an error of gapless passes on, and fails the test."""
    try:
        return bool(read_all(kind, path)[1])
    except GaplessError as error:
        if "\n" in str(error):
            raise
        return True


@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
def test_damage_is_one_line(kind: Format, tmp_path: Path) -> None:
    assert sum(is_noticed(kind, path) for path in damaged_sources(kind, tmp_path, 30)) > 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", WRITTEN, ids=lambda kind: kind.name)
def test_much_damage_is_one_line(kind: Format, tmp_path: Path) -> None:
    assert sum(is_noticed(kind, path) for path in damaged_sources(kind, tmp_path, NUM_FUZZED)) > 30
