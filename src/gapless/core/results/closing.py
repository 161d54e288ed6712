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
    """Ranges written for another training stack."""

    format: str  # name of the format
    path: str  # the file
    notes: tuple[str, ...]  # what it could not carry, or not as it is: a line per parameter


@dataclass(frozen=True)
class RandomizeResult(StoredResult):
    """Which ranges to train on."""

    verb: ClassVar[str] = "randomize"
    inputs: tuple[str, ...]  # ids of what they come from
    ranges: tuple[Range, ...]  # one per parameter
    path: str  # file they were written to
    seed: int  # seed in force
    method: str = "evidence"  # how they were found
    correlations: tuple[Correlation, ...] = ()  # which of them go together; pairs that are not listed do not
    exports: tuple[Export, ...] = ()  # what was written of them for other training stacks


@dataclass(frozen=True)
class TrainResult(StoredResult):
    """A trained policy."""

    verb: ClassVar[str] = "train"
    inputs: tuple[str, ...]  # ids of what it was trained from
    policy: str  # path of the policy
    policy_id: str  # its id in the catalogue
    num_steps: int  # control steps of training, over all worlds
    success: Interval  # success in the simulation it was trained in, on fresh draws
    curve: tuple[tuple[int, float], ...]  # (control steps, success rate) while training
    seed: int  # seed in force
    grown: tuple[Range, ...] = ()  # the ranges that a curriculum reached; empty without one


@dataclass(frozen=True)
class EvaluateResult(StoredResult):
    """How often a policy succeeds."""

    verb: ClassVar[str] = "evaluate"
    inputs: tuple[str, ...]  # ids of the policy and of the episodes recorded
    where: Literal["reality", "simulation"]  # `reality` or `simulation`
    success: Interval  # success rate
    failed_in: Mapping[str, int]  # phase -> number of failures
    seed: int  # seed in force


@dataclass(frozen=True)
class Decision:
    """What a loop does about a gap, and why."""

    # `train` (fit, randomise, train on), `done` (the target is met) or `stop` (training does not close this)
    action: Literal["train", "done", "stop"]
    dimensions: tuple[Dimension, ...]  # dimensions that are randomised; parameters of others stay as fitted
    reason: str  # why, as a sentence for people


@dataclass(frozen=True)
class LoopResult(StoredResult):
    """The whole loop: the gap before and after, and what lay between."""

    verb: ClassVar[str] = "loop"
    inputs: tuple[str, ...]  # ids of all that went in
    simulation: Interval  # success of the first policy in simulation
    before: Interval  # success of the first policy in reality
    after: Interval  # success of the last policy in reality; `before` where none was trained on
    real_episodes: int  # real episodes used to close the gap (trials that only score are not counted)
    target: float  # success asked for
    reached: bool  # whether `after` met the target
    rounds: int  # how many rounds were begun
    # the gap in signals before; None where the loop ended earlier, as are the results below
    measure: MeasureResult | None
    measure_fitted: MeasureResult | None  # the gap in signals with the fit
    identify: IdentifyResult | None  # the fit
    diagnose: DiagnoseResult | None  # the causes
    randomize: RandomizeResult | None  # the ranges
    first: TrainResult | None  # the training of the first policy; None where it was given
    last: TrainResult | None  # the last training in the ranges found
    seed: int  # seed in force
    decision: Decision | None = None  # what was decided last, and why; None in older results


@dataclass(frozen=True)
class ReportResult(StoredResult):
    """A page to share: its path, and the ids of what it shows."""

    verb: ClassVar[str] = "report"
    inputs: tuple[str, ...]
    path: str
