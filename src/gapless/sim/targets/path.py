"""Paths of targets, with what layers add to the fields that are known."""

from collections.abc import Collection

from gapless.core.target_path import TargetPath, split_path
from gapless.sim.realism.registry import BY_PATH


def split_target(path: str, names: Collection[str] = ()) -> TargetPath:
    """Returns the parts of a path, whose field may be a knob of a layer; see `split_path`."""
    return split_path(path, names, is_knob)


def is_knob(field: str) -> bool:
    """Tells whether a field is a knob of a layer: `LAYER/KNOB`, or `LAYER/KNOB/AXIS`."""
    name, _, knob = field.partition("/")
    return name in BY_PATH and knob.partition("/")[0] in [known.name for known in BY_PATH[name].knobs]
