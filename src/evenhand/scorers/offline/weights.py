"""Arrays from a safetensors file by numpy alone: a length, a JSON header, raw bytes; no code."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

KINDS = {"I64": np.int64, "F32": np.float32, "F16": np.float16, "I8": np.int8, "U8": np.uint8}

Floats = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class ScorerWeights:
    arrays: Mapping[str, np.ndarray[Any, Any]]
    metadata: Mapping[str, str]
    sha256: str

    def floats(self, name: str) -> Floats:
        """An array as it was before it was packed: in 8 bits with one scale a row, or in 4 bits
        with one scale for each 32 values of a row."""
        if name in self.arrays:
            return self.arrays[name].astype(np.float32)
        scale = self.arrays[f"{name}.scale"].astype(np.float32)
        if f"{name}.int8" in self.arrays:
            return self.arrays[f"{name}.int8"].astype(np.float32) * scale
        pairs = self.arrays[f"{name}.int4"]
        rows, blocks = scale.shape
        nibbles = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(rows, blocks, -1)
        return ((nibbles.astype(np.float32) - 8.0) * scale[:, :, None]).reshape(rows, -1)


def read(path: Path) -> ScorerWeights:
    blob = path.read_bytes()
    start = 8 + int.from_bytes(blob[:8], "little")
    header = orjson.loads(blob[8:start])
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(blob[start + begin : start + end], dtype=KINDS[entry["dtype"]])
        arrays[name] = flat.reshape(entry["shape"])
    return ScorerWeights(arrays, metadata, hashlib.sha256(blob).hexdigest())
