from typing import Any

from mujoco import batch as batch
from mujoco import rollout as rollout

def __getattr__(name: str) -> Any: ...
