from typing import Any

from pyarrow import compute as compute
from pyarrow import csv as csv
from pyarrow import parquet as parquet
from pyarrow import types as types

def __getattr__(name: str) -> Any: ...
