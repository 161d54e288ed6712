"""Training ranges out to other training stacks, and theirs back in."""

from gapless.randomize.export.registry import FORMATS, Exporter, export, exported, wanted
from gapless.randomize.foreign.read import Foreign, read_foreign

__all__ = ["FORMATS", "Exporter", "Foreign", "export", "exported", "read_foreign", "wanted"]
