"""Positions and velocities of the same thing must agree: evidence that needs no model."""

from collections.abc import Iterator, Sequence

import numpy as np

from gapless.check.findings import Mistake
from gapless.check.units import wrong_unit
from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.signals.track import Track, quaternion_columns
from gapless.sim.restart import body_rate

RELATED = 0.8  # correlation from which on a velocity is that of a position, but for sign and unit
STRANGER = 0.4  # correlation below which it is not
CLEAR = 5.0  # slopes must exceed their standard error by this factor
MOST_WRONG = 2.0  # factor by which a velocity may differ from the position's slope
FEWEST = 20  # samples
_RATE_OF = {"position": "velocity", "x": "vx", "y": "vy", "z": "vz"}

Expected = tuple[str, int, Array, Array]  # what a column should be the rate of, the column, that rate, its error


def contradictions(project: Project, tracks: Sequence[Track]) -> list[Mistake]:
    """Returns columns that cannot be position and velocity of the same thing, as mapped."""
    per_track = [list(_expected(project, track)) for track in tracks]
    found: list[Mistake] = []
    for same in zip(*per_track, strict=True):
        origin, column = same[0][:2]
        value = np.concatenate([track.measured[:, column] for track in tracks])
        slope, error = (np.concatenate([entry[k] for entry in same]) for k in (2, 3))
        found += _compare(project, (origin, column), value, slope, error)
    return found


def _expected(project: Project, track: Track) -> Iterator[Expected]:
    """Yields what each velocity column of a track should be, from the positions."""
    for one, item in enumerate(project.measurements):
        for other, rate in enumerate(project.measurements):
            same = (item.element, item.name) == (rate.element, rate.name)
            if same and _RATE_OF.get(item.quantity) == rate.quantity:
                slope = np.where(np.isfinite(track.measured[:, one]), track.slope[:, one], np.nan)
                yield item.column, other, slope, np.full_like(slope, track.slope_sd[one])
    for columns in quaternion_columns(project):
        if len(columns) < 4:
            continue
        body = project.measurements[columns[0]].name
        rates = body_rate(track.smooth[:, columns], track.slope[:, columns])
        error = np.full(len(rates), 2 * float(np.linalg.norm(track.slope_sd[columns])))
        for axis, quantity in enumerate(("wx", "wy", "wz")):
            for other, rate in enumerate(project.measurements):
                if (rate.element, rate.name, rate.quantity) == ("body", body, quantity):
                    yield f"{body}'s quaternion", other, rates[:, axis], error


def _compare(project: Project, pair: tuple[str, int], value: Array, slope: Array, error: Array) -> list[Mistake]:
    known = np.isfinite(value) & np.isfinite(slope)
    value, slope = value[known], slope[known]
    noise = float(np.sqrt(np.mean(error[known] ** 2))) if known.any() else 0.0
    if len(slope) < FEWEST or np.std(slope) < CLEAR * noise or not np.std(value) > 0:
        return []
    item = project.measurements[pair[1]]
    names = (item.column, pair[0])
    correlation, ratio = float(np.corrcoef(slope, value)[0, 1]), float(np.std(value) / np.std(slope))
    why = f"{item.column} is not the rate of {pair[0]} (correlation {correlation:.2f}, {ratio:.3g} times its size)"
    if correlation < -RELATED:
        return [Mistake(names, f"{why}: one of them has the wrong sign; set scale: -1 there")]
    if correlation > RELATED and not 1 / MOST_WRONG < ratio < MOST_WRONG:
        unit = wrong_unit(item.unit, ratio)
        hint = f"one of them is in {unit}" if unit else "look at their units"
        return [Mistake(names, f"{why}: {hint}; set its scale")]
    if abs(correlation) < STRANGER:
        return [Mistake(names, f"{why}: is one of them another's column? correct gapless.yaml")]
    return []
