"""Causes planted on real logs: everything is real but one or two things, so that the truth is known.

The model of each case is the one that `identify` corrected on the logs of that machine. Then one or two things are made
wrong, in the model (gain, friction, mass, tilt, contact) or in the logs (delay, bias, scale); or nothing, for nulls.
Cases for tuning and for test have other sizes. Zeros and scales of readings, which no MJCF holds, go into the mapping.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import sets
import yaml
from gap_cases import Case, Split, write_truth

from gapless.core.dimensions import Dimension
from gapless.core.results import IdentifyResult
from gapless.identify.verb import identify

Plant = Callable[["Folder", np.random.Generator], str]
"""Makes something wrong in a project folder; returns what, with its size."""
PER_MACHINE = 14  # cases of each machine in the test split: every plant once or more, two nulls, two pairs
NUM_NULLS, NUM_PAIRS = 2, 2


@dataclass(frozen=True)
class Folder:
    """A project folder that is being made wrong."""

    place: Path

    def edit_model(self, edit: Callable[[mujoco.MjSpec], None]) -> None:
        """Changes the model."""
        path = self.place / "model.xml"
        spec = mujoco.MjSpec.from_file(str(path))
        edit(spec)
        spec.compile()
        path.write_text(spec.to_xml(), encoding="utf-8")

    def edit_columns(self, change: Callable[[dict[str, np.ndarray]], None]) -> None:
        """Changes the columns of every log."""
        for path in sorted((self.place / "logs").glob("*.npz")):
            with np.load(path) as data:
                columns = {name: data[name].copy() for name in data.files}
            change(columns)
            np.savez(path, **columns)


@dataclass(frozen=True)
class Machine:
    """A real machine: how its project is made, and what can be planted on it."""

    make: Callable[[Path], Path]
    plants: Mapping[str, tuple[Dimension, Plant]]


def either(rng: np.random.Generator, low: float, high: float) -> float:
    """Draws a factor between low and high, or one over it."""
    return float(rng.uniform(low, high) ** rng.choice([-1, 1]))


def weaker(actuators: Sequence[str], low: float = 1.3, high: float = 1.8) -> Plant:
    """The model's drive is too strong or too weak."""

    def plant(folder: Folder, rng: np.random.Generator) -> str:
        name, factor = str(rng.choice(list(actuators))), either(rng, low, high)

        def edit(spec: mujoco.MjSpec) -> None:
            actuator = spec.actuator(name)
            actuator.gainprm[0] *= factor
            actuator.biasprm[1] *= factor

        folder.edit_model(edit)
        return f"gain of {name} in the model x{factor:.2f}"

    return plant


def rubbing(joints: Mapping[str, float]) -> Plant:
    """The model's joint has dry friction that the robot has not: joint -> how much is large [N·m, N]."""

    def plant(folder: Folder, rng: np.random.Generator) -> str:
        name = str(rng.choice(list(joints)))
        size = rng.uniform(0.5, 1.0) * joints[name]

        def edit(spec: mujoco.MjSpec) -> None:
            spec.joint(name).frictionloss += size

        folder.edit_model(edit)
        return f"dry friction of {name} in the model +{size:.3g}"

    return plant


def heavier(bodies: Sequence[str], low: float = 1.4, high: float = 2.0) -> Plant:
    """A body of the model is too heavy or too light, its inertia with it."""

    def plant(folder: Folder, rng: np.random.Generator) -> str:
        name, factor = str(rng.choice(list(bodies))), either(rng, low, high)

        def edit(spec: mujoco.MjSpec) -> None:
            body = spec.body(name)
            compiled = spec.compile().body(name)
            body.explicitinertial, body.mass = True, factor * float(compiled.mass[0])
            body.ipos, body.iquat = compiled.ipos, compiled.iquat
            body.inertia, body.fullinertia = factor * compiled.inertia, [np.nan] * 6

        folder.edit_model(edit)
        return f"mass of {name} in the model x{factor:.2f}"

    return plant


def tilted(axes: str, low_deg: float = 3.0, high_deg: float = 7.0) -> Plant:
    """Gravity of the model leans towards an axis."""

    def plant(folder: Folder, rng: np.random.Generator) -> str:
        angle, axis = np.radians(rng.uniform(low_deg, high_deg)), str(rng.choice(list(axes)))
        sign = float(rng.choice([-1, 1]))

        def edit(spec: mujoco.MjSpec) -> None:
            size = float(np.linalg.norm(spec.option.gravity))
            lean = np.array(spec.option.gravity)
            lean["xy".index(axis)] += sign * size * np.sin(angle)
            spec.option.gravity = lean / np.linalg.norm(lean) * size

        folder.edit_model(edit)
        return f"model tilted by {np.degrees(angle):.1f} deg along {axis}"

    return plant


def slippery(geoms: Sequence[str], low: float = 1.5, high: float = 2.5) -> Plant:
    """Friction of the model's surfaces is wrong."""

    def plant(folder: Folder, rng: np.random.Generator) -> str:
        factor = either(rng, low, high)

        def edit(spec: mujoco.MjSpec) -> None:
            for name in geoms:
                spec.geom(name).friction[0] *= factor

        folder.edit_model(edit)
        return f"friction of {' and '.join(geoms)} in the model x{factor:.2f}"

    return plant


