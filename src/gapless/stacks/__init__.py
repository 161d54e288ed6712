"""Training ranges out to other training stacks, and theirs back in."""

from gapless.stacks.foreign.read import Foreign, read_foreign
from gapless.stacks.registry import FORMATS, Exporter, export, exported, wanted

__all__ = ["FORMATS", "Exporter", "Foreign", "export", "exported", "read_foreign", "wanted"]
