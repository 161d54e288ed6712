"""Units that columns are mistaken for."""

import math

DEGREE = math.pi / 180.0
NEAR = 1.4  # a slope may be off by this factor: a servo need not reach where it is sent
MISTAKEN = {  # unit of a column -> factors that would mend it, with what it is then in
    "rad": ((DEGREE, "degrees, not radians"), (1 / DEGREE, "radians already, not degrees")),
    "m": ((1e-3, "millimetres, not metres"), (1e3, "metres already, not millimetres")),
}


def wrong_unit(unit: str, ratio: float) -> str | None:
    """Returns the unit that one of two columns is in by mistake if they differ by a factor; None for any other.

    Args:
        unit: What both should be in: rad, m, or one of these per second.
        ratio: How many times larger the one is than the other.
    """
    factor, words = MISTAKEN.get(unit.removesuffix("/s"), ((0.0, ""),))[0]
    for size in (factor, 1 / factor if factor else 0.0):
        if ratio > 0 and size > 0 and 1 / NEAR < ratio / size < NEAR:
            return words
    return None
