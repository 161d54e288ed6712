from typing import Any

from sbi import inference as inference
from sbi import neural_nets as neural_nets

def __getattr__(name: str) -> Any: ...
