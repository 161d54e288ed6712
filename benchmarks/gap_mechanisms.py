"""Does a diagnosis name the place, and does `identify` say the same? For `gap_scores.py`, on results as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from gap_cases import Case
from gap_robots import ROBOTS

from gapless.core.dimensions import Dimension

LIKELY = 0.5
WITHOUT_PARAMETERS: tuple[Dimension, ...] = ("numerics", "visual", "human")
"""Dimensions that `identify` fits nothing of: it cannot contradict them."""


def mechanism_of(result: Mapping[str, Any], case: Case) -> Mapping[str, Any] | None:
    """Returns the most probable mechanism of the true dimension; None where none is named."""
    causes = [cause for cause in result["causes"] if cause["dimension"] in case.causes]
    listed = [mechanism for cause in causes for mechanism in cause.get("mechanisms", ())]
    return max(listed, key=lambda mechanism: float(mechanism["probability"]), default=None)


def place_of(target: str, robot: str) -> str:
    """Returns the joint, body, geom or column that a target is about; an actuator is where its joint is."""
    kind, name, *_ = target.split("/")
    if kind != "actuator":
        return kind if kind == "world" else f"{kind}/{name}"
    joints = {actuator: joint for joint, actuator in ROBOTS[robot].drives.items()} if robot in ROBOTS else {}
    return f"joint/{joints.get(name, name)}"


def is_place_right(result: Mapping[str, Any], case: Case, places: Mapping[str, float | None]) -> bool:
    """Tells whether the mechanism that is named acts where the cause does."""
    named = mechanism_of(result, case)
    where = {place_of(target, case.robot) for target in places}
    return named is not None and place_of(named["target"], case.robot) in where


def is_value_right(result: Mapping[str, Any], case: Case, places: Mapping[str, float | None]) -> bool:
    """Tells whether the mechanism that is named expresses the cause, and its interval holds the true value.

    Where no value of the target is the true one, the target is enough.
    """
    named = mechanism_of(result, case)
    if named is None or named["target"] not in places:
        return False
    true = places[named["target"]]
    return true is None or named["low"] <= true <= named["high"]


def find_contradictions(found: Mapping[str, Any], fit: Mapping[str, Any]) -> list[str]:
    """Returns where a diagnosis and a fit of the same case contradict each other, as sentences.

    Either an identifiable parameter has an interval without the model's value while its dimension is below 0.5, or a
    dimension is above 0.5 and no parameter of it has such an interval. A fit that was refused says nothing.
    """
    if fit["verdict"] == "refused":
        return []
    probability = {cause["dimension"]: float(cause["probability"]) for cause in found["causes"]}
    away = [p for p in fit["parameters"] if not p["low"] <= p["nominal"] <= p["high"]]
    said = [
        f"{p['target']} is {p['value']:.3g} [{p['low']:.3g}, {p['high']:.3g}], {p['nominal']:.3g} in the model; "
        f"{p['dimension']} has {probability.get(p['dimension'], 0.0):.2f}"
        for p in away
        if p["identifiable"] and probability.get(p["dimension"], 0.0) < LIKELY
    ]
    moved = {p["dimension"] for p in away}
    return said + [
        f"{dimension} has {value:.2f}, and no parameter of it is away from the model"
        for dimension, value in probability.items()
        if value > LIKELY and dimension not in moved and dimension not in WITHOUT_PARAMETERS
    ]


def count_contradicted(contradictions: Sequence[Sequence[str] | None]) -> tuple[int, int]:
    """Returns how many cases have a contradiction, and how many were looked at."""
    asked = [some for some in contradictions if some is not None]
    return sum(bool(some) for some in asked), len(asked)
