"""Causes planted on real logs: everything is real but one or two things, so that the truth is known.

The model of each case is the one that `identify` corrected on all logs of that machine, made once and kept beside the
cases in `machines`. Then one or two things are made wrong, in the model (gain, friction, mass, tilt, contact) or in the
logs (delay, bias, scale); or nothing, for nulls. What no MJCF holds goes elsewhere: zeros and scales of readings into
the mapping, play of servos into the logged commands.

Tuning has every second log and test the others, in other sizes. Each case leaves out another quarter of them, so that
nulls differ too. A size that does not show is drawn again, in the end larger: predictions of 0.3 s must be worse by
`MIN_GROWTH` in some column than with nothing planted. What never shows is left out.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import sets
import yaml
from gap_cases import Case, NotShownError, Split, write_truth
from gap_plants import Folder, Plant, heavier, late, rubbing, shifted, slippery, stretched, tilted, weaker

from gapless.core.dimensions import Dimension
from gapless.core.results import IdentifyResult
from gapless.identify.verb import identify

FIRST_SEED: dict[Split, int] = {"tuning": 70_000, "test": 80_000}
PER_MACHINE = 14  # cases of each machine in the test split; tuning has half
NUM_NULLS, NUM_PAIRS = 3, 2  # of them; 1 each in tuning
MIN_GROWTH = 1.2  # a cause shows: root mean square error of predictions of 0.3 s, over that with nothing planted
TRIES, STRENGTHS = 12, (1.0, 1.3, 1.6)  # draws of each strength: a third of them


@dataclass(frozen=True)
class Machine:
    """A real machine: how its project is made, and what can be planted on it."""

    make: Callable[[Path], Path]
    plants: Mapping[str, tuple[Dimension, Plant]]


def _copy_project(name: str) -> Callable[[Path], Path]:
    """Returns what copies a real set that is a project as it stands, its logs as arrays."""

    def make(place: Path) -> Path:
        source = sets.data_folder() / name
        (place / "logs").mkdir(parents=True, exist_ok=True)
        for path in (source / "gapless.yaml", source / "model.xml"):
            shutil.copyfile(path, place / path.name)
        for path in sorted((source / "logs").glob("*.csv")):
            names = path.open(encoding="utf-8").readline().strip().split(",")
            values = np.genfromtxt(path, delimiter=",", skip_header=1)
            np.savez(place / "logs" / f"{path.stem}.npz", **dict(zip(names, values.T, strict=True)))
        return place

    return make


def _crazyflie(place: Path) -> Path:
    """Makes the project of the Crazyflie, its two logs cut into four each."""
    import crazyflie

    crazyflie.make_project(place, None)
    for path in Folder(place).logs():
        with np.load(path) as data:
            columns = {name: data[name] for name in data.files}
        for k, rows in enumerate(np.array_split(np.arange(len(columns["time_s"])), 4)):
            np.savez(path.with_name(f"{path.stem}_{k}.npz"), **{name: v[rows] for name, v in columns.items()})
        path.unlink()
    return place


_ARM = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex")
MACHINES: dict[str, Machine] = {
    "so101": Machine(
        lambda place: sets.so101(place, sets.so101_motions()[::4], seconds=20.0),
        {
            "gain": ("actuator", weaker(_ARM)),
            "friction": ("actuator", rubbing(dict.fromkeys(_ARM, 0.6))),
            "mass": ("object", heavier(("upper_arm", "wrist"))),
            "tilt": ("environment", tilted("xy", 4.0, 5.7)),
            "delay": ("latency", late([f"cmd_{j}" for j in sets.SO101_JOINTS], 0.03, 0.08)),
            "bias": ("sensor", shifted({f"q_{j}": 0.12 for j in _ARM})),
            "scale": ("sensor", stretched([f"q_{j}" for j in _ARM[1:]])),
        },
    ),
    "qube": Machine(
        lambda place: sets.qube(place, sets.runs("qube", "qq_chrip*")),
        {
            "gain": ("actuator", weaker(("motor",))),
            "friction": ("actuator", rubbing({"theta": 2e-3})),
            "mass": ("object", heavier(("pendulum",))),
            "tilt": ("environment", tilted("xy")),
            "delay": ("latency", late(("volt",), 0.012, 0.03)),
            "bias": ("sensor", shifted({"q_alpha": 0.12})),
            "scale": ("sensor", stretched(("q_alpha",))),
        },
    ),
    "cartpole": Machine(
        lambda place: sets.cartpole(place, sets.runs("cartpole", "qcp*")),
        {
            "gain": ("actuator", weaker(("motor",))),
            "friction": ("actuator", rubbing({"x": 2.0})),
            "mass": ("object", heavier(("pole",))),
            "tilt": ("environment", tilted("x")),
            "delay": ("latency", late(("volt",), 0.02, 0.05)),
            "bias": ("sensor", shifted({"q_theta": 0.12})),
            "scale": ("sensor", stretched(("q_theta", "q_x"))),
        },
    ),
    "double_pendulum": Machine(
        _copy_project("double_pendulum"),
        {
            "gain": ("actuator", weaker(("shoulder", "elbow"))),
            "friction": ("actuator", rubbing({"shoulder": 0.4, "elbow": 0.3})),
            "mass": ("object", heavier(("lower",))),  # a tilt in its plane is no other thing than a zero of q1
            "delay": ("latency", late(("tau1", "tau2"), 0.015, 0.04)),
            "bias": ("sensor", shifted({"q1": 0.2, "q2": 0.2})),
            "scale": ("sensor", stretched(("q1", "q2"))),
        },
    ),
    "cube": Machine(
        _copy_project("cube"),
        {
            "friction": ("contact", slippery(("cube", "table"))),
            "tilt": ("environment", tilted("xy", 3.0, 5.7)),
            "bias": ("sensor", shifted({"z": 0.03})),
            "scale": ("sensor", stretched(("x", "y", "z"))),
        },
    ),
    "crazyflie": Machine(
        _crazyflie,
        {
            "gain": ("actuator", weaker(("m1", "m2", "m3", "m4"), 1.5, 2.5)),
            "delay": ("latency", late([f"thrust{k}" for k in (1, 2, 3, 4)], 0.03, 0.06)),
            "bias": ("sensor", shifted({"acc_z": 0.3})),  # its scale is no other thing than gains or mass
        },
    ),
}


def cases(split: Split) -> list[Case]:
    """Returns the cases of a split: each plant of each machine in turn, pairs of different dimensions, and nulls."""
    found: list[Case] = []
    for number, (name, machine) in enumerate(MACHINES.items()):
        first = FIRST_SEED[split] + 100 * number
        wanted = PER_MACHINE if split == "test" else PER_MACHINE // 2
        rng = np.random.default_rng(first)
        order = [str(plant) for plant in rng.permutation(list(machine.plants))]
        listed: list[tuple[str, ...]] = [() for _ in range(NUM_NULLS if split == "test" else 1)]
        pairs = [
            (a, b) for k, a in enumerate(order) for b in order[k + 1 :] if machine.plants[a][0] != machine.plants[b][0]
        ]
        listed += [pairs[int(k)] for k in rng.permutation(len(pairs))[: NUM_PAIRS if split == "test" else 1]]
        listed += [(order[k % len(order)],) for k in range(wanted - len(listed))]
        for k, plants in enumerate(listed):
            dimensions = frozenset(machine.plants[plant][0] for plant in plants)
            detail = " + ".join(plants) or "nothing"
            found.append(Case(name, "planted", dimensions, detail, first + k, split, "planted"))
    return found


def write(case: Case, folder: Path) -> Path:
    """Writes a case as a project folder, its truth beside it.

    Raises:
        NotShownError: If no draw of `TRIES` shows.
    """
    base = correct_machine(case.robot, folder.parent / "machines" / case.robot)
    names = [name for name in case.detail.split(" + ") if name != "nothing"]
    plants = [MACHINES[case.robot].plants[name][1] for name in names]
    as_fitted, growth = _start(base, folder, case, 1.0).errors() if names else np.ones(1), [0.0]
    for attempt in range(TRIES):
        rngs = [lambda k=k, a=attempt: np.random.default_rng([case.seed, 7, a, k]) for k in range(len(plants))]
        strength, growth = STRENGTHS[attempt * len(STRENGTHS) // TRIES], []
        for plant, rng in zip(plants, rngs, strict=True):
            wrong = _start(base, folder, case, strength)
            plant(wrong, rng())
            growth.append(float(np.max(wrong.errors() / as_fitted)))
        if min(growth, default=np.inf) < MIN_GROWTH:
            continue
        wrong = _start(base, folder, case, strength)
        done = [plant(wrong, rng()) for plant, rng in zip(plants, rngs, strict=True)]
        places = {target: value for _, some in done for target, value in some.items()}
        write_truth(case, folder, severity="; ".join(text for text, _ in done), growth=growth, places=places)
        return folder
    raise NotShownError(f"{case.name}: {case.detail} does not show (errors x{growth}), however it is drawn")


def _start(base: Path, folder: Path, case: Case, strength: float) -> Folder:
    """Returns a case's folder with nothing planted yet: a machine's corrected model, and the logs of the case."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base / "logs", folder / "logs")
    for name in ("gapless.yaml", "model.xml"):
        shutil.copyfile(base / name, folder / name)
    found = Folder(folder, strength)
    leave_out_logs(found, case)
    return found


