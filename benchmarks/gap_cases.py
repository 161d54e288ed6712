"""The cases of `diagnose.py`: which there are, and how one is written as a project folder.

Tuning and test differ in seeds, and so in motions, severities and noise; test also moves in families, and in cases of
`numerics` has time steps or integrators, that tuning never sees.

Kinds: `single`, `pair` and `many` have 1, 2 and 3 to 6 causes of different dimensions, each of which shows alone;
`null` has none; `unmodelled` has an effect that no parameter expresses. `far` has a single cause of a dimension in
`FAR`, and a model whose gains, inertias and frictions are all off by factors of 3 to 10: those are wrong as well, and
make `actuator` and `object` true, so that the planted cause is judged among the dimensions of `FAR`. `foreign` is
played by PyBullet instead of MuJoCo, on robots that touch nothing. `scatter` has a cause that acts by chance.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np
from gap_causes import CAUSES, Change, Scene, names_of
from gap_far import make_far
from gap_robots import ROBOTS, Robot
from gap_scatter import SCATTER
from gap_unmodelled import UNMODELLED
from gap_world import NUM_EPISODES, Log, Places, Reality, Spoil, Step, play, readings, visibility

from gapless.core.dimensions import Dimension

Split = Literal["tuning", "test"]
Source = Literal["signals", "planted", "outcomes", "policy"]
Kind = Literal["single", "pair", "null", "unmodelled", "many", "far", "foreign", "scatter", "planted"]
KINDS: tuple[Kind, ...] = ("single", "pair", "null", "unmodelled", "many", "far", "foreign", "scatter")
NUMBERS: dict[Kind, int] = {kind: 105 if kind == "single" else 60 for kind in KINDS}  # of the test; tuning has half
FAR: tuple[Dimension, ...] = ("latency", "sensor", "contact", "environment")
"""Dimensions that are right in a model of `far` but for the cause; its time step, too, may be coarse for its gains."""
FOREIGN = ("arm", "cartpole", "torquearm")  # robots that can do without contact
MANY = (3, 4, 5, 6)  # causes of a case of `many`, in turn
VISIBLE = 3.0  # a cause shows: predictions of 0.3 s are off by this many times the noise
PART = 0.05  # the weaker cause of a pair is at least this share of the stronger, by the same measure
TRIES = 12


@dataclass(frozen=True)
class Case:
    """A gap whose causes are known.

    Attributes:
        robot: Name of the robot.
        causes: Dimensions that take part; none for `null` and `unmodelled`.
        detail: What it is, as DIMENSION/CAUSE joined by ` + `.
        seed: Of motions, severity and noise.
        source: What there is to judge by: `signals` here, `outcomes` in `gap_outcomes`, `policy` in `gap_policies`.
    """

    robot: str
    kind: Kind
    causes: frozenset[Dimension]
    detail: str
    seed: int
    split: Split
    source: Source = "signals"

    @property
    def name(self) -> str:
        """A name that no other case has."""
        return f"{self.robot.replace(' ', '-')}-{self.seed}"


def cases(split: Split, kind: Kind) -> list[Case]:
    """Returns the cases of one split and kind, always the same."""
    wanted = NUMBERS[kind] if split == "test" else -(-NUMBERS[kind] // 2)
    first = (20_000 if split == "test" else 10_000) + 1_000 * KINDS.index(kind)
    rng = np.random.default_rng(first)
    makers = {"single": _singles, "pair": _pairs, "null": _nulls, "unmodelled": _unmodelled, "many": _many}
    makers |= {"far": _far, "foreign": _foreign, "scatter": _scatter}
    listed = makers[kind](wanted, rng)
    return [
        Case(robot, kind, frozenset(dims), detail, first + k, split) for k, (robot, dims, detail) in enumerate(listed)
    ]


_Listed = list[tuple[str, tuple[Dimension, ...], str]]


def _singles(wanted: int, rng: np.random.Generator) -> _Listed:
    return _in_turn(wanted, rng, list(CAUSES), list(ROBOTS))


def _far(wanted: int, rng: np.random.Generator) -> _Listed:
    return _in_turn(wanted, rng, FAR, list(ROBOTS))


def _foreign(wanted: int, rng: np.random.Generator) -> _Listed:
    return _in_turn(wanted, rng, [d for d in CAUSES if d != "contact"], FOREIGN, without=("backlash",))


def _in_turn(
    wanted: int, rng: np.random.Generator, dimensions: Sequence[Dimension], robots: Sequence[str], without: tuple = ()
) -> _Listed:
    """Returns single causes: dimensions in turn, each over its robots in turn, each over its causes in turn."""
    found: _Listed = []
    order = _order(rng)
    for k in range(wanted):
        dimension, turn = dimensions[k % len(dimensions)], k // len(dimensions)
        able = [robot for robot in robots if names_of(dimension, robot)]
        robot = able[turn % len(able)]
        names = [name for name in order[dimension, robot] if name not in without]
        found.append((robot, (dimension,), f"{dimension}/{names[turn // len(able) % len(names)]}"))
    return found


def _order(rng: np.random.Generator) -> dict[tuple[Dimension, str], list[str]]:
    """Returns (dimension, robot) -> its causes, shuffled."""
    found = {(dimension, robot): names_of(dimension, robot) for dimension in CAUSES for robot in ROBOTS}
    return {key: [names[k] for k in rng.permutation(len(names))] for key, names in found.items()}


def _pairs(wanted: int, rng: np.random.Generator) -> _Listed:
    """Returns pairs of different dimensions in turn, each over its robots in turn, with any of their causes."""
    found: _Listed = []
    pairs = list(combinations(CAUSES, 2))
    for k in range(wanted):
        (one, other), turn = pairs[k % len(pairs)], k // len(pairs)
        robots = [robot for robot in ROBOTS if names_of(one, robot) and names_of(other, robot)]
        robot = robots[(k + turn) % len(robots)]
        details = [f"{d}/{rng.choice(names_of(d, robot))}" for d in (one, other)]
        found.append((robot, (one, other), " + ".join(details)))
    return found


def _many(wanted: int, rng: np.random.Generator) -> _Listed:
    """Returns sets of 3 to 6 different dimensions, over all robots in turn, with any of their causes."""
    found: _Listed = []
    for k in range(wanted):
        robot, size = list(ROBOTS)[k % len(ROBOTS)], MANY[k // len(ROBOTS) % len(MANY)]
        able = [dimension for dimension in CAUSES if names_of(dimension, robot)]
        chosen = [able[number] for number in np.sort(rng.permutation(len(able))[:size])]
        details = [f"{d}/{rng.choice(names_of(d, robot))}" for d in chosen]
        found.append((robot, tuple(chosen), " + ".join(details)))
    return found


def _scatter(wanted: int, rng: np.random.Generator) -> _Listed:
    found: _Listed = []
    for k in range(wanted):
        name, robot = list(SCATTER)[k % len(SCATTER)], list(ROBOTS)[k // len(SCATTER) % len(ROBOTS)]
        found.append((robot, (SCATTER[name][0],), f"scatter/{name}"))
    return found


def _nulls(wanted: int, rng: np.random.Generator) -> _Listed:
    return [(list(ROBOTS)[k % len(ROBOTS)], (), "nothing") for k in range(wanted)]


def _unmodelled(wanted: int, rng: np.random.Generator) -> _Listed:
    effects, robots = list(UNMODELLED), list(ROBOTS)
    return [
        (robots[k // len(effects) % len(robots)], (), f"unmodelled/{effects[k % len(effects)]}") for k in range(wanted)
    ]


class NotShownError(RuntimeError):
    """However a cause was drawn, it does not show in the logs: nobody could find it, and the case is left out."""


@dataclass(frozen=True)
class Drawn:
    """What a case turned out to be.

    Attributes:
        logs: Its episodes, without noise.
        text: Causes with their severities.
        shown: How visible each cause is alone: the largest of its columns' ratios of prediction error to noise.
        model: Text of the model that the project has.
        places: All targets that express a cause, with their true values.
        spoil: What happens to readings on their way into the logs.
    """

    logs: list[Log]
    text: str
    shown: tuple[float, ...]
    model: str
    places: Places
    spoil: Spoil | None


def draw(case: Case) -> Drawn:
    """Returns a case with severities that show in its logs.

    Raises:
        NotShownError: If no draw of `TRIES` shows.
    """
    robot, nothing = robot_of(case), Reality(engine=_engine(case))
    duration_s = np.random.default_rng([case.seed, 5]).uniform(4.0, 6.0, NUM_EPISODES)
    plain = play(robot, nothing, case.split, case.seed, duration_s)
    scene, coarse = scene_of(robot, plain), robot.coarse[case.split] if "numerics" in case.causes else None
    names = [name for name in case.detail.split(" + ") if name != "nothing"]
    shown: tuple[float, ...] = ()
    for attempt in range(TRIES):
        rng = np.random.default_rng([case.seed, 4, attempt])
        reality, alone, texts = nothing, [], []
        for change in map(_change, names):
            seed = rng.integers(2**32)
            reality, text = change(reality, robot, np.random.default_rng(seed), scene)
            alone.append(change(nothing, robot, np.random.default_rng(seed), scene)[0])
            texts.append(text)
        logs = play(robot, reality, case.split, case.seed, duration_s) if names else plain
        each = [logs] if len(alone) < 2 else [play(robot, r, case.split, case.seed, duration_s) for r in alone]
        shown = tuple(_shown(robot, n, r, coarse, seen) for n, r, seen in zip(names, alone, each, strict=False))
        least = VISIBLE if case.kind == "many" else max(VISIBLE, PART * max(shown, default=0.0))
        if not shown or min(shown) >= least:
            model = robot.text(coarse)
            if case.kind == "far":
                model, far = make_far(robot, np.random.default_rng([case.seed, 6]))
                texts = [*texts, far]
            return Drawn(logs, "; ".join(texts), shown, model, reality.places, reality.spoil)
    raise NotShownError(f"{case.name}: {case.detail} does not show ({shown}), however it is drawn")


def robot_of(case: Case) -> Robot:
    """Returns the robot of a case; of `foreign`, one that touches nothing."""
    return replace(ROBOTS[case.robot], free=True) if case.kind == "foreign" else ROBOTS[case.robot]


def _engine(case: Case) -> Callable[[mujoco.MjModel], Step]:
    """Returns what plays reality."""
    if case.kind == "foreign":
        import gap_bullet  # only who asks for it needs the extra `engines`

        return gap_bullet.make_step
    return Reality.engine


def _change(name: str) -> Change:
    group, _, cause = name.partition("/")
    if group == "scatter":
        return SCATTER[cause][1]
    return UNMODELLED[cause] if group == "unmodelled" else CAUSES[group][cause][0]  # type: ignore[index]


def _shown(robot: Robot, name: str, reality: Reality, coarse: tuple[float, str] | None, logs: list[Log]) -> float:
    """Returns how visible one cause is; the model's step is coarse only where that is the cause."""
    if reality.spoil is not None:
        return _spoiled(robot, reality.spoil, logs)
    model = mujoco.MjModel.from_xml_string(robot.text(coarse if name.startswith("numerics/") else None))
    return max(visibility(robot, model, logs).values())


