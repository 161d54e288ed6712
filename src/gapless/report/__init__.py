"""One self-contained HTML page, made of result records."""

from gapless.report.verb import render_page

__all__ = ["render_page"]
