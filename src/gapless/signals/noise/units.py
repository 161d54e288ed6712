"""Units of columns that no project maps, and what noise is called in them."""

import math
import re

G_M_S2 = 9.80665
RAD_PER_DEG = math.pi / 180
UNKNOWN = "unit"

# How a column's name ends -> its unit; the longest that fits counts.
_ENDINGS = {
    "rad_s": "rad/s", "rad/s": "rad/s", "radps": "rad/s", "deg_s": "deg/s", "deg/s": "deg/s", "dps": "deg/s",
    "m_s2": "m/s^2", "m/s2": "m/s^2", "m/s^2": "m/s^2", "mps2": "m/s^2", "g": "g", "m_s": "m/s", "m/s": "m/s",
    "rad": "rad", "deg": "deg", "m": "m", "mm": "mm", "nm": "N·m", "n": "N", "v": "V", "a": "A", "pa": "Pa",
}  # fmt: skip
_SI_FACTORS = {"deg/s": RAD_PER_DEG, "g": G_M_S2, "deg": RAD_PER_DEG, "mm": 1e-3}  # from the unit to the SI unit
# Unit -> name and unit of what its integral does, and the factor from unit/sqrt(Hz): sqrt(3600) s to an hour.
_RANDOM_WALKS = {
    "rad/s": ("angle_random_walk", "deg/√h", 60 / RAD_PER_DEG),
    "deg/s": ("angle_random_walk", "deg/√h", 60.0),
    "m/s^2": ("velocity_random_walk", "m/s/√h", 60.0),
    "g": ("velocity_random_walk", "m/s/√h", 60.0 * G_M_S2),
}


def read_unit(column: str) -> str:
    """Returns the unit that a column's name ends with, `unit` where it names none: `gyro_x_rad_s`, `accel_g[0]`."""
    name = re.sub(r"\[\d+\]$", "", column.strip().lower())
    for text in (name, re.sub(r"_[xyz]$", "", name)):
        fits = [ending for ending in _ENDINGS if re.search(rf"[_ \[(]{re.escape(ending)}[\])]?$", text)]
        if fits:
            return _ENDINGS[max(fits, key=len)]
    return UNKNOWN


def si_factor(unit: str) -> float:
    """Returns the factor from a unit to the SI unit of the same quantity."""
    return _SI_FACTORS.get(unit, 1.0)


def name_random_walk(unit: str) -> tuple[str, str, float] | None:
    """Returns name, unit and factor of the random walk that white noise in this unit causes; None where unusual."""
    return _RANDOM_WALKS.get(unit)