def _spoiled(robot: Robot, spoil: Spoil, logs: list[Log]) -> float:
    """Returns how far readings are off where they are spoiled, over their noise: the root mean square."""
    rng, noise = np.random.default_rng(0), np.array([column.noise for column in robot.columns])
    seen = [readings(robot, robot.model(), log.states) for log in logs]
    off = np.concatenate([(spoil(some, rng) - some) / noise for some in seen])
    return float(np.sqrt(np.mean(off[off != 0] ** 2))) if np.any(off) else 0.0


def scene_of(robot: Robot, logs: list[Log]) -> Scene:
    """Returns the efforts and speeds of some logs."""
    model = robot.model()
    efforts = np.max([log.efforts for log in logs], axis=0)
    speeds = np.sqrt(np.mean(np.concatenate([log.states for log in logs])[:, model.nq :] ** 2, axis=0))
    return Scene(
        {model.actuator(k).name: float(efforts[k]) for k in range(model.nu)},
        {joint: float(speeds[model.joint(joint).dofadr[0]]) for joint in robot.drives},
    )


def write(case: Case, folder: Path) -> Path:
    """Writes a case as a project folder, and its truth beside it as FOLDER.truth.json; returns the folder."""
    robot, drawn = robot_of(case), draw(case)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    (folder / "robot.xml").write_text(drawn.model, encoding="utf-8")
    (folder / "gapless.yaml").write_text(robot.yaml(), encoding="utf-8")
    write_logs(robot, folder, drawn.logs, np.random.default_rng([case.seed, 3]), drawn.spoil)
    shown, places = [round(ratio, 2) for ratio in drawn.shown], dict(drawn.places)
    write_truth(case, folder, severity=drawn.text, shown=shown, places=places)
    return folder


