"""Scores of `diagnose.py`: are the causes found, are the probabilities true, how long does it take?

A result is what `gapless diagnose --json` writes. Proportions have 95 % Wilson intervals; other numbers have 95 %
percentile bootstrap intervals over cases.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from gap_cases import FAR, KINDS, Case
from gap_causes import CAUSES
from gap_mechanisms import is_place_right, is_value_right

from gapless.core.dimensions import DIMENSIONS
from gapless.core.interval import Interval, wilson
from gapless.core.signal import Array

NO_GAP, UNMODELLED = "no gap", "unmodelled"
LIKELY = 0.5
NUM_BINS = 10
NUM_DRAWS = 1000


@dataclass(frozen=True)
class Answer:
    """One diagnosis beside the truth.

    Attributes:
        result: The JSON of the diagnosis; without causes where it failed.
        seconds: Wall time.
        error: What went wrong, if it did; it counts as a wrong answer.
        cpu_s: Processor time of all threads and children [s]; None where it was not measured.
        places: Targets that express the causes, with their true values.
        contradictions: Where `identify` says otherwise of the same case; None where it was not asked.
    """

    case: Case
    result: Mapping[str, Any]
    seconds: float
    error: str | None = None
    cpu_s: float | None = None
    places: Mapping[str, float | None] = field(default_factory=dict[str, float | None])
    contradictions: Sequence[str] | None = None

    @property
    def causes(self) -> dict[str, float]:
        """Dimension -> probability, most probable first; equally probable ones as the result lists them."""
        listed = [(str(c["dimension"]), float(c["probability"])) for c in self.result["causes"]]
        return dict(sorted(listed, key=lambda item: -item[1]))

    @property
    def no_gap(self) -> float:
        """Probability that there is no gap."""
        return float(self.result["no_gap"]["probability"])

    @property
    def unmodelled(self) -> float:
        """Probability that something takes part which the model cannot express."""
        return float(self.result["unmodelled"]["probability"])

    @property
    def verdict(self) -> str:
        """The most probable of all: a dimension, no gap, or unmodelled; a dimension must beat the other two."""
        return max([(self.no_gap, NO_GAP), (self.unmodelled, UNMODELLED), *self._named], key=lambda item: item[0])[1]

    @property
    def _named(self) -> list[tuple[float, str]]:
        return [(probability, dimension) for dimension, probability in self.causes.items()]

    @property
    def truth(self) -> str:
        """What the verdict should be; of a pair, both dimensions."""
        if self.case.kind == "unmodelled":
            return UNMODELLED
        return NO_GAP if not self.case.causes else " + ".join(sorted(self.case.causes))

    @property
    def likely(self) -> set[str]:
        """The dimensions above 0.5."""
        return {dimension for dimension, probability in self.causes.items() if probability > LIKELY}

    @property
    def right(self) -> bool:
        """Whether it is right, by what its kind asks for."""
        if self.case.kind == "far":
            return is_planted_first(self)
        if self.case.kind == "many":
            return self.likely == self.case.causes
        if self.case.kind == "planted" and not self.case.causes:
            return not self.likely
        if self.case.kind in ("pair", "planted"):
            return self.case.causes <= self.first_causes(len(self.case.causes))
        return self.verdict == self.truth

    def first_causes(self, number: int) -> set[str]:
        """Returns the most probable dimensions, some of them."""
        return set(list(self.causes)[:number])


FAILED: dict[str, Any] = {"causes": [], "no_gap": {"probability": 0.0}, "unmodelled": {"probability": 0.5}}
"""Result of a diagnosis that raised: wrong on every count."""


@dataclass(frozen=True)
class Scores:
    """All numbers of one run; an interval without observations where no case tells."""

    top_1: Interval
    top_1_of_causes: Interval
    top_2: Interval
    both: Interval
    exact_pair: Interval
    recall: Interval
    false_alarm: Interval
    unmodelled_named: Interval
    auroc: Interval
    many_recall: Interval
    """Of true dimensions of `many`, those above 0.5."""
    many_precision: Interval
    """Of dimensions above 0.5 in `many`, those that are true."""
    many_exact: Interval
    """Of `many`, the dimensions above 0.5 are the causes, all of them and no other."""
    many_calibration_error: Interval
    far_first: Interval
    """Of `far`, the planted cause is the most probable of the dimensions that are right but for it, and above 0.5."""
    far_strict: Interval
    """Of `far`, it is the most probable dimension of all, though gains, inertias and frictions are wrong, too."""
    foreign_top_1: Interval
    scatter_top_1: Interval
    place: Interval
    """Of `single`, the most probable mechanism of the true dimension names the right joint, body or column."""
    mechanism: Interval
    """The same, and it is a target that expresses the cause, with the true value inside its interval."""
    calibration_error: Interval
    calibration_error_no_gap: Interval
    median_s: Interval
    slow_s: Interval
    """95th percentile."""
    median_cpu_s: Interval
    num_failed: int


def score(answers: Sequence[Answer], seed: int = 0) -> Scores:
    """Returns the scores of some diagnoses."""
    of = {kind: [a for a in answers if a.case.kind == kind] for kind in KINDS}
    known, judged = of["single"] + of["pair"], of["single"] + of["pair"] + of["null"]
    rng = np.random.default_rng(seed)
    placed = [a for a in of["single"] if a.places]
    return Scores(
        _share(a.verdict in a.case.causes for a in of["single"]),
        _share(a.first_causes(1) == a.case.causes for a in of["single"]),
        _share(a.case.causes <= a.first_causes(2) for a in of["single"]),
        _share(a.case.causes <= a.first_causes(2) for a in of["pair"]),
        _share(exact(a) for a in of["pair"]),
        _share(a.causes.get(dimension, 0.0) > LIKELY for a in known for dimension in sorted(a.case.causes)),
        _share(a.no_gap < LIKELY for a in of["null"]),
        _share(a.unmodelled > LIKELY for a in of["unmodelled"]),
        auroc([a.unmodelled for a in of["unmodelled"]], [a.unmodelled for a in known], rng),
        _share(d in a.likely for a in of["many"] for d in sorted(a.case.causes)),
        _share(d in a.case.causes for a in of["many"] for d in sorted(a.likely)),
        _share(a.right for a in of["many"]),
        _resampled([dimension_claims(a) for a in of["many"]], _error_of, rng, "bootstrap"),
        _share(a.right for a in of["far"]),
        _share(a.first_causes(1) == a.case.causes for a in of["far"]),
        _share(a.right for a in of["foreign"]),
        _share(a.right for a in of["scatter"]),
        _share(is_place_right(a.result, a.case, a.places) for a in placed),
        _share(is_value_right(a.result, a.case, a.places) for a in placed),
        _resampled([dimension_claims(a) for a in judged], _error_of, rng, "bootstrap"),
        _resampled([np.array([[a.no_gap, a.case.kind == "null"]]) for a in judged], _error_of, rng, "bootstrap"),
        _quantile([a.seconds for a in answers], 0.5, rng),
        _quantile([a.seconds for a in answers], 0.95, rng),
        _quantile([a.cpu_s for a in answers if a.cpu_s is not None], 0.5, rng),
        sum(a.error is not None for a in answers),
    )


def is_planted_first(answer: Answer) -> bool:
    """Tells whether the cause of a far model comes before all others that are no part of being far, above 0.5."""
    rivals = [dimension for dimension in answer.causes if dimension in FAR]
    return bool(rivals) and {rivals[0]} == answer.case.causes <= answer.likely


def exact(answer: Answer) -> bool:
    """Tells whether the two most probable dimensions are the pair, and both are likely."""
    likely = all(answer.causes.get(dimension, 0.0) > LIKELY for dimension in answer.case.causes)
    return likely and answer.first_causes(2) == answer.case.causes


def dimension_claims(answer: Answer) -> Array:
    """Returns a probability and whether it came true, for each dimension that was considered, (num, 2)."""
    claims = [(probability, dimension in answer.case.causes) for dimension, probability in answer.causes.items()]
    return np.array(claims, dtype=np.float64).reshape(-1, 2)


def calibration_error(probabilities: Array, came_true: Array) -> float:
    """Returns the expected calibration error: over ten bins, the mean of |mean claim - share that came true|."""
    bins = np.minimum((probabilities * NUM_BINS).astype(int), NUM_BINS - 1)
    weights = np.bincount(bins, minlength=NUM_BINS)
    claimed = np.bincount(bins, probabilities, NUM_BINS)
    true = np.bincount(bins, came_true, NUM_BINS)
    return float(np.abs(claimed - true).sum() / weights.sum())


def _error_of(claims: Sequence[Array]) -> float:
    together = np.concatenate(claims)
    return calibration_error(together[:, 0], together[:, 1]) if len(together) else float("nan")


def area(positives: Array, negatives: Array) -> float:
    """Returns the probability that a positive scores above a negative; equal ones count half (Mann and Whitney)."""
    above = positives[:, None] - negatives[None, :]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def auroc(positives: Sequence[float], negatives: Sequence[float], rng: np.random.Generator) -> Interval:
    """Returns the area under the ROC curve; positives and negatives are drawn again apart."""
    yes, no = np.array(positives, dtype=np.float64), np.array(negatives, dtype=np.float64)
    if not len(yes) or not len(no):
        return _nothing("bootstrap")
    draws = [area(rng.choice(yes, len(yes)), rng.choice(no, len(no))) for _ in range(NUM_DRAWS)]
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(area(yes, no), float(low), float(high), 0.95, len(yes) + len(no), "bootstrap")


def _quantile(values: Sequence[float], level: float, rng: np.random.Generator) -> Interval:
    return _resampled(values, lambda drawn: float(np.quantile(drawn, level)), rng, "bootstrap")


def _resampled(
    items: Sequence[Any], number: Callable[[Sequence[Any]], float], rng: np.random.Generator, method: str
) -> Interval:
    """Returns a number of all items, with its percentiles over items drawn again."""
    if not items:
        return _nothing(method)
    picks = rng.integers(len(items), size=(NUM_DRAWS, len(items)))
    low, high = np.quantile([number([items[k] for k in pick]) for pick in picks], [0.025, 0.975])
    return Interval(number(items), float(low), float(high), 0.95, len(items), method)


def _nothing(method: str) -> Interval:
    return Interval(float("nan"), float("nan"), float("nan"), 0.95, 0, method)


def _share(flags: Iterable[bool]) -> Interval:
    found = list(flags)
    return wilson(sum(found), len(found))


def confusion(answers: Sequence[Answer]) -> dict[str, Counter[str]]:
    """Returns truth -> how often each verdict was given, of cases with one truth in a model that is near."""
    names = dict.fromkeys((*CAUSES, *DIMENSIONS, NO_GAP, UNMODELLED))
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    for answer in answers:
        if answer.case.kind not in ("pair", "many", "far"):
            found[answer.truth][answer.verdict] += 1
    return {truth: counts for truth, counts in found.items() if counts}


def by_detail(answers: Sequence[Answer]) -> dict[str, Interval]:
    """Returns what a case is -> how often its verdict is right, per robot and cause."""
    groups: dict[str, list[bool]] = {}
    for answer in answers:
        far = "far: " if answer.case.kind == "far" else ""
        groups.setdefault(f"{answer.case.robot}: {far}{answer.case.detail}", []).append(answer.right)
    return {name: wilson(sum(flags), len(flags)) for name, flags in sorted(groups.items())}


def shuffled_truths(answers: Sequence[Answer], rng: np.random.Generator) -> list[Answer]:
    """Returns the same results beside the truths of other cases of the same robot."""
    found: list[Answer] = []
    for robot in sorted({a.case.robot for a in answers}):
        ours = [a for a in answers if a.case.robot == robot]
        order = rng.permutation(len(ours))
        found += [replace(a, case=ours[k].case) for a, k in zip(ours, order, strict=True)]
    return found
