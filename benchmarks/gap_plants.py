"""What `gap_planted.py` makes wrong in the project of a real machine: in its model, or in its logs."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import yaml
from gap_causes import tilt_angles

from gapless.measure.verb import measure

Places = dict[str, float]
"""Parameter target -> its true value, in terms of the project's model."""
Plant = Callable[["Folder", np.random.Generator], tuple[str, Places]]
"""Makes something wrong in a project folder; returns what, with its size, and the targets that express it."""


@dataclass(frozen=True)
class Folder:
    """A project folder that is being made wrong; `strength` times as wrong as usual, tilts excepted."""

    place: Path
    strength: float = 1.0

    def edit_model(self, edit: Callable[[mujoco.MjSpec], None]) -> None:
        """Changes the model."""
        path = self.place / "model.xml"
        spec = mujoco.MjSpec.from_file(str(path))
        edit(spec)
        spec.compile()
        path.write_text(spec.to_xml(), encoding="utf-8")

    def edit_columns(self, change: Callable[[dict[str, np.ndarray]], None]) -> None:
        """Changes the columns of every log."""
        for path in self.logs():
            with np.load(path) as data:
                columns = {name: data[name].copy() for name in data.files}
            change(columns)
            np.savez(path, **columns)

    def logs(self) -> list[Path]:
        """Returns the logs."""
        return sorted((self.place / "logs").glob("*.npz"))

    def model(self) -> mujoco.MjModel:
        """Returns the model, compiled."""
        return mujoco.MjModel.from_xml_path(str(self.place / "model.xml"))

    def mapping(self, column: str) -> dict:
        """Returns how a measured column is mapped."""
        return yaml.safe_load((self.place / "gapless.yaml").read_text(encoding="utf-8"))["measurements"][column]

    def errors(self) -> np.ndarray:
        """Returns the root mean square error of predictions of 0.3 s, (num_columns,)."""
        found = np.array([error.rmse for error in measure(self.place).columns.values()])
        shutil.rmtree(self.place / ".gapless", ignore_errors=True)
        return found


def either(rng: np.random.Generator, low: float, high: float) -> float:
    """Draws a factor between low and high, or one over it."""
    return float(rng.uniform(low, high) ** rng.choice([-1, 1]))


def weaker(actuators: Sequence[str], low: float = 1.3, high: float = 1.8) -> Plant:
    """The model's drive is too strong or too weak."""

    def plant(folder: Folder, rng: np.random.Generator) -> tuple[str, Places]:
        name, factor = str(rng.choice(list(actuators))), either(rng, low, high) ** folder.strength

        def edit(spec: mujoco.MjSpec) -> None:
            actuator = spec.actuator(name)
            actuator.gainprm[0] *= factor
            actuator.biasprm[1] *= factor

        kp = -float(folder.model().actuator(name).biasprm[1])
        folder.edit_model(edit)
        places = {f"actuator/{name}/kp": kp} if kp > 0 else {f"actuator/{name}/gain": 1 / factor}
        return f"gain of {name} in the model x{factor:.2f}", places

    return plant


def rubbing(joints: Mapping[str, float]) -> Plant:
    """The model's joint has dry friction that the robot has not: joint -> how much is large [N·m, N]."""

    def plant(folder: Folder, rng: np.random.Generator) -> tuple[str, Places]:
        name = str(rng.choice(list(joints)))
        size = folder.strength * rng.uniform(0.5, 1.0) * joints[name]

        def edit(spec: mujoco.MjSpec) -> None:
            spec.joint(name).frictionloss += size

        model = folder.model()
        folder.edit_model(edit)
        true = float(model.dof_frictionloss[model.joint(name).dofadr[0]])
        return f"dry friction of {name} in the model +{size:.3g}", {f"joint/{name}/frictionloss": true}

    return plant


def heavier(bodies: Sequence[str], low: float = 1.4, high: float = 2.0) -> Plant:
    """A body of the model is too heavy or too light, its inertia with it."""

    def plant(folder: Folder, rng: np.random.Generator) -> tuple[str, Places]:
        name, factor = str(rng.choice(list(bodies))), either(rng, low, high) ** folder.strength

        def edit(spec: mujoco.MjSpec) -> None:
            body = spec.body(name)
            compiled = spec.compile().body(name)
            body.explicitinertial, body.mass = True, factor * float(compiled.mass[0])
            body.ipos, body.iquat = compiled.ipos, compiled.iquat
            body.inertia, body.fullinertia = factor * compiled.inertia, [np.nan] * 6

        true = float(folder.model().body(name).mass[0])
        folder.edit_model(edit)
        return f"mass of {name} in the model x{factor:.2f}", {f"body/{name}/mass": true}

    return plant


