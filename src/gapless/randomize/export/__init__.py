"""Training ranges written for other training stacks."""

from gapless.randomize.export.formats import FORMATS, check_exports, export_ranges, parse_exports

__all__ = ["FORMATS", "check_exports", "export_ranges", "parse_exports"]
