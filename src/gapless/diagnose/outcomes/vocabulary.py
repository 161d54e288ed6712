"""The vocabulary that outcomes are read with: which words speak for which dimension.

The numbers are judgement, not measurement. For a condition they are the chance that a gap in this dimension shows as
failures that depend on this condition; for another reason a condition matters with chance `OTHER_CHANCE`. For a phase
they say how much a gap in this dimension concentrates failures there: weight 1 multiplies the odds by
`MAX_ODDS_FACTOR`, weight 0 leaves them.
"""

import re
from collections.abc import Mapping

from gapless.core.dimensions import Dimension

OTHER_CHANCE = 0.01  # that a condition matters though no dimension it speaks for takes part
STRONG, MEDIUM, WEAK = 0.5, 0.2, 0.1

TIME_OF_DAY = "time of day"
TREND = "trend over"

CONDITION_WORDS: tuple[tuple[tuple[str, ...], Mapping[Dimension, float]], ...] = (
    ((TIME_OF_DAY, "hour", "daytime", "sun", "sunlight"), {"visual": MEDIUM, "environment": WEAK}),
    (("light", "lighting", "lamp", "brightness", "illumination"), {"visual": STRONG, "environment": MEDIUM}),
    (("camera", "lens", "background", "texture", "colour", "color"), {"visual": STRONG}),
    (("object", "item", "part", "payload", "mass", "weight", "load"), {"object": STRONG}),
    (("person", "operator", "user", "human", "partner", "people", "subject"), {"human": STRONG}),
    (("surface", "material"), {"contact": MEDIUM, "environment": MEDIUM}),
    (("site", "room", "location", "floor", "table", "place", "lab"), {"environment": STRONG}),
    (("wind", "weather", "clutter", "tilt", "humidity"), {"environment": STRONG}),
    (("temperature",), {"actuator": MEDIUM, "environment": MEDIUM}),
    (("robot", "serial", "arm", "gripper", "motor", "battery"), {"actuator": STRONG}),
    (("sensor", "encoder", "imu"), {"sensor": STRONG}),
    (("network", "wifi", "computer", "host"), {"latency": STRONG}),
    (("speed", "velocity"), {"actuator": MEDIUM, "latency": MEDIUM}),
    ((TREND,), {"actuator": MEDIUM, "sensor": MEDIUM}),
    (("policy", "checkpoint", "model", "version", "seed", "method", "task", "instruction", "goal"), {}),  # what was run
)
UNKNOWN_CONDITION: Mapping[Dimension, float] = {
    "environment": 1.7 * OTHER_CHANCE
}  # half a nat: it may stand for anything

PHASE_WORDS: tuple[tuple[tuple[str, ...], Mapping[Dimension, float]], ...] = (
    (("approach", "reach", "search", "align", "look", "find", "detect", "locate"), {"visual": 1.0, "sensor": 0.7}),
    (
        ("grasp", "grip", "contact", "push", "insert", "touch", "slide", "place", "placing", "press", "wipe", "peg"),
        {"contact": 1.0, "object": 0.4},
    ),
    (("lift", "carry", "carrying", "hold", "transport", "transfer", "pour"), {"object": 1.0, "actuator": 0.7}),
    (("handover", "hand over", "give", "giving", "receive", "receiving", "wait"), {"human": 1.0}),
    (("return", "track", "swing", "balance", "balancing"), {"actuator": 1.0, "latency": 0.8}),
)

_ENDINGS = r"(?:s|es|ed|ing|ping|er|ers)?"


def normalize_name(text: str) -> str:
    """Returns a name as it is compared: lower case, one blank between words, also of `LightLevel` or `light_level`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_\-\s]+", " ", str(text).strip()).lower()


def condition_dimensions(name: str) -> tuple[Mapping[Dimension, float], bool]:
    """Returns what a condition speaks for, and whether its name is in the table."""
    text = normalize_name(name)
    found = [speaks_for for words, speaks_for in CONDITION_WORDS if any(_find_word(text, word) for word in words)]
    strongest: dict[Dimension, float] = {}
    for speaks_for in found:
        for dimension, weight in speaks_for.items():
            strongest[dimension] = max(weight, strongest.get(dimension, 0.0))
    return (strongest, True) if found else (UNKNOWN_CONDITION, False)


def phase_dimensions(name: str) -> Mapping[Dimension, float]:
    """Returns what failing in a phase speaks for, by the first word that is known: `approach to grasp` is an approach.

    Empty for unknown words.
    """
    text = normalize_name(name)
    places = [
        (match.start(), k) for k, (words, _) in enumerate(PHASE_WORDS) for w in words if (match := _find_word(text, w))
    ]
    return PHASE_WORDS[min(places)[1]][1] if places else {}


def is_time_of_day(name: str) -> bool:
    """Tells whether a condition states the time of day itself."""
    return any(_find_word(normalize_name(name), word) for word in (TIME_OF_DAY, "hour", "daytime"))


def _find_word(text: str, word: str) -> re.Match[str] | None:
    return re.search(rf"(?<![a-z]){re.escape(word)}{_ENDINGS}(?![a-z])", text)