def leave_out_logs(folder: Folder, case: Case) -> None:
    """Keeps the logs of a case: every second one by its split, without a fourth of them that goes by its number."""
    ours = folder.logs()[1 if case.split == "test" else 0 :: 2]
    kept = [path for k, path in enumerate(ours) if k % 4 != case.seed % 4]
    for path in set(folder.logs()) - set(kept):
        path.unlink()


def correct_machine(name: str, place: Path) -> Path:
    """Returns a machine's project with the model that `identify` corrected on its logs, made unless it is there."""
    if (place / "corrected.json").is_file():
        return place
    shutil.rmtree(place, ignore_errors=True)
    MACHINES[name].make(place)
    result = identify(place, seed=0)
    if result.model is None:
        raise RuntimeError(f"{name}: identify gave no model: {result.reasons}")
    content = yaml.safe_load((place / "gapless.yaml").read_text(encoding="utf-8"))
    _put_zeros_in_mapping(content, result)
    _put_play_in_commands(content, result, Folder(place))
    text = _with_absolute_files(Path(result.model))
    shutil.rmtree(place / ".gapless")
    (place / "model.xml").write_text(text, encoding="utf-8")
    content["model"], content["parameters"] = "model.xml", "auto"
    (place / "gapless.yaml").write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    values = {p.target: [p.nominal, p.value] for p in result.parameters}
    (place / "corrected.json").write_text(json.dumps({"verdict": result.verdict, "values": values}), encoding="utf-8")
    return place


