import hashlib
from dataclasses import replace

import numpy as np
import pytest

from gapless.core.episode import Episode
from gapless.core.provenance import Provenance, content_id, episode_content
from gapless.core.signal import TimeSeries

MADE = Provenance("measure", "0.1.0", ("a", "b"), {"window": 0.5, "hold_out": ["x"]}, seed=7)


def episode() -> Episode:
    times_s = np.array([0.0, 0.01, 0.02])
    commands = TimeSeries(times_s, np.array([[1.0], [2.0], [3.0]]), ("cmd",), ("N·m",))
    measured = TimeSeries(times_s, np.array([[0.1], [0.2], [np.nan]]), ("q",), ("rad",))
    return Episode("swing", "real", commands, measured, outcome="success", conditions={"light": "dim"})


def test_canonical_text_does_not_depend_on_the_order_of_options() -> None:
    turned = replace(MADE, config={"hold_out": ["x"], "window": 0.5})
    assert turned.canonical() == MADE.canonical()
    assert MADE.canonical() == (
        '{"code_version":"0.1.0","config":{"hold_out":["x"],"window":0.5},'
        '"made_by":"measure","parents":["a","b"],"seed":7}'
    )


def test_id_is_the_hash_of_content_and_canonical_text() -> None:
    expected = hashlib.sha256(hashlib.sha256(b"data").digest() + MADE.canonical().encode()).hexdigest()[:32]
    assert content_id(b"data", MADE) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"made_by": "identify"},
        {"code_version": "0.2.0"},
        {"parents": ("b", "a")},
        {"config": {"window": 0.6, "hold_out": ["x"]}},
        {"seed": 8},
        {"seed": None},
    ],
)
def test_id_changes_with_every_part_of_the_provenance(change: dict[str, object]) -> None:
    assert content_id(b"data", replace(MADE, **change)) != content_id(b"data", MADE)


def test_id_changes_with_the_content_and_is_32_hex_digits() -> None:
    assert content_id(b"data", MADE) != content_id(b"date", MADE)
    assert len(content_id(b"", MADE)) == 32
    assert int(content_id(b"", MADE), 16) >= 0


def test_equal_episodes_have_equal_content() -> None:
    assert episode_content(episode()) == episode_content(episode())


def test_the_order_of_conditions_does_not_matter() -> None:
    one = replace(episode(), conditions={"light": "dim", "object": "mug"})
    other = replace(episode(), conditions={"object": "mug", "light": "dim"})
    assert episode_content(one) == episode_content(other)


def test_content_of_an_episode_changes_with_every_part() -> None:
    base = episode()
    values = base.measurements.values.copy()
    values[0, 0] += 1e-12
    variants = [
        replace(base, name="swung"),
        replace(base, source="twin"),
        replace(base, outcome=None),
        replace(base, failed_in="grasp"),
        replace(base, conditions={"light": "bright"}),
        replace(base, recorded_at="2026-01-01T00:00:00Z"),
        replace(base, measurements=replace(base.measurements, values=values)),
        replace(base, measurements=replace(base.measurements, units=("m",))),
        replace(base, commands=replace(base.commands, names=("torque",))),
    ]
    contents = {episode_content(variant) for variant in [base, *variants]}
    assert len(contents) == 1 + len(variants)


def test_duration_is_that_of_the_measurements() -> None:
    assert episode().duration_s == pytest.approx(0.02)
