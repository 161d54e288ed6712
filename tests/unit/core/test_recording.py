import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gapless.core.recording import Origin, Recording, Video, apply_description, describe_recording

TIMES_S = np.array([0.0, 0.1])


def test_what_is_said_of_a_recording_goes_through_json_and_back() -> None:
    origin = Origin(robot="arm", participants=("p1", "p2"), parameters={"world/tilt/x": 0.1}, parents=("ab",))
    video = Video("front", Path("front.mp4"))
    bare = Recording("a", TIMES_S, {"q": TIMES_S}, videos=(video,))
    said_of_it = {"start_ns": 5, "source": "sim", "outcome": "failure", "failed_in": "grasp", "recorded_at": "2026"}
    full = replace(bare, types={"q": "float32"}, conditions={"light": "dim"}, origin=origin, details={"fps": 30})
    full = replace(full, **said_of_it)
    said = json.loads(json.dumps(describe_recording(full)))
    assert said.items() >= said_of_it.items()
    assert apply_description(bare, said) == full
    assert describe_recording(bare) == {}


def test_nothing_that_a_file_says_is_trusted_to_have_the_right_type() -> None:
    said = {"source": "robot", "outcome": 3, "start_ns": "x", "conditions": [1], "origin": {"robot": 3, "parents": 4}}
    bare = Recording("a", TIMES_S, {})
    assert apply_description(bare, said) == bare


@pytest.mark.parametrize("times_s", [[0.1, 0.2], [0.0, 0.0], [0.0, -1.0]])
def test_time_that_does_not_go_forward_from_zero_is_refused(times_s: list[float]) -> None:
    with pytest.raises(ValueError, match="sort the rows"):
        Recording("a", np.array(times_s), {})


def test_a_column_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="give \\(2,\\)"):
        Recording("a", TIMES_S, {"q": np.zeros(3)})
