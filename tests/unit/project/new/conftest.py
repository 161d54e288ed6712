"""The same small projects as for `project`."""

from unit.project.conftest import arm, box_files

__all__ = ["arm", "box_files"]
