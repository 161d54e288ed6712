"""The model: reading it, naming its elements, and the units of what can be commanded and measured."""

import os
import warnings
from pathlib import Path
from xml.etree import ElementTree

import mujoco

from gapless.core.errors import ProjectError, nearest
from gapless.project.finite import collect_warnings, find_nan_in_text, find_not_finite
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
_ROTARY_UNITS = ("rad", "rad/s", "N·m")
_LINEAR_UNITS = ("m", "m/s", "N")
_SENSOR_UNITS = {
    "ACCELEROMETER": "m/s^2",
    "VELOCIMETER": "m/s",
    "GYRO": "rad/s",
    "FORCE": "N",
    "TORQUE": "N·m",
    "TOUCH": "N",
    "RANGEFINDER": "m",
    "FRAMEPOS": "m",
    "FRAMELINVEL": "m/s",
    "FRAMEANGVEL": "rad/s",
    "FRAMELINACC": "m/s^2",
    "FRAMEANGACC": "rad/s^2",
    "SUBTREECOM": "m",
    "SUBTREELINVEL": "m/s",
    "CLOCK": "s",
}
_JOINT_SENSORS = {"JOINTPOS": 0, "JOINTVEL": 1, "JOINTACTFRC": 2}


def load_spec(path: Path) -> mujoco.MjSpec:
    """Reads an MJCF or URDF file as a specification that can be edited and compiled.

    Raises:
        ProjectError: One line, if the file is missing, cannot be parsed, or holds nan.
    """
    if not path.is_file():
        there = [p.name for p in path.parent.glob("*") if p.suffix.lower() in (".xml", ".urdf", ".mjcf")]
        text = f"no model file {path.name}; in its folder there are: {nearest(path.name, there)}"
        raise project_error(f"{text}; write model: FILE, relative to gapless.yaml", path)
    try:
        with collect_warnings() as warned:
            spec = mujoco.MjSpec.from_file(str(path))
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise _model_error(error, path) from None
    if any("NaN" in text for text in warned):  # the engine would take another value in its place, or compute with nan
        raise project_error(f"{find_nan_in_text(path)}: write a number", path)
    for text in warned:
        warnings.warn(f"{text} ({path})", stacklevel=2)
    return spec


def load_model(path: Path) -> mujoco.MjModel:
    """Reads and compiles an MJCF or URDF file.

    Raises:
        ProjectError: One line, if the file is missing, does not compile, or holds numbers that are not finite.
    """
    try:
        model = load_spec(path).compile()
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        raise _model_error(error, path) from None
    if found := find_not_finite(model):
        raise project_error(f"{found}: write a finite number", path)
    return model


def find_model_files(path: Path) -> list[Path]:
    """Returns the model's file and every file that the engine reads for it: included files, meshes, textures, others.

    Raises:
        ProjectError: One line, if the model cannot be parsed.
    """
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
    """Tells whether a joint turns about one axis."""
    return bool(model.jnt_type[index(model, "joint", joint)] == mujoco.mjtJoint.mjJNT_HINGE)


def joint_range(model: mujoco.MjModel, joint: str) -> tuple[float, float] | None:
    """Returns a joint's limits [rad or m], None where it has none."""
    joint_id = index(model, "joint", joint)
    if not model.jnt_limited[joint_id]:
        return None
    return float(model.jnt_range[joint_id, 0]), float(model.jnt_range[joint_id, 1])


def command_unit(model: mujoco.MjModel, actuator: str) -> str:
    """Returns the unit of an actuator's control, `1` where the model does not tell.

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
    """Returns the unit of a measured quantity, `1` where it has none or the model does not tell."""
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
    return _sensor_unit(model, index(model, "sensor", name))


def _transmission_units(model: mujoco.MjModel, actuator_id: int) -> tuple[str, str, str] | None:
    if model.actuator_trntype[actuator_id] == mujoco.mjtTrn.mjTRN_TENDON:
        return _LINEAR_UNITS
    if model.actuator_trntype[actuator_id] != mujoco.mjtTrn.mjTRN_JOINT:
        return None
    kind = model.jnt_type[model.actuator_trnid[actuator_id, 0]]
    by_kind = {mujoco.mjtJoint.mjJNT_HINGE: _ROTARY_UNITS, mujoco.mjtJoint.mjJNT_SLIDE: _LINEAR_UNITS}
    return by_kind.get(mujoco.mjtJoint(kind))


def _sensor_unit(model: mujoco.MjModel, sensor_id: int) -> str:
    kind = mujoco.mjtSensor(model.sensor_type[sensor_id]).name.removeprefix("mjSENS_")
    if kind in _JOINT_SENSORS:
        hinge = model.jnt_type[model.sensor_objid[sensor_id]] == mujoco.mjtJoint.mjJNT_HINGE
        return (_ROTARY_UNITS if hinge else _LINEAR_UNITS)[_JOINT_SENSORS[kind]]
    return _SENSOR_UNITS.get(kind, "1")
