"""Distributions over rows of parameters: what to train on."""

# pyright: reportUnusedImport=false

from gapless.core.distribution.ranges import Correlation, Distribution, Level, Part, Range, correlations_of
from gapless.core.distribution.text import ranges_from_text, ranges_to_text
