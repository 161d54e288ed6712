"""How the gap was closed: `randomize`, `train`, `evaluate`, `loop`, and the page about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from gapless.core.dimensions import Dimension
from gapless.core.distribution import Correlation, Range
from gapless.core.interval import Interval
from gapless.core.results.fit import IdentifyResult
from gapless.core.results.gap import DiagnoseResult, MeasureResult
from gapless.core.results.stored import StoredResult


@dataclass(frozen=True)
class Export:
    """Ranges written for another training stack.

    Attributes:
        format: Name of the format.
        path: The file.
        notes: What it could not carry, or not as it is: a line per parameter.
    """

    format: str
    path: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RandomizeResult(StoredResult):
    """Which ranges to train on.

    Attributes:
        inputs: Ids of what they come from.
        ranges: One per parameter.
        path: File they were written to.
        seed: Seed in force.
        method: How they were found.
        correlations: Which of them go together; pairs that are not listed do not.
        exports: What was written of them for other training stacks.
    """

    verb: ClassVar[str] = "randomize"
    inputs: tuple[str, ...]
    ranges: tuple[Range, ...]
    path: str
    seed: int
    method: str = "evidence"
    correlations: tuple[Correlation, ...] = ()
    exports: tuple[Export, ...] = ()


@dataclass(frozen=True)
class TrainResult(StoredResult):
    """A trained policy.

    Attributes:
        inputs: Ids of what it was trained from.
        policy: Path of the policy.
        policy_id: Its id in the catalogue.
        num_steps: Control steps of training, over all worlds.
        success: Success in the simulation it was trained in, on fresh draws.
        curve: (control steps, success rate) while training.
        seed: Seed in force.
        grown: The ranges that a curriculum reached; empty without one.
    """

    verb: ClassVar[str] = "train"
    inputs: tuple[str, ...]
    policy: str
    policy_id: str
    num_steps: int
    success: Interval
    curve: tuple[tuple[int, float], ...]
    seed: int
    grown: tuple[Range, ...] = ()


@dataclass(frozen=True)
class EvaluateResult(StoredResult):
    """How often a policy succeeds.

    Attributes:
        inputs: Ids of the policy and of the episodes recorded.
        where: `reality` or `simulation`.
        success: Success rate.
        failed_in: Phase -> number of failures.
        seed: Seed in force.
    """

    verb: ClassVar[str] = "evaluate"
    inputs: tuple[str, ...]
    where: Literal["reality", "simulation"]
    success: Interval
    failed_in: Mapping[str, int]
    seed: int


@dataclass(frozen=True)
class Decision:
    """What a loop does about a gap, and why.

    Attributes:
        action: `train` (fit, randomise, train on), `done` (the target is met) or `stop` (training does not close this).
        dimensions: Dimensions that are randomised; parameters of others stay as fitted.
        reason: Why, as a sentence for people.
    """

    action: Literal["train", "done", "stop"]
    dimensions: tuple[Dimension, ...]
    reason: str


@dataclass(frozen=True)
class LoopResult(StoredResult):
    """The whole loop: the gap before and after, and what lay between.

    Attributes:
        inputs: Ids of all that went in.
        simulation: Success of the first policy in simulation.
        before: Success of the first policy in reality.
        after: Success of the last policy in reality; `before` where none was trained on.
        real_episodes: Real episodes used to close the gap (trials that only score are not counted).
        target: Success asked for.
        reached: Whether `after` met the target.
        rounds: How many rounds were begun.
        measure: The gap in signals before; this and the next five are None where the loop ended before them.
        measure_fitted: The gap in signals with the fit.
        identify: The fit.
        diagnose: The causes.
        randomize: The ranges.
        first: The training of the first policy; None where it was given.
        last: The last training in the ranges found.
        seed: Seed in force.
        decision: What was decided last, and why; None in older results.
    """

    verb: ClassVar[str] = "loop"
    inputs: tuple[str, ...]
    simulation: Interval
    before: Interval
    after: Interval
    real_episodes: int
    target: float
    reached: bool
    rounds: int
    measure: MeasureResult | None
    measure_fitted: MeasureResult | None
    identify: IdentifyResult | None
    diagnose: DiagnoseResult | None
    randomize: RandomizeResult | None
    first: TrainResult | None
    last: TrainResult | None
    seed: int
    decision: Decision | None = None


@dataclass(frozen=True)
class ReportResult(StoredResult):
    """A page to share: its path, and the ids of what it shows."""

    verb: ClassVar[str] = "report"
    inputs: tuple[str, ...]
    path: str
