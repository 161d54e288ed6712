"""Check: positions and velocities of the same thing must agree. It needs no model."""

from collections.abc import Iterator, Sequence

import numpy as np

from gapless.check.columns import name_wrong_unit
from gapless.check.findings import Finding
from gapless.core.signal import Array
from gapless.project.records import Project
from gapless.signals.track import Track, quaternion_columns
from gapless.sim.measurements import body_rate

SAME_MOTION_CORRELATION = 0.8  # above, a column is the rate of a position, but for sign and unit
OTHER_MOTION_CORRELATION = 0.4  # below, it is not
MIN_SLOPE_TO_ERROR = 5.0  # of the position's slopes to their standard error, to compare at all
MAX_SIZE_RATIO = 2.0  # by which a velocity may differ in size from the position's slope: filters do that
MIN_SAMPLES = 20
_RATE_OF = {"position": "velocity", "x": "vx", "y": "vy", "z": "vz"}


def find_rate_contradictions(project: Project, tracks: Sequence[Track]) -> list[Finding]:
    """Returns columns that cannot be position and velocity of the same thing, as mapped."""
    per_track = [list(_expected_rates(project, track)) for track in tracks]
    found: list[Finding] = []
    for same in zip(*per_track, strict=True):
        origin, column = same[0][:2]
        velocity = np.concatenate([track.measured[:, column] for track in tracks])
        slope, error = (np.concatenate([entry[k] for entry in same]) for k in (2, 3))
        found += _compare_rates(project, origin, column, velocity, slope, error)
    return found


def _expected_rates(project: Project, track: Track) -> Iterator[tuple[str, int, Array, Array]]:
    """Yields for each velocity column: what it is the rate of, the column, that rate, and its error."""
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


def _compare_rates(
    project: Project, origin: str, column: int, velocity: Array, slope: Array, error: Array
) -> list[Finding]:
    known = np.isfinite(velocity) & np.isfinite(slope)
    velocity, slope = velocity[known], slope[known]
    noise = float(np.sqrt(np.mean(error[known] ** 2))) if known.any() else 0.0
    if len(slope) < MIN_SAMPLES or np.std(slope) < MIN_SLOPE_TO_ERROR * noise or not np.std(velocity) > 0:
        return []
    item = project.measurements[column]
    names = (item.column, origin)
    correlation, ratio = float(np.corrcoef(slope, velocity)[0, 1]), float(np.std(velocity) / np.std(slope))
    why = f"{item.column} is not the rate of {origin} (correlation {correlation:.2f}, {ratio:.3g} times its size)"
    if correlation < -SAME_MOTION_CORRELATION:
        return [Finding(names, f"{why}: one of them has the wrong sign; set scale: -1 there")]
    if correlation > SAME_MOTION_CORRELATION and not 1 / MAX_SIZE_RATIO < ratio < MAX_SIZE_RATIO:
        unit = name_wrong_unit(item.unit, ratio)
        hint = f"one of them is in {unit}" if unit else "look at their units"
        return [Finding(names, f"{why}: {hint}; set its scale")]
    if abs(correlation) < OTHER_MOTION_CORRELATION:
        return [Finding(names, f"{why}: is one of them another's column? correct gapless.yaml")]
    return []
