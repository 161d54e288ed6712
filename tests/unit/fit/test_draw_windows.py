import numpy as np

from gapless.fit.prediction.windows import Windows, draw_windows


def windows_that_move(size: np.ndarray) -> Windows:
    """Returns windows whose columns swing by (num_windows, num_measurements) sizes."""
    count, columns = size.shape
    swing = np.sin(np.linspace(0.0, 2 * np.pi, 21))
    nothing, ones = np.zeros((count, columns)), np.ones(columns)
    where = np.arange(count, dtype=np.intp)
    commands = np.zeros((count, 20, 1))
    return Windows(commands, commands, swing[None, :, None] * size[:, None], *[nothing] * 2, where, where, *[ones] * 3)


def test_windows_that_alone_show_a_column_are_drawn() -> None:
    """A tip moves in all of 200 windows, the puck that it pushes in five of them: without these nothing shows it."""
    size = np.ones((200, 2))
    size[:, 1] = 0.0
    pushed = [3, 50, 51, 120, 199]
    size[pushed, 1] = 1.0
    windows = windows_that_move(size)
    drawn = [draw_windows(windows, np.random.default_rng(seed), 40).first_row for seed in range(20)]
    assert np.mean([np.isin(pushed, rows).mean() for rows in drawn]) > 0.9  # by chance 40 of 200: 0.2
    assert all(len(rows) == 40 and np.all(np.diff(rows) > 0) for rows in drawn)


def test_a_jump_of_a_reading_does_not_rule_the_draw() -> None:
    size = np.ones((200, 1))
    size[7] = 1e6
    drawn = [draw_windows(windows_that_move(size), np.random.default_rng(seed), 40).first_row for seed in range(20)]
    others = np.mean([np.isin(np.arange(100, 200), rows).mean() for rows in drawn])
    assert others > 0.15  # 0.2 where the jump has no part in it
