"""The words of a name."""

import re

_SIDES = {
    **{"l": "left", "r": "right", "back": "rear", "hind": "rear"},
    **{"fl": "front left", "fr": "front right", "rl": "rear left", "rr": "rear right"},
    **{"lf": "front left", "rf": "front right", "lh": "rear left", "rh": "rear right"},
}


def split_words(name: str) -> list[str]:
    """Splits a name into lower-case words and numbers: `q2_deg` -> q, 2, deg; `kFLHip` -> k, front, left, hip."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    words = [word.lower() for word in re.findall(r"[^\W\d_]+|\d+", spaced)]
    return [part for word in words for part in str(_SIDES.get(word, word)).split()]
