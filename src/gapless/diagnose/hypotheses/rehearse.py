"""Cases of this very model whose causes are known: drawn, simulated, and put through the same fits as the real logs."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array
from gapless.diagnose.hypotheses.belief import Calibration, Rehearsed, calibrate
from gapless.diagnose.hypotheses.frame import Frame, part_of
from gapless.diagnose.hypotheses.picture import look
from gapless.diagnose.hypotheses.trials import Trials
from gapless.fit.start_errors import shift_starts

FEW_WINDOWS = 14
NUM_CASES = (2, 6, 5)  # with no cause, one, and two
SHOWS = 1.5  # a cause shows if it moves some column by this many times the noise; else it is drawn again
TRIES = 20
Tell = Callable[[float], None]


@dataclass(frozen=True)
class Drawn:
    """A case: what took part, and what was read in the windows, (num_windows, num_steps + 1, num_measurements)."""

    causes: tuple[Dimension, ...]
    measured: Array


def rehearse(frame: Frame, rng: np.random.Generator, tell: Tell | None = None) -> Calibration:
    """Returns the calibration of a model, from cases that are drawn and fitted here."""
    small = fewer_windows(frame, FEW_WINDOWS, rng)
    first = look(small)
    drawn = draw_cases(small, rng)
    cases: list[Rehearsed] = []
    for number, case in enumerate(drawn):
        cases.append((Trials(small, case.measured, first).run(), case.causes))
        if tell is not None:
            tell((number + 1) / len(drawn))
    return calibrate(cases, frame.dimensions, Calibration())


def fewer_windows(frame: Frame, most: int, rng: np.random.Generator) -> Frame:
    """Returns a frame with some of its windows, as many of one half as of the other."""
    chosen = np.zeros(len(frame.windows), dtype=np.bool_)
    for half in (0, 1):
        there = np.flatnonzero(frame.fold == half)
        chosen[rng.choice(there, min(len(there), most // 2), replace=False)] = True
    return part_of(frame, np.flatnonzero(chosen))


def draw_cases(frame: Frame, rng: np.random.Generator) -> list[Drawn]:
    """Returns cases with no cause, one and two; every dimension that can show takes its turn."""
    able = [d for d in frame.dimensions if _draw_point(frame, d, rng) is not None]
    turns = Counter[Dimension]()
    drawn: list[Drawn] = []
    for size, number in enumerate(NUM_CASES):
        for _ in range(number):
            causes = tuple(sorted(able, key=lambda d: (turns[d], rng.random()))[:size])
            turns.update(causes)
            drawn.append(_drawn(frame, causes, rng))
    return drawn


def _drawn(frame: Frame, causes: tuple[Dimension, ...], rng: np.random.Generator) -> Drawn:
    point = np.zeros(len(frame.typical))
    for cause in causes:
        moved = _draw_point(frame, cause, rng)
        if moved is not None:
            point += moved
    windows = frame.windows
    off = rng.standard_normal((2, len(windows), windows.start.shape[1]))
    started = replace(frame, windows=shift_starts(windows, off[0] * windows.start_sd, off[1] * windows.slope_sd))
    measured = started.predict(point[None])[0]
    measured += windows.noise * rng.standard_normal(measured.shape)
    return Drawn(causes, np.where(np.isfinite(windows.measured), measured, np.nan))


def _draw_point(frame: Frame, dimension: Dimension, rng: np.random.Generator) -> Array | None:
    """Draws a point in which one dimension is off so far that it shows; None if it never does in these windows."""
    for _ in range(TRIES):
        if dimension == "numerics":
            point = frame.point(frame.space.nominal, rng.uniform(0.8, 1.1))
        else:
            point = frame.point(frame.severities.draw(dimension, rng))
        shown = frame.residuals(frame.predict(point[None]), frame.written)[0]
        if np.sqrt(np.mean(shown**2, axis=(0, 1))).max() > SHOWS:
            return point
    return None
