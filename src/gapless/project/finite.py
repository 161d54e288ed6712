"""Numbers in a model that are no numbers: nan, and infinity where it has no meaning."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mujoco
import numpy as np

_KINDS = {"body": "body", "geom": "geom", "jnt": "joint", "actuator": "actuator", "tendon": "tendon", "site": "site"}
_KINDS |= {"sensor": "sensor", "pair": "pair", "eq": "equality", "mesh": "mesh", "key": "key", "cam": "camera"}
_MAY_BE_INFINITE = re.compile("range|_user$|numeric_data")  # a joint without limits, a drive without a force limit
_DERIVED = re.compile("invweight0|subtreemass|_M0|aabb|rbound|_ipos|inertia|0$")  # of a number that is wrong elsewhere
_OPTIONS = ("timestep", "gravity", "wind", "magnetic", "density", "viscosity", "impratio")
_ELEMENT = re.compile(r"<(\w+)\b[^<>]*>")
_ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*["']([^"']*)["']""")


@contextmanager
def collect_warnings() -> Iterator[list[str]]:
    """Gives a list that the engine's warnings go to meanwhile, instead of to the screen and a file."""
    before, found = mujoco.get_mju_user_warning(), list[str]()
    mujoco.set_mju_user_warning(found.append)
    try:
        yield found
    finally:
        mujoco.set_mju_user_warning(before)


def find_nan_in_text(path: Path) -> str:
    """Returns which element of a model file has a nan, and in which line."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for element in _ELEMENT.finditer(text):
        for name, value in _ATTRIBUTE.findall(element[0]):
            if "nan" in value.lower().split() and name not in ("name", "class"):
                line = text.count("\n", 0, element.start()) + 1
                return f"{' '.join(element[0].split())[:120]} in line {line} has {name} nan"
    return "a file that the model includes holds nan"


def find_not_finite(model: mujoco.MjModel) -> str | None:
    """Returns which number of a compiled model is not finite, with the name of its element; None if all are."""
    names = [name for name in dir(model) if not name.startswith("_")]
    for name in sorted(names, key=lambda name: bool(_DERIVED.search(name))):
        values = getattr(model, name)
        if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
            continue
        wrong = np.isnan(values) if _MAY_BE_INFINITE.search(name) else ~np.isfinite(values)
        if wrong.any():
            at = tuple(int(k) for k in np.argwhere(wrong)[0])
            return f"{_element_of(model, name, at[0])} is {values[at]:g}"
    wrong_options = (name for name in _OPTIONS if not np.isfinite(getattr(model.opt, name)).all())
    return next((f"{name} of the model's option is not finite" for name in wrong_options), None)


def _element_of(model: mujoco.MjModel, name: str, index: int) -> str:
    """Returns a field of a model in words: `mass of body 'arm'`."""
    prefix, _, field = name.partition("_")
    if prefix == "dof":
        prefix, index = "jnt", int(model.dof_jntid[index])
    if prefix not in _KINDS:
        return name
    return f"{field} of {_KINDS[prefix]} '{getattr(model, prefix)(index).name or index}'"
