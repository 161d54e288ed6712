"""The model: reading it, naming its elements, and the units of what can be commanded and measured."""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np

from gapless.core.errors import ProjectError, nearest
from gapless.project.records import Element
from gapless.project.yaml_file import project_error

QUANTITIES: dict[Element, tuple[str, ...]] = {
    "joint": ("position", "velocity", "effort"),
    "actuator": ("force",),
    "body": ("x", "y", "z", "qw", "qx", "qy", "qz", "yaw", "vx", "vy", "vz", "wx", "wy", "wz"),
    "sensor": ("value",),
}
_OBJECTS: dict[Element, mujoco.mjtObj] = {
    "joint": mujoco.mjtObj.mjOBJ_JOINT,
    "body": mujoco.mjtObj.mjOBJ_BODY,
    "actuator": mujoco.mjtObj.mjOBJ_ACTUATOR,
    "sensor": mujoco.mjtObj.mjOBJ_SENSOR,
}
_ROTARY_UNITS, _LINEAR_UNITS = ("rad", "rad/s", "N·m"), ("m", "m/s", "N")
_JOINT_SENSORS = {"JOINTPOS": 0, "JOINTVEL": 1, "JOINTACTFRC": 2}
_SENSOR_UNITS = {
    **dict.fromkeys(("RANGEFINDER", "FRAMEPOS", "SUBTREECOM"), "m"),
    **dict.fromkeys(("VELOCIMETER", "FRAMELINVEL", "SUBTREELINVEL"), "m/s"),
    **dict.fromkeys(("ACCELEROMETER", "FRAMELINACC"), "m/s^2"),
    **dict.fromkeys(("GYRO", "FRAMEANGVEL"), "rad/s"),
    **dict.fromkeys(("FORCE", "TOUCH"), "N"),
    **{"TORQUE": "N·m", "FRAMEANGACC": "rad/s^2", "CLOCK": "s"},
}
_MAY_BE_INFINITE = re.compile("range|user$|numeric_data")  # a joint without limits, a drive without a force limit
_OPTIONS = ("timestep", "gravity", "wind", "magnetic", "density", "viscosity", "impratio")


def load_spec(path: Path) -> mujoco.MjSpec:
    """Reads an MJCF or URDF file as a specification that can be edited and compiled."""
    if not path.is_file():
        available = [p.name for p in path.parent.glob("*") if p.suffix.lower() in (".xml", ".urdf", ".mjcf")]
        text = f"no model file {path.name}; in its folder there are: {nearest(path.name, available)}"
        raise project_error(f"{text}; write model: FILE, relative to gapless.yaml", path)
    try:
        with _collect_warnings() as warned:
            spec = mujoco.MjSpec.from_file(str(path))
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise _model_error(error, path) from None
    if any("NaN" in text for text in warned):  # the engine would take another value in its place, or compute with nan
        raise _not_finite_error(path)
    for text in warned:
        warnings.warn(f"{text} ({path})", stacklevel=2)
    return spec


def load_model(path: Path) -> mujoco.MjModel:
    """Reads and compiles an MJCF or URDF file; numbers that are not finite are an error."""
    try:
        model = load_spec(path).compile()
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise _model_error(error, path) from None
    fields = {name: getattr(model, name) for name in dir(model) if not _MAY_BE_INFINITE.search(name)}
    numbers = [values for values in fields.values() if isinstance(values, np.ndarray) and values.dtype.kind == "f"]
    numbers += [getattr(model.opt, name) for name in _OPTIONS]
    if not all(np.isfinite(values).all() for values in numbers):
        raise _not_finite_error(path)
    return model


def find_model_files(path: Path) -> list[Path]:
    """Returns the model and every file that the engine reads for it: included files, meshes, textures and others."""
    spec = load_spec(path)
    found = [Path(name) for name in mujoco.mju_getXMLDependencies(str(path))]
    # The engine's list has no meshes of URDF, and looks for what nested files include in the wrong folder.
    found += [path.parent / spec.meshdir / asset.file for asset in (*spec.meshes, *spec.hfields, *spec.skins)]
    for texture in spec.textures:
        found += [path.parent / spec.texturedir / name for name in (texture.file, *texture.cubefiles)]
    return [file for file in dict.fromkeys(found) if file.is_file()]


def relocate_files(xml: str, source: Path, folder: Path) -> str:
    """Returns a model written for one folder such that it finds its meshes and textures from another.

    This is done on the text: a spec looks for its files from where it was read, not from where it will be written.
    """
    root = ElementTree.fromstring(xml)
    compiler = root.find("compiler")
    if compiler is None:
        compiler = ElementTree.Element("compiler")
        root.insert(0, compiler)
    for name in ("meshdir", "texturedir"):
        compiler.set(name, os.path.relpath(source / compiler.get(name, "."), folder))
    return ElementTree.tostring(root, encoding="unicode")


def _model_error(error: Exception, path: Path) -> ProjectError:
    return project_error(f"MuJoCo cannot compile the model, correct it: {' '.join(str(error).split())}", path)


def names(model: mujoco.MjModel, element: Element) -> tuple[str, ...]:
    """Returns the names of all named elements of a kind but the world, in the model's order."""
    counts = {"joint": model.njnt, "body": model.nbody, "actuator": model.nu, "sensor": model.nsensor}
    first = 1 if element == "body" else 0
    found = (mujoco.mj_id2name(model, _OBJECTS[element], k) for k in range(first, counts[element]))
    return tuple(name for name in found if name)