def tilted(axes: str, low_deg: float = 2.5, high_deg: float = 5.7) -> Plant:
    """Gravity of the model leans towards an axis."""

    def plant(folder: Folder, rng: np.random.Generator) -> tuple[str, Places]:
        angle, axis = np.radians(rng.uniform(low_deg, high_deg)), str(rng.choice(list(axes)))
        sign = float(rng.choice([-1, 1]))

        def edit(spec: mujoco.MjSpec) -> None:
            size = float(np.linalg.norm(spec.option.gravity))
            lean = np.array(spec.option.gravity)
            lean["xy".index(axis)] += sign * size * np.sin(angle)
            spec.option.gravity = lean / np.linalg.norm(lean) * size

        about = "yx".index(axis)  # leaning towards x is a turn about y
        true = tilt_angles(folder.model().opt.gravity)[about]
        folder.edit_model(edit)
        back = true - tilt_angles(folder.model().opt.gravity)[about]
        return f"model tilted by {np.degrees(angle):.1f} deg along {axis}", {f"world/tilt/{'xy'[about]}": back}

    return plant


def slippery(geoms: Sequence[str], low: float = 1.5, high: float = 2.5) -> Plant:
    """Friction of the model's surfaces is wrong."""

    def plant(folder: Folder, rng: np.random.Generator) -> tuple[str, Places]:
        factor = either(rng, low, high) ** folder.strength

        def edit(spec: mujoco.MjSpec) -> None:
            for name in geoms:
                spec.geom(name).friction[0] *= factor

        true = {f"geom/{name}/friction": float(folder.model().geom(name).friction[0]) for name in geoms}
        folder.edit_model(edit)
        text = f"friction of {' and '.join(geoms)} in the model x{factor:.2f}"
        return text, {**true, "geom/*/friction": 1 / factor}

    return plant


def late(commands: Sequence[str], low_s: float, high_s: float) -> Plant:
    """Commands of the logs are stamped too early: they act later than the logs say."""

    def plant(folder: Folder, rng: np.random.Generator) -> tuple[str, Places]:
        delay_s = folder.strength * rng.uniform(low_s, high_s)

        def change(columns: dict[str, np.ndarray]) -> None:
            times_s = columns["time_s"]
            acting_s = times_s + delay_s + 1e-9
            rows = np.searchsorted(times_s, acting_s[acting_s <= times_s[-1] + 2e-9], side="right") - 1
            later = {name: columns[name][rows] for name in commands}
            columns.update({name: values[: len(rows)] for name, values in columns.items()} | later)

        folder.edit_columns(change)
        places = {"actuator/*/delay": float(delay_s), "measurement/*/delay": float(delay_s)}
        return f"commands act {1000 * delay_s:.0f} ms later than logged", places

    return plant


def shifted(columns: Mapping[str, float]) -> Plant:
    """A reading has a wrong zero: column -> what is large."""

    def plant(folder: Folder, rng: np.random.Generator) -> tuple[str, Places]:
        name = str(rng.choice(list(columns)))
        size = folder.strength * rng.uniform(0.5, 1.0) * columns[name] * float(rng.choice([-1, 1]))

        def change(values: dict[str, np.ndarray]) -> None:
            values[name] = values[name] + size

        folder.edit_columns(change)
        return f"{name} {size:+.3g}", {f"measurement/{name}/bias": float(size * folder.mapping(name)["scale"])}

    return plant


def stretched(columns: Sequence[str], low: float = 1.08, high: float = 1.2) -> Plant:
    """A reading has a wrong scale."""

    def plant(folder: Folder, rng: np.random.Generator) -> tuple[str, Places]:
        name, factor = str(rng.choice(list(columns))), either(rng, low, high) ** folder.strength

        def change(values: dict[str, np.ndarray]) -> None:
            values[name] = factor * values[name]

        folder.edit_columns(change)
        return f"{name} x{factor:.3f}", {f"measurement/{name}/scale": factor}

    return plant
