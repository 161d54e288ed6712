"""What people see while they wait."""

import io
import time
from pathlib import Path

import pytest
from rich.console import Console

from gapless import verbs
from gapless.check.verb import check
from gapless.cli.output import ProgressDisplay, describe_time_left
from gapless.identify.verb import EXPLAINING, FIT, identify
from gapless.measure.verb import measure
from gapless.verbs import copy_example


def shown(interval_s: float, *, terminal: bool = False) -> tuple[ProgressDisplay, io.StringIO]:
    text = io.StringIO()
    return ProgressDisplay(Console(file=text, force_terminal=terminal, width=120), interval_s), text


def test_where_there_is_no_terminal_lines_say_how_far_it_is_and_what_is_left() -> None:
    steps, text = shown(0.02)
    with steps.display():
        steps("fit", 0.5)
        steps._steps["fit"].start_time -= 60.0  # a minute ago
        time.sleep(0.3)  # a verb that reports nothing meanwhile
    lines = text.getvalue().splitlines()
    assert len(lines) >= 3
    assert lines[-1] == "  fit: 50 % after 60 s, about 1 min left"
    count = len(lines)
    time.sleep(0.1)
    assert len(text.getvalue().splitlines()) == count  # nothing after the end


def test_work_that_says_nothing_at_first_is_not_silent() -> None:
    steps, text = shown(0.02)
    with steps.display():
        time.sleep(0.1)
    assert text.getvalue().startswith("  beginning: 0 % after 0 s\n")


def test_after_a_step_that_is_done_it_does_not_go_silent() -> None:
    steps, text = shown(0.02)
    with steps.display():
        steps("fit", 1.0)
        time.sleep(0.1)
    assert text.getvalue().splitlines()[-1] == "  fit: done, working on what follows"


def test_brief_steps_get_no_line_and_long_ones_get_one() -> None:
    steps, text = shown(60.0)
    with steps.display():
        steps("brief", 1.0)
        steps("long", 0.1)
        steps._steps["long"].start_time -= 5.0
        steps("long", 1.0)
        steps("long", 1.0)
    assert text.getvalue().split() == ["long", "5", "s"]


def test_a_bar_on_a_terminal_says_what_is_left() -> None:
    steps, text = shown(60.0, terminal=True)
    with steps.display():
        steps("fit", 0.0)
        steps._bars.tasks[0].start_time = steps._bars.get_time() - 60.0
        steps("fit", 0.5)
        steps._bars.refresh()
    assert "about 1 min left" in text.getvalue()


@pytest.mark.parametrize(
    ("share", "elapsed_s", "words"),
    [
        (0.0, 100, ""),
        (0.01, 100, ""),  # too early
        (0.5, 1, ""),
        (1.0, 100, ""),
        (0.5, 20, "about 20 s left"),
        (0.99, 20, "about 10 s left"),
        (0.25, 40, "about 2 min left"),
        (0.1, 1200, "about 3.0 h left"),
    ],
)
def test_what_is_left_in_words(share: float, elapsed_s: float, words: str) -> None:
    assert describe_time_left(share, elapsed_s) == words


@pytest.mark.parametrize("verb", [check, measure, identify])
def test_every_label_of_a_verb_grows_to_its_end(verb, tmp_path: Path) -> None:
    folder, told = copy_example("balance", tmp_path / "balance"), dict[str, list[float]]()
    verb(folder, progress=lambda label, share: told.setdefault(label, []).append(share))
    assert "reading the logs" in told
    for label, shares in told.items():
        assert shares == sorted(shares), label
        assert shares[-1] == 1.0, label
    if verb is identify:
        steps = {(label, share) for label in (EXPLAINING, FIT) for share in told[label]}
        assert len(steps) > 15  # in many small steps


def test_new_and_noise_say_how_far_they_are(tmp_path: Path) -> None:
    folder, told = copy_example("balance", tmp_path / "balance"), list[tuple[str, float]]()
    verbs.new(folder / "robot.xml", folder / "logs", tmp_path / "made", progress=lambda *what: told.append(what))
    assert told == [("reading the logs", k / 6) for k in range(7)]
    told.clear()
    verbs.noise("motion0", folder, progress=lambda *what: told.append(what))
    assert told == [("fitting the noise", 0.0), ("fitting the noise", 0.5), ("fitting the noise", 1.0)]
