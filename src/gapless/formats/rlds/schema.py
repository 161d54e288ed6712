"""`features.json` of TensorFlow Datasets: which features an episode has, with their shapes and types."""

import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapless.formats.source import log_error

STEPS = "steps"  # the feature that holds the rows of an episode
_KINDS = ("tensor", "text", "image", "video", "audio", "classLabel", "boundingBox")


@dataclass(frozen=True)
class StepFeature:
    """One feature of an episode, or of each of its steps."""

    kind: str  # `tensor`, `text`, `image`, ...
    shape: tuple[int, ...] = ()  # -1 where it varies
    dtype: str = "string"
    encoding: str = "none"  # `bytes` or `zlib` where each value is stored as its bytes
    is_ragged: bool = False  # a list of its own length in each step

    @property
    def is_text(self) -> bool:
        """Whether it holds text."""
        return self.kind == "text" or (self.kind == "tensor" and self.dtype in ("string", "object"))

    def decode(self, values: np.ndarray | list[bytes], key: str, path: Path) -> np.ndarray:
        """Returns the numbers of all steps, (num_steps, *shape), in their own type; raises LogError for other ones."""
        dtype, num_numbers = np.dtype("int64" if self.kind == "classLabel" else self.dtype), math.prod(self.shape)
        if num_numbers < 1:
            raise log_error(f"{key} has a shape that varies, {self.shape}: pad it when you make the data set", path)
        if isinstance(values, list):
            size = num_numbers * dtype.itemsize
            if self.encoding == "zlib":
                values = [zlib.decompressobj().decompress(value, size + 1) for value in values]
            if self.encoding not in ("bytes", "zlib") or any(len(value) != size for value in values):
                raise log_error(f"{key} has values of another size than features.json says: correct that file", path)
            values = np.frombuffer(b"".join(values), dtype.newbyteorder("<"))
        if len(values) % num_numbers:
            raise log_error(f"{key} has {len(values)} numbers, not a multiple of {num_numbers}: make it again", path)
        return values.reshape(-1, *self.shape).astype(dtype)

    def describe(self) -> dict[str, Any]:
        """Returns it as features.json has it."""
        place = "tensorflow_datasets.core.features"
        if self.kind == "text":
            return {"pythonClassName": f"{place}.text_feature.Text", "text": {}}
        shape = {"dimensions": [str(size) for size in self.shape]} if self.shape else {}
        tensor = {"shape": shape, "dtype": self.dtype, "encoding": self.encoding}
        return {"pythonClassName": f"{place}.tensor_feature.Tensor", "tensor": tensor}


def list_features(node: Any, path: Path, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, StepFeature]]:
    """Yields the features of a node of features.json by names such as `steps/observation/state`."""
    kind = next((each for each in ("featuresDict", "sequence", *_KINDS) if isinstance(node, dict) and each in node), "")
    if not kind or not isinstance(node[kind], dict) or depth > 16:
        raise log_error(f"it says nothing known of {prefix or 'the episodes'}: make the data set again", path)
    about = node[kind]
    if kind == "featuresDict":
        for key, inner in dict(about.get("features", {})).items():
            yield from list_features(inner, path, f"{prefix}/{key}" if prefix else key, depth + 1)
    elif kind == "sequence":
        for key, feature in list_features(about.get("feature"), path, prefix, depth + 1):
            ragged = (
                feature if prefix == STEPS else StepFeature(feature.kind, feature.shape, feature.dtype, is_ragged=True)
            )
            yield key, ragged
    else:
        shape = tuple(int(size) for size in dict(about.get("shape", {})).get("dimensions", []))
        yield prefix, StepFeature(kind, shape, about.get("dtype", "string"), about.get("encoding", "none").lower())


def describe_features(features: Mapping[str, StepFeature]) -> dict[str, Any]:
    """Returns features.json of features."""
    tree: dict[str, Any] = {}
    for key, feature in features.items():
        *folders, last = key.split("/")
        node = tree
        for folder in folders:
            node = node.setdefault(folder, {})
        node[last] = feature
    return _describe_node(tree, "")


def _describe_node(node: Any, name: str) -> dict[str, Any]:
    if isinstance(node, StepFeature):
        return node.describe()
    place = "tensorflow_datasets.core.features"
    inner = {"features": {key: _describe_node(each, key) for key, each in node.items()}}
    found = {"pythonClassName": f"{place}.features_dict.FeaturesDict", "featuresDict": inner}
    if name != STEPS:
        return found
    return {"pythonClassName": f"{place}.dataset_feature.Dataset", "sequence": {"feature": found, "length": "-1"}}
