"""One self-contained HTML page from result records. Reads records only; imports `gapless.core`."""

from gapless.report.page import render_page

__all__ = ["render_page"]