def index(model: mujoco.MjModel, element: Element, name: str) -> int:
    """Returns the model's index of a named element, -1 where there is none."""
    return int(mujoco.mj_name2id(model, _OBJECTS[element], name))


def is_hinge(model: mujoco.MjModel, joint: str) -> bool:
    """Returns whether a joint turns about one axis."""
    return bool(model.jnt_type[index(model, "joint", joint)] == mujoco.mjtJoint.mjJNT_HINGE)


def joint_range(model: mujoco.MjModel, joint: str) -> tuple[float, float] | None:
    """Returns a joint's limits [rad or m], None where it has none."""
    joint_id = index(model, "joint", joint)
    if not model.jnt_limited[joint_id]:
        return None
    return float(model.jnt_range[joint_id, 0]), float(model.jnt_range[joint_id, 1])


def command_unit(model: mujoco.MjModel, actuator: str) -> str:
    """Returns the unit of an actuator's control, `1` where the model does not say.

    A servo has force = k (u - q): bias -k on position, or -k on velocity alone. A plain motor has
    force = u, if its gain and gear are 1.
    """
    actuator_id = index(model, "actuator", actuator)
    units = _transmission_units(model, actuator_id)
    gain, bias = model.actuator_gainprm[actuator_id], model.actuator_biasprm[actuator_id]
    fixed = model.actuator_gaintype[actuator_id] == mujoco.mjtGain.mjGAIN_FIXED
    unfiltered = model.actuator_dyntype[actuator_id] != mujoco.mjtDyn.mjDYN_INTEGRATOR
    if units is None or not fixed or not unfiltered:
        return "1"
    if model.actuator_biastype[actuator_id] == mujoco.mjtBias.mjBIAS_AFFINE:
        if gain[0] > 0 and bias[1] == -gain[0]:
            return units[0]
        return units[1] if gain[0] > 0 and bias[1] == 0 and bias[2] == -gain[0] else "1"
    plain = model.actuator_biastype[actuator_id] == mujoco.mjtBias.mjBIAS_NONE
    return units[2] if plain and gain[0] == 1 and abs(model.actuator_gear[actuator_id, 0]) == 1 else "1"


def measurement_unit(model: mujoco.MjModel, element: Element, name: str, quantity: str) -> str:
    """Returns the unit of a measured quantity, `1` where it has none or the model does not say."""
    if element == "joint":
        units = _ROTARY_UNITS if is_hinge(model, name) else _LINEAR_UNITS
        return units[QUANTITIES["joint"].index(quantity)]
    if element == "actuator":
        units_or_none = _transmission_units(model, index(model, "actuator", name))
        return units_or_none[2] if units_or_none else "1"
    if element == "body":
        if quantity in ("x", "y", "z"):
            return "m"
        return {"v": "m/s", "w": "rad/s", "y": "rad", "q": "1"}[quantity[0]]
    sensor_id = index(model, "sensor", name)
    kind = mujoco.mjtSensor(model.sensor_type[sensor_id]).name.removeprefix("mjSENS_")
    if kind in _JOINT_SENSORS:
        hinge = model.jnt_type[model.sensor_objid[sensor_id]] == mujoco.mjtJoint.mjJNT_HINGE
        return (_ROTARY_UNITS if hinge else _LINEAR_UNITS)[_JOINT_SENSORS[kind]]
    return _SENSOR_UNITS.get(kind, "1")


def _transmission_units(model: mujoco.MjModel, actuator_id: int) -> tuple[str, str, str] | None:
    if model.actuator_trntype[actuator_id] == mujoco.mjtTrn.mjTRN_TENDON:
        return _LINEAR_UNITS
    if model.actuator_trntype[actuator_id] != mujoco.mjtTrn.mjTRN_JOINT:
        return None
    kind = model.jnt_type[model.actuator_trnid[actuator_id, 0]]
    by_kind = {mujoco.mjtJoint.mjJNT_HINGE: _ROTARY_UNITS, mujoco.mjtJoint.mjJNT_SLIDE: _LINEAR_UNITS}
    return by_kind.get(mujoco.mjtJoint(kind))


@contextmanager
def _collect_warnings() -> Iterator[list[str]]:
    """Collects the engine's warnings in a list, instead of on the screen and in a file."""
    before, found = mujoco.get_mju_user_warning(), list[str]()
    mujoco.set_mju_user_warning(found.append)
    try:
        yield found
    finally:
        mujoco.set_mju_user_warning(before)


def _not_finite_error(path: Path) -> ProjectError:
    """Says which element of a model file has a number that is nan or inf, and in which line."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for element in re.finditer(r"<(\w+)\b[^<>]*>", text):
        for name, value in re.findall(r"""(\w+)\s*=\s*["']([^"']*)["']""", element[0]):
            bad = {"nan", "inf", "+inf", "-inf", "infinity"} & set(value.lower().split())
            if bad and name not in ("name", "class") and not _MAY_BE_INFINITE.search(name):
                line = text.count("\n", 0, element.start()) + 1
                found = f"{' '.join(element[0].split())[:120]} in line {line} has {name} {value}"
                return project_error(f"{found}: write a finite number", path)
    return project_error("a file that the model includes holds nan or inf: write a finite number", path)
