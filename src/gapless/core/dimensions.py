"""The dimensions of the gap between simulation and reality."""

from typing import Literal, get_args

Dimension = Literal["contact", "actuator", "latency", "sensor", "object", "environment", "visual", "human", "numerics"]

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
