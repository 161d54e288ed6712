"""Distributions over rows of parameters: what to train on."""

# pyright: reportUnusedImport=false

from gapless.core.distribution.joint import Correlation, Distribution, correlations_of, nominal_only
from gapless.core.distribution.range import KINDS, LEVELS, Kind, Level, Part, Range
from gapless.core.distribution.text import ranges_from_text, ranges_to_text