def _with_absolute_files(model: Path) -> str:
    """Returns a model as text whose meshes are found from anywhere."""
    spec = mujoco.MjSpec.from_file(str(model))
    folder = model.parent / (spec.meshdir or "")
    for mesh in spec.meshes:
        if mesh.file:
            mesh.file = str((folder / mesh.file).resolve())
    spec.meshdir = ""
    spec.compile()
    return spec.to_xml()


def _put_zeros_in_mapping(content: dict, result: IdentifyResult) -> None:
    """Writes fitted biases and scales of readings into the mapping: a reading is scale * true value + bias."""
    fitted = {p.target: p.value for p in result.parameters}
    for column, item in content["measurements"].items():
        scale = fitted.get(f"measurement/{column}/scale", 1.0)
        bias = fitted.get(f"measurement/{column}/bias", 0.0)
        item["scale"] = float(item.get("scale", 1.0)) / scale
        item["offset"] = (float(item.get("offset", 0.0)) - bias) / scale


def _put_play_in_commands(content: dict, result: IdentifyResult, folder: Folder) -> None:
    """Writes commands as they leave the fitted play of their servos, which no model holds."""
    play = {p.target.split("/")[1]: p.value for p in result.parameters if p.target.endswith("/backlash") and p.value}
    if not play:
        return
    model = mujoco.MjModel.from_xml_path(str(result.model))
    joints = {model.actuator(k).name: model.joint(int(model.actuator_trnid[k, 0])).name for k in range(model.nu)}

    def change(columns: dict[str, np.ndarray]) -> None:
        for column, item in content["commands"].items():
            width = play.get(joints[item["actuator"]], play.get("*", 0.0)) / abs(float(item.get("scale", 1.0)))
            columns[column] = pass_play(columns[column], width)

    folder.edit_columns(change)


def pass_play(commands: np.ndarray, width: float) -> np.ndarray:
    """Returns commands behind play, (num_rows,): what is driven moves only when its gap, `width` wide, is used up."""
    driven = np.array(commands, dtype=np.float64)
    for k in range(1, len(driven)):
        driven[k] = np.clip(driven[k - 1], commands[k] - width / 2, commands[k] + width / 2)
    return driven