def late(commands: Sequence[str], low_s: float, high_s: float) -> Plant:
    """Commands of the logs are stamped too early: they act later than the logs say."""

    def plant(folder: Folder, rng: np.random.Generator) -> str:
        delay_s = rng.uniform(low_s, high_s)

        def change(columns: dict[str, np.ndarray]) -> None:
            times_s = columns["time_s"]
            rows = np.searchsorted(times_s, times_s + delay_s, side="right") - 1
            for name in commands:
                columns[name] = columns[name][np.clip(rows, 0, len(times_s) - 1)]

        folder.edit_columns(change)
        return f"commands act {1000 * delay_s:.0f} ms later than logged"

    return plant


def shifted(columns: Mapping[str, float]) -> Plant:
    """A reading has a wrong zero: column -> what is large."""

    def plant(folder: Folder, rng: np.random.Generator) -> str:
        name = str(rng.choice(list(columns)))
        size = rng.uniform(0.5, 1.0) * columns[name] * float(rng.choice([-1, 1]))

        def change(values: dict[str, np.ndarray]) -> None:
            values[name] = values[name] + size

        folder.edit_columns(change)
        return f"{name} {size:+.3g}"

    return plant


def stretched(columns: Sequence[str], low: float = 1.08, high: float = 1.2) -> Plant:
    """A reading has a wrong scale."""

    def plant(folder: Folder, rng: np.random.Generator) -> str:
        name, factor = str(rng.choice(list(columns))), either(rng, low, high)

        def change(values: dict[str, np.ndarray]) -> None:
            values[name] = factor * values[name]

        folder.edit_columns(change)
        return f"{name} x{factor:.3f}"

    return plant


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
    import crazyflie

    return crazyflie.make_project(place, None)


_ARM = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex")
MACHINES: dict[str, Machine] = {
    "so101": Machine(
        lambda place: sets.so101(place, sets.so101_motions()[::5], seconds=20.0),
        {
            "gain": ("actuator", weaker(_ARM)),
            "friction": ("actuator", rubbing(dict.fromkeys(_ARM, 0.6))),
            "mass": ("object", heavier(("upper_arm", "lower_arm"))),
            "tilt": ("environment", tilted("xy", 6.0, 12.0)),
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
            "mass": ("object", heavier(("lower",))),
            "tilt": ("environment", tilted("x", 6.0, 12.0)),
            "delay": ("latency", late(("tau1", "tau2"), 0.015, 0.04)),
            "bias": ("sensor", shifted({"q1": 0.25, "q2": 0.4})),
            "scale": ("sensor", stretched(("q1", "q2"))),
        },
    ),
    "cube": Machine(
        _copy_project("cube"),
        {
            "friction": ("contact", slippery(("cube", "table"))),
            "tilt": ("environment", tilted("xy", 4.0, 8.0)),
            "bias": ("sensor", shifted({"z": 0.03})),
            "scale": ("sensor", stretched(("x", "y", "z"))),
        },
    ),
    "crazyflie": Machine(
        _crazyflie,
        {
            "gain": ("actuator", weaker(("m1", "m2", "m3", "m4"), 1.5, 2.5)),
            "delay": ("latency", late([f"thrust{k}" for k in (1, 2, 3, 4)], 0.03, 0.06)),
            "bias": ("sensor", shifted({"acc_z": 0.3})),
            "scale": ("sensor", stretched(("acc_z",), 1.2, 1.5)),
        },
    ),
}


def cases(split: Split) -> list[Case]:
    """Returns the cases of a split: each plant of each machine in turn, pairs of different dimensions, and nulls."""
    found: list[Case] = []
    for number, (name, machine) in enumerate(MACHINES.items()):
        first = (40_000 if split == "test" else 30_000) + 100 * number
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
    """Writes a case as a project folder, its truth beside it; the corrected model of the machine is made once."""
    base = _corrected(case.robot, folder.parent / "machines" / case.robot)
    shutil.copytree(base, folder)
    rng = np.random.default_rng([case.seed, 7])
    plants = MACHINES[case.robot].plants
    texts = [plants[name][1](Folder(folder), rng) for name in case.detail.split(" + ") if name != "nothing"]
    write_truth(case, folder, severity="; ".join(texts))
    return folder


def _corrected(name: str, place: Path) -> Path:
    """Returns a machine's project with the model that `identify` corrected on its logs, made unless it is there."""
    done = place / "gapless.yaml"
    if (place / "corrected.json").is_file():
        return place
    shutil.rmtree(place, ignore_errors=True)
    MACHINES[name].make(place)
    result = identify(place, seed=0)
    if result.model is None:
        raise RuntimeError(f"{name}: identify gave no model: {result.reasons}")
    model = mujoco.MjSpec.from_file(str(result.model))
    model.compile()
    content = yaml.safe_load(done.read_text(encoding="utf-8"))
    _put_zeros_in_mapping(content, result)
    text = _with_absolute_files(Path(result.model))
    shutil.rmtree(place / ".gapless")
    (place / "model.xml").write_text(text, encoding="utf-8")
    content["model"], content["parameters"] = "model.xml", "auto"
    done.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
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
