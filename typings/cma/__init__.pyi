"""What gapless uses of CMA-ES, which ships no type information."""

from typing import Any

CMAEvolutionStrategy: Any
