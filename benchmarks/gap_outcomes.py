"""Cases of `diagnose.py` that have outcomes alone: who failed, when, in which phase, under which conditions.

The story is its own and knows nothing of the model in `gapless.diagnose.outcomes`. A campaign of some weeks has
sessions of a few runs. A session has a place and a robot; persons, objects, cameras and light change within it. Every
run may fail
for everyday reasons. In some runs, those exposed to the cause, more fail, and mostly in the phase where such a cause
bites. Now and then nobody wrote a condition down, and some teams note no phases at all. Tuning and test differ in
seeds and in the words of their conditions.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
from gap_cases import Case, Split, planted, write_truth

from gapless.core.dimensions import Dimension
from gapless.core.signal import Array, Flags

NUM_RUNS = (40, 80, 120)
CAUSES: dict[str, Dimension] = {
    "light": "visual",
    "camera": "visual",
    "afternoon": "visual",
    "site": "environment",
    "person": "human",
    "object": "object",
    "robot": "actuator",
    "drift": "actuator",
}
"""What failures follow -> the dimension that it speaks for, by docs/outcomes.md."""
PER_CAUSE, NUM_NULLS = 20, 60  # cases of the test for each number of runs; tuning has half
FIRST_SEED: dict[Split, int] = {"tuning": 30_000, "test": 40_000}
WORDS: dict[Split, dict[str, str]] = {
    "tuning": {n: n for n in ("light", "camera", "site", "person", "object", "robot")},
    "test": {
        "light": "lighting",
        "camera": "camera",
        "site": "room",
        "person": "operator",
        "object": "item",
        "robot": "serial",
    },
}
LEVELS = {
    "light": ("bright", "dim"),
    "camera": ("left", "right", "wrist"),
    "site": ("hall", "kitchen", "store"),
    "person": ("ada", "ben", "cleo", "dan", "eve"),
    "object": ("mug", "bowl", "jar", "can", "box"),
    "robot": ("r1", "r2", "r3"),
}
PHASES = ("approach", "grasp", "lift", "handover", "return")
BITES: dict[Dimension, tuple[str, ...]] = {
    "visual": ("approach",),
    "environment": (),
    "human": ("handover",),
    "object": ("grasp", "lift"),
    "actuator": ("lift", "return"),
}
"""Phases in which a cause makes runs fail; environment, in any."""
BITE = 0.7  # share of a cause's failures that are in such a phase
EVEN = (0.1, 0.5)  # failure rates of nulls
SESSION = 4  # runs
UNNAMED = 0.05  # chance that a condition of a run is not written down
MIN_EXPOSED = 6  # runs with and without the cause


@dataclass(frozen=True)
class Campaign:
    """Runs with all that happened, before anybody wrote it down.

    Attributes:
        levels: Condition -> (num_runs,) index of its value.
        times: (num_runs,) when.
        even: Failure rate of all runs, if nothing is planted.
        base: Failure rate of runs that are not exposed to what is planted.
        raised: Failure rate of runs that are.
        shares: (num_phases,) where everyday failures happen.
        chosen: Condition -> values that count as exposed, were it the cause.
        phases_noted: Whether failures name their phase.
    """

    levels: Mapping[str, Array]
    times: tuple[datetime, ...]
    even: float
    base: float
    raised: float
    shares: Array
    chosen: Mapping[str, tuple[int, ...]]
    phases_noted: bool

    def exposure(self, cause: str) -> Array:
        """Returns how much of a cause each run is exposed to, (num_runs,) in [0, 1]."""
        if cause == "nothing":
            return np.zeros(len(self.times))
        if cause == "drift":
            days = np.array([time.timestamp() for time in self.times])
            return (days - days.min()) / np.ptp(days)
        if cause == "afternoon":
            return np.array([14 <= time.hour < 18 for time in self.times], dtype=np.float64)
        return np.isin(self.levels[cause], self.chosen[cause]).astype(np.float64)

    def chances(self, cause: str) -> Array:
        """Returns the chance of each run to fail in each phase, (num_runs, num_phases)."""
        if cause == "nothing":
            return np.tile(self.even * self.shares, (len(self.times), 1))
        extra = (self.raised - self.base) * self.exposure(cause)
        bites = BITES[CAUSES[cause]]
        share = (1 - BITE) * self.shares if bites else self.shares.copy()
        share[[PHASES.index(name) for name in bites]] += BITE / max(len(bites), 1)
        return self.base * self.shares + extra[:, None] * share


@dataclass(frozen=True)
class RunNotes:
    """What was written down: whether each run failed, and the index of its phase, -1 where not noted."""

    failed: Flags
    phase: Array


def cases(split: Split) -> list[Case]:
    """Returns the cases of a split, always the same; their robot is how many runs they have."""
    part = 1 if split == "test" else 2
    listed: list[tuple[int, str]] = []
    for num_runs in NUM_RUNS:
        listed += [(num_runs, cause) for cause in CAUSES for _ in range(PER_CAUSE // part)]
        listed += [(num_runs, "nothing")] * (NUM_NULLS // part)
    return [
        planted(f"{num_runs} runs", cause, CAUSES, FIRST_SEED[split] + k, split, "outcomes")
        for k, (num_runs, cause) in enumerate(listed)
    ]


def cause_of(case: Case) -> str:
    """Returns what failures follow in a case."""
    return case.detail.rpartition("/")[2]


@cache
def draw(case: Case) -> tuple[Campaign, RunNotes]:
    """Returns the runs of a case, and their outcomes."""
    rng = np.random.default_rng([case.seed, 1])
    num_runs, cause = int(case.robot.split()[0]), cause_of(case)
    while True:
        campaign = _campaign(num_runs, rng)
        exposed = campaign.exposure(cause) > 0.5
        if cause == "nothing" or MIN_EXPOSED <= exposed.sum() <= num_runs - MIN_EXPOSED:
            break
    chances = campaign.chances(cause)
    hard = rng.uniform(0.8, 1.2, len(LEVELS["object"]))[campaign.levels["object"].astype(int)]  # nobody's cause
    fate = rng.random(num_runs)[:, None] > np.minimum(np.cumsum(chances * hard[:, None], axis=1), 0.95)
    phase = fate.sum(axis=1)
    failed = phase < len(PHASES)
    noted = failed & (rng.random(num_runs) < 0.9) & campaign.phases_noted
    return campaign, RunNotes(failed, np.where(noted, phase, -1))


def _campaign(num_runs: int, rng: np.random.Generator) -> Campaign:
    num_sessions = -(-num_runs // SESSION)
    days = np.sort(rng.uniform(0, rng.uniform(20, 45), num_sessions)).astype(int)
    times: list[datetime] = []
    for day, hour in zip(days, rng.uniform(8, 19, num_sessions), strict=True):
        first = datetime(2026, 3, 2) + timedelta(days=int(day), hours=float(hour))
        times += [first + timedelta(minutes=7 * k) for k in range(SESSION)]
    levels = {name: rng.integers(len(values), size=num_runs) for name, values in LEVELS.items()}
    for name in ("site", "robot"):
        levels[name] = np.repeat(rng.integers(len(LEVELS[name]), size=num_sessions), SESSION)[:num_runs]
    levels["light"] = (rng.random(num_runs) < rng.uniform(0.3, 0.5)).astype(int)
    chosen = {name: (int(rng.integers(len(values))),) for name, values in LEVELS.items()}
    chosen["light"] = (1,)
    chosen["person"] = tuple(int(k) for k in rng.permutation(len(LEVELS["person"]))[: rng.integers(1, 3)])
    even, base, raised = rng.uniform(*EVEN), rng.uniform(0.1, 0.25), rng.uniform(0.5, 0.8)
    shares = rng.dirichlet(np.full(len(PHASES), 4.0))
    return Campaign(levels, tuple(times[:num_runs]), even, base, raised, shares, chosen, bool(rng.random() < 2 / 3))


def notes(case: Case) -> list[dict[str, object]]:
    """Returns what is known of each run, as its JSON file holds it."""
    campaign, run_notes = draw(case)
    rng, words = np.random.default_rng([case.seed, 2]), WORDS[case.split]
    found: list[dict[str, object]] = []
    for k, time in enumerate(campaign.times):
        named = [name for name in LEVELS if rng.random() > UNNAMED]
        conditions = {words[name]: LEVELS[name][int(campaign.levels[name][k])] for name in named}
        note: dict[str, object] = {"outcome": "failure" if run_notes.failed[k] else "success"}
        if run_notes.phase[k] >= 0:
            note["failed_in"] = PHASES[int(run_notes.phase[k])]
        found.append({**note, "conditions": conditions, "recorded_at": time.isoformat(timespec="seconds")})
    return found


def oracle(case: Case) -> str:
    """Returns the verdict of a judge who knows the story and its rates, but neither the cause nor its values.

    It weighs every cause, with every choice of values, and none by the likelihood of what was noted and by how often
    each is planted. It also knows how often each phase fails every day, which nobody does; and it does not know that
    objects differ in difficulty. It bounds what can be asked for.
    """
    campaign, run_notes = draw(case)
    scores: dict[str, float] = {}
    for cause in CAUSES:
        worlds = [replace(campaign, chosen={cause: values}) for values in options(cause)]
        scores[cause] = np.log(PER_CAUSE) + _log_mean([_log_likelihood(world, run_notes, cause) for world in worlds])
    evens = [_log_likelihood(replace(campaign, even=rate), run_notes, "nothing") for rate in np.linspace(*EVEN, 17)]
    scores["nothing"] = np.log(NUM_NULLS) + _log_mean(evens)
    most = max(scores.values())
    weights: dict[str, float] = {}
    for cause, score in scores.items():
        name = CAUSES.get(cause, "no gap")
        weights[name] = weights.get(name, 0.0) + float(np.exp(score - most))
    return max(weights, key=lambda name: weights[name])


def options(cause: str) -> list[tuple[int, ...]]:
    """Returns the sets of values that may count as exposed; one, of what is no condition."""
    if cause not in LEVELS:
        return [()]
    sizes = (1, 2) if cause == "person" else (1,)
    return [choice for size in sizes for choice in combinations(range(len(LEVELS[cause])), size)]


def _log_mean(logs: Sequence[float]) -> float:
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))


def _log_likelihood(campaign: Campaign, run_notes: RunNotes, cause: str) -> float:
    chances = campaign.chances(cause)
    lost = chances.sum(axis=1)
    noted = chances[np.arange(len(lost)), np.maximum(run_notes.phase, 0).astype(int)]
    each = np.where(~run_notes.failed, 1 - lost, np.where(run_notes.phase >= 0, noted, lost))
    return float(np.log(each).sum())


MODEL = """<mujoco><option timestep="0.01"/><worldbody><body name="bob"><joint name="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -.3" size=".02" mass=".5"/></body></worldbody>
<actuator><motor name="motor" joint="hinge"/></actuator></mujoco>
"""
YAML = """gapless: 1
model: robot.xml
rate_hz: 50
commands: {u: {actuator: motor}}
measurements: {q: {joint: hinge, quantity: position}}
"""


def write(case: Case, folder: Path) -> Path:
    """Writes a case as a project folder without logs, and its truth beside it as FOLDER.truth.json; returns it."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "robot.xml").write_text(MODEL, encoding="utf-8")
    (folder / "gapless.yaml").write_text(YAML, encoding="utf-8")
    for k, note in enumerate(notes(case)):
        (folder / "logs" / f"run{k:03d}.json").write_text(json.dumps(note), encoding="utf-8")
    write_truth(case, folder)
    return folder