def write_truth(case: Case, folder: Path, **more: object) -> None:
    """Writes what a case is beside its folder, as FOLDER.truth.json."""
    truth = {"robot": case.robot, "kind": case.kind, "causes": sorted(case.causes), "detail": case.detail, **more}
    folder.with_name(folder.name + ".truth.json").write_text(json.dumps(truth) + "\n", encoding="utf-8")


def planted(
    robot: str, cause: str, speaks_for: Mapping[str, Dimension], seed: int, split: Split, source: Source
) -> Case:
    """Returns a case with one cause of those that speak for a dimension, or with `nothing`."""
    if cause not in speaks_for:
        return Case(robot, "null", frozenset(), cause, seed, split, source)
    dimension = speaks_for[cause]
    return Case(robot, "single", frozenset({dimension}), f"{dimension}/{cause}", seed, split, source)


def write_logs(
    robot: Robot, folder: Path, logs: Sequence[Log], rng: np.random.Generator, spoil: Spoil | None = None
) -> None:
    """Writes logs as run0.csv and so on, each with its sidecar, with the noise of the robot's sensors."""
    model = robot.model()
    noise = np.array([column.noise for column in robot.columns])
    names = ["time_s", *robot.commands, *(column.name for column in robot.columns)]
    for k, log in enumerate(logs):
        seen = readings(robot, model, log.states) + noise * rng.standard_normal((len(log.states), len(noise)))
        seen = spoil(seen, rng) if spoil else seen
        rows = np.column_stack([np.arange(len(seen)) / robot.rate_hz, log.commands, seen])
        path = folder / "logs" / f"run{k}.csv"
        np.savetxt(path, rows, fmt="%.8g", delimiter=",", header=",".join(names), comments="")
        path.with_suffix(".json").write_text(json.dumps({"source": "real"}) + "\n", encoding="utf-8")
