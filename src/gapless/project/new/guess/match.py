"""How well the words of a column fit the names of a model's elements."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from gapless.project.new.guess.words import FILLER_WORDS, must_agree, split_words

AGREE = 0.95  # from here on two names are the same but for words that tell nothing apart
LIKE_ENOUGH = 0.6
_MIN_WORD_LIKENESS = 0.72  # of two words, 1 for the same: 'sholder' is 'shoulder', 'left' is not 'lift'
_ABBREVIATED = 0.8  # likeness of 'elb' and 'elbow'


@dataclass(frozen=True)
class Match:
    """A name that a column may stand for; `score` in [0, 1] says how sure, `reason` why."""

    name: str
    score: float
    reason: str


def match_names(rest: Sequence[str], known: Sequence[str]) -> list[Match]:
    """Returns the names that the words of a column may stand for.

    Args:
        rest: The column's words that say neither role nor unit.
        known: Names in the model.
    """
    if not rest:
        return [Match(known[0], 0.8, "there is one only")] if len(known) == 1 else []
    by_name = {name: [w for w in split_words(name) if w not in FILLER_WORDS] or split_words(name) for name in known}
    shared = set.intersection(*(set(words) for words in by_name.values())) if len(known) > 1 else set()
    found: list[Match] = []
    for name, words in by_name.items():
        score, reason = _compare(list(rest), words)
        if score < AGREE and (short := [word for word in words if word not in shared]):
            shorter, short_reason = _compare([word for word in rest if word not in shared], short)
            score, reason = (0.96, short_reason) if shorter >= AGREE else (score, reason)
        if score >= LIKE_ENOUGH:
            found.append(Match(name, score, reason))
    return found


def _compare(asked: list[str], told: list[str]) -> tuple[float, str]:
    if asked == told:
        return 1.0, "the names agree"
    if sorted(asked) == sorted(told) or "".join(asked) == "".join(told):
        return 0.98, "the names agree"
    extra, lacking = _less(asked, told), _less(told, asked)
    if not lacking:
        return max(0.92 - 0.04 * len(extra), 0.65), f"its name is in it, beside '{' '.join(extra)}'"
    if not extra:
        return max(0.85 - 0.05 * len(lacking), 0.65), f"it is short for {'_'.join(told)}"
    if any(map(must_agree, extra)) or any(map(must_agree, lacking)) or len(extra) != len(lacking):
        return 0.0, ""
    words = [max(_word_likeness(word, other) for other in lacking) for word in extra]
    if min(words) < _MIN_WORD_LIKENESS:
        return 0.0, ""
    return 0.85 * sum(words) / len(words), f"'{' '.join(extra)}' is like '{' '.join(lacking)}'"


def _less(words: Sequence[str], others: Sequence[str]) -> list[str]:
    left = list(others)
    return [word for word in words if not (word in left and left.remove(word) is None)]


def _word_likeness(word: str, other: str) -> float:
    short, long = sorted((word, other), key=len)
    if len(short) >= 2 and long.startswith(short):
        return _ABBREVIATED
    return difflib.SequenceMatcher(None, word, other).ratio()
