"""Prediction windows: stretches of episodes that begin at a measured state; how long, and how many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gapless.core.parameters import ParameterSpace
from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.signals.track import Track

HISTORY_S = 1.0  # commands kept before each window: a lag of 0.2 s has forgotten all but 1 % of what came before
MOST_WINDOWS = 2000  # ten minutes of 0.3 s: root mean squares over them are off by chance by 2 % of themselves
STILL_WINDOW_WEIGHT = 0.1  # how likely a window without motion is drawn, against 1 for a typical one
MAX_MOTION = 10.0  # times its root mean square, by which motion of a column counts: a jump must not rule
LENGTHS_S = (0.1, 0.2, 0.3, 0.6, 1.2, 2.4)
DRIVEN_S = 0.3  # least length where commands need time to show [s]
MIN_ROWS = 12  # of a window
MAX_SIMULATED_S = 48.0  # windows of all lengths come to about this much
SIMULATED_PER_RUN_S = 8.0  # and where runs have values of their own, to this much of each
AHEAD_S = 0.2  # how late readings may be at most, where their state at the start is looked up [s]
UNKNOWN_S = 0.25  # windows begin this long after the log: a delay still holds commands from before it


@dataclass(frozen=True)
class Windows:
    """Windows of equal length; shorter ones are padded with NaN measurements."""

    commands: Array  # (num_windows, num_steps, num_commands) in model units
    history: Array  # (num_windows, num_past, num_commands) commands before the window
    measured: Array  # (num_windows, num_steps + 1, num_measurements), the start first; NaN where unknown
    start: Array  # (num_windows, num_measurements) smoothed readings at the start
    slope: Array  # (num_windows, num_measurements) their time derivative [unit/s]
    track: NDArray[np.intp]  # (num_windows,) index of the track that each comes from
    first_row: NDArray[np.intp]  # (num_windows,) row of the track where each starts
    noise: Array  # (num_measurements,) standard deviation of the readings
    start_sd: Array  # (num_measurements,) standard error of `start`
    slope_sd: Array  # (num_measurements,) standard error of `slope` [unit/s]
    # (num_windows, 2, num_ahead, num_measurements) smoothed readings and slopes from the start on, where late readings
    # show what the state at the start was; None: readings go on with the slope of the start
    ahead: Array | None = None

    def __len__(self) -> int:
        return len(self.commands)

    @property
    def num_steps(self) -> int:
        """Control intervals per window."""
        return self.commands.shape[1]

    def pick(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> "Windows":
        """Returns some of the windows."""
        names = ("commands", "history", "measured", "start", "slope", "track", "first_row")
        ahead = None if self.ahead is None else self.ahead[index]
        return replace(self, **{name: getattr(self, name)[index] for name in names}, ahead=ahead)

    def start_after(self, delay_s: Array, rate_hz: float) -> tuple[Array, Array]:
        """Returns readings and slopes a delay after each start, (num_windows, num_measurements) each.

        `delay_s` is of the same shape [s]. Readings that are late by it show the state at the start then.
        """
        if self.ahead is None or not delay_s.any():
            return self.start + self.slope * delay_s, self.slope
        last = self.ahead.shape[2] - 1
        place = np.clip(delay_s * rate_hz, 0.0, last)
        below = np.minimum(place.astype(np.intp), last - 1)
        share = (place - below)[:, None]
        index = below[:, None, None]
        before, after = (np.take_along_axis(self.ahead, index + k, axis=2)[:, :, 0] for k in (0, 1))
        moved = before + share * (after - before) - self.ahead[:, :, 0]
        return self.start + moved[:, 0], self.slope + moved[:, 1]


def cut_windows(
    project: Project,
    tracks: Sequence[Track],
    window_s: float,
    history_s: float = HISTORY_S,
    *,
    from_first_row: bool = False,
) -> Windows:
    """Cuts tracks into windows that do not overlap; rows that are not usable are in none.

    Long logs give `MOST_WINDOWS`, spread evenly: what more of them would add is seen in none of our numbers.

    Args:
        project: The project.
        tracks: The episodes.
        window_s: Length of a window [s]; 0 for one window per episode.
        history_s: How much of the commands before each window is kept [s]; before the log its first one stands in.
        from_first_row: Begin at the first row, where the commands before are not known.
    """
    num_past = max(1, int(np.ceil(history_s * project.rate_hz)))
    longest = max((len(track.measured) - 1 for track in tracks), default=1)
    num_steps = longest if window_s == 0 else max(1, min(longest, round(window_s * project.rate_hz)))
    known = not project.commands or window_s == 0 or from_first_row
    skipped = 0 if known else int(np.ceil(min(UNKNOWN_S, history_s) * project.rate_hz))
    places: list[tuple[int, int]] = [
        (index, row)
        for index, track in enumerate(tracks)
        for row in _first_rows(track, num_steps, skipped, window_s == 0)
        if track.known[row] and (window_s == 0 or track.usable[row : row + num_steps + 1].all())
    ]
    places = [
        places[int(k)] for k in np.unique(np.linspace(0, len(places) - 1, min(len(places), MOST_WINDOWS)).astype(int))
    ]
    pieces = [_piece(tracks[index], row, num_steps, num_past) for index, row in places]
    stacked = (
        [np.stack(parts) for parts in zip(*pieces, strict=True)] if pieces else _nothing(project, num_steps, num_past)
    )
    where = np.array(places, dtype=np.intp).reshape(-1, 2)
    errors = [_mean_error(project, tracks, name) for name in ("noise", "value_sd", "slope_sd")]
    num_ahead = max(2, int(np.ceil(AHEAD_S * project.rate_hz)) + 1)
    ahead = np.array([_look_ahead(tracks[index], row, num_ahead) for index, row in places])
    arrays: list[Any] = [*stacked, where[:, 0], where[:, 1], *errors, ahead if len(ahead) else None]
    return Windows(*arrays)


def draw_windows(windows: Windows, rng: np.random.Generator, most: int) -> Windows:
    """Returns at most `most` of the windows, kept in order: those in which more moves are likelier.

    Every column counts alike. What moves in a few windows only, such as a thing that is pushed, makes those
    likely, since no other window shows it.
    """
    if len(windows) <= most:
        return windows
    moves = np.nan_to_num(np.nanstd(windows.measured, axis=1))
    moves = np.minimum(moves, MAX_MOTION * np.sqrt(np.mean(moves**2, axis=0)))
    share = moves / np.maximum(moves.sum(axis=0), 1e-12)
    likely = STILL_WINDOW_WEIGHT / len(windows) + share.mean(axis=1)
    return windows.pick(np.sort(rng.choice(len(windows), most, replace=False, p=likely / likely.sum())))


def shortest_window_s(project: Project) -> float:
    """Returns the length of the windows that a fit begins with [s].

    Where nothing is commanded they are short: a thing that tumbles and hits turns a small error of its start into a
    large one with every impact, and one impact is all that a window needs.
    """
    if project.commands:
        return DRIVEN_S
    return max(LENGTHS_S[0], MIN_ROWS / project.rate_hz)


def max_num_windows(window_s: float, space: ParameterSpace) -> int:
    """Returns how many windows of a length are fitted at most."""
    num_runs = len({p.run for p in space.parameters if p.run is not None})
    return max(24, round(max(MAX_SIMULATED_S, SIMULATED_PER_RUN_S * num_runs) / window_s)) if window_s > 0 else 24


def _mean_error(project: Project, tracks: Sequence[Track], name: str) -> Array:
    """Returns the root mean square of an error of the tracks, (num_measurements,); NaN without any."""
    if not tracks:
        return np.full(len(project.measurements), np.nan)
    return np.sqrt(np.mean([getattr(track, name) ** 2 for track in tracks], axis=0))


def _first_rows(track: Track, num_steps: int, skipped: int, whole: bool) -> Sequence[int]:
    """Returns where windows begin: not near an impact, and not before the commands that a delay still holds are known.

    Windows whose starts move to a calm row may overlap.
    """
    num_rows = len(track.measured)
    if whole:
        first = int(np.argmax(track.usable))
        return range(first, first + 1)
    begin = skipped if num_rows - num_steps > 4 * skipped else 0
    grid = range(begin, max(begin + 1, num_rows - num_steps), num_steps)
    moved = [row + int(np.argmax(track.calm[row : row + num_steps])) for row in grid]  # to the next calm row
    return list(dict.fromkeys(row for row in moved if track.calm[row]))


def _piece(track: Track, row: int, num_steps: int, num_past: int) -> tuple[Array, ...]:
    rows = row + np.arange(num_steps + 1)
    inside = np.clip(rows, 0, len(track.measured) - 1)
    known = (rows < len(track.measured)) & np.logical_and.accumulate(track.usable[inside])
    measured = np.where(known[:, None], track.measured[inside], np.nan)
    past = np.clip(row + np.arange(-num_past, 0), 0, None)
    return track.commands[inside[:-1]], track.commands[past], measured, track.smooth[row], track.slope[row]


def _look_ahead(track: Track, row: int, num_ahead: int) -> Array:
    """Returns smoothed readings and slopes from a row on, (2, num_ahead, num_measurements); the last one stays."""
    rows = np.minimum(row + np.arange(num_ahead), len(track.measured) - 1)
    return np.stack([track.smooth[rows], track.slope[rows]])


def _nothing(project: Project, num_steps: int, num_past: int) -> list[Array]:
    num_commands, num_measurements = len(project.commands), len(project.measurements)
    shapes = [(num_steps, num_commands), (num_past, num_commands), (num_steps + 1, num_measurements)]
    return [np.zeros((0, *shape)) for shape in [*shapes, (num_measurements,), (num_measurements,)]]
